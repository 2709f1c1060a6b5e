package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// CPUWaits returns, by thread, how long the threads of a process have waited for a processor although they could have run
// (the second field of /proc/PID/task/TID/schedstat). It is empty for a process that is gone, and where the system does not
// count this.
func CPUWaits(pid int) map[int]time.Duration {
	tasks := fmt.Sprintf("/proc/%d/task", pid)
	dir, err := os.Open(tasks)
	if err != nil {
		return nil
	}
	threads, err := dir.Readdirnames(-1)
	if err := errors.Join(err, dir.Close()); err != nil {
		return nil // the process is gone
	}
	waits := make(map[int]time.Duration, len(threads))
	for _, thread := range threads {
		data, err := os.ReadFile(tasks + "/" + thread + "/schedstat")
		if err != nil {
			continue // the thread is gone
		}
		fields := strings.Fields(string(data))
		if len(fields) < 2 {
			continue
		}
		id, bad := strconv.Atoi(thread)
		ns, worse := strconv.ParseInt(fields[1], 10, 64)
		if bad == nil && worse == nil {
			waits[id] = time.Duration(ns)
		}
	}
	return waits
}
