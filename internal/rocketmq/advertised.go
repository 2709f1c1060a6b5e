package rocketmq

import "sync"

// advertised remembers which version of each subscription a broker was told on the present connection.
type advertised struct {
	mu       sync.Mutex
	versions map[subscriptionKey]int64
}

type subscriptionKey struct{ group, topic string }

func (a *advertised) set(group, topic string, version int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.versions == nil {
		a.versions = map[subscriptionKey]int64{}
	}
	a.versions[subscriptionKey{group, topic}] = max(version, a.versions[subscriptionKey{group, topic}])
}

func (a *advertised) covers(group, topic string, version int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	told, ok := a.versions[subscriptionKey{group, topic}]
	return ok && told >= version
}

func (a *advertised) clear() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.versions = nil
}
