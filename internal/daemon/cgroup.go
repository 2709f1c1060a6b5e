package daemon

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// cgroupLimit reads the least memory.max from the process's control group (version 2) up to the root; 0 = none is set.
// self is the text of /proc/self/cgroup.
func cgroupLimit(root fs.FS, self string) int64 {
	group := ""
	for line := range strings.Lines(self) {
		if p, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			group = strings.Trim(p, "/")
		}
	}
	least := int64(0)
	for {
		text, err := fs.ReadFile(root, path.Join(group, "memory.max"))
		if err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && (least == 0 || n < least) {
				least = n
			}
		}
		if group == "" || group == "." {
			return least
		}
		group = path.Dir(group)
	}
}
