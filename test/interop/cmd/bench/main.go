package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/streamd/streamd/test/interop/cluster"
)

type options struct {
	what    string
	runs    int
	n       int           // messages of the backlog
	rates   []int         // of the latency table, messages a second
	length  time.Duration // of one latency run
	rows    string        // only rows whose name contains this
	bin     string        // folder with streamd
	profile string        // folder for CPU profiles of streamd and its plugin while they drain
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// tables lists what there is to measure, in the order of the document.
func tables() []string {
	return []string{"drain", "border", "latency", "handover", "idle", "redelivery", "allocate", "broker"}
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	h, err := newHouse(ctx, o)
	if err != nil {
		return err
	}
	defer h.close()
	fmt.Print(machine(time.Now()))
	for _, what := range tables() {
		if o.what != "all" && o.what != what {
			continue
		}
		fmt.Printf("\n## %s\n\n", what)
		if err := h.measure(ctx, what); err != nil {
			return fmt.Errorf("measuring %s: %w", what, err)
		}
	}
	return nil
}

func (h *house) measure(ctx context.Context, what string) error {
	switch what {
	case "drain":
		return h.drain(ctx)
	case "border":
		return h.goTool(ctx, cluster.Root(), "run", "./test/bench/border", "-rounds", fmt.Sprint(h.times(3)))
	case "latency":
		return h.latency(ctx)
	case "handover":
		return h.handover(ctx)
	case "idle":
		return h.idle(ctx)
	case "redelivery":
		return h.redelivery(ctx)
	case "broker":
		return h.brokers(ctx)
	default:
		fmt.Println("```")
		defer fmt.Println("```")
		return h.goTool(ctx, cluster.Root(), "test", "-run", "^$", "-bench", ".", "-benchmem", "-count", fmt.Sprint(h.times(3)), "./allocate")
	}
}

func parse(args []string) (options, error) {
	o := options{what: "all"}
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		o.what, args = args[0], args[1:]
	}
	var rates string
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.IntVar(&o.runs, "runs", 0, "interleaved runs of each row; 0 = three, of latency five")
	f.IntVar(&o.n, "n", 1_000_000, "messages of the backlog")
	f.StringVar(&rates, "rates", "1000,5000", "messages a second of the latency table")
	f.DurationVar(&o.length, "for", 10*time.Second, "length of one latency run, after two seconds of warming up")
	f.StringVar(&o.rows, "rows", "", "only rows whose name contains this; several separated by |")
	f.StringVar(&o.bin, "bin", filepath.Join(cluster.Root(), "bin"), "folder with streamd, as `make build` leaves it; further ones, after commas, are shown beside it in the drain's table")
	f.StringVar(&o.profile, "profile", "", "folder for CPU profiles of streamd and its plugin while they drain")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	for text := range strings.SplitSeq(rates, ",") {
		var rate int
		if _, err := fmt.Sscanf(text, "%d", &rate); err != nil || rate < 1 {
			return o, fmt.Errorf("-rates takes numbers separated by commas, %q is none", text)
		}
		o.rates = append(o.rates, rate)
	}
	known := o.what == "all"
	for _, t := range tables() {
		known = known || t == o.what
	}
	if !known || f.NArg() > 0 {
		return o, fmt.Errorf("there is no table %q; there are %s, and all", strings.Join(append([]string{o.what}, f.Args()...), " "), strings.Join(tables(), ", "))
	}
	if o.runs < 0 || o.n < 1000 || o.length < time.Second {
		return o, errors.New("-runs wants 0 or more, -n at least 1000, -for at least 1s")
	}
	return o, nil
}

// times is how often each row runs.
func (h *house) times(preset int) int {
	if h.o.runs > 0 {
		return h.o.runs
	}
	return preset
}

// wanted tells whether a row is asked for.
func (h *house) wanted(row string) bool {
	for part := range strings.SplitSeq(h.o.rows, "|") {
		if strings.Contains(row, part) {
			return true
		}
	}
	return false
}

// goTool runs the go command and passes on what it prints.
func (h *house) goTool(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running go %s: %w", strings.Join(args, " "), err)
	}
	return nil
}
