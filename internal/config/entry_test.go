package config_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/streamd/streamd/internal/config"
)

// What is found bad only when it is opened is told at its place: the value's, wherever it came from.
func TestValuesKnowTheirPlaces(t *testing.T) {
	file := write(t, "s.yaml", `brokers:
  - name: main
    tls: {ca: none.pem}
    name_servers: "mq:9876"
  - name: own
    embedded: {data_dir: there}
plugins: [{name: acme, command: [./acme, -v]}]
handlers: [{name: billing}]
streams: [{name: orders, broker: main, group: billing, subscribe: [{topic: Orders}]}]
`)
	t.Setenv("STREAMD_HEALTH_LISTEN", ":8421")
	c := load(t, config.Options{Paths: []string{file}, Set: []string{"plugins[acme].checksum=sha256:" + zeros}}).Config
	fault := errors.New("is not there")
	for want, got := range map[string]error{
		file + ":3:15: is not there":                      c.Brokers[0].Written.Place(fault, "tls", "ca"),
		file + ":6:26: is not there":                      c.Brokers[1].Embedded.Written.Place(fault, "data_dir"),
		file + ":7:34: is not there":                      c.Plugins[0].Written.Place(fault, "command", "0"),
		"--set plugins[acme].checksum: is not there":      c.Plugins[0].Written.Place(fault, "checksum"),
		"environment STREAMD_HEALTH_LISTEN: is not there": c.Written.Place(fault, "health", "listen"),
		"is not there":                                    c.Written.Place(fault, "state_dir"), // by default
	} {
		if got.Error() != want || !errors.Is(got, fault) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if err := c.Written.Place(nil, "health", "listen"); err != nil {
		t.Errorf("no error has become %v", err)
	}
	if err := (config.Entry{}).Place(fault, "tls", "ca"); err.Error() != "is not there" {
		t.Errorf("an entry that nobody wrote: %v", err)
	}
}

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

// Configs that say the same at other places are the same.
func TestUnplacedConfigsAreCompared(t *testing.T) {
	of := func(text string) config.Config {
		c := load(t, config.Options{Paths: []string{write(t, "s.yaml", text)}}).Config.Unplaced()
		c.Handlers, c.Streams = nil, nil // which have configs of their own
		return c
	}
	text := strings.Replace(minimal, `name_servers: ["127.0.0.1:9876"]`, "embedded: {data_dir: there}", 1)
	if !reflect.DeepEqual(of(text), of("# a line more\n"+text)) {
		t.Error("a comment makes a difference")
	}
	if reflect.DeepEqual(of(text), of(strings.Replace(text, "there", "elsewhere", 1))) {
		t.Error("another folder makes none")
	}
}
