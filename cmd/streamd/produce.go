package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/exitcode"
	"github.com/streamd/streamd/internal/lifecycle"
	"github.com/streamd/streamd/internal/plain"
	"github.com/streamd/streamd/internal/produce"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// produceFlags is the command line of produce.
type produceFlags struct {
	cluster    clusterFlags
	out        output
	template   produce.Template
	options    produce.Options
	properties []string
	delay      string
	generate   int
	size       string
	jsonLines  bool
	file       string
	ids        bool
	tx         transactionFlags
	msgtrace   string // topic of RocketMQ's own trace; empty = none is written
}

func newProduce() *cobra.Command {
	var p produceFlags
	cmd := &cobra.Command{
		Use:   "produce",
		Short: "Send lines, JSON lines or generated messages",
		Long: `produce sends each line of standard input (or of --file) as one message. With --json a line is an object with the keys
body, body_base64, key, keys, tag, sharding_key, delay, properties, topic. With --generate it makes sample orders itself, as
JSON: {"id":"G-1","amount":2.01,"filler":"…"}.
In --keys, --tag, --sharding-key and --property the text {n} becomes the number of the message.

With --transaction each message is a transaction: stored where no consumer sees it, then committed or rolled back. With
--transaction unknown it is left open; the broker then asks how it ended, after some seconds, and is answered what --check
says. produce waits for that, --check-wait at most.`,
		Example: `  echo hello | streamd produce -n 127.0.0.1:9876 --topic Orders --keys A-1 --tag created
  streamd produce -c streamd.yaml --topic Orders --json < orders.jsonl
  streamd produce -n mq:9876 --topic Orders --generate 100000 --size 1KiB --batch 32 --rate 5000 --keys k{n} -o json
  echo paid | streamd produce -n mq:9876 --topic Orders --transaction unknown --check commit`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return p.run(cmd) },
	}
	p.bind(cmd)
	return cmd
}

func (p *produceFlags) bind(cmd *cobra.Command) {
	p.cluster.bind(cmd, 0)
	p.out.bind(cmd)
	f := cmd.Flags()
	f.StringVarP(&p.template.Topic, "topic", "t", "", "topic")
	f.StringSliceVarP(&p.template.Keys, "keys", "k", nil, "keys, separated by commas")
	f.StringVar(&p.template.Tag, "tag", "", "tag")
	f.StringVar(&p.template.ShardingKey, "sharding-key", "", "messages with one sharding key go to one queue")
	f.StringVar(&p.delay, "delay", "", "delay: a level 1 to 18, or a duration such as 10s")
	f.StringArrayVarP(&p.properties, "property", "p", nil, "property NAME=VALUE; repeatable")
	f.IntVar(&p.generate, "generate", 0, "make this many sample orders instead of reading")
	f.StringVar(&p.size, "size", "1KiB", "size of a generated body; of less than some 50 bytes it is no JSON")
	f.BoolVar(&p.jsonLines, "json", false, "input is JSON lines")
	f.StringVarP(&p.file, "file", "f", "", "read this file instead of standard input")
	f.Float64Var(&p.options.Rate, "rate", 0, "messages per second; 0 = as fast as they are stored")
	f.IntVar(&p.options.Batch, "batch", 1, "messages per request")
	f.IntVar(&p.options.InFlight, "in-flight", 1, "requests at once; more than one gives up the order")
	f.DurationVar(&p.options.RetryFor, "retry-for", 0, "send a failed request again for so long; may store a message twice")
	f.BoolVar(&p.options.Trace, "trace", false, "start a trace with each message: adds the property traceparent")
	f.BoolVar(&p.ids, "ids", false, "print a line for each stored message: msg_id, place, unique_key (always with -o json)")
	f.StringVar(&p.msgtrace, "rocketmq-trace", "", "write RocketMQ's own message trace to this topic, RMQ_SYS_TRACE_TOPIC without a value")
	f.Lookup("rocketmq-trace").NoOptDefVal = wire.TraceTopic
	p.tx.bind(cmd)
}

func (p *produceFlags) run(cmd *cobra.Command) error {
	if err := p.tx.check(cmd, p); err != nil {
		return err
	}
	source, closer, err := p.source(cmd)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	return lifecycle.Run(cmd.Context(), signals, func(ctx context.Context) error {
		cmd.SetContext(ctx)
		return p.send(cmd, source, closer) //nolint:contextcheck // it has the command's, which is ctx
	})
}

func (p *produceFlags) send(cmd *cobra.Command, source produce.Source, closer io.Closer) error {
	ctx := cmd.Context()
	defer context.AfterFunc(ctx, func() { closer.Close() })() //nolint:errcheck // ends a read that waits for input
	if p.options.RetryFor <= 0 {
		p.options.Unreachable = unreachable
	}
	p.cluster.msgtrace = p.msgtrace
	return p.cluster.with(cmd, func(ctx context.Context, client *rocketmq.Client) (err error) {
		to, finish, err := p.tx.sender(ctx, cmd, p, client)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, finish()) }()
		failed := 0
		sum, err := produce.Run(ctx, traced{to, p.msgtrace != ""}, source, p.options, func(r produce.Result) {
			if r.Err != nil && !p.ends(r.Err) {
				if failed++; failed <= maxFailuresShown {
					fmt.Fprintf(cmd.ErrOrStderr(), "message %d: %v\n", r.N, r.Err)
				}
			}
			p.show(cmd.OutOrStdout(), r)
		})
		p.summarize(cmd, sum)
		return p.outcome(sum, err)
	})
}

// ends tells that a failure ends the whole run. It is then the error of the command, and is told once: at its end.
func (p *produceFlags) ends(err error) bool {
	return p.options.Unreachable != nil && p.options.Unreachable(err)
}

// outcome is the error of a run that ended with err.
func (p *produceFlags) outcome(sum produce.Summary, err error) error {
	switch {
	case sum.Failed == 0 || err != nil && p.ends(err):
		return err
	case errors.Is(sum.First, err): // a stop, which the messages that were not sent have told
		return &notStoredError{sum}
	}
	return errors.Join(&notStoredError{sum}, err)
}

// notStoredError says how many messages were not stored. Why was told with each of them: the first one's reason is wrapped, for
// the exit code and for what to look at.
type notStoredError struct{ sum produce.Summary }

func (e *notStoredError) Error() string {
	if e.sum.Failed+e.sum.Stored == 1 {
		return "the message was not stored"
	}
	return fmt.Sprintf("%d of %d messages were not stored", e.sum.Failed, e.sum.Failed+e.sum.Stored)
}

func (e *notStoredError) Unwrap() error { return e.sum.First }

// maxFailuresShown keeps a failing run readable; -o json has every one.
const maxFailuresShown = 20

func (p *produceFlags) source(cmd *cobra.Command) (produce.Source, io.Closer, error) {
	usage := func(err error) error { return usageError{cmd.CommandPath(), err} }
	delay, err := produce.ParseDelay(p.delay)
	if err != nil {
		return nil, nil, usage(err)
	}
	p.template.Delay = delay
	p.template.Properties = map[string]string{}
	for _, prop := range p.properties {
		name, value, ok := strings.Cut(prop, "=")
		if !ok || name == "" {
			return nil, nil, usage(fmt.Errorf("--property %q is not NAME=VALUE", prop))
		}
		p.template.Properties[name] = value
	}
	if p.template.Topic == "" && !p.jsonLines {
		return nil, nil, usage(errors.New("--topic is missing"))
	}
	if err := wire.ValidateTopic(p.template.Topic); err != nil && p.template.Topic != "" {
		return nil, nil, usage(fmt.Errorf("--topic: %w", err))
	}
	if err := wire.ValidateTopic(p.msgtrace); err != nil && p.msgtrace != "" {
		return nil, nil, usage(fmt.Errorf("--rocketmq-trace: %w", err))
	}
	if err := p.paced(); err != nil {
		return nil, nil, usage(err)
	}
	if p.generate < 0 {
		return nil, nil, usage(fmt.Errorf("--generate %d: write how many messages to make", p.generate))
	}
	if p.generate > 0 {
		size, err := bodySize(p.size)
		if err != nil {
			return nil, nil, usage(fmt.Errorf("--size: %w", err))
		}
		return produce.Generate(p.generate, int(size), p.template), io.NopCloser(nil), nil
	}
	in, closer := cmd.InOrStdin(), io.Closer(os.Stdin)
	if p.file != "" {
		f, err := os.Open(p.file)
		if err != nil {
			return nil, nil, exitcode.With(exitcode.Environment, fmt.Errorf("reading input: %w", err))
		}
		in, closer = f, f
	}
	if p.jsonLines {
		return produce.JSONLines(in, p.template), closer, nil
	}
	return produce.Lines(in, p.template), closer, nil
}

// paced says what is wrong with how the messages are to be sent.
func (p *produceFlags) paced() error {
	switch {
	case p.options.Batch < 1:
		return fmt.Errorf("--batch %d: write 1 or more messages per request", p.options.Batch)
	case p.options.InFlight < 1:
		return fmt.Errorf("--in-flight %d: write 1 or more requests at once", p.options.InFlight)
	case p.options.Rate < 0:
		return fmt.Errorf("--rate %g: write messages per second, or 0 for as fast as they are stored", p.options.Rate)
	}
	return nil
}

// bodySize reads a size; a number alone is bytes.
func bodySize(text string) (config.Size, error) {
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return config.Size(n), nil //nolint:gosec // 31 bits
	}
	size, err := config.ParseSize(text)
	if err != nil {
		return 0, fmt.Errorf("%w; a number alone is bytes", err)
	}
	return size, nil
}

// sent is one line of produce -o json.
type sent struct {
	N           int      `json:"n"`
	Topic       string   `json:"topic,omitempty"`
	MessageID   string   `json:"msg_id,omitempty"` // as logs, traces and dead letters have it; none where the message is stored anew when its time or its commit comes
	UniqueKey   string   `json:"unique_key,omitempty"`
	Broker      string   `json:"broker,omitempty"`
	Queue       int32    `json:"queue"`
	Offset      int64    `json:"offset"`
	Keys        []string `json:"keys,omitempty"`
	Traceparent string   `json:"traceparent,omitempty"`
	LessDurable string   `json:"less_durable,omitempty"`
	Error       string   `json:"error,omitempty"`
}

func (p *produceFlags) show(w io.Writer, r produce.Result) {
	line := sent{N: r.N, Queue: -1, Offset: -1}
	if r.Message != nil {
		line.Topic, line.Keys, line.Traceparent = r.Message.Topic, r.Message.Keys, r.Message.Properties["traceparent"]
	}
	if r.Err != nil {
		line.Error = r.Err.Error()
	} else {
		s := r.Stored
		line.UniqueKey, line.Broker, line.Queue, line.Offset = s.MessageID, s.Queue.Broker, s.Queue.ID, s.Offset
		line.LessDurable = lessDurable(s.Status)
		if m := r.Message; p.tx.outcome == "" && m.DelayLevel == 0 && m.Delay == 0 {
			line.MessageID = s.OffsetMessageID
		}
	}
	switch {
	case p.out.json():
		text, err := json.Marshal(line)
		if err == nil {
			fmt.Fprintf(w, "%s\n", text)
		}
	case p.ids && r.Err == nil:
		fmt.Fprintf(w, "%s %s/%s/%d@%d %s\n", cmp.Or(line.MessageID, "-"), line.Topic, line.Broker, line.Queue, line.Offset, line.UniqueKey)
	}
}

// lessDurable names a status that is stored with less certainty than the broker is configured for.
func lessDurable(s rocketmq.SendStatus) string {
	switch s {
	case rocketmq.SendFlushDiskTimeout:
		return "flush to disk timed out"
	case rocketmq.SendFlushSlaveTimeout:
		return "copy to slave timed out"
	case rocketmq.SendSlaveNotAvailable:
		return "no slave available"
	default:
		return ""
	}
}

// summarize tells people how it went: on standard error when standard output holds the ids.
func (p *produceFlags) summarize(cmd *cobra.Command, s produce.Summary) {
	w := cmd.OutOrStdout()
	if p.out.json() || p.ids {
		w = cmd.ErrOrStderr()
	}
	rate := float64(s.Stored) / max(s.Took.Seconds(), 1e-9)
	fmt.Fprintf(w, "%s %s, %s in %s (%.0f/s), failed %d\n", p.tx.did(), plain.Count(s.Stored, "message"), config.Size(s.Bytes), s.Took.Round(time.Millisecond), rate, s.Failed)
}
