package pluginhost

import (
	"context"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/sdk/pluginv1"
)

// supervise looks for hangs until the process is dead: records without an answer for their deadline and the grace, or a
// process that gives no sign of life at all.
func (g *generation) supervise() {
	ticker := time.NewTicker(g.host.timing.Health)
	defer ticker.Stop()
	quiet := silence{limit: g.host.timing.Misses, waits: g.host.waits, pids: []int{g.pid(), os.Getpid()}}
	for {
		select {
		case <-ticker.C:
		case <-g.dead:
			return
		}
		g.warnDry()
		if g.replaceOverdue() {
			return
		}
		if g.alive() {
			quiet.heard()
			continue
		}
		over, starved := quiet.miss(g.host.now())
		if starved {
			g.logger.Warn("plugin gives no sign of life, and there is no processor for it or for streamd: it is given more time; the machine has more to do than it can",
				"pid", g.pid())
		}
		if over {
			g.replace(frame.CauseHang, fmt.Sprintf("it gave no sign of life for %s: %s",
				g.host.now().Sub(time.Unix(0, g.lastFrame.Load())).Round(100*time.Millisecond), &quiet))
			return
		}
	}
}

// alive tells whether the process was heard since the last look, or answers now. Any answer will do.
func (g *generation) alive() bool {
	before := g.lastFrame.Load()
	if g.host.now().Sub(time.Unix(0, before)) < g.host.timing.Health {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), g.host.timing.HealthDeadline)
	defer cancel()
	_, err := g.api.Health(ctx, &pluginv1.HealthRequest{})
	if code := status.Code(err); code == codes.DeadlineExceeded || code == codes.Unavailable {
		return g.lastFrame.Load() != before
	}
	g.heard()
	return true
}

// warnDry says once for each lane that the plugin gives no credit though it has nothing to do. It may have a reason (what
// it writes to is down), so it is not replaced.
func (g *generation) warnDry() {
	now := g.host.now()
	for _, l := range g.openLanes() {
		l.mu.Lock()
		dry := !l.thirst && !l.dry.IsZero() && now.Sub(l.dry) > g.host.timing.Dry
		l.thirst = l.thirst || dry
		l.mu.Unlock()
		if dry {
			g.logger.Warn("plugin takes no records though it has none; its stream stands still until it gives credit",
				"handler", l.spec.Handler, "stream", l.spec.Stream, "shard", l.spec.Shard)
		}
	}
}

// replaceOverdue replaces the process when a lane has waited too long.
func (g *generation) replaceOverdue() bool {
	now := g.host.now()
	for _, l := range g.openLanes() {
		if l.spec.Deadline <= 0 {
			continue
		}
		l.mu.Lock()
		limit := l.spec.Deadline + g.host.timing.Grace
		ref, since, late := l.ledger.overdue(now, limit)
		refs := l.ledger.longRunners(now, limit)
		l.mu.Unlock()
		if late {
			g.mu.Lock()
			g.blame = &blame{lane: l, refs: refs}
			g.mu.Unlock()
			g.replace(frame.CauseHang, fmt.Sprintf("handler %s gave no answer for record %d of batch %d of stream %s for %s (deadline %s and %s grace); it must honor its context",
				l.spec.Handler, ref.Index, ref.Seq, l.spec.Stream, now.Sub(since).Round(time.Millisecond), l.spec.Deadline, g.host.timing.Grace))
			return true
		}
	}
	return false
}
