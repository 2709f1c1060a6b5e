package ledger

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	if e, err := Read(path); len(e) != 0 || err != nil {
		t.Errorf("no file yet: %v %v", e, err)
	}
	text := `{"event":"start","id":"1","body":"ok a","attempt":1,"pid":7}
{"event":"start","id":"2","body":"fail b","attempt":1,"pid":7}
{"event":"end","id":"1","body":"ok a","attempt":1,"pid":7}
{"event":"end","id":"2","body":"fail b","attempt":1,"pid":7,"error":"told"}
{"event":"start","id":"2","body":"fail b","attempt":2,"pid":8}
{"event":"end","id":"2","bo`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := Read(path)
	if err != nil || len(e) != 5 {
		t.Fatalf("%d entries, %v", len(e), err)
	}
	if h := Handled(e); len(h) != 1 || h["ok a"] != 1 {
		t.Errorf("handled %v", h)
	}
	if f := InFlight(e); len(f) != 1 || f[0].Attempt != 2 || f[0].PID != 8 {
		t.Errorf("in flight %v", f)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Wait(ctx, path, func(e []Entry) bool { return len(e) > 5 }); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting in vain: %v", err)
	}
	if err := os.WriteFile(path, []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil {
		t.Error("nonsense was read")
	}
}
