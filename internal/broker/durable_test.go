package broker_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/broker/faultfs"
	"github.com/streamd/streamd/internal/broker/memnet"
	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// machine is where a broker runs that loses its power: what was not synchronized is gone.
type machine struct {
	net    memnet.Network
	fs     *vfs.MemFS
	config broker.Config
	*broker.Broker
}

func onMachine(t *testing.T, c broker.Config, f func(t *testing.T, m *machine)) {
	t.Helper()
	bubbletest.Run(t, func(t *testing.T) {
		m := &machine{fs: vfs.NewCrashableMem(), config: c}
		m.start(t)
		f(t, m)
	})
}

func (m *machine) start(t *testing.T) {
	t.Helper()
	c := m.config
	c.Listen, c.Address, c.DataDir, c.Files = m.net.Listen, "10.0.0.1:10911", "data", m.fs
	m.Broker = startBroker(t, c)
}

// powerLoss takes what is on the disk now and goes on with that.
func (m *machine) powerLoss(t *testing.T) {
	t.Helper()
	m.fs = m.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0, RNG: rand.New(rand.NewPCG(1, 1))})
	if err := m.Close(); err != nil { // Frees the port. What it writes now goes to the disk of before.
		t.Fatal(err)
	}
	m.start(t)
}

func (m *machine) dial(t *testing.T) *rawClient {
	t.Helper()
	return dial(t, m.net.DialContext, m.Address(), "c1")
}

func TestPowerLoss_keepsWhatWasAnswered(t *testing.T) {
	t.Parallel()
	onMachine(t, broker.Config{}, func(t *testing.T, m *machine) {
		t.Helper()
		c := m.dial(t)
		for i := range 10 {
			c.send("T", 0, strconv.Itoa(i), fmt.Sprintf("UNIQ_KEY\x01U%d\x02KEYS\x01order-%d\x02", i, i), nil)
		}
		c.ok(wire.ReqUpdateAndCreateTopic, ext{"topic": "Made", "readQueueNums": 3, "writeQueueNums": 3, "perm": 6, "topicFilterType": "SINGLE_TAG"}, nil)
		c.ok(wire.ReqUpdateSubscriptionGroup, nil, []byte(`{"groupName":"G","retryMaxTimes":3,"retryQueueNums":1,"consumeEnable":true}`))
		c.ok(wire.ReqUpdateConsumerOffset, ext{"consumerGroup": "G", "topic": "T", "queueId": 0, "commitOffset": 7}, nil)
		c.ok(wire.ReqPutKVConfig, ext{"namespace": "N", "key": "K", "value": "V"}, nil)
		m.powerLoss(t)
		stored := m.Messages("T")
		if len(stored) != 10 || string(stored[9].Body) != "9" || stored[9].ID != "U9" {
			t.Fatalf("%d messages", len(stored))
		}
		if topic, ok := m.Topic("Made"); !ok || topic.ReadQueues != 3 {
			t.Errorf("topic %+v, %t", topic, ok)
		}
		if g, ok := m.Group("G"); !ok || g.RetryMaxTimes != 3 {
			t.Errorf("group %+v, %t", g, ok)
		}
		if offset, ok := m.Committed("G", "T", 0); !ok || offset != 7 {
			t.Errorf("offset %d, %t", offset, ok)
		}
		c = m.dial(t)
		if v := c.ok(wire.ReqGetKVConfig, ext{"namespace": "N", "key": "K"}, nil).Ext.Get("value"); v != "V" {
			t.Errorf("key-value config %q", v)
		}
		found := c.ok(wire.ReqQueryMessage, ext{"topic": "T", "key": "order-4", "maxNum": 32, "beginTimestamp": 0, "endTimestamp": int64(1 << 60)}, nil)
		if all := decodeAll(t, found.Body); len(all) != 1 || string(all[0].Body) != "4" {
			t.Errorf("by key: %+v", all)
		}
		// New ones go on behind the old ones.
		if a := c.send("T", 0, "10", "", nil); a.Ext.Get("queueOffset") != "10" {
			t.Errorf("the next offset is %s", a.Ext.Get("queueOffset"))
		}
	})
}

// TestPowerLoss_deliversOnce has many messages wait for their time, and the power go again and again, also while they
// are delivered.
func TestPowerLoss_deliversOnce(t *testing.T) {
	t.Parallel()
	onMachine(t, broker.Config{}, func(t *testing.T, m *machine) {
		t.Helper()
		began := time.Now()
		random := rand.New(rand.NewPCG(5, 6))
		due := map[string]time.Time{}
		for i := range 400 {
			id, delay := strconv.Itoa(i), time.Duration(1+random.IntN(100))*time.Second
			due[id] = began.Add(delay)
			property := map[string]string{"TIMER_DELIVER_MS": strconv.FormatInt(due[id].UnixMilli(), 10)}
			if i%4 == 0 {
				property, due[id] = map[string]string{"DELAY": "4"}, time.Now().Add(30*time.Second)
			}
			if err := m.Put(broker.Message{Topic: "T", Body: []byte(id), Properties: property}); err != nil {
				t.Fatal(err)
			}
		}
		var losses []time.Time
		for range 12 {
			pause(t, time.Duration(random.IntN(9000))*time.Millisecond)
			m.powerLoss(t)
			losses = append(losses, time.Now())
		}
		pause(t, 2*time.Minute)
		seen := map[string]bool{}
		for _, s := range m.Messages("T") {
			id := string(s.Body)
			if seen[id] {
				t.Errorf("message %s was delivered twice", id)
			}
			seen[id] = true
			if late := s.Stored.Sub(due[id]); late < 0 || late > 100*time.Millisecond {
				t.Errorf("message %s came %v after its time", id, late)
			}
		}
		if len(seen) != 400 || m.Delayed() != 0 || len(losses) != 12 {
			t.Errorf("%d messages were delivered, %d still wait", len(seen), m.Delayed())
		}
	})
}

func TestPowerLoss_keepsTransactions(t *testing.T) {
	t.Parallel()
	onMachine(t, broker.Config{MemberTTL: time.Hour, IdleTimeout: time.Hour}, func(t *testing.T, m *machine) {
		t.Helper()
		c := m.dial(t)
		half := func(id string) ext {
			t.Helper()
			a := c.send("T", 0, id, "UNIQ_KEY\x01"+id+"\x02TRAN_MSG\x01true\x02PGROUP\x01PG\x02", ext{"f": 4})
			_, offset, err := wire.ParseOffsetID(a.Ext.Get("msgId"))
			if err != nil {
				t.Fatal(err)
			}
			return ext{
				"producerGroup": "PG", "tranStateTableOffset": a.Ext.Get("queueOffset"), "commitLogOffset": offset, "msgId": id,
				"fromTransactionCheck": false,
			}
		}
		end := func(e ext, outcome int32) {
			t.Helper()
			e["commitOrRollback"] = outcome
			if a := c.call(wire.ReqEndTransaction, e, nil); a.Code != 0 {
				t.Fatalf("ending: %d %q", a.Code, a.Remark)
			}
		}
		first, second, third := half("1"), half("2"), half("3")
		end(first, wire.SysFlagCommit)
		m.powerLoss(t)
		c = m.dial(t)
		end(first, wire.SysFlagCommit) // Ended before: nothing more is stored.
		end(second, wire.SysFlagRollback)
		m.powerLoss(t)
		c = m.dial(t)
		c.ok(wire.ReqHeartbeat, nil, []byte(`{"clientID":"c1","producerDataSet":[{"groupName":"PG"}],"consumerDataSet":[]}`))
		check := c.waitPush(wire.ReqCheckTransactionState)
		if id := check.Ext.Get("msgId"); id != "3" {
			t.Fatalf("asked for %s, only 3 is open", id)
		}
		end(third, wire.SysFlagCommit)
		m.powerLoss(t)
		var bodies []string
		for _, s := range m.Messages("T") {
			bodies = append(bodies, string(s.Body))
		}
		if got := strings.Join(bodies, " "); got != "1 3" {
			t.Errorf("committed: %s", got)
		}
	})
}

func TestFullDisk_refusesSendsAndRecovers(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		var net memnet.Network
		fs := faultfs.New(vfs.NewMem())
		b := startBroker(t, broker.Config{Listen: net.Listen, Address: "10.0.0.1:10911", DataDir: "data", Files: fs, MinFree: 100 << 20})
		c := dial(t, net.DialContext, b.Address(), "c1")
		c.send("T", 0, "0", "", nil)
		fs.SetUsage(10<<30, 50<<20)
		pause(t, time.Second)
		for code, e := range map[wire.RequestCode]ext{
			wire.ReqSendBack: {"group": "G", "offset": b.Messages("T")[0].LogOffset, "delayLevel": 1, "originTopic": "T"},
		} {
			if a := c.call(code, e, nil); a.ResponseCode() != wire.RespServiceNotAvailable {
				t.Errorf("%s on a full disk: %d %q", code, a.Code, a.Remark)
			}
		}
		a := c.trySend("T", 0, "refused")
		if a.ResponseCode() != wire.RespServiceNotAvailable || !strings.Contains(a.Remark, "the disk is full") || a.Ext.Get(wire.PropRegion) == "" {
			t.Errorf("a send on a full disk: %d %q %v", a.Code, a.Remark, a.Ext)
		}
		if a := c.call(wire.ReqPullMessage, pullFields("G", "T", 0, 0, 0), nil); a.Code != 0 {
			t.Errorf("a pull on a full disk: %d %q", a.Code, a.Remark)
		}
		c.ok(wire.ReqUpdateConsumerOffset, ext{"consumerGroup": "G", "topic": "T", "queueId": 0, "commitOffset": 1}, nil)
		fs.SetUsage(10<<30, 5<<30)
		pause(t, time.Second)
		c.send("T", 0, "1", "", nil)
		if n := len(b.Messages("T")); n != 2 {
			t.Errorf("%d messages, want 2", n)
		}
	})
}

func (c *rawClient) trySend(topic string, queue int, body string) *wire.Command {
	c.t.Helper()
	return c.call(wire.ReqSendMessageV2, ext{
		"a": "P", "b": topic, "c": "TBW102", "d": 4, "e": queue, "f": 0, "g": 1, "h": 0, "i": "", "j": 0, "k": false, "m": false,
	}, []byte(body))
}

// TestFailedDisk_isSaid is a disk whose synchronization fails: nobody is told that something is stored, or that there is
// nothing, until the store is open again.
func TestFailedDisk_isSaid(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		var net memnet.Network
		fs := faultfs.New(vfs.NewMem())
		b := startBroker(t, broker.Config{Listen: net.Listen, Address: "10.0.0.1:10911", DataDir: "data", Files: fs})
		c := dial(t, net.DialContext, b.Address(), "c1")
		c.send("T", 0, "0", "", nil)
		b.PutGroup(b.NewGroup("G"))
		c.ok(wire.ReqUpdateConsumerOffset, ext{"consumerGroup": "G", "topic": "T", "queueId": 0, "commitOffset": 1}, nil)
		_, lift := fs.Inject(faultfs.Fault{Op: faultfs.Sync, Suffix: ".log", Err: syscall.EIO})
		for range 2 {
			if a := c.trySend("T", 0, "x"); a.ResponseCode() != wire.RespServiceNotAvailable {
				t.Errorf("a send: %d %q", a.Code, a.Remark)
			}
		}
		if a := c.call(wire.ReqQueryConsumerOffset, ext{"consumerGroup": "G", "topic": "T", "queueId": 0}, nil); a.ResponseCode() != wire.RespServiceNotAvailable {
			t.Errorf("an offset query: %d %q %v", a.Code, a.Remark, a.Ext)
		}
		lift()
		pause(t, 30*time.Second)
		a := c.ok(wire.ReqQueryConsumerOffset, ext{"consumerGroup": "G", "topic": "T", "queueId": 0}, nil)
		if a.Ext.Get("offset") != "1" {
			t.Errorf("offset %v", a.Ext)
		}
		c.send("T", 0, "1", "", nil)
	})
}

// TestUnstored_isNotRead holds the disk: what is not stored is not seen, and the pull that waits for it gets it then.
func TestUnstored_isNotRead(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		var net memnet.Network
		fs := faultfs.New(vfs.NewMem())
		b := startBroker(t, broker.Config{Listen: net.Listen, Address: "10.0.0.1:10911", DataDir: "data", Files: fs})
		b.CreateTopic("T", 1)
		sender, reader := dial(t, net.DialContext, b.Address(), "c1"), dial(t, net.DialContext, b.Address(), "c2")
		sender.send("T", 0, "0", "", nil)
		waiting := reader.start(wire.ReqPullMessage, pullFields("G", "T", 0, 1, time.Minute), nil)
		synctest.Wait()
		_, lift := fs.Inject(faultfs.Fault{Op: faultfs.Write, Suffix: ".log", Err: syscall.ENOSPC})
		if a := sender.trySend("T", 0, "1"); a.ResponseCode() != wire.RespServiceNotAvailable {
			t.Errorf("a send: %d %q", a.Code, a.Remark)
		}
		if _, next := b.Bounds("T", 0); next != 1 {
			t.Errorf("the queue ends at %d although nothing more is stored", next)
		}
		lift()
		if m := decodeAll(t, reader.await(waiting, time.Minute).Body); len(m) != 1 || string(m[0].Body) != "1" {
			t.Errorf("pulled %+v", m)
		}
	})
}

func TestDataFolder_onlyOnce(t *testing.T) {
	t.Parallel()
	c := broker.Config{DataDir: t.TempDir()}
	startBroker(t, c)
	second := broker.New(c)
	if err := second.Start(); !errors.Is(err, store.ErrInUse) || !strings.Contains(err.Error(), c.DataDir) {
		t.Errorf("a second broker on the folder: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

// TestStart_takesThePortFirst: a broker that cannot run leaves no folder behind.
func TestStart_takesThePortFirst(t *testing.T) {
	t.Parallel()
	running := startBroker(t, broker.Config{})
	for name, c := range map[string]broker.Config{
		"port in use":    {Address: running.Address()},
		"nobody's name":  {Advertise: "no.such.host.invalid:1"},
		"every address":  {Advertise: "0.0.0.0:9876"},
		"no host at all": {Advertise: "9876"},
	} {
		c.DataDir = filepath.Join(t.TempDir(), "data")
		b := broker.New(c)
		if err := b.Start(); err == nil {
			t.Errorf("%s: it starts", name)
		}
		if _, err := os.Stat(c.DataDir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the folder was made, %v", name, err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDataFolder_ofSomethingElse is refused and left as it was. What systems leave everywhere does not count.
func TestDataFolder_ofSomethingElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"lost+found", ".keep", "thesis.tex"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := broker.New(broker.Config{DataDir: dir})
	if err := b.Start(); !errors.Is(err, store.ErrForeign) || !strings.Contains(err.Error(), "thesis.tex") || !strings.Contains(err.Error(), dir) {
		t.Errorf("a folder with something else: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 3 {
		t.Errorf("the folder has %v now, %v", entries, err)
	}
	if err := os.Remove(filepath.Join(dir, "thesis.tex")); err != nil {
		t.Fatal(err)
	}
	if err := startBroker(t, broker.Config{DataDir: dir}).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "README"), []byte("what this is"), 0o600); err != nil {
		t.Fatal(err)
	}
	startBroker(t, broker.Config{DataDir: dir})
}

// TestSettings_lastOverARestart until they are set back to what the config says.
func TestSettings_lastOverARestart(t *testing.T) {
	t.Parallel()
	onMachine(t, broker.Config{MaxBody: 1000}, func(t *testing.T, m *machine) {
		t.Helper()
		set := func(code wire.RequestCode, text string) {
			t.Helper()
			m.dial(t).ok(code, nil, []byte(text))
			m.powerLoss(t)
		}
		has := func(code wire.RequestCode, settings ...string) {
			t.Helper()
			body := "\n" + string(m.dial(t).ok(code, nil, nil).Body)
			for _, s := range settings {
				if !strings.Contains(body, "\n"+s+"\n") {
					t.Errorf("%s is not among the settings:%s", s, body)
				}
			}
		}
		set(wire.ReqUpdateBrokerConfig, "maxMessageSize=200\nbrokerPermission=4\nautoCreateSubscriptionGroup=false\nautoCreateTopicEnable=false\nuseServerSideResetOffset=false")
		has(wire.ReqGetBrokerConfig, "maxMessageSize=200", "brokerPermission=4", "autoCreateSubscriptionGroup=false", "autoCreateTopicEnable=false", "useServerSideResetOffset=false")
		set(wire.ReqUpdateNameServerConfig, "orderMessageEnable=false")
		has(wire.ReqGetNameServerConfig, "orderMessageEnable=false")
		has(wire.ReqGetBrokerConfig, "maxMessageSize=200")
		set(wire.ReqUpdateBrokerConfig, "maxMessageSize=1000\nautoCreateTopicEnable=true")
		m.config.MaxBody = 3000
		m.powerLoss(t)
		has(wire.ReqGetBrokerConfig, "maxMessageSize=3000", "brokerPermission=4", "autoCreateTopicEnable=true")
	})
}

// TestZeroBytes_areInNoKey: a name with a zero byte would be read back as something else, or keep the broker from its folder.
func TestZeroBytes_areInNoKey(t *testing.T) {
	t.Parallel()
	onMachine(t, broker.Config{}, func(t *testing.T, m *machine) {
		t.Helper()
		c := m.dial(t)
		c.send("T", 0, "x", "", nil)
		m.Commit("G", "T", 0, 1)
		const name = "a\x00b"
		runSteps(t, c, []step{
			{"offsets", wire.ReqCloneGroupOffset, ext{"srcGroup": "G", "destGroup": name, "topic": "T"}, "", 1, "destGroup has a zero byte", nil, nil, nil},
			{"a group", wire.ReqUpdateSubscriptionGroup, nil, `{"groupName":"a\u0000b"}`, wire.RespInvalidParameter, "zero byte", nil, nil, nil},
			{"groups", wire.ReqUpdateSubscriptionGroupList, nil, `{"groupConfigList":[{"groupName":"a\u0000b"}]}`, wire.RespInvalidParameter, "zero byte", nil, nil, nil},
			{"an offset", wire.ReqUpdateConsumerOffset, ext{"consumerGroup": name, "topic": "T", "queueId": 0, "commitOffset": 1}, "", wire.RespGroupNotExist, "", nil, nil, nil},
			{"what is forbidden", wire.ReqGroupForbidden, ext{"group": name, "topic": "T", "readable": false}, "", 1, "group has a zero byte", nil, nil, nil},
			{"a config", wire.ReqPutKVConfig, ext{"namespace": name, "key": "K", "value": "V"}, "", 1, "namespace has a zero byte", nil, nil, nil},
		})
		m.powerLoss(t)
		if offset, ok := m.Committed("G", "T", 0); !ok || offset != 1 {
			t.Errorf("offset %d, %t", offset, ok)
		}
	})
}
