package plugintool

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/exitcode"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/pluginhost"
	"github.com/streamd/streamd/internal/produce"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Trial says what is tried.
type Trial struct {
	Plugin
	Use      string // component; "" when there is one
	Config   config.Raw
	Messages produce.Source // as produce reads them
	Deadline time.Duration  // per message; 0 = 60 s
	Attempt  int            // which attempt the plugin is told; 0 = 1
}

// Outcome is what became of one message.
type Outcome struct {
	N       int      `json:"n"`
	ID      string   `json:"msg_id"`
	Verdict string   `json:"verdict"` // ack, retry, reject, lost, unread
	Class   string   `json:"class,omitempty"`
	Text    string   `json:"text,omitempty"`
	DelayMS int64    `json:"delay_ms,omitempty"`
	TookMS  float64  `json:"took_ms"`
	Outputs []Output `json:"outputs"`
	Logs    []Line   `json:"logs"`

	trace string
}

// Output is one message that the handler emitted.
type Output struct {
	Topic       string            `json:"topic"` // "" = the stream's outputs.topic
	Tag         string            `json:"tag,omitempty"`
	Keys        string            `json:"keys,omitempty"`
	ShardingKey string            `json:"sharding_key,omitempty"`
	DelayMS     int64             `json:"delay_ms,omitempty"`
	Properties  map[string]string `json:"properties,omitempty"`
	Body        string            `json:"body"`
}

// Report is what a trial showed.
type Report struct {
	Outcomes    []Outcome `json:"outcomes"`
	Diagnostics []string  `json:"diagnostics"` // what the plugin says of the config
	Logs        []Line    `json:"logs"`        // of no message: streamd's own, then the plugin's
}

// Try hands each message to the plugin, one after another, and reports. A plugin that cannot be started or refuses its
// config is an error; verdicts and a crash are in the report.
func Try(ctx context.Context, t Trial) (*Report, error) {
	b, about, err := open(ctx, t.Plugin)
	if err != nil {
		return nil, err
	}
	r := &Report{Outcomes: []Outcome{}, Diagnostics: []string{}, Logs: []Line{}}
	if c := chosen(about, t.Use); c != nil {
		err = inSchema(c, t.Config)
	}
	if err == nil {
		err = b.try(ctx, &t, r)
	}
	err = errors.Join(err, b.host.Close()) // after it every log line is here
	for i := range r.Outcomes {
		r.Outcomes[i].Logs = []Line{}
		if trace := r.Outcomes[i].trace; trace != "" { // a line that could not be read reached no plugin
			r.Outcomes[i].Logs = b.logs.of(trace)
		}
	}
	r.Logs = append(b.own.of(""), b.logs.of("")...)
	return r, err
}

func (b *bench) try(ctx context.Context, t *Trial, r *Report) error {
	warnings, err := b.configure(ctx, t.Use, t.Config)
	r.Diagnostics = append(r.Diagnostics, warnings...)
	if err != nil {
		return err
	}
	if t.Deadline <= 0 {
		t.Deadline = time.Minute
	}
	lane, err := b.lane(ctx, t)
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		m, err := t.Messages.Next()
		var bad *produce.InputError
		switch {
		case errors.Is(err, io.EOF):
			return drain(ctx, lane)
		case errors.As(err, &bad):
			r.Outcomes = append(r.Outcomes, Outcome{N: n, Verdict: "unread", Text: err.Error(), Outputs: []Output{}})
			continue
		case err != nil:
			return err
		}
		o, alive := one(ctx, lane, t, n, m)
		r.Outcomes = append(r.Outcomes, o)
		if alive {
			continue
		}
		if lane, err = b.lane(ctx, t); err != nil {
			return fmt.Errorf("after message %d: %w", n, err)
		}
	}
}

// laneTimeout bounds the wait for a lane: for its credit, for its drain, and for a process that comes up again after a crash
// unless it has longer to come up.
const laneTimeout = 15 * time.Second

func (b *bench) lane(ctx context.Context, t *Trial) (*pluginhost.Lane, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, b.again, pluginhost.Waited(b.again))
	defer cancel()
	lane, err := b.host.Open(ctx, frame.LaneSpec{Handler: benchHandler, Stream: "try", Concurrency: 1, Credits: 4, Deadline: t.Deadline})
	if err != nil {
		return nil, exitcode.With(exitcode.Environment, err)
	}
	return lane, nil
}

func drain(ctx context.Context, lane *pluginhost.Lane) error {
	ctx, cancel := context.WithTimeoutCause(ctx, laneTimeout, pluginhost.Waited(laneTimeout))
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range lane.Events() { // must be read until the end
		}
	}()
	err := lane.Drain(ctx)
	lane.Abort(errTried)
	<-ended
	if err != nil {
		return fmt.Errorf("draining: %w", err)
	}
	return nil
}

var errTried = errors.New("the trial is over")

// one sends a message and waits for its verdict. alive tells whether the lane can take another.
func one(ctx context.Context, lane *pluginhost.Lane, t *Trial, n int, m *rocketmq.OutgoingMessage) (o Outcome, alive bool) {
	var trace [frame.TraceSize]byte
	rand.Read(trace[:24]) // never fails: it ends the process instead
	trace[24] = 1
	o = Outcome{N: n, ID: fmt.Sprintf("try-%d", n), Outputs: []Output{}, trace: hex.EncodeToString(trace[:16])}
	var b frame.Builder
	b.Append(record(t, o.ID, n, m, trace[:]))
	start := time.Now()
	defer func() { o.TookMS = float64(time.Since(start).Microseconds()) / 1000 }()
	sent := false
	batch := &frame.Batch{Seq: uint64(n), Budget: t.Deadline, Records: *b.Records()} //nolint:gosec // counts from 1
	for {
		if !sent {
			switch err := lane.Send(batch); {
			case err == nil:
				sent = true
			case !errors.Is(err, frame.ErrNoCredit):
				o.Verdict, o.Text = "lost", err.Error()
				return o, false
			}
		}
		select {
		case e, more := <-lane.Events():
			if !more {
				o.Verdict, o.Text = "lost", "the lane ended"
				return o, false
			}
			if done, alive := o.take(e, uint64(n)); done { //nolint:gosec // as above
				return o, alive
			}
		case <-ctx.Done():
			o.Verdict, o.Text = "lost", context.Cause(ctx).Error()
			return o, false
		}
	}
}

func record(t *Trial, id string, n int, m *rocketmq.OutgoingMessage, trace []byte) *frame.Record {
	var properties []byte
	for name, value := range m.Properties {
		if p, err := wire.AppendProperty(properties, name, value); err == nil {
			properties = p
		}
	}
	now := uint64(time.Now().UnixMilli()) //nolint:gosec // after 1970
	return &frame.Record{
		Topic: m.Topic, Broker: "try", Tag: m.Tag, Offset: uint64(n - 1), BornMillis: now, StoreMillis: now, //nolint:gosec // counts from 1
		Attempt: uint32(max(t.Attempt, 1)), Trace: trace, ID: id, Keys: joinKeys(m.Keys), Properties: properties, Body: m.Body, //nolint:gosec // small
	}
}

func joinKeys(keys []string) string {
	return strings.Join(keys, " ")
}

// take reads one event of the lane.
func (o *Outcome) take(e frame.Event, seq uint64) (done, alive bool) {
	switch e.Kind {
	case frame.EventResults:
		if e.Results.Seq != seq {
			return false, true
		}
		o.outputs(e.Results)
		if len(e.Results.AckRuns) > 0 {
			o.Verdict = "ack"
			return true, true
		}
		if len(e.Results.Verdicts) > 0 {
			o.verdict(e.Results.Verdicts[0])
			return true, true
		}
	case frame.EventLost:
		o.Verdict, o.Text = "lost", e.Lost.Text
		return true, false
	case frame.EventDrained:
		o.Verdict, o.Text = "lost", "the plugin drained by itself"
		return true, false
	case frame.EventCredit, frame.EventStarted:
	}
	return false, true
}

func (o *Outcome) verdict(v frame.Verdict) {
	o.Class, o.Text, o.DelayMS = v.Class, v.Text, v.Delay.Milliseconds()
	switch v.Kind {
	case frame.VerdictAck:
		o.Verdict = "ack"
	case frame.VerdictRetry:
		o.Verdict = "retry"
	case frame.VerdictReject:
		o.Verdict = "reject"
	case frame.VerdictUntouched:
		o.Verdict = "untouched"
	}
}

func (o *Outcome) outputs(r *frame.Results) {
	for i := range r.Outputs.Len() {
		out := Output{
			Topic: r.Outputs.TopicOf(i), Tag: r.Outputs.TagOf(i), Keys: string(r.Outputs.Keys(i)), Body: string(r.Outputs.Body(i)),
			Properties: wire.PropertyMap(r.Outputs.Properties(i)),
		}
		if i < len(r.OutputDelay) {
			out.DelayMS = r.OutputDelay[i].Milliseconds()
		}
		if i < len(r.OutputShardingKey) {
			out.ShardingKey = r.OutputShardingKey[i]
		}
		o.Outputs = append(o.Outputs, out)
	}
}
