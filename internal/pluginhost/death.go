package pluginhost

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/pluginhost/memlimit"
	"github.com/streamd/streamd/internal/pluginhost/process"
)

// shutdownMethod is go-plugin's; called here because go-plugin's own call has no deadline.
const shutdownMethod = "/plugin.GRPCController/Shutdown"

// goFatal is the exit status of a Go process that ends with its stacks on stderr.
const goFatal = 2

const (
	ladderStep  = 500 * time.Millisecond // for each rung
	exitWait    = 2 * time.Second        // for the end of a process that left before its handshake
	killWait    = 5 * time.Second        // for SIGKILL: beyond it the process hangs in the kernel
	releaseWait = 5 * time.Second        // for go-plugin to let go
)

// watch sees the process end, finds words for it, and cleans up. It is the only place where a started generation ends.
func (g *generation) watch(exited func(crash bool)) {
	p := g.process()
	<-p.Exited()
	<-g.runner.drained
	g.mu.Lock()
	fate := g.fate
	g.mu.Unlock()
	g.text = g.obituary(p, fate)
	crash := fate == nil || fate.Cause == frame.CauseHang || fate.Cause == frame.CauseMemory
	facts := []any{
		"pid", p.PID, "uptime", p.Exit().At.Sub(p.Since).Round(time.Millisecond).String(), "exit", p.Exit().String(), "cause", causeName(g.text.Cause),
	}
	if crash {
		g.logger.Error("plugin process ended", append(facts, "error", g.text.Text)...)
	} else {
		g.logger.Info("plugin process ended", facts...)
	}
	g.mu.Lock() // who looks whether it is over, and takes a row of the page, does both before this or neither
	close(g.dead)
	g.mu.Unlock()
	g.release()
	exited(crash)
}

// obituary says how the process ended and what it said last.
func (g *generation) obituary(p *process.Process, fate *frame.Lost) frame.Lost {
	exit := p.Exit()
	head := fmt.Sprintf("plugin %s (pid %d, generation %d, up %s)", g.name, p.PID, g.id, exit.At.Sub(p.Since).Round(time.Millisecond))
	lost := frame.Lost{Cause: frame.CauseCrash}
	switch {
	case fate != nil && fate.Cause == frame.CauseHang && exit.Signal == 0 && exit.Code != goFatal:
		lost.Text = fmt.Sprintf("%s ended: %s", head, exit) // by itself, before it could be replaced
	case fate != nil:
		lost.Cause = fate.Cause
		lost.Text = fmt.Sprintf("%s: %s (%s)", head, fate.Text, exit)
	case g.limit.Exceeded():
		lost.Cause = frame.CauseMemory
		lost.Text = fmt.Sprintf("%s: the kernel killed it at its memory limit of %d bytes; raise limits.memory or find what holds it", head, g.spec.Memory)
	case exit.Signal == syscall.SIGKILL:
		lost.Text = fmt.Sprintf("%s ended: %s; if nobody killed it, the kernel did for want of memory: see dmesg, and set limits.memory", head, exit)
	default:
		lost.Text = fmt.Sprintf("%s ended: %s", head, exit)
	}
	if lost.Cause == frame.CauseStopped || lost.Cause == frame.CauseSwap {
		return lost
	}
	if words := g.host.redact(g.pump.Tail().Account(lastLines)); words != "" {
		lost.Text += "; its last words: " + words
	}
	return lost
}

// doom sets why the host ends the generation; false when a reason was set before.
func (g *generation) doom(why frame.Lost) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fate != nil {
		return false
	}
	g.fate = &why
	return true
}

// doomed tells whether the host has decided its end without blaming it.
func (g *generation) doomed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fate != nil && (g.fate.Cause == frame.CauseStopped || g.fate.Cause == frame.CauseSwap)
}

// stop walks down the ladder until the process is gone: Shutdown, SIGTERM, SIGKILL. Bounded in time.
func (g *generation) stop(why frame.Lost) {
	g.doom(why)
	for _, l := range g.openLanes() {
		l.end(why)
	}
	p := g.process()
	if p == nil {
		return
	}
	g.mu.Lock()
	conn := g.conn
	g.mu.Unlock()
	if conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), ladderStep)
		// Its error says nothing new: the next rung looks whether the process is gone.
		_ = conn.Invoke(ctx, shutdownMethod, &emptypb.Empty{}, &emptypb.Empty{})
		cancel()
		if waitFor(p, ladderStep) != nil {
			return
		}
	}
	g.signal(p.SignalGroup(syscall.SIGTERM))
	if waitFor(p, ladderStep) != nil {
		return
	}
	g.logger.Warn("plugin did not end when asked; it is killed", "pid", p.PID)
	g.slay(p)
}

// slay kills the group, and whatever left it when there is a cgroup.
func (g *generation) slay(p *process.Process) {
	g.signal(p.SignalGroup(syscall.SIGKILL))
	g.signal(g.limit.Kill())
	if waitFor(p, killWait) == nil {
		g.logger.Error("a killed process does not end; it hangs in the kernel", "pid", p.PID, "state", procState(p.PID))
	}
}

func (g *generation) signal(err error) {
	if err != nil {
		g.logger.Error("a process could not be signaled", "error", err)
	}
}

// replace ends a generation that hangs or holds too much: the supervisor starts the next one.
func (g *generation) replace(cause frame.Cause, text string) {
	p := g.process()
	if cause == frame.CauseHang && procState(p.PID) == "T" {
		text += "; the process was stopped by a signal (SIGSTOP or a debugger)"
	}
	if !g.doom(frame.Lost{Cause: cause, Text: text}) {
		return
	}
	g.host.work.Go(func() {
		if cause == frame.CauseHang {
			g.quit(p)
		}
		g.slay(p)
	})
}

// quit asks a Go process for the stacks of its goroutines, which ends it. One that is stopped by a signal cannot answer.
func (g *generation) quit(p *process.Process) {
	if procState(p.PID) != "T" {
		g.signal(p.Signal(syscall.SIGQUIT))
		if waitFor(p, g.host.timing.Dump) != nil {
			return
		}
	}
	g.signal(p.SignalGroup(syscall.SIGKILL))
}

// procState reads the state letter of a process, "" when it is gone.
func procState(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	rest := bytes.TrimSpace(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(rest) == 0 {
		return ""
	}
	return string(rest[:1])
}

// release frees everything but the shared page, which lanes read until their end. go-plugin's Kill may block for ever, so
// it is watched, never waited for.
func (g *generation) release() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.client.Kill()
	}()
	timer := time.NewTimer(releaseWait)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		g.logger.Error("go-plugin does not let go of an ended process; its goroutines are leaked")
	}
	g.stdio.close()
	g.cleanup(os.RemoveAll(g.dir))
	g.cleanup(g.limit.Close())
	g.host.work.Go(func() {
		g.work.Wait()
		g.cleanup(g.shared.close())
		g.cleanup(g.sockets.close())
	})
}

func (g *generation) cleanup(err error) {
	if err != nil {
		g.logger.Error("cleaning up after a plugin process", "error", err)
	}
}

// watchMemory reads what the process and its children hold, and replaces it when that is over the limit and nothing else
// holds it.
func (g *generation) watchMemory() {
	interval := g.host.timing.Memory
	if g.mechanism() != memlimit.Watch {
		interval *= 20 // nobody waits for it but people who look at the status
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		rss := memlimit.Resident(g.pid())
		g.rss.Store(rss)
		if g.mechanism() == memlimit.Watch && rss > g.spec.Memory {
			g.replace(frame.CauseMemory, fmt.Sprintf(
				"it held %d MiB, its limit is %d MiB; raise limits.memory or find what holds it", rss>>20, g.spec.Memory>>20))
			return
		}
		select {
		case <-ticker.C:
		case <-g.dead:
			return
		}
	}
}
