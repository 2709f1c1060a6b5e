package broker_test

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"net"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// TestHostileFrames_harmNobodyElse is scenario SE-P03.
func TestHostileFrames_harmNobodyElse(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{})
	good := dialTCP(t, b, "good")
	good.send("T", 0, "x", "", nil)
	whole, err := wire.AppendFrame(nil, &wire.Command{Code: 11, Ext: pullFields("G", "T", 0, 0, 0).fields()})
	if err != nil {
		t.Fatal(err)
	}
	random := make([]byte, 4096)
	if _, err := rand.Read(random); err != nil {
		t.Fatal(err)
	}
	random[0] = 0x80 // A negative length; otherwise chance decides.
	unknown := bytes.Clone(whole)
	unknown[4] = 9
	beyond := bytes.Clone(whole)
	binary.BigEndian.PutUint32(beyond[4:], 0x00FFFFFF)
	for name, input := range map[string][]byte{
		"random":              random,
		"http":                []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"tls":                 {0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3},
		"length 0x7fffffff":   {0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0},
		"length 3":            {0, 0, 0, 3, 0, 0, 0},
		"length 0":            {0, 0, 0, 0},
		"unknown encoding":    unknown,
		"header beyond frame": beyond,
		"no JSON":             append([]byte{0, 0, 0, 14, 0, 0, 0, 10}, "0123456789"...),
	} {
		t.Run(name, func(t *testing.T) {
			var d net.Dialer
			nc, err := d.DialContext(t.Context(), "tcp", b.Address())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = nc.Close() }()
			if _, err := nc.Write(input); err != nil {
				t.Fatal(err)
			}
			if err := nc.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if n, err := nc.Read(make([]byte, 16)); n != 0 || err == nil {
				t.Errorf("the broker answered %d bytes instead of closing", n)
			} else if ne, ok := err.(net.Error); ok && ne.Timeout() { //nolint:errorlint // As it comes from the socket.
				t.Error("the connection is still open")
			}
			if p := good.pull("G", "T", 0, 0); p.Code != 0 {
				t.Errorf("another connection's pull: %d %q", p.Code, p.Remark)
			}
		})
	}
}

// TestHostileFrames_costLittle opens many connections that announce large frames and send little.
func TestHostileFrames_costLittle(t *testing.T) {
	const connections = 2000
	const limit = connections * ((50<<20)/10_000 + 2<<10) // 50 MiB for ten thousand, and 2 KiB for each client and its bookkeeping
	b := startBroker(t, broker.Config{})
	good := dialTCP(t, b, "good")
	good.send("T", 0, "x", "", nil)
	before := heap()
	announce := binary.BigEndian.AppendUint32(nil, 15<<20)
	for range connections {
		var d net.Dialer
		nc, err := d.DialContext(t.Context(), "tcp", b.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = nc.Close() }()
		if _, err := nc.Write(append(announce, 0, 0, 0, 9)); err != nil {
			t.Fatal(err)
		}
	}
	for b.Connections() < connections+1 {
		goruntime.Gosched()
	}
	good.ok(wire.ReqGetMaxOffset, ext{"topic": "T", "queueId": 0}, nil)
	grown := int64(heap()) - int64(before)
	t.Logf("%d bytes a connection", grown/connections)
	if grown > limit {
		t.Errorf("%d connections that announced 15 MiB each took %d KiB, the limit is %d", connections, grown>>10, limit>>10)
	}
}

func heap() uint64 {
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// TestHostileRequests_areAnswered sends requests whose frames are fine and whose content is not.
func TestHostileRequests_areAnswered(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{})
	c := dialTCP(t, b, "c1")
	for code := range wire.RequestCode(410) {
		if code == wire.ReqGetRoute {
			continue // Answers 17 to no topic, as it should.
		}
		for _, body := range [][]byte{nil, []byte("{bad json"), []byte("null"), []byte("[]")} {
			a := c.call(code, ext{"topic": "", "queueId": "x", "offset": "-1", "brokerName": ""}, body)
			if a.Code == 0 {
				if !mayBeEmpty(code) {
					t.Errorf("%v with body %q: success", code, body)
				}
			}
		}
	}
	for _, queue := range []int{-1 << 31, -1, 1 << 30} {
		if a := c.pull("G", "TBW102", queue, 0); a.Code == 0 {
			t.Errorf("pull of queue %d: success", queue)
		}
	}
	for _, offset := range []int64{-1 << 63, -1, 1 << 62, 1<<63 - 1} {
		if a := c.call(wire.ReqSendBack, ext{"group": "G", "offset": offset, "delayLevel": 1 << 30}, nil); a.Code == 0 {
			t.Errorf("send back of offset %d: success", offset)
		}
		if a := c.pull("G", "TBW102", 0, offset); a.ResponseCode() != wire.RespPullOffsetMoved {
			t.Errorf("pull at %d: %d", offset, a.Code)
		}
	}
}

// mayBeEmpty lists the codes to which a request that says nothing is a whole one, or that answers success to whatever is
// not there, as RocketMQ does.
func mayBeEmpty(code wire.RequestCode) bool {
	switch code {
	case wire.ReqUnregisterClient, wire.ReqGetClusterInfo, wire.ReqGetAllTopics, wire.ReqGetAllTopicConfig,
		wire.ReqGetAllSubscriptionGroups, wire.ReqUnregisterBroker, wire.ReqDeleteTopicInBroker,
		wire.ReqDeleteTopicInNameServer, wire.ReqQueryTopicConsumers, wire.ReqQueryTopicsByConsumer,
		wire.ReqQuerySubscription, wire.ReqGetBrokerRuntimeInfo, wire.ReqGetBrokerConfig, wire.ReqLockQueues, wire.ReqUnlockQueues,
		wire.ReqCheckClientConfig, wire.ReqUpdateBrokerConfig, wire.ReqUpdateAndCreateTopicList, wire.ReqUpdateSubscriptionGroupList,
		wire.ReqGetAllConsumerOffset, wire.ReqWipeWritePerm, wire.ReqAddWritePerm, wire.ReqGetSystemTopicsFromNameServer,
		wire.ReqGetSystemTopicsFromBroker, wire.ReqCleanExpiredConsumeQueue, wire.ReqCleanUnusedTopic, wire.ReqDeleteExpiredCommitLog,
		wire.ReqQueryCorrectionOffset, wire.ReqGetUnitTopics, wire.ReqGetHasUnitSubTopics, wire.ReqGetHasUnitSubUnunitTopics,
		wire.ReqUpdateNameServerConfig, wire.ReqGetNameServerConfig, wire.ReqQueryDataVersion, wire.ReqGetAllProducers,
		wire.ReqGetAllMessageRequestMode:
		return true
	default:
		return false
	}
}
