package settle

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
)

// DefaultFailureTopic takes failure records unless the config names another.
const DefaultFailureTopic = "STREAMD_FAILURES"

// Failure is one failed attempt, as JSON keyed by the message's identity. Send-back copies the broker's own stored
// properties, so nothing can ride on the message itself (design.md 7).
type Failure struct {
	Identity      string    `json:"msg_id"`
	UniqueKey     string    `json:"unique_key,omitempty"`
	Group         string    `json:"group"`
	Stream        string    `json:"stream"`
	Topic         string    `json:"topic"`
	Queue         string    `json:"queue"`
	Offset        int64     `json:"offset"`
	Attempt       int       `json:"attempt"`
	Verdict       string    `json:"verdict"` // retry, reject or crash
	Class         string    `json:"class,omitempty"`
	Text          string    `json:"text,omitempty"`
	Handler       string    `json:"handler"`
	Plugin        string    `json:"plugin,omitempty"`
	PluginVersion string    `json:"plugin_version,omitempty"`
	Checksum      string    `json:"checksum,omitempty"`
	Member        string    `json:"member"`
	TraceID       string    `json:"trace_id,omitempty"`
	Started       time.Time `json:"started"`
	Failed        time.Time `json:"failed"`
}

// RecorderConfig makes a Recorder.
type RecorderConfig struct {
	Topic  string // empty = no records
	Broker interface {
		Send(ctx context.Context, m *rocketmq.OutgoingMessage) (rocketmq.SendResult, error)
	}
	Path     string // file for records that the topic does not take; empty = none
	MaxBytes int64  // of that file; then it is renamed to Path.1, over the one before
	Logger   *slog.Logger
}

// Recorder stores failure records. It never blocks and never fails a caller: what it cannot keep is counted.
type Recorder struct {
	cfg     RecorderConfig
	records chan Failure
	dropped atomic.Uint64
	stored  atomic.Uint64
	filed   atomic.Uint64
}

const recorderBacklog = 1024

// NewRecorder makes a recorder that does nothing until Run.
func NewRecorder(cfg RecorderConfig) *Recorder {
	return &Recorder{cfg: cfg, records: make(chan Failure, recorderBacklog)}
}

// Record takes a record, or counts it as dropped when too many wait.
func (r *Recorder) Record(f Failure) {
	if r.cfg.Topic == "" && r.cfg.Path == "" {
		return
	}
	select {
	case r.records <- f:
	default:
		r.dropped.Add(1)
	}
}

// Counts returns how many records were stored in the topic, written to the file, and dropped.
func (r *Recorder) Counts() (stored, filed, dropped uint64) {
	return r.stored.Load(), r.filed.Load(), r.dropped.Load()
}

// Run works until ctx ends; then what waits is written to the file.
func (r *Recorder) Run(ctx context.Context) {
	var resume time.Time // the topic is not tried before
	for {
		select {
		case f := <-r.records:
			resume = r.keep(ctx, f, resume)
		case <-ctx.Done():
			r.rest()
			return
		}
	}
}

func (r *Recorder) rest() {
	for {
		select {
		case f := <-r.records:
			r.file(f)
		default:
			return
		}
	}
}

// topicPause is how long a topic that refused a record is left alone.
const topicPause = 10 * time.Second

func (r *Recorder) keep(ctx context.Context, f Failure, resume time.Time) time.Time {
	if r.cfg.Topic == "" || f.Failed.Before(resume) {
		r.file(f)
		return resume
	}
	body, err := json.Marshal(f)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, callLimit)
		defer cancel()
		_, err = r.cfg.Broker.Send(ctx, &rocketmq.OutgoingMessage{Topic: r.cfg.Topic, Tag: f.Verdict, Keys: keysOf(f), Body: body})
	}
	if err == nil {
		r.stored.Add(1)
		return resume
	}
	r.cfg.Logger.Warn("failure record not stored in its topic, writing it to the file", "topic", r.cfg.Topic, "file", r.cfg.Path, "error", err.Error())
	r.file(f)
	return f.Failed.Add(topicPause)
}

func keysOf(f Failure) []string {
	if f.UniqueKey == "" || f.UniqueKey == f.Identity {
		return []string{f.Identity}
	}
	return []string{f.Identity, f.UniqueKey}
}

// file appends a record to the bounded file.
func (r *Recorder) file(f Failure) {
	if r.cfg.Path == "" {
		r.dropped.Add(1)
		return
	}
	if err := r.write(f); err != nil {
		r.dropped.Add(1)
		r.cfg.Logger.Warn("failure record lost", "file", r.cfg.Path, "msg_id", f.Identity, "error", err.Error())
		return
	}
	r.filed.Add(1)
}

func (r *Recorder) write(f Failure) (err error) {
	line, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("encoding a failure record: %w", err)
	}
	if err := r.rotate(int64(len(line)) + 1); err != nil {
		return err
	}
	out, err := os.OpenFile(r.cfg.Path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the failure file: %w", err)
	}
	defer func() {
		if e := out.Close(); err == nil && e != nil {
			err = fmt.Errorf("closing the failure file: %w", e)
		}
	}()
	if _, err := out.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("writing the failure file: %w", err)
	}
	return nil
}

func (r *Recorder) rotate(more int64) error {
	info, err := os.Stat(r.cfg.Path)
	switch {
	case os.IsNotExist(err):
		if err := os.MkdirAll(filepath.Dir(r.cfg.Path), 0o700); err != nil {
			return fmt.Errorf("making the failure file's folder: %w", err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("looking at the failure file: %w", err)
	case info.Size()+more <= r.cfg.MaxBytes:
		return nil
	}
	if err := os.Rename(r.cfg.Path, r.cfg.Path+".1"); err != nil {
		return fmt.Errorf("rotating the failure file: %w", err)
	}
	return nil
}
