package main

import (
	"fmt"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// drain counts. It is safe for concurrent use.
type drain struct {
	Config
	seen    atomic.Int64
	profile *os.File // set by the first message, before the last can come
}

// add counts n messages and notes the first and the last.
func (d *drain) add(n int) error {
	total := d.seen.Add(int64(n))
	if total == int64(n) {
		if err := d.first(); err != nil {
			return err
		}
	}
	if last := int64(d.Count); total >= last && total-int64(n) < last {
		return d.last()
	}
	return nil
}

func (d *drain) first() error {
	if d.Profile != "" {
		var err error
		if d.profile, err = os.Create(d.Profile); err != nil {
			return fmt.Errorf("making the profile: %w", err)
		}
		if err := pprof.StartCPUProfile(d.profile); err != nil {
			return fmt.Errorf("starting the profile: %w", err)
		}
	}
	return d.note("first")
}

func (d *drain) last() error {
	if err := d.note("last"); err != nil || d.profile == nil {
		return err
	}
	pprof.StopCPUProfile()
	if err := d.profile.Close(); err != nil {
		return fmt.Errorf("writing the profile: %w", err)
	}
	return nil
}

// note appends "WHAT NANOS HOSTCPUNANOS OWNCPUNANOS" in one write.
func (d *drain) note(what string) error {
	now := time.Now().UnixNano()
	host, err := cpuOf(os.Getppid())
	if err != nil {
		return err
	}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return fmt.Errorf("reading the own CPU time: %w", err)
	}
	return appendTo(d.File, fmt.Sprintf("%s %d %d %d\n", what, now, host, u.Utime.Nano()+u.Stime.Nano()))
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the notes: %w", err)
	}
	if _, err := f.WriteString(text); err != nil {
		_ = f.Close() // the write failed already
		return fmt.Errorf("writing a note: %w", err)
	}
	return f.Close()
}

// tick is the unit of /proc/PID/stat: USER_HZ, 100 on every Linux port of Go.
const tick = 10 * time.Millisecond

// cpuOf reads user and system time of all threads of a process.
func cpuOf(pid int) (int64, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, fmt.Errorf("reading the host's CPU time: %w", err)
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name may hold blanks
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0, fmt.Errorf("reading the host's CPU time: %q is no process status", text)
	}
	var sum int64
	for _, s := range f[11:13] { // utime and stime, fields 14 and 15 of proc(5)
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading the host's CPU time: %w", err)
		}
		sum += n
	}
	return sum * int64(tick), nil
}
