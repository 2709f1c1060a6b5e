package store_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/streamd/streamd/internal/broker/store"
)

func TestMain(m *testing.M) {
	if file := os.Getenv(lostFile); file != "" {
		raw := make([]byte, 1000)
		binary.BigEndian.PutUint32(raw, uint32(len(raw)))
		c := &store.Change{Appends: []store.Append{{Topic: "T", Records: []store.Record{{Raw: raw}}}}}
		play := lose
		if file == noLog {
			play = leave
		}
		if err := play(os.Stdout, file, os.Getenv(lostDir), c); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}
