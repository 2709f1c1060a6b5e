package config_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/config"
)

func TestEmbeddedFillsDefaults(t *testing.T) {
	text := strings.Replace(minimal, `name_servers: ["127.0.0.1:9876"]`, "embedded: ", 1)
	t.Setenv("NAMESRV_ADDR", "elsewhere:9876") // does not lead away from what is written
	c := load(t, config.Options{Paths: []string{write(t, "s.yaml", text)}}).Config
	b := &c.Brokers[0]
	if b.Embedded == nil || b.Embedded.Listen != "127.0.0.1:9876" || b.Embedded.Dev {
		t.Fatalf("embedded = %+v", b.Embedded)
	}
	if got := b.Servers(); len(b.NameServers) > 0 || !slices.Equal(got, []string{"127.0.0.1:9876"}) {
		t.Errorf("clients use %v, name_servers %v", got, b.NameServers)
	}
	plain := load(t, config.Options{Paths: []string{write(t, "s.yaml", minimal)}}).Config
	if plain.Brokers[0].Embedded != nil {
		t.Error("a broker that nobody wrote is embedded")
	}
}

func TestEmbeddedDelayLevelsAreTheStreams(t *testing.T) {
	text := strings.Replace(minimal, `name_servers: ["127.0.0.1:9876"]`, "embedded: {delay_levels: [1s, 2s], topics: [{name: Orders}]}", 1)
	c := load(t, config.Options{Paths: []string{write(t, "s.yaml", text)}}).Config
	want := []time.Duration{time.Second, 2 * time.Second}
	if got := c.Streams[0].Retry.Levels; !slices.Equal(got, want) {
		t.Errorf("the stream's levels = %v, want %v", got, want)
	}
	if c.Brokers[0].Embedded.Topics[0].Queues != 8 {
		t.Errorf("topics = %+v", c.Brokers[0].Embedded.Topics)
	}
	own := load(t, config.Options{Paths: []string{write(t, "s.yaml", text+"defaults: {retry: {levels: [7s]}}\n")}}).Config
	if got := own.Streams[0].Retry.Levels; !slices.Equal(got, []time.Duration{7 * time.Second}) {
		t.Errorf("what somebody wrote gave way: %v", got)
	}
}

func TestEmbeddedFromFlags(t *testing.T) {
	e, err := config.EmbeddedFrom([]config.Flag{
		{Key: "listen", Name: "--listen", Value: ":9876"},
		{Key: "advertise", Name: "--advertise", Value: "mq:9876"},
		{Key: "topics", Name: "--topic", Value: "Orders:4,Refunds"},
		{Key: "delay_levels", Name: "--delay-levels", Value: "1s, 5s"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if e.Address() != "mq:9876" || e.Topics[0] != (config.Topic{Name: "Orders", Queues: 4}) || e.Topics[1].Queues != 8 || e.DelayLevels[1] != 5*time.Second {
		t.Errorf("settings = %+v", e)
	}
	if e, err := config.EmbeddedFrom(nil); err != nil || e.Listen != "127.0.0.1:9876" {
		t.Errorf("without a flag: %+v, %v", e, err)
	}
	_, err = config.EmbeddedFrom([]config.Flag{{Key: "listen", Name: "--listen", Value: "[::]:9876"}, {Key: "topics", Name: "--topic", Value: "a b"}})
	var bad *config.InvalidError
	if !errors.As(err, &bad) || len(bad.Problems) != 2 || !strings.Contains(err.Error(), "--listen: ") || !strings.Contains(err.Error(), "--advertise HOST:PORT") {
		t.Errorf("EmbeddedFrom = %v", err)
	}
	_, err = config.EmbeddedFrom([]config.Flag{{Key: "delay_levels", Name: "--delay-levels", Value: "1s,,2s"}})
	if !errors.As(err, &bad) || !strings.Contains(err.Error(), `: "" is no duration`) {
		t.Errorf("a delay between two commas: %v", err)
	}
}

// A trial never leads to a real cluster, whatever names one, nor to the data of a real embedded broker.
func TestDevReplacesEveryBroker(t *testing.T) {
	t.Setenv("NAMESRV_ADDR", "prod:9876")
	dev := &config.Dev{Listen: "127.0.0.1:9876"}
	text := `
brokers:
  - {name: one, name_servers: ["prod:9876", "prod:9877"]}
  - {name: two, embedded: {listen: "10.0.0.1:9876", topics: [{name: Refunds, queues: 3}], delay_levels: [9s]}}
plugins: [{name: acme, command: [./acme]}]
handlers: [{name: billing}]
streams:
  - {name: orders, broker: one, group: billing, subscribe: [{topic: Orders}, {topic: More}]}
  - {name: refunds, broker: two, group: billing, subscribe: [{topic: Refunds}]}
`
	l := load(t, config.Options{Paths: []string{write(t, "s.yaml", text)}, Dev: dev})
	one, two := l.Config.Brokers[0], l.Config.Brokers[1]
	if len(one.NameServers) > 0 || !one.Embedded.Dev || one.Embedded.Listen != "127.0.0.1:9876" || len(one.Embedded.DelayLevels) != 18 {
		t.Errorf("one = %+v, %+v", one, one.Embedded)
	}
	if two.Embedded.Listen != "127.0.0.1:9877" || two.Embedded.Topics[0].Queues != 3 || len(two.Embedded.DelayLevels) != 1 {
		t.Errorf("two = %+v", two.Embedded)
	}
	if got := strings.Join(l.Replaced, "\n"); !strings.Contains(got, "brokers[one]: name_servers prod:9876, prod:9877") || !strings.Contains(got, "brokers[two]: its embedded broker") {
		t.Errorf("replaced:\n%s", got)
	}
	if got := l.Config.TopicsOf("one"); !slices.Equal(got, []string{"Orders", "More"}) {
		t.Errorf("topics = %v", got)
	}
	_, rest, _ := strings.Cut(minimal, "]}]\n") // without the line of the brokers
	none := load(t, config.Options{Paths: []string{write(t, "s.yaml", rest)}, Dev: dev})
	if b := none.Config.Brokers; len(b) != 1 || b[0].Embedded == nil || len(none.Replaced) > 0 || none.Config.Streams[0].Broker != b[0].Name {
		t.Errorf("without a broker: %+v, replaced %v", b, none.Replaced)
	}
	if c := load(t, config.Options{Dev: dev}).Config; len(c.Streams) > 0 || len(c.Brokers) != 1 {
		t.Errorf("without a file: %+v", c)
	}
	if _, err := config.Load(config.Options{Paths: []string{write(t, "s.yaml", "brokers: []\n")}, Dev: dev}); err == nil {
		t.Error("a file without streams is accepted")
	}
}
