package porttest_test

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/streamd/streamd/internal/porttest"
)

// A reserved address can be listened at, again and again, and refuses connections in between.
func TestReserve_isListenedAtAgainAndAgain(t *testing.T) {
	t.Parallel()
	address := porttest.Reserve(t)
	for range 3 {
		if c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("while nobody listens: %v, %v", c, err)
		}
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(c.Close(), l.Close()); err != nil {
			t.Error(err)
		}
	}
}

// Nobody who asks for any port is given a reserved one, though all others be taken in turn.
func TestReserve_isGivenToNobodyElse(t *testing.T) {
	t.Parallel()
	reserved := map[string]bool{}
	for range 200 {
		reserved[porttest.Reserve(t)] = true
	}
	if len(reserved) != 200 {
		t.Errorf("%d addresses for 200 reservations", len(reserved))
	}
	for range 5000 {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if reserved[l.Addr().String()] {
			t.Errorf("%s was given away", l.Addr())
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}
