package plain_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/streamd/streamd/internal/plain"
)

func TestTable(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	table := plain.NewTable(&out)
	fmt.Fprint(table, "\nNAME\tSTATE\tWHY\na\tidle\t\nlonger\theld\tno position\n\nnote: x \n\nKEY\tVALUE\nk\t\n\n\n")
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	want := `NAME    STATE  WHY
a       idle
longer  held   no position

note: x

KEY  VALUE
k
`
	if got := out.String(); got != want {
		t.Errorf("got:\n%q\nwant:\n%q", got, want)
	}
}

func TestTable_lastLineWithoutEnd(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	table := plain.NewTable(&out)
	fmt.Fprint(table, "a\tb")
	if err := table.Flush(); err != nil || out.String() != "a  b\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

type full struct{}

var errFull = errors.New("no space")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestTable_tellsThatNothingWasWritten(t *testing.T) {
	t.Parallel()
	table := plain.NewTable(full{})
	fmt.Fprint(table, "a\tb\n")
	if err := table.Flush(); !errors.Is(err, errFull) {
		t.Errorf("Flush = %v", err)
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 streams", 1: "1 stream", 2: "2 streams"} {
		if got := plain.Count(n, "stream"); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
