package queue

import (
	"context"
	"fmt"
	"time"
)

// releasePause is how often a held queue asks whether somebody has chosen its position: a reset that a broker carries
// (from 5.1.0) is told to nobody, and a held queue sends no pull that would meet it.
const releasePause = 5 * time.Second

// lookForRelease asks for the stored offset of a held queue. It waits for what is owed: an own commit is nobody's choice.
func (w *Worker) lookForRelease(now time.Time) {
	if w.looking || w.committing || now.Before(w.notBefore) || w.own != nil && w.own.facts(false).safe > w.committed {
		return
	}
	w.looking = true
	r := released{epoch: w.epoch, known: w.committed}
	w.call(w.callCtx, func(ctx context.Context) event {
		ctx, cancel := context.WithTimeout(ctx, callLimit)
		defer cancel()
		r.offset, r.stored, r.err = w.cfg.Broker.Committed(ctx, w.cfg.Group, w.cfg.Queue)
		if r.err != nil {
			r.err = fmt.Errorf("asking for the committed offset of %s: %w", w.cfg.Queue, r.err)
		}
		return r
	})
}

// released is the answer to lookForRelease.
type released struct {
	epoch  uint64
	known  int64 // what this worker had committed when it asked
	offset int64
	stored bool
	err    error
}

func (r released) apply(w *Worker) {
	if w.phase != PhaseHeld || r.epoch != w.epoch {
		return
	}
	w.looking = false
	w.notBefore = w.cfg.Now().Add(w.cfg.jitter(releasePause))
	switch {
	case r.err != nil:
		w.cfg.Logger.Debug("held queue does not learn whether its position was chosen", "queue", w.cfg.Queue.String(), "error", r.err.Error())
		return
	case !r.stored, r.known != w.committed, r.offset == w.committed:
		return
	}
	w.cfg.Logger.Info("the held queue's position was chosen", "queue", w.cfg.Queue.String(), "offset", r.offset)
	w.notBefore = time.Time{}
	if w.own != nil {
		w.reset(r.offset)
		return
	}
	w.count(func(n *Counters) { n.Resets++ })
	w.setPhase(PhaseStarting)
	started{asked: w.asked, action: StartAt, offset: r.offset}.apply(w)
}
