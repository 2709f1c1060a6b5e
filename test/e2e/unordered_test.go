package e2e_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// A handler that declares that it cannot keep order is refused where a stream wants order: by validate, by plugin list, at the
// start and by a reload, at the place where the order is written. Without order it works.
func TestOrder_isRefusedWhenTheHandlerCannotKeepIt(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	st := s.faulty("scatter", s.newBroker(), "unordered")
	words := []string{
		"stream scatter has order: key, and handler scatter (main of plugin scatter) does not keep order: acknowledges before its workers are done; write order: none, or a handler that keeps order",
	}
	st.extra = ", order: key"
	path := s.write("")
	words = append(words, placeOf(t, path, "key"))
	for _, args := range [][]string{
		{"validate", "-c", path, "--plugins"}, {"plugin", "list", "-c", path, "--check"}, {"run", "-c", path, "--state-dir", s.path("state")},
	} {
		out, code := s.cli(args...)
		if code != 2 {
			t.Errorf("%v: exit code %d, want 2", args, code)
		}
		contains(t, out, words...)
	}
	st.extra = ""
	d := s.run(1)
	d.says("ready: every stream is assigned")
	before := d.handlersOf("scatter")
	st.extra = ", order: key"
	d.refuses(words...)
	st.extra = ", order: queue"
	d.refuses("stream scatter has order: queue")
	if after := d.handlersOf("scatter"); len(before) != 1 || fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("handlers %+v, before the refusals %+v", after, before)
	}
	if strings.Contains(d.text(), "the stream's order changes") {
		t.Error("a refused order was applied")
	}
	d.stop()
}

// placeOf is file:line:col of a word of the line that holds the streams' order.
func placeOf(t *testing.T, path, word string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		if at := strings.Index(line, "order: "+word); at >= 0 {
			return fmt.Sprintf("%s:%d:%d:", path, i+1, at+len("order: ")+1)
		}
	}
	t.Fatalf("no order: %s in\n%s", word, text)
	return ""
}
