package runtime

import (
	"math"
	"sync"

	"github.com/streamd/streamd/runtime/internal/queue"
)

// shares divide a stream's memory for messages among the brokers that they come from. What failed on a broker that is silent
// stays in memory until it answers: it must not take the room of what the others have.
type shares struct {
	name  string // of whole
	whole *queue.Budget

	mu       sync.Mutex // held for memory work only
	limit    int64
	byBroker map[string]*queue.Budget
}

func newShares(name string, limit int64, process *queue.Budget) *shares {
	return &shares{name: name, whole: queue.NewBudget(name, limit, process), limit: limit, byBroker: map[string]*queue.Budget{}}
}

// of is the budget of a broker's messages.
func (s *shares) of(broker string) *queue.Budget {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.byBroker[broker]
	if b == nil {
		b = queue.NewBudget(s.name+" for messages of broker "+broker, math.MaxInt64, s.whole)
		s.byBroker[broker] = b
		s.level()
	}
	return b
}

// setLimit changes what is divided.
func (s *shares) setLimit(limit int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = limit
	s.whole.SetLimit(limit)
	s.level()
}

// level gives each of several brokers three quarters at most, a single one all; mu is held.
func (s *shares) level() {
	share := int64(math.MaxInt64)
	if len(s.byBroker) > 1 {
		share = s.limit - s.limit/4
	}
	for _, b := range s.byBroker {
		b.SetLimit(share)
	}
}

// full tells which budget somebody waits for.
func (s *shares) full() (name string, full bool) {
	if name, full = s.whole.Full(); full {
		return name, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.byBroker {
		if name, full := b.Full(); full {
			return name, true
		}
	}
	return "", false
}
