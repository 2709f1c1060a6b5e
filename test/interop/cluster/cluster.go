package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Options says what a cluster is made of. The zero value is one broker of version Main.
type Options struct {
	Version string
	Brokers int
	// Broker holds settings of broker.conf that differ from the tests' defaults.
	Broker map[string]string
	// Flags are further flags of every broker's JVM, JVM those of every JVM: name server, brokers, mqadmin, Java peers.
	Flags, JVM []string
	// BrokerFiles and ToolsFiles are files in the conf folder of every broker's home and of mqadmin's, by name.
	BrokerFiles, ToolsFiles map[string]string
	Dir                     string // where homes and stores live; a temporary folder when empty
}

// Cluster is a running RocketMQ.
type Cluster struct {
	Version string
	NameServers
	Brokers []*Broker
	dir     string
	lib     string
	flags   []string // of the brokers
	jvm     []string // of every JVM
}

// NameServers is the one name server of a cluster.
type NameServers struct {
	Addr    string
	process *Process
	conf    string
}

// Broker is one broker of a cluster. It can be killed and started again on its store.
type Broker struct {
	Name    string
	Addr    string
	Process *Process
	cluster *Cluster
	conf    string
	home    string
	flags   []string
}

// New starts a cluster and ends it with the test.
func New(tb testing.TB, o Options) *Cluster {
	tb.Helper()
	if o.Dir == "" {
		o.Dir = tb.TempDir()
	}
	if _, err := Lib(tb.Context(), cmp.Or(o.Version, Main)); err != nil { // which may take longer than a start
		tb.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(tb.Context(), 6*time.Minute)
	defer cancel()
	c, err := Run(ctx, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

// Run starts a cluster; the caller closes it.
func Run(ctx context.Context, o Options) (*Cluster, error) {
	if o.Version == "" {
		o.Version = Main
	}
	lib, err := Lib(ctx, o.Version)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Version: o.Version, dir: o.Dir, lib: lib, flags: o.Flags, jvm: o.JVM}
	port, err := freePorts(ctx, 1)
	if err != nil {
		return nil, err
	}
	c.Addr = fmt.Sprintf("127.0.0.1:%d", port)
	if err := errors.Join(makeHome(c.toolsHome()), writeFiles(c.toolsHome(), o.ToolsFiles)); err != nil {
		return nil, err
	}
	if c.conf, err = writeFile(c.dir, "ns.conf", fmt.Sprintf("listenPort=%d\n", port)); err != nil {
		return nil, err
	}
	if err := c.StartNameServer(ctx); err != nil {
		c.Close()
		return nil, err
	}
	for i := range max(1, o.Brokers) {
		if err := c.addBroker(ctx, "broker-"+string(rune('a'+i)), o); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

func (c *Cluster) toolsHome() string { return filepath.Join(c.dir, "tools-home") }

// StartNameServer starts the name server, again after StopNameServer on the same address.
func (c *Cluster) StartNameServer(ctx context.Context) error {
	home := filepath.Join(c.dir, "ns-home")
	if err := makeHome(home); err != nil {
		return err
	}
	p, err := c.java("name server", home, []string{"-Xms128m", "-Xmx128m"}, "org.apache.rocketmq.namesrv.NamesrvStartup", "-c", c.conf)
	if err != nil {
		return err
	}
	c.process = p
	_, err = p.WaitLine(ctx, func(l string) bool { return strings.Contains(l, "boot success") })
	return err
}

// StopNameServer kills the name server.
func (c *Cluster) StopNameServer() { c.process.Kill() }

func (c *Cluster) addBroker(ctx context.Context, name string, o Options) error {
	port, err := freePorts(ctx, 3) // the broker also opens port-2 ("vip") and port+1 (replication)
	if err != nil {
		return err
	}
	port += 2
	home := filepath.Join(c.dir, name)
	all := map[string]string{
		"brokerClusterName": "DefaultCluster", "brokerName": name, "brokerId": "0",
		"listenPort": fmt.Sprint(port), "namesrvAddr": c.Addr, "brokerIP1": "127.0.0.1",
		"storePathRootDir": filepath.Join(home, "store"), "storePathCommitLog": filepath.Join(home, "store", "commitlog"),
		"mappedFileSizeCommitLog": "134217728", "autoCreateTopicEnable": "true", "enablePropertyFilter": "true",
		"flushDiskType": "ASYNC_FLUSH", "diskMaxUsedSpaceRatio": "99", "cleanFileForciblyEnable": "false", // whatever else is on the disk
		"messageDelayLevel": "1s 2s 3s 4s 5s 6s 7s 8s 9s 10s 11s 12s 13s 14s 15s 16s 17s 18s",
		// A machine under load must not make the broker refuse what waited in its queues: sends, after 0.2 s already.
		"waitTimeMillsInSendQueue": "30000", "waitTimeMillsInPullQueue": "30000", "waitTimeMillsInTransactionQueue": "30000",
		"waitTimeMillsInAdminBrokerQueue": "60000", "osPageCacheBusyTimeOutMills": "30000",
	}
	maps.Copy(all, o.Broker)
	var text strings.Builder
	for _, k := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&text, "%s=%s\n", k, all[k])
	}
	conf, err := writeFile(home, "broker.conf", text.String())
	if err != nil {
		return err
	}
	if err := errors.Join(makeHome(home), writeFiles(home, o.BrokerFiles)); err != nil {
		return err
	}
	b := &Broker{Name: name, Addr: fmt.Sprintf("127.0.0.1:%d", port), cluster: c, conf: conf, home: home, flags: c.flags}
	c.Brokers = append(c.Brokers, b)
	return b.Start(ctx)
}

// makeHome makes a home folder. 4.9 does not start without the configuration of its logs, 5.x looks elsewhere.
func makeHome(home string) error {
	for _, program := range []string{"namesrv", "broker", "tools"} {
		if _, err := writeFile(filepath.Join(home, "conf"), "logback_"+program+".xml", "<configuration/>\n"); err != nil {
			return err
		}
	}
	return nil
}

func writeFiles(home string, files map[string]string) error {
	for name, text := range files {
		if _, err := writeFile(filepath.Join(home, "conf"), name, text); err != nil {
			return err
		}
	}
	return nil
}

// Rewrite replaces a file in the conf folder of the broker's home, at once: a broker that looks sees one or the other.
func (b *Broker) Rewrite(name, text string) error {
	path, err := writeFile(filepath.Join(b.home, "conf"), name+".new", text)
	if err != nil {
		return err
	}
	return os.Rename(path, strings.TrimSuffix(path, ".new"))
}

// Start starts the broker, again after Kill on the same address and store.
func (b *Broker) Start(ctx context.Context) error {
	flags := []string{
		"-Xms512m", "-Xmx512m", "-XX:MaxDirectMemorySize=1g", "-XX:+UseSerialGC",
		"--add-exports=java.base/sun.nio.ch=ALL-UNNAMED", "--add-opens=java.base/java.nio=ALL-UNNAMED",
		"--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED", // without it 4.9 cannot let go of a file of its log
	}
	p, err := b.cluster.java(b.Name, b.home, append(flags, b.flags...), "org.apache.rocketmq.broker.BrokerStartup", "-c", b.conf)
	if err != nil {
		return err
	}
	b.Process = p
	_, err = p.WaitLine(ctx, func(l string) bool { return strings.Contains(l, "boot success") })
	return err
}

// Kill ends the broker as kill -9 does.
func (b *Broker) Kill() { b.Process.Kill() }

// Close ends everything. A broker is killed: its store goes with the folder.
func (c *Cluster) Close() {
	for _, b := range c.Brokers {
		if b.Process != nil {
			b.Process.Kill()
		}
	}
	if c.process != nil {
		c.process.Kill()
	}
}

func (c *Cluster) java(name, home string, flags []string, class string, args ...string) (*Process, error) {
	all := append(slices.Concat(flags, []string{"-XX:TieredStopAtLevel=4"}, c.jvm), "-Drocketmq.home.dir="+home, "-Duser.home="+home,
		"-cp", filepath.Join(c.lib, "*"), class)
	cmd := exec.Command("java", append(all, args...)...) //nolint:noctx // ended by Close, not by a context
	cmd.Dir = c.dir
	return spawn(name, cmd)
}

// freePorts returns the first of n neighboring ports that are free now, on every address: RocketMQ binds the one of all of them.
// They lie below the range that Linux gives to outgoing connections (32768 on): a JVM binds them seconds later, and a broker that
// was killed binds them again. Until then nobody else gets them here: see reserve.
func freePorts(ctx context.Context, n int) (int, error) {
	var listen net.ListenConfig
next:
	for range 100 {
		first := 10000 + rand.IntN(22000)
		var open []net.Listener
		for i := range n {
			l, err := listen.Listen(ctx, "tcp4", fmt.Sprintf("0.0.0.0:%d", first+i))
			if err != nil {
				closeAll(open)
				continue next
			}
			open = append(open, l)
		}
		closeAll(open)
		if reserve(ctx, first, n) {
			return first, nil
		}
	}
	return 0, fmt.Errorf("no %d neighboring free ports found", n)
}

// reserve takes ports for this process as long as it lives, among all processes that ask here: test packages run side by side. A
// socket in the abstract name space stands for each; it goes with the process.
func reserve(ctx context.Context, first, n int) bool {
	var listen net.ListenConfig
	var taken []net.Listener
	for i := range n {
		l, err := listen.Listen(ctx, "unix", fmt.Sprintf("@streamd-interop-port-%d", first+i))
		if err != nil {
			closeAll(taken)
			return false
		}
		taken = append(taken, l)
	}
	reserved.Lock()
	defer reserved.Unlock()
	reserved.all = append(reserved.all, taken...)
	return true
}

// reserved keeps what stands for this process's ports.
var reserved struct { //nolint:gochecknoglobals // a port is reserved among all that this process runs, and until it ends
	sync.Mutex
	all []net.Listener
}

func closeAll(ls []net.Listener) {
	for _, l := range ls {
		_ = l.Close() // only probed
	}
}
