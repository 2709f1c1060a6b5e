package demo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/streamd/streamd/internal/exitcode"
)

// Options say what is shown.
type Options struct {
	For        time.Duration // end by itself so long after the first order; 0 = a signal ends it
	Rate       int           // orders a second
	Bin        string        // folder with streamd and plugins/orders, as `make build` leaves it
	Config     string        // the config that both members run
	NameServer string        // of a RocketMQ to use in the place of the embedded broker; "" = embedded
}

// The config's names that the demo counts by.
const (
	topic    = "Orders"
	group    = "billing"
	broker   = "local"
	plugin   = "orders"
	handler  = "billing"
	queues   = 8
	attempts = 3 // then an order is dead
)

// check tells what is missing before anything starts.
func (o *Options) check() error {
	if o.Rate < 1 || o.Rate > maxRate {
		return exitcode.With(exitcode.Usage, fmt.Errorf("a rate of %d orders a second: write 1 to %d", o.Rate, maxRate))
	}
	if _, err := os.Stat(o.Config); err != nil {
		return exitcode.With(exitcode.Environment, fmt.Errorf("%w: run this in the repository's folder, or say -config FILE", err))
	}
	for _, name := range []string{"streamd", "plugins/orders"} {
		_, err := os.Stat(filepath.Join(o.Bin, name))
		if errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("%w: run `make build` first", err)
		}
		if err != nil {
			return exitcode.With(exitcode.Environment, err)
		}
	}
	return nil
}

// maxRate is what the sample handlers keep up with on two cores.
const maxRate = 2000

func (o *Options) streamd() string { return filepath.Join(o.Bin, "streamd") }
func (o *Options) orders() string  { return filepath.Join(o.Bin, "plugins", "orders") }
