package memlimit

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// maxTree bounds the walk over children: a fork bomb must not keep the host busy.
const maxTree = 512

// Resident returns the bytes of memory that a process and its descendants hold, shared pages counted in each. A process
// that is gone holds none.
func Resident(pid int) int64 {
	total := int64(0)
	queue := []int{pid}
	for i := 0; i < len(queue) && i < maxTree; i++ {
		total += resident(queue[i])
		queue = append(queue, children(queue[i])...)
	}
	return total
}

// resident reads statm: size, resident, shared, ... in pages.
func resident(pid int) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// children asks each thread for what it has forked.
func children(pid int) []int {
	tasks := fmt.Sprintf("/proc/%d/task", pid)
	dir, err := os.Open(tasks)
	if err != nil {
		return nil
	}
	threads, err := dir.Readdirnames(-1)
	if err := errors.Join(err, dir.Close()); err != nil {
		return nil // the process is gone
	}
	var pids []int
	for _, thread := range threads {
		data, err := os.ReadFile(tasks + "/" + thread + "/children")
		if err != nil {
			continue // the thread is gone
		}
		for field := range strings.FieldsSeq(string(data)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}
