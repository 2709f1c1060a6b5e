// Command ledger is the handler plugin of the interoperability tests: it writes down every delivery, before and after it
// is handled, and behaves as the first word of the body says.
//
//	ok, or any other word  handled at once
//	fail-N                 fails on attempts 1 to N
//	fail                   fails always
//	after-MS               fails on attempt 1 and asks for a delay
//	slow-MS                handled after so many milliseconds
//	reject                 rejected, class "bad_order"
//	panic                  panics
//	crash                  ends the process while the message is in hand
//	hang                   never answers, whatever its context says
//	gate                   fails until there is a file beside the ledger whose name ends in .open
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/serve"
	"github.com/streamd/streamd/test/interop/ledger"
)

// Config says where the ledger is.
type Config struct {
	File  string       `json:"file" required:"true" doc:"ledger; lines are appended, several processes may share it"`
	Slow  sdk.Duration `json:"slow" default:"0s" doc:"how long every message takes at least"`
	Spans bool         `json:"spans" doc:"export a span of the plugin's own for each delivery over the socket of the host"`
	Emit  string       `json:"emit" doc:"topic that gets a copy of each handled message; empty: none"`
}

type handler struct {
	Config
	file   *os.File
	tracer trace.Tracer
	close  func(context.Context) error
	log    func(ctx context.Context, msg string, args ...any)
}

func newHandler(ctx context.Context, c Config, env sdk.Env) (*handler, error) {
	file, err := os.OpenFile(c.File, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, sdk.At("/file", err)
	}
	h := &handler{Config: c, file: file, log: env.Logger.InfoContext}
	h.tracer, h.close, err = tracing(ctx, c.Spans)
	return h, err
}

// Handle writes down the delivery and does as the body says.
func (h *handler) Handle(ctx context.Context, m *sdk.Message) error {
	ctx, span := h.tracer.Start(ctx, "ledger.handle")
	defer span.End()
	if err := h.write(m, ledger.Start, nil); err != nil {
		return err
	}
	verdict := h.behave(ctx, m)
	if verdict == nil && h.Emit != "" {
		m.Emit(sdk.Output{Topic: h.Emit, Body: m.Body(), Keys: m.Keys()})
	}
	if verdict != nil {
		h.log(ctx, "ledger: failing", "body", ledger.Head(m.Body()), "attempt", m.Attempt())
	}
	return errors.Join(verdict, h.write(m, ledger.End, verdict))
}

func (h *handler) write(m *sdk.Message, event ledger.Event, verdict error) error {
	e := ledger.Entry{
		Event: event, ID: m.ID(), Body: ledger.Head(m.Body()), Attempt: m.Attempt(), Queue: m.Queue().String(), Offset: m.Offset(),
		PID: os.Getpid(), Host: os.Getppid(), At: time.Now().UnixNano(),
	}
	if verdict != nil {
		e.Error = verdict.Error()
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := h.file.Write(append(line, '\n')); err != nil { // one write: lines of several processes do not mix
		return fmt.Errorf("writing the ledger: %w", err)
	}
	return nil
}

var (
	errTold   = errors.New("told to fail")
	errReject = errors.New("told to reject")
)

func (h *handler) behave(ctx context.Context, m *sdk.Message) error {
	word, _, _ := bytes.Cut(m.Body(), []byte(" "))
	kind, text, _ := strings.Cut(string(word), "-")
	n, err := strconv.Atoi(text)
	if err != nil {
		n = -1
	}
	if err := wait(ctx, h.Slow.Std()); err != nil {
		return err
	}
	switch {
	case kind == "fail" && (n < 0 || m.Attempt() <= n):
		return sdk.WithClass("told", errTold)
	case kind == "after" && n >= 0 && m.Attempt() == 1:
		return sdk.RetryAfter(errTold, time.Duration(n)*time.Millisecond)
	case kind == "slow" && n >= 0:
		return wait(ctx, time.Duration(n)*time.Millisecond)
	case kind == "reject":
		return sdk.Reject("bad_order", errReject)
	case kind == "panic":
		panic("told to panic")
	case kind == "crash":
		os.Exit(3)
	case kind == "hang":
		select {}
	case kind == "gate":
		if _, err := os.Stat(h.File + ".open"); err != nil {
			return sdk.WithClass("told", fmt.Errorf("the gate is shut: %w", err))
		}
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends the ledger and sends the last spans.
func (h *handler) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(h.close(ctx), h.file.Close())
}

func main() {
	serve.Main(sdk.Info{Name: "ledger", Version: "1.0.0"},
		sdk.Component("ledger", newHandler).WithSummary("writes down every delivery; the body says how it ends"))
}
