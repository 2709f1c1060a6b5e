package main

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	goruntime "runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/streamd/streamd/internal/broker"
)

// TestScripts runs testdata/script: real processes, real signals, an in-memory broker on a real port.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("NAMESRV_ADDR", "")
			env.Setenv("HOME", env.WorkDir)
			env.Values["stage"] = &stage{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"broker": cmdBroker, "put": cmdPut, "stored": cmdStored, "await": cmdAwait,
			"start": cmdStart, "scrape": cmdScrape, "signal": cmdSignal, "exit": cmdExit, "committed": cmdCommitted,
			"commit": cmdCommit, "address": cmdAddress, "status": cmdStatus, "certificates": cmdCertificates, "shows": cmdShows,
			"echoed": cmdEchoed, "refused": cmdRefused,
		},
	})
}

// stage is what a script has started.
type stage struct {
	broker  *broker.Broker
	streamd map[string]*process
}

// process is a streamd in the background.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

func of(ts *testscript.TestScript) *stage { return ts.Value("stage").(*stage) }

// patience bounds every wait of a script: a slow machine must not fail one.
const patience = 3 * time.Minute

// eventually waits until ok says yes, and tells what was missing when it does not.
func eventually(ts *testscript.TestScript, ok func() (bool, string)) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		yes, missing := ok()
		if yes {
			return
		}
		select {
		case <-ticker.C:
		case <-late.C:
			ts.Fatalf("after %s: %s", patience, missing)
		}
	}
}

// broker TOPIC...: starts a broker with these topics and sets $BROKER to its address. $ASKS is when producers are asked.
func cmdBroker(ts *testscript.TestScript, _ bool, topics []string) {
	asks, err := time.ParseDuration(cmp.Or(ts.Getenv("ASKS"), "1s"))
	ts.Check(err)
	b := broker.New(broker.Config{
		DelayLevels:        []time.Duration{10 * time.Millisecond, 20 * time.Millisecond, 30 * time.Millisecond, 40 * time.Millisecond},
		TransactionTimeout: asks,
	})
	ts.Check(b.Start())
	ts.Defer(func() { ts.Check(b.Close()) })
	of(ts).broker = b
	ts.Setenv("BROKER", b.Address())
	for _, topic := range topics {
		b.CreateTopic(topic, 4)
	}
}

// put TOPIC BODY...: stores messages.
func cmdPut(ts *testscript.TestScript, _ bool, args []string) {
	for i, body := range args[1:] {
		ts.Check(of(ts).broker.Put(broker.Message{Topic: args[0], Queue: int32(i % 4), Body: []byte(body)}))
	}
}

// stored TOPIC N: waits until the broker holds N messages of a topic.
func cmdStored(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	eventually(ts, func() (bool, string) {
		got := len(of(ts).broker.Messages(args[0]))
		return got == n, fmt.Sprintf("%s holds %d messages, want %d", args[0], got, n)
	})
}

// committed GROUP TOPIC N: waits until the committed offsets of a topic's queues add up to N.
func cmdCommitted(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.ParseInt(args[2], 10, 64)
	ts.Check(err)
	eventually(ts, func() (bool, string) {
		sum := int64(0)
		for q := range int32(4) {
			if offset, ok := of(ts).broker.Committed(args[0], args[1], q); ok {
				sum += offset
			}
		}
		return sum == n, fmt.Sprintf("%s has committed %d of %s, want %d", args[0], sum, args[1], n)
	})
}

// commit GROUP TOPIC QUEUE OFFSET: stores an offset, as a member would.
func cmdCommit(ts *testscript.TestScript, _ bool, args []string) {
	queue, err := strconv.ParseInt(args[2], 10, 32)
	ts.Check(err)
	offset, err := strconv.ParseInt(args[3], 10, 64)
	ts.Check(err)
	of(ts).broker.Commit(args[0], args[1], int32(queue), offset)
}

// scrape REGEXP: waits until /metrics of the streamd whose address is in state/admin.addr has a match.
func cmdScrape(ts *testscript.TestScript, _ bool, args []string) {
	re := regexp.MustCompile("(?m)" + args[0])
	addr := strings.TrimSpace(ts.ReadFile("state/admin.addr"))
	eventually(ts, func() (bool, string) {
		response, err := http.Get("http://" + addr + "/metrics")
		if err != nil {
			return false, err.Error()
		}
		defer response.Body.Close() //nolint:errcheck // only read
		text, err := io.ReadAll(response.Body)
		ts.Check(err)
		return re.Match(text), fmt.Sprintf("/metrics has no %s", re)
	})
}

// await FILE REGEXP [N]: waits until a file has N matches, or one.
func cmdAwait(ts *testscript.TestScript, _ bool, args []string) {
	n := 1
	if len(args) > 2 {
		var err error
		n, err = strconv.Atoi(args[2])
		ts.Check(err)
	}
	re := regexp.MustCompile("(?m)" + args[1])
	path := ts.MkAbs(args[0])
	eventually(ts, func() (bool, string) {
		text, err := os.ReadFile(path)
		if err != nil {
			return false, err.Error()
		}
		return len(re.FindAll(text, -1)) >= n, fmt.Sprintf("%s has too few matches of %s:\n%s", args[0], args[1], text)
	})
}

// told finds the address that a log or a broker's introduction tells.
var told = regexp.MustCompile(`(?:"address":"|NAMESRV_ADDR=)([0-9.]+:[0-9]+)`)

// address FILE: waits until a file tells an address, and sets $BROKER to the last one.
func cmdAddress(ts *testscript.TestScript, _ bool, args []string) {
	eventually(ts, func() (bool, string) {
		text := ts.ReadFile(args[0])
		found := told.FindAllStringSubmatch(text, -1)
		if len(found) > 0 {
			ts.Setenv("BROKER", found[len(found)-1][1])
		}
		return len(found) > 0, fmt.Sprintf("%s tells no address:\n%s", args[0], text)
	})
}

// status STATEDIR REGEXP: waits until /api/v1/status of the streamd with that state folder has a match.
func cmdStatus(ts *testscript.TestScript, _ bool, args []string) {
	re := regexp.MustCompile("(?m)" + args[1])
	addr := strings.TrimSpace(ts.ReadFile(args[0] + "/admin.addr"))
	eventually(ts, func() (bool, string) {
		response, err := http.Get("http://" + addr + "/api/v1/status")
		if err != nil {
			return false, err.Error()
		}
		defer response.Body.Close() //nolint:errcheck // only read
		text, err := io.ReadAll(response.Body)
		ts.Check(err)
		return re.Match(text), fmt.Sprintf("the status has no %s:\n%s", re, text)
	})
}

// shows REGEXP COMMAND...: runs a command of streamd until it succeeds and its output has a match.
func cmdShows(ts *testscript.TestScript, _ bool, args []string) {
	re := regexp.MustCompile("(?m)" + args[0])
	eventually(ts, func() (bool, string) {
		err := ts.Exec("streamd", args[1:]...)
		text := ts.ReadFile("stdout")
		return err == nil && re.MatchString(text), fmt.Sprintf("%v: %v, and no %s in\n%s", args[1:], err, re, text)
	})
}

// certificates: makes ca.pem, and server.pem, client.pem, stranger.pem with their .key; stranger's is of another authority.
func cmdCertificates(ts *testscript.TestScript, _ bool, _ []string) {
	ours, theirs := newAuthority(ts), newAuthority(ts)
	ts.Check(os.WriteFile(ts.MkAbs("ca.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ours.cert.Raw}), 0o600))
	ours.issue(ts, "server")
	ours.issue(ts, "client")
	theirs.issue(ts, "stranger")
}

type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(ts *testscript.TestScript) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	ts.Check(err)
	cert, err := x509.ParseCertificate(der)
	ts.Check(err)
	return &authority{key, cert}
}

func (a *authority) issue(ts *testscript.TestScript, name string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	ts.Check(err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(name+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
}

// start NAME ARG...: runs streamd in the background, its log in the file NAME.log. It may take long to stop cleanly.
func cmdStart(ts *testscript.TestScript, _ bool, args []string) {
	log, err := os.Create(ts.MkAbs(args[0] + ".log"))
	ts.Check(err)
	path, err := exec.LookPath("streamd")
	ts.Check(err)
	cmd := exec.Command(path, args[1:]...)
	cmd.Dir, cmd.Stderr, cmd.Stdout = ts.MkAbs("."), log, log
	cmd.Env = append(os.Environ(), "STREAMD_SHUTDOWN_TIMEOUT="+patience.String(), "HOME="+ts.Getenv("HOME"), "NAMESRV_ADDR="+ts.Getenv("NAMESRV_ADDR"), "BROKER="+ts.Getenv("BROKER"), "TMPDIR="+ts.Getenv("TMPDIR"), "SECRET="+ts.Getenv("SECRET"))
	ts.Check(cmd.Start())
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // exit tells the code
	}()
	s := of(ts)
	if s.streamd == nil {
		s.streamd = map[string]*process{}
	}
	s.streamd[args[0]] = p
	ts.Defer(func() {
		_ = p.cmd.Process.Kill() // it may have ended by now
		<-p.done
		ts.Check(log.Close())
	})
}

// signal NAME TERM|INT|HUP|KILL...: signals a started streamd, with each as soon as it has taken the one before.
func cmdSignal(ts *testscript.TestScript, _ bool, args []string) {
	signals := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL}
	p := of(ts).streamd[args[0]].cmd.Process
	for i, name := range args[1:] {
		if i > 0 {
			taken(ts, p.Pid, signals[args[i]])
		}
		ts.Check(p.Signal(signals[name]))
	}
}

// pending finds the signals that a process has not taken yet.
var pending = regexp.MustCompile(`(?m)^ShdPnd:\s*([0-9a-f]+)$`)

// taken waits, without a pause, until a process has taken a signal: a second one would be one with the first until then.
func taken(ts *testscript.TestScript, pid int, s syscall.Signal) {
	for late := time.Now().Add(patience); time.Now().Before(late); goruntime.Gosched() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		ts.Check(err)
		found := pending.FindSubmatch(text)
		if found == nil {
			ts.Fatalf("no pending signals in\n%s", text)
		}
		set, err := strconv.ParseUint(string(found[1]), 16, 64)
		ts.Check(err)
		if set&(1<<(s-1)) == 0 {
			return
		}
	}
	ts.Fatalf("%s is not taken", s)
}

// echoed NAME ARG...: runs streamd, and once it has an order in hand sends it SIGTERM twice at once. It has to end cleanly. A
// machine that is busy may have more time pass between the two than streamd takes for an echo: then it is tried again.
func cmdEchoed(ts *testscript.TestScript, _ bool, args []string) {
	const tries = 5
	for try := 1; ; try++ {
		cmdStart(ts, false, args)
		cmdAwait(ts, false, []string{args[0] + ".log", `"got an order"`})
		cmdSignal(ts, false, []string{args[0], "TERM", "TERM"})
		p := of(ts).streamd[args[0]]
		eventually(ts, func() (bool, string) { return p.ended(), args[0] + " has not ended" })
		if p.cmd.ProcessState.ExitCode() != 143 || try == tries {
			cmdExit(ts, false, []string{args[0], "0"})
			return
		}
	}
}

// refused NAME CODE ARG...: runs streamd, which has to end with a code because a plugin refuses its config. A machine that is
// busy may have the plugin come up later than a start waits for it, and the start goes on: then it is tried again.
func cmdRefused(ts *testscript.TestScript, _ bool, args []string) {
	start := append([]string{args[0]}, args[2:]...)
	eventually(ts, func() (bool, string) {
		cmdStart(ts, false, start)
		p := of(ts).streamd[args[0]]
		late := false
		eventually(ts, func() (bool, string) {
			text := ts.ReadFile(args[0] + ".log")
			late = strings.Contains(text, "a plugin is not ready; its streams wait")
			return late || p.ended(), args[0] + " neither ends nor goes on"
		})
		if late {
			_ = p.cmd.Process.Kill() // it may have ended by now
			<-p.done
			return false, "the plugin never came up in time"
		}
		cmdExit(ts, false, args[:2])
		return true, ""
	})
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// exit NAME CODE: waits until a started streamd has ended, and compares its exit code.
func cmdExit(ts *testscript.TestScript, _ bool, args []string) {
	p := of(ts).streamd[args[0]]
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-p.done:
	case <-late.C:
		ts.Fatalf("%s has not ended after %s", args[0], patience)
	}
	if got := strconv.Itoa(p.cmd.ProcessState.ExitCode()); got != strings.TrimSpace(args[1]) {
		log, err := os.ReadFile(ts.MkAbs(args[0] + ".log"))
		ts.Check(err)
		ts.Fatalf("%s ended with %s, want %s:\n%s", args[0], got, args[1], log)
	}
}
