// Command demo shows streamd at work: what `make run` runs. Package internal/demo has its promises.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/streamd/streamd/internal/demo"
	"github.com/streamd/streamd/internal/exitcode"
)

func main() { os.Exit(run()) }

func run() int {
	var o demo.Options
	flag.DurationVar(&o.For, "for", 0, "end by itself after this time, counted from the first order; 0 = Ctrl-C ends it")
	flag.IntVar(&o.Rate, "rate", 200, "orders a second")
	flag.StringVar(&o.Bin, "bin", "bin", "folder with streamd and plugins/orders, as `make build` leaves it")
	flag.StringVar(&o.Config, "config", "configs/quickstart.yaml", "config that both members run")
	flag.StringVar(&o.NameServer, "n", "", "name server of a RocketMQ to use in the place of the embedded broker, host:port")
	flag.Parse()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	err := errors.New("there are no arguments; try -help")
	if err = exitcode.With(exitcode.Usage, err); flag.NArg() == 0 {
		err = demo.Run(o, os.Stdout, signals)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
	}
	return exitcode.Of(err)
}
