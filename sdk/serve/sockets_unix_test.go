//go:build unix

package serve

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/streamd/streamd/internal/border"
)

// What starts a plugin may close what it inherits, and the number may be another file's by then: it is left alone, and lanes go
// over gRPC.
func TestOpenSockets_leavesOtherFilesAlone(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "file")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	for name, fd := range map[string]uintptr{"a file": f.Fd(), "nothing": 1 << 20} {
		var out bytes.Buffer
		t.Setenv(border.EnvLanesFD, fmt.Sprint(fd))
		s, err := openSockets(slog.New(slog.NewTextHandler(&out, nil)))
		if s != nil || err != nil || !strings.Contains(out.String(), border.EnvLanesFD) {
			t.Errorf("%s: %v, %v, %q", name, s, err, out.String())
		}
	}
	if _, err := f.WriteString("still open"); err != nil {
		t.Error(err)
	}
}
