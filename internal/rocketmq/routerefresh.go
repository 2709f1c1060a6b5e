package rocketmq

import (
	"sync"
	"time"
)

// refreshLoop fetches all routes every interval, denied ones every deniedInterval, and stale ones at once but at most once
// in expediteGap. It waits for nothing but name servers.
func (r *routes) refreshLoop() {
	tick, denied := time.NewTicker(r.interval), time.NewTicker(deniedInterval)
	defer tick.Stop()
	defer denied.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-tick.C:
			r.refresh(func(*topicRoute) bool { return true })
		case <-denied.C:
			r.refresh(func(e *topicRoute) bool { return !e.denied.IsZero() })
		case <-r.kick:
			r.refresh(func(e *topicRoute) bool { return e.stale })
			gap := time.NewTimer(expediteGap)
			select {
			case <-gap.C:
			case <-r.ctx.Done():
			}
			gap.Stop()
		}
	}
}

// refresh fetches the routes that pick wants, a few at a time, and waits for them.
func (r *routes) refresh(pick func(*topicRoute) bool) {
	limit := make(chan struct{}, routeFetches)
	var wg sync.WaitGroup
	for _, topic := range r.picked(pick) {
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			r.renew(r.ctx, topic)
		})
	}
	wg.Wait()
}

func (r *routes) picked(pick func(*topicRoute) bool) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var topics []string
	for topic, entry := range r.topics {
		if pick(entry) {
			topics = append(topics, topic)
		}
	}
	return topics
}

// watcher calls f after route changes, one call at a time; changes during a call make one more.
type watcher struct {
	f    func()
	poke chan struct{}
	done chan struct{}
	once sync.Once
}

func (w *watcher) notify() {
	select {
	case w.poke <- struct{}{}:
	default:
	}
}

// watch calls f on a goroutine of its own after each change, until stop or the client's end. stop may be called from f.
func (r *routes) watch(topic string, f func()) (stop func()) {
	w := &watcher{f: f, poke: make(chan struct{}, 1), done: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return func() {}
	}
	entry := r.entry(topic)
	entry.watchers[w] = struct{}{}
	if entry.route == nil {
		r.mark(entry)
	}
	r.wg.Go(func() {
		for {
			select {
			case <-w.poke:
				w.f()
			case <-w.done:
				return
			case <-r.ctx.Done():
				return
			}
		}
	})
	return func() { w.once.Do(func() { r.unwatch(topic, w) }) }
}

func (r *routes) unwatch(topic string, w *watcher) {
	close(w.done)
	r.mu.Lock()
	defer r.mu.Unlock()
	if entry := r.topics[topic]; entry != nil {
		delete(entry.watchers, w)
	}
}
