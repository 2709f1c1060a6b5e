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
	"syscall"
	"time"

	"github.com/streamd/streamd/internal/exitcode"
	"github.com/streamd/streamd/test/interop/cluster"
)

type options struct {
	length time.Duration // 0 = until Ctrl-C
	rate   int           // orders a second
	bin    string        // folder with streamd and plugins/
}

func main() { os.Exit(run()) }

func run() int {
	var o options
	flag.DurationVar(&o.length, "for", 0, "end by itself after this time, counted from the first order; 0 = Ctrl-C ends it")
	flag.IntVar(&o.rate, "rate", 200, "orders a second")
	flag.StringVar(&o.bin, "bin", filepath.Join(cluster.Root(), "bin"), "folder with streamd and plugins/, as `make build` leaves it")
	flag.Parse()
	if o.rate < 1 || flag.NArg() > 0 {
		return tell(exitcode.With(exitcode.Usage, errors.New("-rate wants at least 1, and there are no arguments; try -help")))
	}
	if err := o.check(); err != nil {
		return tell(exitcode.With(exitcode.Environment, err))
	}
	d, err := newDemo(o, newScreen(os.Stdout))
	if err != nil {
		return tell(exitcode.With(exitcode.Environment, err))
	}
	defer d.clean()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		<-signals
		cancel()
		<-signals
		d.kill()
		d.clean()
		fmt.Fprintln(os.Stderr, "demo: stopped at once")
		os.Exit(exitcode.Signaled(int(syscall.SIGINT)))
	}()
	return tell(d.run(ctx))
}

// tell prints an error for people and returns the exit code.
func tell(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
	}
	return exitcode.Of(err)
}

// check tells what is missing before anything starts.
func (o options) check() error {
	if _, err := exec.LookPath("java"); err != nil {
		return errors.New("there is no java. The demo starts a real RocketMQ, which needs a JDK (17 works) and, the first time, " +
			"Maven to fetch it; on Debian or Ubuntu: apt-get install openjdk-17-jdk-headless maven")
	}
	for _, name := range []string{"streamd", "plugins/orders", "plugins/nearest"} {
		if _, err := os.Stat(filepath.Join(o.bin, name)); err != nil {
			return fmt.Errorf("%w: run `make build` first", err)
		}
	}
	return nil
}
