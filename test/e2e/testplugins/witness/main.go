// Command witness is the handler plugin of the end-to-end tests: it writes down every delivery and behaves as the first
// word of the body says.
//
//	fail N    fails on attempts 1 to N
//	slow MS   takes so many milliseconds
//	reject    rejected, class "bad_order"
//	hold      waits until the gate file is there
//	deaf      on the first attempt: waits for the gate file whatever its context says, and is handled
//	exit      ends the process, always
//	once      ends the process, the first time
//	eat       on the first time: takes memory without end
//	leak      on the first attempt: fails, and says its secrets in its log and in its error
//	spill     ends the process with its secrets as last words, the first time
//	others    handled at once
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/serve"
	"github.com/streamd/streamd/test/e2e/record"
)

// Config says where the plugin keeps its files.
type Config struct {
	File string       `json:"file" required:"true" doc:"record of deliveries"`
	Gate string       `json:"gate" doc:"file that lets held messages go"`
	Slow sdk.Duration `json:"slow" default:"0s" doc:"how long every message takes at least"`

	Token string `json:"token" secret:"true" doc:"what leak and spill tell, beside the environment variable WITNESS_KEY"`
}

type handler struct {
	Config
	out  *os.File
	dies bool
}

// envDies makes the process end at every message: what a plugin with a broken environment does.
const envDies = "WITNESS_DIES"

func newHandler(_ context.Context, c Config, _ sdk.Env) (*handler, error) {
	out, err := os.OpenFile(c.File, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, sdk.At("/file", err)
	}
	return &handler{Config: c, out: out, dies: os.Getenv(envDies) != ""}, nil
}

// Handle writes down the delivery and does as the body says.
func (h *handler) Handle(ctx context.Context, m *sdk.Message) error {
	line := record.Line{
		Body: string(m.Body()[:min(len(m.Body()), 64)]), Topic: m.Topic(), Attempt: m.Attempt(), Queue: m.Queue().ID, Offset: m.Offset(), PID: os.Getpid(),
	}
	if err := line.Write(h.out); err != nil {
		return err
	}
	if h.dies {
		fmt.Fprintln(os.Stderr, "no database at db:5432")
		os.Exit(4)
	}
	err := h.behave(ctx, m)
	line.End = true
	if err != nil {
		line.Error = err.Error()
	}
	return errors.Join(err, line.Write(h.out))
}

var (
	errTold     = errors.New("told to fail")
	errCustomer = errors.New("no such customer")
)

func (h *handler) behave(ctx context.Context, m *sdk.Message) error {
	word, rest, _ := strings.Cut(string(m.Body()[:min(len(m.Body()), 64)]), " ")
	number, _, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(number)
	if err != nil {
		n = 0
	}
	if err := wait(ctx, h.Slow.Std()); err != nil {
		return err
	}
	switch word {
	case "fail":
		if m.Attempt() <= n {
			return sdk.WithClass("told", errTold)
		}
	case "slow":
		return wait(ctx, time.Duration(n)*time.Millisecond)
	case "reject":
		return sdk.Reject("bad_order", errCustomer)
	case "hold":
		return h.hold(ctx)
	case "deaf":
		if m.Attempt() == 1 {
			return h.hold(context.WithoutCancel(ctx))
		}
	case "exit":
		fmt.Fprintln(os.Stderr, "cannot handle "+rest)
		os.Exit(3)
	case "once":
		if h.first(m.ID()) {
			os.Exit(3)
		}
	case "leak":
		if m.Attempt() == 1 {
			fmt.Fprintln(os.Stderr, "logging in with "+h.secrets())
			return fmt.Errorf("cannot log in with %s", h.secrets())
		}
	case "spill":
		if h.first(m.ID()) {
			fmt.Fprintln(os.Stderr, "panic: no session for "+h.secrets())
			os.Exit(3)
		}
	case "eat":
		if h.first(m.ID()) {
			return eat(ctx)
		}
	}
	return nil
}

func (h *handler) secrets() string { return h.Token + " and " + os.Getenv("WITNESS_KEY") }

// first tells whether a message was not seen before, by this process or another.
func (h *handler) first(id string) bool {
	f, err := os.OpenFile(filepath.Join(filepath.Dir(h.File), "seen-"+id), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

func (h *handler) hold(ctx context.Context) error {
	for {
		if _, err := os.Stat(h.Gate); err == nil {
			return nil
		}
		if err := wait(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// eat holds 8 MiB more every few milliseconds, touched so that they are real, up to 512 MiB, and keeps them until somebody minds.
func eat(ctx context.Context) error {
	var held [][]byte
	for range 64 {
		block := make([]byte, 8<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		held = append(held, block)
		if err := wait(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return fmt.Errorf("nobody minds %d blocks: %w", len(held), ctx.Err())
}

// Close ends the record.
func (h *handler) Close() error { return h.out.Close() }

func main() {
	serve.Main(sdk.Info{Name: "witness", Version: "1.0.0"}, sdk.Component("witness", newHandler))
}
