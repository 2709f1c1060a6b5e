package broker

import (
	"fmt"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// statusTimeout is how long a member may take to answer 221.
const statusTimeout = 5 * time.Second

// firstCallable is the oldest client that a broker asks anything, V3_1_8_SNAPSHOT.
const firstCallable wire.Version = 62

// onRunningInfo is 307: the member's answer, passed on as it is.
func (b *Broker) onRunningInfo(r *remote.Request) *remote.Answer {
	return b.relay(r, append(wire.Fields(nil), r.Command.Ext...), nil)
}

// onConsumeDirectly is 309: the message that the tool names by its id, handed to one member.
func (b *Broker) onConsumeDirectly(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	id := f.text("msgId")
	if bad := f.bad(); bad != nil {
		return bad
	}
	_, offset, err := wire.ParseOffsetID(id)
	if err != nil {
		return plain(wire.RespSystemError, err.Error())
	}
	m, ok := b.lookup(offset)
	if !ok {
		return plain(wire.RespSystemError, fmt.Sprintf("can not find message by the offset, %d", offset))
	}
	fields := append(wire.Fields(nil), r.Command.Ext...)
	fields.Set("brokerName", b.config.Name)
	if f.optional("topic") != "" {
		fields.Set("topicSysFlag", "0")
	}
	fields.Set("groupSysFlag", "0")
	return b.relay(r, fields, m.Raw)
}

// relay asks the member that the request names and answers with what it says.
func (b *Broker) relay(r *remote.Request, fields wire.Fields, body []byte) *remote.Answer {
	f := fieldsOf(r)
	group, client := f.text("consumerGroup"), f.text("clientId")
	if bad := f.bad(); bad != nil {
		return bad
	}
	m, ok := b.members.member(group, client)
	if !ok {
		return plain(wire.RespSystemError, fmt.Sprintf("The Consumer <%s> <%s> not online", group, client))
	}
	if wire.Version(m.version) < firstCallable {
		return plain(wire.RespSystemError, fmt.Sprintf(
			"The Consumer <%s> Version <%d> too low to finish, please upgrade it to V3_1_8_SNAPSHOT", client, m.version))
	}
	r.Keep()
	cmd := &wire.Command{Code: r.Command.Code, Ext: fields, Body: body}
	m.conn.Call(cmd, b.config.CallTimeout, func(a *wire.Command, err error) {
		switch {
		case err == remote.ErrCallTimeout: //nolint:errorlint // Call ends with exactly its own errors.
			r.Reply(plain(wire.RespConsumeTimeout, fmt.Sprintf("consumer <%s> <%s> Timeout: %v", group, client, err)))
		case err != nil:
			r.Reply(plain(wire.RespSystemError, fmt.Sprintf("invoke consumer <%s> <%s> Exception: %v", group, client, err)))
		default:
			r.Reply(&remote.Answer{Code: a.ResponseCode(), Remark: a.Remark, EmptyRemark: a.EmptyRemark, Ext: a.Ext, Body: a.Body})
		}
	})
	return nil
}

// onConsumerStatus is 223: every member, or the one named, is asked by 221 for its offsets. Who does not answer is left
// out.
func (b *Broker) onConsumerStatus(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	group, topic, client := f.text("group"), f.text("topic"), f.optional("clientAddr")
	if bad := f.bad(); bad != nil {
		return bad
	}
	g, ok := b.members.group(group)
	if !ok {
		return plain(wire.RespSystemError, "No Any Consumer online in the consumer group: ["+group+"]")
	}
	var asked []member
	for _, m := range g.members {
		if client == "" || m.clientID == client {
			asked = append(asked, m)
		}
	}
	if len(asked) == 0 {
		return jsonBody(wire.ConsumerStatusBody{Consumers: map[string]wire.QueueTable[int64]{}, Queues: wire.QueueTable[int64]{}}, wire.Fastjson)
	}
	r.Keep()
	collected := &statusCollector{left: len(asked), tables: make(map[string]wire.QueueTable[int64]), reply: r.Reply}
	for _, m := range asked {
		cmd := &wire.Command{
			Code: int32(wire.ReqGetConsumerStatusOfClient), Ext: wire.Fields{text("topic", topic), text("group", group)},
		}
		m.conn.Call(cmd, statusTimeout, func(a *wire.Command, err error) { collected.add(m.clientID, a, err) })
	}
	return nil
}

// statusCollector gathers the members' answers and gives the tool's when the last one is in.
type statusCollector struct {
	mu     sync.Mutex
	left   int
	tables map[string]wire.QueueTable[int64]
	reply  func(*remote.Answer)
}

func (s *statusCollector) add(client string, a *wire.Command, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && a.ResponseCode() == wire.RespSuccess {
		var body wire.ConsumerStatusBody
		if wire.DecodeBody(a.Body, &body) == nil {
			if body.Queues == nil {
				body.Queues = wire.QueueTable[int64]{}
			}
			s.tables[client] = body.Queues
		}
	}
	if s.left--; s.left > 0 {
		return
	}
	answer := jsonBody(wire.ConsumerStatusBody{Consumers: s.tables, Queues: wire.QueueTable[int64]{}}, wire.Fastjson)
	answer.Remark = unset
	s.reply(answer)
}
