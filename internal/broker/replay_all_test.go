package broker_test

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// TestReplay_all plays everything that was recorded between clients and a 5.3.3 server, in its order and on as many
// connections, and compares the shape of the answers: code, which fields, remark. What the clients answered when the broker
// asked them is played too. Log offsets and message ids are replaced by those that this broker gave. What the recording
// does not show, topics that were there before and messages that came from elsewhere, is made up for as it shows.
func TestReplay_all(t *testing.T) {
	t.Parallel()
	b := startBroker(t, broker.Config{
		DelayLevels:        slices.Repeat([]time.Duration{50 * time.Millisecond}, 18),
		TransactionTimeout: 300 * time.Millisecond, TransactionInterval: 300 * time.Millisecond,
		IdleTimeout: time.Hour, MemberTTL: time.Hour, // A slow machine takes minutes, in which most connections are silent.
	})
	p := newPlayer(t, b, everything(t))
	for _, e := range p.events {
		p.play(e)
	}
	t.Logf("%d answers compared", p.compared)
	if p.compared < 500 {
		t.Errorf("only %d answers were compared", p.compared)
	}
	for _, u := range unreplayed() {
		if p.hit[u.reason] == 0 && !u.sometimes {
			t.Errorf("no answer differed for the reason %q", u.reason)
		}
	}
}

// everything is the recording of all flows in its order. Some frames stand in two flows; they are taken once.
func everything(t *testing.T) []recorded {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "rocketmq", "wire", "testdata", "vectors", "*.jsonl.gz"))
	if err != nil || len(files) == 0 {
		t.Fatal("no vectors", err)
	}
	bySeq := map[int]recorded{}
	for _, f := range files {
		flow := strings.TrimSuffix(filepath.Base(f), ".jsonl.gz")
		if strings.HasPrefix(flow, "messages") || flow == "ipv6" { // single messages; a broker of its own
			continue
		}
		for _, r := range frames(t, flow) {
			if r.Server == "5.3.3" && strings.Contains(r.Dir, "client") {
				bySeq[r.Seq] = r
			}
		}
	}
	all := make([]recorded, 0, len(bySeq))
	for _, seq := range slices.Sorted(maps.Keys(bySeq)) {
		all = append(all, bySeq[seq])
	}
	return all
}

// player holds what a replay knows.
type player struct {
	t        *testing.T
	b        *broker.Broker
	events   []recorded
	answers  map[int]recorded // by the sequence number of the request
	requests map[int]recorded
	conns    map[int]*playedConn
	feeder   *rawClient
	topics   map[string]bool
	offsets  map[int64]int64 // log offsets of the recording, and ours
	states   map[int64]string
	last     map[int]int // the last frame of each connection
	subs     map[string]map[string]int64
	waiting  map[int]<-chan *wire.Command
	compared int
	hit      map[string]int // by reason of unreplayed
}

func newPlayer(t *testing.T, b *broker.Broker, events []recorded) *player {
	t.Helper()
	p := &player{
		t: t, b: b, events: events, answers: map[int]recorded{}, requests: map[int]recorded{}, conns: map[int]*playedConn{},
		feeder: dialTCP(t, b, "feeder"), topics: map[string]bool{}, offsets: map[int64]int64{}, waiting: map[int]<-chan *wire.Command{},
		states: map[int64]string{}, last: map[int]int{}, subs: map[string]map[string]int64{}, hit: map[string]int{},
	}
	for _, r := range events {
		p.last[r.Conn] = r.Seq
		if r.IsResponse {
			p.answers[r.RequestSeq] = r
		} else {
			p.requests[r.Seq] = r
		}
	}
	return p
}

func (r *recorded) command(t *testing.T) *wire.Command {
	t.Helper()
	frame, err := hex.DecodeString(r.Frame)
	if err != nil {
		t.Fatal(err)
	}
	c := new(wire.Command)
	if err := c.Decode(frame[wire.PrefixSize:]); err != nil {
		t.Fatal(err)
	}
	return c
}

// play carries out one recorded frame: a request is sent, an answer awaited, a client's answer to the broker sent.
func (p *player) play(e recorded) {
	fromClient := strings.HasPrefix(e.Dir, "client")
	switch {
	case fromClient && !e.IsResponse:
		p.send(e)
	case !fromClient && e.IsResponse:
		p.await(e)
	case fromClient:
		p.reply(e)
	case wire.RequestCode(e.Code) == wire.ReqCheckTransactionState:
		p.checked(e)
	}
	if c := p.conns[e.Conn]; c != nil && p.last[e.Conn] == e.Seq {
		c.close()
	}
}

func (p *player) conn(e recorded) *playedConn {
	if c := p.conns[e.Conn]; c != nil {
		return c
	}
	c := dialPlayed(p.t, p.b.Address())
	p.conns[e.Conn] = c
	return c
}

func (p *player) send(e recorded) {
	c := e.command(p.t)
	answer, answered := p.answers[e.Seq]
	if answered {
		p.prepare(e, c, answer.command(p.t))
	}
	p.rewrite(c)
	conn := p.conn(e)
	if answered {
		p.waiting[e.Seq] = conn.expect(c.Opaque)
	}
	conn.write(p.t, c)
	switch c.RequestCode() {
	case wire.ReqGetConsumerRunningInfo, wire.ReqConsumeDirectly, wire.ReqGetConsumerStatus,
		wire.ReqSendReplyMessage, wire.ReqSendReplyMessageV2: // these wait for somebody
	default:
		p.settle(conn)
	}
}

// settle waits until the broker has carried out what was sent on a connection, so that other connections see it as they did
// when it was recorded: requests of one connection are carried out in turn.
func (p *player) settle(conn *playedConn) {
	c := &wire.Command{Code: int32(wire.ReqGetConsumerList), Opaque: -8, Ext: wire.Fields{{Key: "consumerGroup", Value: "settle"}}}
	ch := conn.expect(c.Opaque)
	conn.write(p.t, c)
	p.feeder.await(ch, time.Minute)
}

// await compares our answer with the recorded one.
func (p *player) await(e recorded) {
	r, known := p.requests[e.RequestSeq]
	ch := p.waiting[e.RequestSeq]
	if !known || ch == nil {
		return
	}
	want, limit := e.command(p.t), time.Minute
	why, exempt := exempted(r, want)
	if exempt {
		limit = 3 * time.Second // It may be none.
	}
	got := answerOf(ch, limit)
	if got != nil && got.Code == int32(wire.RespPullNotFound) && want.Code == int32(wire.RespPullOffsetMoved) {
		got = p.again(r) // its hold, which is short here, ended before the reset came that the recorded one met: clients pull again
	}
	p.compared++
	fault := unlike(got, want, e)
	if got != nil {
		p.learn(got, want)
	}
	if fault == "" {
		return
	}
	if exempt {
		p.hit[why]++
		return
	}
	p.t.Errorf("%s [%d] %v %v: %s", r.Step, r.Seq, wire.RequestCode(r.Code), r.Decoded.Ext, fault)
}

// answerOf waits for an answer; nil = there is none.
func answerOf(ch <-chan *wire.Command, limit time.Duration) *wire.Command {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case got := <-ch:
		return got
	case <-timer.C:
		return nil
	}
}

// again sends a request once more.
func (p *player) again(r recorded) *wire.Command {
	c := r.command(p.t)
	p.rewrite(c)
	conn := p.conn(r)
	ch := conn.expect(c.Opaque)
	conn.write(p.t, c)
	return answerOf(ch, time.Minute)
}

// unlike says how an answer differs in shape.
func unlike(got, want *wire.Command, e recorded) string {
	switch {
	case got == nil:
		return fmt.Sprintf("no answer, recorded %d", want.Code)
	case got.Code != want.Code:
		return fmt.Sprintf("code %d %q, recorded %d %q", got.Code, got.Remark, want.Code, want.Remark)
	case (got.Ext == nil) != (want.Ext == nil):
		return fmt.Sprintf("extFields absent: %t, recorded %t", got.Ext == nil, want.Ext == nil)
	}
	gotKeys, wantKeys := slices.Sorted(maps.Keys(got.Ext.Map())), slices.Sorted(maps.Keys(want.Ext.Map()))
	if !slices.Equal(gotKeys, wantKeys) {
		return fmt.Sprintf("fields %v, recorded %v", gotKeys, wantKeys)
	}
	if (len(got.Body) == 0) != (len(want.Body) == 0) {
		return fmt.Sprintf("body of %d bytes, recorded %d", len(got.Body), len(want.Body))
	}
	free := strings.Contains(want.Remark, "Exception") || strings.Contains(want.Remark, "127.0.0.1") || strings.Contains(want.Remark, "offset")
	if !free && got.Remark != want.Remark && e.Decoded.Remark != nil {
		return fmt.Sprintf("remark %q, recorded %q", got.Remark, want.Remark)
	}
	return ""
}

// prepare makes up for what was there when the recording was made.
func (p *player) prepare(e recorded, c, want *wire.Command) {
	topic, queue := c.Ext.Get("topic"), c.Ext.Get("queueId")
	switch c.RequestCode() { //nolint:exhaustive // the other codes need nothing
	case wire.ReqGetRoute:
		if want.Code == 0 {
			p.routed(topic, want.Body)
		}
	case wire.ReqGetTopicConfig, wire.ReqGetTopicStats, wire.ReqQueryConsumeTimeSpan:
		if want.Code == 0 {
			p.topic(topic, 4)
		}
	case wire.ReqSendMessage, wire.ReqSendMessageV2, wire.ReqSendBatchMessage:
		if topic == "" {
			topic = c.Ext.Get("b")
		}
		if want.Code == 0 {
			p.topic(topic, 4)
			p.fill(topic, want.Ext.Get("queueId"), want.Ext.Get("queueOffset"), nil)
		}
	case wire.ReqQueryConsumerOffset:
		if want.Code == 0 {
			p.topic(topic, 4)
			p.fill(topic, queue, "1", nil) // only a queue with a message is young
		}
	case wire.ReqPullMessage, wire.ReqLitePullMessage:
		if want.Code == 0 || want.Code >= 19 && want.Code <= 21 {
			p.topic(topic, 4)
			p.subscribe(e, c)
			p.fill(topic, queue, want.Ext.Get("maxOffset"), want.Body)
		}
	case wire.ReqGetConsumerList:
		if want.Code == 0 {
			p.join(e, c.Ext.Get("consumerGroup"))
		}
	}
}

// subscribe makes up for a heartbeat that is not in the recording.
func (p *player) subscribe(e recorded, c *wire.Command) {
	group, topic := c.Ext.Get("consumerGroup"), c.Ext.Get("topic")
	version, err := strconv.ParseInt(c.Ext.Get("subVersion"), 10, 64)
	flags, err2 := strconv.Atoi(c.Ext.Get("sysFlag"))
	if err != nil || err2 != nil || flags&4 != 0 {
		return
	}
	a := p.feeder.call(wire.ReqQuerySubscription, ext{"group": group, "topic": topic}, nil)
	var known wire.QuerySubscriptionBody
	if a.Code == 0 && wire.DecodeBody(a.Body, &known) == nil && known.SubscriptionData != nil && known.SubscriptionData.SubVersion >= version {
		return
	}
	if p.subs[group] == nil {
		p.subs[group] = map[string]int64{}
	}
	p.subs[group][topic] = version
	p.join(e, group)
}

// join makes the connection a member of a group unless the group has one with these subscriptions.
func (p *player) join(e recorded, group string) {
	if p.subs[group] == nil {
		if a := p.feeder.call(wire.ReqGetConsumerList, ext{"consumerGroup": group}, nil); a.Code == 0 {
			return
		}
	}
	subs := map[string]string{}
	newest := int64(0)
	for topic, version := range p.subs[group] {
		subs[topic], newest = "*", max(newest, version)
	}
	c := &wire.Command{Code: int32(wire.ReqHeartbeat), Opaque: -7, Body: heartbeatBody(p.t, "made-up", group, subs, newest)}
	conn := p.conn(e)
	ch := conn.expect(c.Opaque)
	conn.write(p.t, c)
	p.feeder.await(ch, time.Minute)
}

func (p *player) routed(topic string, body []byte) {
	var route struct {
		Queues []struct {
			Read int32 `json:"readQueueNums"`
		} `json:"queueDatas"`
	}
	if wire.DecodeBody(body, &route) == nil && len(route.Queues) > 0 {
		p.topic(topic, route.Queues[0].Read)
	}
}

// topic makes a topic unless it is there.
func (p *player) topic(name string, queues int32) {
	if p.topics[name] || !wire.IsSendable(name) {
		return
	}
	p.topics[name] = true
	if a := p.feeder.call(wire.ReqGetTopicConfig, ext{"topic": name}, nil); a.Code != 0 {
		p.b.CreateTopic(name, queues)
	}
}

// fill stores messages until a queue ends where the recorded one did: those of the recorded answer, or any.
func (p *player) fill(topic, queue, end string, body []byte) {
	id, err := strconv.Atoi(queue)
	to, err2 := strconv.ParseInt(end, 10, 64)
	if err != nil || err2 != nil || !wire.IsSendable(topic) || strings.HasPrefix(topic, wire.SystemTopicPrefix) {
		return
	}
	known := map[int64]wire.Message{}
	for _, m := range messagesOf(p.t, body) {
		known[m.QueueOffset] = m
	}
	a := p.feeder.ok(wire.ReqGetMaxOffset, ext{"topic": topic, "queueId": id}, nil)
	at, err := strconv.ParseInt(a.Ext.Get("offset"), 10, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	for ; at < to; at++ {
		m := known[at]
		var text strings.Builder
		for k, v := range m.AllProperties() {
			if slices.Contains([]string{wire.PropTags, wire.PropKeys, wire.PropUniqueKey, wire.PropRetryTopic, wire.PropOriginMessageID}, string(k)) {
				fmt.Fprintf(&text, "%s\x01%s\x02", k, v)
			}
		}
		a := p.feeder.send(topic, id, "filled", text.String(), nil)
		if m.LogOffset > 0 {
			p.learnIDs(a.Ext.Get("msgId"), m.OffsetID())
		}
	}
}

func messagesOf(t *testing.T, body []byte) (all []wire.Message) {
	t.Helper()
	for len(body) > 0 {
		var m wire.Message
		n, err := m.Decode(body)
		if err != nil {
			return nil
		}
		all, body = append(all, m), body[n:]
	}
	return all
}

// learn notes which of our log offsets stand for the recorded ones.
func (p *player) learn(got, want *wire.Command) {
	ours, theirs := strings.Split(got.Ext.Get("msgId"), ","), strings.Split(want.Ext.Get("msgId"), ",")
	for i := range min(len(ours), len(theirs)) {
		p.learnIDs(ours[i], theirs[i])
		if _, their, err := wire.ParseOffsetID(theirs[i]); err == nil {
			p.states[their] = got.Ext.Get("queueOffset")
		}
	}
	byPlace := map[string]int64{}
	for _, m := range messagesOf(p.t, got.Body) {
		byPlace[fmt.Sprint(string(m.Topic), m.QueueID, m.QueueOffset)] = m.LogOffset
	}
	for _, m := range messagesOf(p.t, want.Body) {
		if at, ok := byPlace[fmt.Sprint(string(m.Topic), m.QueueID, m.QueueOffset)]; ok {
			p.offsets[m.LogOffset] = at
		}
	}
}

// checked notes what a check of a transaction is about.
func (p *player) checked(e recorded) {
	theirs, err := strconv.ParseInt(e.Decoded.Ext["commitLogOffset"], 10, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	ours, ok := p.asked(p.conn(e), wire.ReqCheckTransactionState)
	if !ok {
		return // The end of the transaction will tell.
	}
	our, err := strconv.ParseInt(ours.Ext.Get("commitLogOffset"), 10, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	p.offsets[theirs], p.states[theirs] = our, ours.Ext.Get("tranStateTableOffset")
}

func (p *player) learnIDs(ours, theirs string) {
	_, our, err := wire.ParseOffsetID(ours)
	_, their, err2 := wire.ParseOffsetID(theirs)
	if err == nil && err2 == nil {
		p.offsets[their] = our
	}
}

// rewrite puts our log offsets into a request, and spares the time that only the clock takes.
func (p *player) rewrite(c *wire.Command) {
	switch c.RequestCode() { //nolint:exhaustive // the other codes need nothing
	case wire.ReqSendBack, wire.ReqViewMessageByID:
		p.rewriteOffset(c, "offset")
	case wire.ReqEndTransaction:
		if their, err := strconv.ParseInt(c.Ext.Get("commitLogOffset"), 10, 64); err == nil && p.states[their] != "" {
			c.Ext.Set("tranStateTableOffset", p.states[their])
		}
		p.rewriteOffset(c, "commitLogOffset")
	case wire.ReqConsumeDirectly:
		if host, their, err := wire.ParseOffsetID(c.Ext.Get("msgId")); err == nil {
			if our, ok := p.offsets[their]; ok {
				c.Ext.Set("msgId", string(wire.AppendOffsetID(nil, host, our)))
			}
		}
	case wire.ReqQueryMessage:
		c.Ext.Set("beginTimestamp", "0")
		c.Ext.Set("endTimestamp", strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10))
	case wire.ReqPullMessage, wire.ReqLitePullMessage:
		if c.Ext.Get("suspendTimeoutMillis") != "" {
			c.Ext.Set("suspendTimeoutMillis", "100")
		}
	}
}

func (p *player) rewriteOffset(c *wire.Command, key string) {
	their, err := strconv.ParseInt(c.Ext.Get(key), 10, 64)
	if err != nil {
		return
	}
	if our, ok := p.offsets[their]; ok {
		c.Ext.Set(key, strconv.FormatInt(our, 10))
	}
}

// reply answers what the broker asked, as the recorded client did.
func (p *player) reply(e recorded) {
	pushed, known := p.requests[e.RequestSeq]
	if !known {
		return
	}
	conn := p.conn(e)
	asked, ok := p.asked(conn, wire.RequestCode(pushed.Code))
	if !ok {
		return // An answer that differs tells of it.
	}
	c := e.command(p.t)
	c.Opaque = asked.Opaque
	conn.write(p.t, c)
}

// asked waits for the broker's next request of a code on a connection. What does not come in a second never does, unless the
// machine stands still: so it is looked for once more when the broker has carried out all that it was asked before.
func (p *player) asked(conn *playedConn, code wire.RequestCode) (request *wire.Command, ok bool) {
	if request, ok = conn.asked(code, time.Second); ok {
		return request, ok
	}
	if err := p.b.Put(broker.Message{Topic: "settled", Body: []byte("x")}); err != nil {
		p.t.Fatal(err)
	}
	for _, c := range p.conns {
		select {
		case <-c.done:
		default:
			p.settle(c)
		}
	}
	return conn.asked(code, 0)
}

// playedConn is one recorded connection.
type playedConn struct {
	conn net.Conn
	done chan struct{}

	mu     sync.Mutex
	got    map[int32]chan *wire.Command
	pushed map[wire.RequestCode]chan *wire.Command
}

func dialPlayed(t *testing.T, address string) *playedConn {
	t.Helper()
	var d net.Dialer
	nc, err := d.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	c := &playedConn{conn: nc, done: make(chan struct{}), got: map[int32]chan *wire.Command{}, pushed: map[wire.RequestCode]chan *wire.Command{}}
	go c.read()
	t.Cleanup(c.close)
	return c
}

func (c *playedConn) close() {
	_ = c.conn.Close() // Closing twice is fine here.
	<-c.done
}

func (c *playedConn) read() {
	defer close(c.done)
	in := bufio.NewReader(c.conn)
	for {
		frame, err := readFrame(in)
		if err != nil {
			return
		}
		cmd := new(wire.Command)
		if cmd.Decode(frame[wire.PrefixSize:]) != nil {
			return
		}
		if !cmd.IsResponse() {
			select {
			case c.queue(cmd.RequestCode()) <- cmd:
			default:
			}
			continue
		}
		c.mu.Lock()
		ch := c.got[cmd.Opaque]
		delete(c.got, cmd.Opaque)
		c.mu.Unlock()
		if ch != nil {
			ch <- cmd
		}
	}
}

func (c *playedConn) queue(code wire.RequestCode) chan *wire.Command {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pushed[code] == nil {
		c.pushed[code] = make(chan *wire.Command, 256)
	}
	return c.pushed[code]
}

func (c *playedConn) expect(opaque int32) <-chan *wire.Command {
	ch := make(chan *wire.Command, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got[opaque] = ch
	return ch
}

// asked waits for the broker's next request of a code on this connection.
func (c *playedConn) asked(code wire.RequestCode, limit time.Duration) (request *wire.Command, ok bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case request = <-c.queue(code):
		return request, true
	case <-timer.C:
	}
	select { // Both may have been ready.
	case request = <-c.queue(code):
		return request, true
	default:
		return nil, false
	}
}

func (c *playedConn) write(t *testing.T, cmd *wire.Command) {
	t.Helper()
	frame, err := wire.AppendFrame(nil, cmd)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.conn.Write(frame); err != nil {
		t.Errorf("writing %v: %v", cmd.RequestCode(), err)
	}
}

// exemption is a reason for another answer than the recorded one.
type exemption struct {
	reason    string
	match     func(r recorded, want *wire.Command) bool
	sometimes bool // it need not happen
}

// exempted tells why an answer may be another than the recorded one.
func exempted(r recorded, want *wire.Command) (reason string, exempt bool) {
	for _, u := range unreplayed() {
		if u.match(r, want) {
			return u.reason, true
		}
	}
	return "", false
}

// unreplayed lists them. Each has to be needed.
func unreplayed() []exemption {
	code := func(codes ...wire.RequestCode) func(recorded, *wire.Command) bool {
		return func(r recorded, _ *wire.Command) bool { return slices.Contains(codes, wire.RequestCode(r.Code)) }
	}
	seq := func(numbers ...int) func(recorded, *wire.Command) bool {
		return func(r recorded, _ *wire.Command) bool { return slices.Contains(numbers, r.Seq) }
	}
	return []exemption{
		{reason: "there is no POP", match: code(wire.ReqPopMessage, wire.ReqAckMessage, wire.ReqBatchAckMessage, wire.ReqChangeInvisibleTime, wire.ReqNotification,
			wire.ReqPeekMessage, wire.ReqPollingInfo, wire.ReqSetMessageRequestMode)},
		{reason: "a moment in the request has passed since the recording", match: seq(502, 2487)},
		{reason: "an expression that cannot be parsed is refused", match: seq(1396)},
		{reason: "there is no queue.type=BatchCQ", match: seq(2495, 2504)},
		{reason: "recorded with useServerSideResetOffset=false", match: func(r recorded, _ *wire.Command) bool {
			return slices.Contains([]wire.RequestCode{wire.ReqResetOffset, wire.ReqPullMessage}, wire.RequestCode(r.Code)) &&
				(r.Step == "reset-push" || r.Step == "go-admin")
		}},
		{reason: "a real name server hears of a new topic a moment after the broker", match: seq(2614, 4939)},
		{reason: "who is asked joined in a frame that was not recorded", match: seq(1238, 1606, 4718, 4932)},
		{reason: "the message was stored by a frame that was not recorded", match: seq(1590, 1592, 1598, 1600)},
		{reason: "a heartbeat that was late when it was recorded", match: seq(5660)},
		{reason: "what waited for its time is gone when it was delivered", match: seq(906, 916), sometimes: true},
		{reason: "messages came on another connection at the same time", match: seq(4962), sometimes: true},
		{reason: "a connection that had no frames any more was still open when it was recorded", match: seq(1278), sometimes: true},
	}
}
