package telemetry

import (
	"sync"
	"time"
)

// limiter lets each key through a few times a minute and counts the rest, so that one broken thing does not fill a log.
type limiter struct {
	perMinute int
	mu        sync.Mutex
	keys      map[string]*window
}

type window struct {
	start      time.Time
	seen       int
	suppressed int
}

// maxKeys bounds the table; past it everything starts anew, which lets a few more lines through.
const maxKeys = 4096

// allow reports whether an event may be told now, and how many of its kind were held back since the last one told.
func (l *limiter) allow(key string, now time.Time) (suppressed int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keys == nil || len(l.keys) > maxKeys {
		l.keys = map[string]*window{}
	}
	w := l.keys[key]
	if w == nil || now.Sub(w.start) >= time.Minute || now.Before(w.start) {
		held := 0
		if w != nil {
			held = w.suppressed
		}
		l.keys[key] = &window{start: now, seen: 1}
		return held, true
	}
	if w.seen < l.perMinute {
		w.seen++
		return 0, true
	}
	w.suppressed++
	return 0, false
}
