package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// member is one streamd.
type member struct {
	*child
	d     *demo
	name  string
	state string // folder
	ready chan struct{}
	once  sync.Once

	acks uint64 // at the last reading
	at   time.Time
}

// status is what the demo reads of /api/v1/status.
type status struct {
	NotReady string `json:"not_ready"`
	Streams  []struct {
		Queues []struct {
			Topic    string `json:"topic"`
			ID       int32  `json:"id"`
			State    string `json:"state"`
			Lag      int64  `json:"lag"`
			OldestMS int64  `json:"oldest_ms"`
			InFlight int    `json:"in_flight"`
		} `json:"queues"`
		Holds []struct {
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

func (d *demo) startMember(name string) (*member, error) {
	m := &member{d: d, name: name, state: filepath.Join(d.dir, name), ready: make(chan struct{}), at: time.Now()}
	var err error
	m.child, err = start("streamd "+name, m.read, filepath.Join(d.o.bin, "streamd"),
		"run", "-c", d.config, "--member", name, "--state-dir", m.state)
	if err != nil {
		return nil, err
	}
	d.add(m.child)
	return m, nil
}

func (m *member) readyOnce() { m.once.Do(func() { close(m.ready) }) }

// readyLimit is how long a member may take until it is ready; every sayEvery the demo tells what it waits for.
const (
	readyLimit = 2 * time.Minute
	sayEvery   = 10 * time.Second
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
			return fmt.Errorf("%s ended before it was ready: %w", m.child.name, m.err)
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

// admin is the address of the member's admin listener, as the member recorded it.
func (m *member) admin() (string, error) {
	text, err := os.ReadFile(filepath.Join(m.state, "admin.addr"))
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

// load of a member at one moment, as a row of the table.
type row struct {
	queues, plugins string
	rate            float64
	lag             int64
	oldest          time.Duration
	inFlight        int
	retries, dead   uint64
	hold            string
	pid             int // of the orders plugin
}

func (m *member) row(s *status) row {
	var r row
	var ids []int32
	for _, st := range s.Streams {
		for _, q := range st.Queues {
			r.inFlight += q.InFlight
			r.oldest = max(r.oldest, time.Duration(q.OldestMS)*time.Millisecond)
			r.lag += max(0, q.Lag)
			if q.Topic == topic && q.State != "waiting" {
				ids = append(ids, q.ID)
			}
		}
		for _, h := range st.Holds {
			r.hold = h.Text
		}
		now := time.Now()
		r.rate = float64(st.Counters["acks"]-m.acks) / max(now.Sub(m.at).Seconds(), 0.001)
		m.acks, m.at = st.Counters["acks"], now
		r.retries, r.dead = st.Counters["retries"], st.Counters["rejects"]
	}
	var plugins []string
	for _, p := range s.Plugins {
		for _, process := range p.Processes {
			state := process.State
			if state == "ready" {
				state = "ok"
			}
			if p.Name == "orders" {
				r.pid = process.PID
			}
			plugins = append(plugins, p.Name+" "+state)
		}
	}
	r.queues, r.plugins = ranges(ids), strings.Join(plugins, ", ")
	return r
}

// ranges writes 0 1 2 5 as "Orders 0-2,5".
func ranges(ids []int32) string {
	if len(ids) == 0 {
		return "-"
	}
	slices.Sort(ids)
	var parts []string
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		if part := fmt.Sprint(ids[i]); i == j {
			parts = append(parts, part)
		} else {
			parts = append(parts, part+"-"+fmt.Sprint(ids[j]))
		}
		i = j + 1
	}
	return topic + " " + strings.Join(parts, ",")
}
