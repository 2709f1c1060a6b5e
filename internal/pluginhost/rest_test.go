package pluginhost

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// What a process wrote before its end is read though the deadline of its pipe has passed: on a busy machine nobody may have
// read by then. Somebody who holds the pipe, and writes on, is not waited for.
func TestPipe_givesWhatWasWrittenBeforeItsDeadline(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	words := strings.Repeat("panic: no database\n", 1000)
	if _, err := writer.WriteString(words); err != nil {
		t.Fatal(err)
	}
	if err := reader.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	p := &pipe{file: reader}
	got, err := io.ReadAll(p)
	if string(got) != words || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d of %d bytes, %v", len(got), len(words), err)
	}
	if _, err := writer.WriteString("more\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(p).ReadString('\n'); line != "more\n" || err != nil {
		t.Errorf("%q, %v", line, err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := p.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("%d, %v, want the end", n, err)
	}
}

// A writer without an end does not keep the host reading.
func TestPipe_endsThoughItIsWrittenOn(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 32<<10)
	p, n := &pipe{file: reader}, 0
	for err == nil {
		if _, err := writer.Write(block); err != nil { // fits: all before was read
			t.Fatal(err)
		}
		for got := 0; got < len(block) && err == nil; n++ {
			var some int
			some, err = p.Read(block)
			got += some
		}
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) || p.rest < mostRest {
		t.Errorf("%v after %d bytes", err, p.rest)
	}
	if err := errors.Join(writer.Close(), reader.Close()); err != nil {
		t.Error(err)
	}
}

// What has ended has ended, be the time for it over as well.
func TestEndsWithin_seesAnEndThoughItIsLate(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	if endsWithin(end, 0) {
		t.Error("it has not ended")
	}
	close(end)
	for range 1000 {
		if !endsWithin(end, 0) {
			t.Fatal("the end was not seen")
		}
	}
}
