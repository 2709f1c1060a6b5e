package pluginhost_test

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/pluginhost"
)

// BenchmarkLane carries records of 1 KiB through a do-nothing handler in its own process. CPU is that of the host's
// process alone; the plugin's is reported beside it.
func BenchmarkLane(b *testing.B) {
	path := filepath.Join(scratch, "blackhole")
	if out, err := exec.Command("go", "build", "-o", path, "../../plugins/blackhole").CombinedOutput(); err != nil {
		b.Fatalf("building: %v: %s", err, out)
	}
	for _, component := range []string{"blackhole", "batch"} {
		for _, size := range []int{1, 8, 32, 256} {
			for _, way := range []string{"plain", "tls", "sockets"} {
				b.Run(fmt.Sprintf("%s/batch=%d/%s", component, size, way), func(b *testing.B) {
					benchLane(b, path, component, size, way)
				})
			}
		}
	}
}

func benchLane(b *testing.B, path, component string, size int, way string) {
	b.Helper()
	run, err := os.MkdirTemp(scratch, "b") //nolint:usetesting // the name of a test makes the path of a socket too long
	if err != nil {
		b.Fatal(err)
	}
	h, err := pluginhost.New(pluginhost.Config{Logger: slog.New(slog.DiscardHandler), RunDir: run})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	if err := h.Apply(b.Context(), pluginhost.PluginSpec{Name: "blackhole", Command: []string{path}, TLSOff: way != "tls", Datapath: map[bool]pluginhost.Datapath{true: pluginhost.DatapathSocketPair, false: pluginhost.DatapathGRPC}[way == "sockets"]}); err != nil {
		b.Fatal(err)
	}
	if _, err := h.Configure(b.Context(), pluginhost.HandlerSpec{Name: "h", Plugin: "blackhole", Use: component}); err != nil {
		b.Fatal(err)
	}
	lane, err := h.Open(b.Context(), frame.LaneSpec{Handler: "h", Stream: "s", Concurrency: 20, Credits: 8 * max(size, 32), Deadline: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	var build frame.Builder
	body := make([]byte, 1024)
	for i := range size {
		build.Append(&frame.Record{Topic: "Orders", Broker: "b", ID: fmt.Sprint(i), Offset: uint64(i), Attempt: 1, Body: body})
	}
	batch := frame.Batch{Budget: time.Minute, Records: *build.Records()}
	hostBefore, pluginBefore := cpu(0), cpu(lane.Info().PID)
	b.SetBytes(int64(len(body)))
	b.ResetTimer()
	credits, sent, acked := 0, 0, 0
	for acked < b.N {
		for sent < b.N && credits >= size {
			batch.Seq++
			if err := lane.Send(&batch); err != nil {
				b.Fatal(err)
			}
			credits -= size
			sent += size
		}
		e := <-lane.Events()
		credits += e.Credits
		if e.Results != nil {
			for i := 1; i < len(e.Results.AckRuns); i += 2 {
				acked += int(e.Results.AckRuns[i])
			}
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(cpu(0)-hostBefore)/float64(acked), "host-ns/rec")
	b.ReportMetric(float64(cpu(lane.Info().PID)-pluginBefore)/float64(acked), "plugin-ns/rec")
	b.ReportMetric(float64(acked)/b.Elapsed().Seconds(), "rec/s")
}

// cpu returns the time that a process has used; 0 is this one.
func cpu(pid int) time.Duration {
	if pid == 0 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			return 0
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	var user, system int64
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	var skip string
	fields := []any{&skip, &skip, &skip}
	for range 10 {
		fields = append(fields, &skip)
	}
	if _, err := fmt.Sscan(string(data), append(fields, &user, &system)...); err != nil {
		return 0
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}
