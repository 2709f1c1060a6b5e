package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// member is one streamd.
type member struct {
	*child
	d           *demo
	name        string
	holdsBroker bool
	journal     journal
	log         *os.File // everything it says
	ready       chan struct{}
	once        sync.Once

	acks uint64 // at the last reading
	at   time.Time
}

// startMember starts streamd with the demo's config. Its log goes to a file, and line by line to read.
func (d *demo) startMember(name string, holdsBroker bool) (*member, error) {
	m := &member{d: d, name: name, holdsBroker: holdsBroker, ready: make(chan struct{}), at: time.Now()}
	m.journal.path = filepath.Join(d.dir, name+".journal")
	overlay, err := d.writeOverlay(m)
	if err != nil {
		return nil, err
	}
	if m.log, err = os.Create(m.logPath()); err != nil {
		return nil, fmt.Errorf("making the log of %s: %w", name, err)
	}
	m.child, err = start("streamd "+name, d.environ(), m.read, d.o.streamd(), "run", "-c", d.o.Config, "--overlay", overlay)
	if err != nil {
		_ = m.log.Close() // nothing is in it
		return nil, err
	}
	d.add(m)
	return m, nil
}

// longestFolder is what leaves room for the names of sockets below it (pluginhost/process).
const longestFolder = 36

// environ is what members get besides the demo's own environment: no variable may lead to another cluster, and sockets go
// into the demo's folder, so that they go with it whatever happens.
func (d *demo) environ() []string {
	environ := []string{"NAMESRV_ADDR="}
	if len(d.dir) <= longestFolder {
		environ = append(environ, "XDG_RUNTIME_DIR="+d.dir)
	}
	return environ
}

func (m *member) state() string   { return filepath.Join(m.d.dir, m.name) }
func (m *member) logPath() string { return filepath.Join(m.d.dir, m.name+".log") }

func (m *member) readyOnce() { m.once.Do(func() { close(m.ready) }) }

// readyLimit is how long a member may take until it is ready; every sayEvery the demo tells what it waits for.
const (
	readyLimit = 2 * time.Minute
	sayEvery   = 5 * time.Second
)

// waitReady waits until every stream of the member is assigned and its handler answers.
func (m *member) waitReady(ctx context.Context) error {
	tick := time.NewTicker(sayEvery)
	defer tick.Stop()
	for waited := time.Duration(0); ; waited += sayEvery {
		select {
		case <-m.ready:
			return nil
		case <-m.done:
			return m.gone()
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		why := "its admin listener does not answer yet"
		if s, err := m.ask(ctx); err == nil {
			why = s.NotReady
		}
		if waited >= readyLimit {
			return fmt.Errorf("%s is not ready after %s: %s", m.child.name, readyLimit, why)
		}
		m.d.screen.say("wait", "%s: %s", m.name, why)
	}
}

// gone is the error of a member that ended though nobody stopped it.
func (m *member) gone() error {
	if m.err == nil {
		return fmt.Errorf("%s ended by itself", m.child.name)
	}
	return fmt.Errorf("%s ended: %w", m.child.name, m.err)
}

// status is what the demo reads of /api/v1/status.
type status struct {
	NotReady string `json:"not_ready"`
	Streams  []struct {
		Queues []queueStatus `json:"queues"`
		Holds  []struct {
			Text string `json:"text"`
		} `json:"holds"`
		Counters map[string]uint64 `json:"counters"`
	} `json:"streams"`
	Plugins []struct {
		Name      string `json:"name"`
		Processes []struct {
			State string `json:"state"`
			PID   int    `json:"pid"`
		} `json:"processes"`
	} `json:"plugins"`
}

type queueStatus struct {
	Topic    string `json:"topic"`
	ID       int32  `json:"id"`
	State    string `json:"state"`
	Lag      int64  `json:"lag"`
	OldestMS int64  `json:"oldest_ms"`
	InFlight int    `json:"in_flight"`
	Messages int    `json:"messages"`
}

// admin is the address of the member's admin listener, as the member recorded it.
func (m *member) admin() (string, error) {
	text, err := os.ReadFile(filepath.Join(m.state(), "admin.addr"))
	if err != nil {
		return "", fmt.Errorf("reading where %s listens: %w", m.child.name, err)
	}
	return strings.TrimSpace(string(text)), nil
}

// ask reads the member's status.
func (m *member) ask(ctx context.Context) (*status, error) {
	addr, err := m.admin()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/api/v1/status", nil)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", m.child.name, err)
	}
	resp, err := m.d.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", m.child.name, err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	var s status
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		return nil, fmt.Errorf("reading the status of %s: %w", m.child.name, err)
	}
	return &s, nil
}

// row is what the picture shows of a status.
func (m *member) row(s *status) row {
	r := row{member: m.name}
	now := time.Now()
	var ids []int32
	for i := range s.Streams {
		st := &s.Streams[i]
		for _, q := range st.Queues {
			r.inFlight += q.InFlight
			r.oldest = max(r.oldest, time.Duration(q.OldestMS)*time.Millisecond)
			r.lag += max(0, q.Lag)
			if q.owned() {
				ids = append(ids, q.ID)
			}
		}
		for _, h := range st.Holds {
			r.hold = h.Text
		}
		r.rate = float64(st.Counters["acks"]-m.acks) / max(now.Sub(m.at).Seconds(), 0.001)
		m.acks, m.at = st.Counters["acks"], now
	}
	var plugins []string
	for _, p := range s.Plugins {
		for _, process := range p.Processes {
			state := process.State
			if state == "ready" {
				state = "ok"
			}
			plugins = append(plugins, p.Name+" "+state)
		}
	}
	r.queues, r.plugin = ranges(ids), strings.Join(plugins, ", ")
	return r
}

func (q *queueStatus) owned() bool { return q.Topic == topic && q.State != "waiting" }

// pid is the process of the sample plugin; 0 = none.
func (s *status) pid() int {
	for _, p := range s.Plugins {
		for _, process := range p.Processes {
			if p.Name == plugin && process.State == "ready" {
				return process.PID
			}
		}
	}
	return 0
}
