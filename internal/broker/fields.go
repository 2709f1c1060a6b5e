package broker

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// fields reads a request's header fields. As in RocketMQ a missing or non-numeric field is noticed where it is used and
// answered with code 1 (vectors/README.md 4.8); the first such one is kept in err.
type fields struct {
	ext wire.Fields
	err error
}

func fieldsOf(r *remote.Request) *fields { return &fields{ext: r.Command.Ext} }

func (f *fields) text(key string) string {
	v, ok := f.ext.Lookup(key)
	if !ok {
		f.fail(key, "is missing")
	}
	return v
}

// name is text that becomes part of a key under which something is stored.
func (f *fields) name(key string) string {
	v := f.text(key)
	if !keyable(v) {
		f.fail(key, "has a zero byte")
	}
	return v
}

func (f *fields) optional(key string) string { return f.ext.Get(key) }

func (f *fields) int64(key string) int64 {
	n, err := strconv.ParseInt(f.text(key), 10, 64)
	if err != nil {
		f.fail(key, "is no number")
	}
	return n
}

func (f *fields) int32(key string) int32 {
	n, err := strconv.ParseInt(f.text(key), 10, 32)
	if err != nil {
		f.fail(key, "is no number")
	}
	return int32(n)
}

// int64Or takes fallback for a field that is absent or no number.
func (f *fields) int64Or(key string, fallback int64) int64 {
	n, err := strconv.ParseInt(f.ext.Get(key), 10, 64)
	if err != nil {
		return fallback
	}
	return n
}

func (f *fields) int32Or(key string, fallback int32) int32 {
	n, err := strconv.ParseInt(f.ext.Get(key), 10, 32)
	if err != nil {
		return fallback
	}
	return int32(n)
}

// flag is Java's: everything but "true" is false; absent is fallback.
func (f *fields) flag(key string, fallback bool) bool {
	v, ok := f.ext.Lookup(key)
	if !ok {
		return fallback
	}
	return strings.EqualFold(v, "true")
}

func (f *fields) fail(key, what string) {
	if f.err == nil {
		f.err = fmt.Errorf("the request's field %s %s", key, what)
	}
}

// bad is the answer to a request whose fields cannot be used, nil if they can.
func (f *fields) bad() *remote.Answer {
	if f.err == nil {
		return nil
	}
	return plain(wire.RespSystemError, f.err.Error())
}
