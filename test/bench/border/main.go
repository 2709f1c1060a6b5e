// Command border measures the process border alone: how fast records get to a handler that does nothing, and their
// verdicts back, over each way that was considered. It prints a Markdown table of medians.
//
// Every way runs against a second process, this binary started again, except the one in process. Rounds are interleaved,
// so that noise of the machine spreads over all rows. CPU is user and system time of both processes.
//
//	go run ./test/bench/border [-rounds 3] [-time 800ms] [-batch 1,8,32,256] [-only sdk]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

const bodySize = 1024

func main() {
	if way := os.Getenv(childEnv); way != "" {
		if err := runChild(way); err != nil {
			fmt.Fprintln(os.Stderr, "border child:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "border:", err)
		os.Exit(1)
	}
}

// ways lists what is compared, in the order of the table.
func ways() []string {
	return []string{"in process", "socketpair", "sdk", "sdk, TLS", "opaque codec", "opaque codec, TLS", "protobuf", "protobuf, TLS"}
}

// sample is one run.
type sample struct {
	rate         float64 // records a second
	host, plugin float64 // CPU microseconds a record
}

func run(ctx context.Context) error {
	rounds := flag.Int("rounds", 3, "interleaved runs of each row")
	length := flag.Duration("time", 800*time.Millisecond, "measured time of one run")
	batches := flag.String("batch", "1,8,32,256", "batch sizes")
	only := flag.String("only", "", "run rows that contain this, and the socketpair")
	flag.Parse()
	samples := map[string][]sample{}
	var sizes []int
	for text := range strings.SplitSeq(*batches, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("reading -batch: %w", err)
		}
		sizes = append(sizes, n)
	}
	var rows []string
	for _, way := range ways() {
		if *only == "" || strings.Contains(way, *only) || way == "socketpair" {
			rows = append(rows, way)
		}
	}
	for round := range *rounds {
		for _, size := range sizes {
			for _, way := range rows {
				s, err := measure(ctx, way, size, *length)
				if err != nil {
					return fmt.Errorf("round %d, %s, batch %d: %w", round, way, size, err)
				}
				key := fmt.Sprint(way, size)
				samples[key] = append(samples[key], s)
			}
		}
	}
	printTable(rows, sizes, samples, *rounds, *length)
	return nil
}

func printTable(rows []string, sizes []int, samples map[string][]sample, rounds int, length time.Duration) {
	fmt.Printf("Border, %d B bodies, medians of %d interleaved runs of %s, %d CPUs, %s %s/%s\n\n",
		bodySize, rounds, length, goruntime.NumCPU(), goruntime.Version(), goruntime.GOOS, goruntime.GOARCH)
	fmt.Println("| way | batch | msg/s (min–max) | of socketpair | CPU µs/msg host + plugin |")
	fmt.Println("|---|---|---|---|---|")
	for _, size := range sizes {
		reference := median(samples[fmt.Sprint("socketpair", size)], func(s sample) float64 { return s.rate })
		for _, way := range rows {
			all := samples[fmt.Sprint(way, size)]
			rate := func(s sample) float64 { return s.rate }
			rates := make([]float64, 0, len(all))
			for _, s := range all {
				rates = append(rates, s.rate)
			}
			m := median(all, rate)
			fmt.Printf("| %s | %d | %s (%s–%s) | %.0f %% | %.2f + %.2f |\n", way, size, count(m), count(slices.Min(rates)), count(slices.Max(rates)),
				100*m/reference, median(all, func(s sample) float64 { return s.host }), median(all, func(s sample) float64 { return s.plugin }))
		}
	}
}

func median(all []sample, of func(sample) float64) float64 {
	values := make([]float64, 0, len(all))
	for _, s := range all {
		values = append(values, of(s))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func count(v float64) string {
	if v >= 1e6 {
		return fmt.Sprintf("%.2f M", v/1e6)
	}
	return fmt.Sprintf("%.0f k", v/1e3)
}
