package rocketmq

import (
	"errors"
	"strings"
	"testing"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// A broker that makes no groups ignores the heartbeat of one that it does not know. That is told from one that has not had
// the heartbeat yet.
func TestGroupThatTheBrokerDoesNotKnow(t *testing.T) {
	for name, tt := range map[string]struct {
		joined bool
		pull   wire.ResponseCode
		want   error
		probes int
	}{
		"is not there":       {true, wire.RespGroupNotExist, ErrGroupNotFound, 1},
		"is there":           {true, wire.RespInvalidParameter, ErrNoMembers, 1},
		"is there, says 4.9": {true, wire.RespSystemError, ErrNoMembers, 1},
		"of somebody else":   {false, wire.RespGroupNotExist, ErrNoMembers, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubbletest.Run(t, func(t *testing.T) {
				n, _, broker := one(t)
				broker.on(wire.ReqGetConsumerList, refuse(wire.RespSystemError, "no consumer for this group, G"))
				broker.on(wire.ReqPullMessage, refuse(tt.pull, "subscription group [G] does not exist"))
				c := n.start(t, nil)
				if tt.joined {
					join(t, c, spec("G"))
				}
				_, err := c.Members(t.Context(), "G", "T")
				if !errors.Is(err, tt.want) || !IsRetriable(err) {
					t.Errorf("%v, want %v", err, tt.want)
				}
				if errors.Is(tt.want, ErrGroupNotFound) && !strings.Contains(err.Error(), "broker a does not know it") {
					t.Errorf("%v does not name the broker", err)
				}
				pulls := broker.requests(wire.ReqPullMessage)
				if len(pulls) != tt.probes {
					t.Fatalf("%d pulls, want %d", len(pulls), tt.probes)
				}
				if tt.probes > 0 && pulls[0].Ext.Get("queueId") != "-1" {
					t.Errorf("the probe reads queue %s", pulls[0].Ext.Get("queueId"))
				}
			})
		})
	}
}

// Static topics are refused in words, at the join and by whoever asks for their queues.
func TestStaticTopicIsRefused(t *testing.T) {
	for mappings, static := range map[string]bool{
		`{"a":{"bname":"a","topic":"T","totalQueues":8,"currIdMap":{0:0}}}`: true, `null`: false, `{}`: false, `{"a":null}`: false, `[`: false,
	} {
		bubbletest.Run(t, func(t *testing.T) {
			n, ns, _ := one(t)
			ns.on(wire.ReqGetRoute, func(req *wire.Command) *wire.Command {
				if req.Ext.Get("topic") != "T" {
					return wire.NewResponse(req, wire.RespTopicNotExist, "")
				}
				resp := wire.NewResponse(req, wire.RespSuccess, "")
				text := mappings
				if text == "[" {
					text = "[]"
				}
				resp.Body = []byte(`{"brokerDatas":[{"brokerAddrs":{0:"a:1"},"brokerName":"a","cluster":"c"}],"filterServerTable":{},` +
					`"queueDatas":[{"brokerName":"a","perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}],"topicQueueMappingByBroker":` + text + `}`)
				return resp
			})
			c := n.start(t, nil)
			_, err := c.Queues(t.Context(), "T")
			joined := c.Join(t.Context(), spec("G"))
			if !static {
				if err != nil || joined != nil {
					t.Errorf("%s: %v, %v", mappings, err, joined)
				}
				return
			}
			if !errors.Is(err, ErrStaticTopic) || !IsFatal(joined) || !strings.Contains(err.Error(), "use an ordinary topic") {
				t.Errorf("%s: %v, joining: %v", mappings, err, joined)
			}
		})
	}
}
