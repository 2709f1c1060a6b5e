package frame

import (
	"reflect"
	"strings"
	"testing"
	"unsafe"
)

// alignedBytes is memory as mmap gives it: zero and aligned.
func alignedBytes(n int) []byte {
	words := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*8)[:n]
}

func TestPageCarriesSuspects(t *testing.T) {
	mem := alignedBytes(PageSize(3, 5))
	host, err := InitPage(mem, 3, 5)
	if err != nil {
		t.Fatal(err)
	}
	plugin, err := OpenPage(mem)
	if err != nil {
		t.Fatal(err)
	}
	row, ok := plugin.Row(2)
	if !ok || row.Slots() != 5 {
		t.Fatalf("row 2: ok %v, %d slots", ok, row.Slots())
	}
	row.Begin(7)
	row.Mark(0, 1<<32+9, 3, 1)
	row.Mark(4, 10, 0, 256)
	row.Mark(1, 11, 1, 1)
	row.Clear(1, 1)

	hostRow, _ := host.Row(2)
	runs, complete := hostRow.Running(7)
	want := []Run{{Seq: 9, Index: 3, Count: 1}, {Seq: 10, Index: 0, Count: 256}}
	if !reflect.DeepEqual(runs, want) || !complete {
		t.Errorf("running = %v, %v; want %v, true", runs, complete, want)
	}
	if runs, complete := hostRow.Running(8); runs != nil || complete {
		t.Errorf("another generation sees %v, %v", runs, complete)
	}
	row.Mark(5, 12, 0, 2) // no such slot
	if _, complete := hostRow.Running(7); complete {
		t.Error("a record without a slot must make the list incomplete")
	}
	row.Clear(5, 2)
	if _, complete := hostRow.Running(7); !complete {
		t.Error("the overflow must be gone with its record")
	}
	neighbor, _ := host.Row(1)
	if runs, _ := neighbor.Running(0); runs != nil {
		t.Errorf("row 1 was touched: %v", runs)
	}
	row.Begin(8)
	if runs, complete := hostRow.Running(8); runs != nil || !complete {
		t.Errorf("a new generation starts with %v, %v", runs, complete)
	}
}

// A lane that the host has left goes on for as long as the author's code does; its row may be another's by then.
func TestARowIsOneGenerations(t *testing.T) {
	mem := alignedBytes(PageSize(1, 2))
	page, err := InitPage(mem, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	row, _ := page.Row(0)
	old, next := row.Of(7), row.Of(8)
	old.Begin(7)
	old.Mark(0, 1, 0, 1)
	old.Mark(2, 1, 1, 1) // without a slot
	next.Begin(8)
	next.Mark(0, 1, 0, 1)
	old.Clear(0, 1)
	old.Clear(2, 1)
	old.Mark(1, 1, 2, 1)
	old.End()
	if runs, complete := row.Running(8); len(runs) != 1 || !complete {
		t.Errorf("running = %v, %v; want one, true", runs, complete)
	}
	next.End()
	if _, complete := row.Running(8); complete {
		t.Error("the row is given back and still tells of its lane")
	}
}

func TestPageRefusesWhatDoesNotFit(t *testing.T) {
	if _, err := InitPage(alignedBytes(64), 1, 5); err == nil || !strings.Contains(err.Error(), "64 bytes") {
		t.Errorf("too small: %v", err)
	}
	if _, err := InitPage(alignedBytes(64), 0, 5); err == nil {
		t.Error("no rows must be refused")
	}
	if _, err := OpenPage(alignedBytes(128)); err == nil || !strings.Contains(err.Error(), "magic") {
		t.Errorf("no magic: %v", err)
	}
	mem := alignedBytes(PageSize(2, 2))
	if _, err := InitPage(mem, 2, 2); err != nil {
		t.Fatal(err)
	}
	mem[8] = 200 // rows
	if _, err := OpenPage(mem); err == nil {
		t.Error("a geometry larger than the memory must be refused")
	}
	if _, ok := (*Page)(nil).Row(0); ok {
		t.Error("no page has no rows")
	}
	var none Row
	none.Begin(1)
	none.Mark(0, 1, 1, 1)
	none.Clear(0, 1)
	if _, complete := none.Running(1); complete {
		t.Error("without a page nothing is known")
	}
}
