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

	"github.com/streamd/streamd/internal/demo"
	"github.com/streamd/streamd/internal/exitcode"
	"github.com/streamd/streamd/test/interop/cluster"
)

func main() {
	o := demo.Options{Config: filepath.Join(cluster.Root(), "configs", "quickstart.yaml")}
	flag.DurationVar(&o.For, "for", 0, "end by itself after this time, counted from the first order; 0 = Ctrl-C ends it")
	flag.IntVar(&o.Rate, "rate", 200, "orders a second")
	flag.StringVar(&o.Bin, "bin", filepath.Join(cluster.Root(), "bin"), "folder with streamd and plugins/, as `make build` leaves it")
	flag.Parse()
	err := run(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
	}
	os.Exit(exitcode.Of(err))
}

func run(o demo.Options) (err error) {
	if _, err := exec.LookPath("java"); err != nil {
		return exitcode.With(exitcode.Environment, errors.New("there is no java: a real RocketMQ needs a JDK (17 works) and, the first time, Maven to fetch it; "+
			"on Debian or Ubuntu: apt-get install openjdk-17-jdk-headless maven; `make run` needs neither"))
	}
	dir, err := os.MkdirTemp("", "streamd-demo-rocketmq-")
	if err != nil {
		return exitcode.With(exitcode.Environment, fmt.Errorf("making a folder for RocketMQ: %w", err))
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	starting, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	fmt.Fprintf(os.Stdout, "RocketMQ %s starts; the first time Maven fetches it\n", cluster.Main)
	c, err := cluster.Run(starting, cluster.Options{Dir: dir})
	if starting.Err() != nil {
		return nil // nothing has begun
	}
	if err != nil {
		return exitcode.With(exitcode.Environment, err)
	}
	defer c.Close()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	stop() // what comes from now on is the demo's
	o.NameServer = c.Addr
	return demo.Run(o, os.Stdout, signals)
}
