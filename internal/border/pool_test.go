package border

import (
	"testing"

	"google.golang.org/grpc/mem"
)

func TestPoolGivesWhatIsAskedFor(t *testing.T) {
	var p bufferPool
	for _, n := range []int{0, 1, 255, 256, 257, 16 << 10, 16<<10 + 1, 300_000, 4 << 20, 4<<20 + 1, 9 << 20} {
		b := p.Get(n)
		if len(*b) != n {
			t.Errorf("asked for %d bytes, got %d", n, len(*b))
		}
		if c := cap(*b); c > max(256, 2*n) {
			t.Errorf("%d bytes take %d", n, c)
		}
		p.Put(b)
	}
	odd := make([]byte, 1000)
	p.Put(&odd)
	if b := p.Get(600); cap(*b) != 1024 {
		t.Errorf("a buffer of %d bytes came from the pool", cap(*b))
	}
}

func TestMaterializeJoinsPieces(t *testing.T) {
	var p bufferPool
	var pieces mem.BufferSlice
	var want []byte
	for i := range 5 {
		b := p.Get(3000)
		for k := range *b {
			(*b)[k] = byte(i + k)
		}
		want = append(want, *b...)
		pieces = append(pieces, mem.NewBuffer(b, &p))
	}
	got := materialize(pieces)
	pieces.Free()
	for range 5 {
		clear(*p.Get(3000)) // what came back to the pool is written again
	}
	if string(got) != string(want) {
		t.Error("the joined bytes differ")
	}
	if materialize(nil) != nil {
		t.Error("nothing must stay nothing")
	}
}
