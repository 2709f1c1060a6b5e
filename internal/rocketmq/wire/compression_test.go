package wire

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func methods() []Compression {
	return []Compression{CompressionUntyped, CompressionLZ4, CompressionZstd, CompressionZlib}
}

func TestCompressionRoundTrip(t *testing.T) {
	t.Parallel()
	texts := []string{"x", strings.Repeat("streamd ", 1000), strings.Repeat("\x00", 1<<20)}
	for _, c := range methods() {
		d, err := NewDeflater(c)
		if err != nil {
			t.Fatal(err)
		}
		z := NewInflater(1 << 20)
		for _, text := range texts {
			packed, err := d.Append([]byte("p"), []byte(text))
			if err != nil || packed[0] != 'p' {
				t.Fatalf("%s: %v", c, err)
			}
			m := Message{SysFlag: c.SysFlag(), Body: packed[1:]}
			if !m.IsCompressed() || m.Compression() != c {
				t.Errorf("%s: sysFlag %#x", c, m.SysFlag)
			}
			// Into no space, and into enough of it.
			for _, dst := range [][]byte{nil, make([]byte, 3, 1<<21)} {
				out, err := z.AppendBody(dst, &m)
				if err != nil || string(out[len(dst):]) != text {
					t.Errorf("%s: %d bytes became %d, %v", c, len(text), len(out), err)
				}
				if cap(dst) > len(text)+3 && &out[0] != &dst[0] {
					t.Errorf("%s: the caller's space was not used", c)
				}
			}
		}
	}
}

// TestDecompressionCap lets bombs go off: a body that grows beyond the limit costs no more memory than a few times the limit.
func TestDecompressionCap(t *testing.T) {
	const limit = 64 << 10
	for _, c := range methods() {
		d, err := NewDeflater(c)
		if err != nil {
			t.Fatal(err)
		}
		for size, want := range map[int]error{limit: nil, limit + 1: ErrTooLarge, 8 << 20: ErrTooLarge} {
			bomb, err := d.Append(nil, make([]byte, size))
			if err != nil {
				t.Fatal(err)
			}
			m := Message{SysFlag: c.SysFlag(), Body: bomb}
			z := NewInflater(limit)
			n := allocated(func() { _, err = z.AppendBody(nil, &m) })
			if !errors.Is(err, want) {
				t.Errorf("%s, %d bytes: %v, want %v", c, size, err, want)
			}
			if n > 8*limit+2*len(bomb) {
				t.Errorf("%s, %d bytes: %d bytes allocated under a limit of %d", c, size, n, limit)
			}
		}
	}
}

// TestZstdStatedSize gives frames that promise what they cannot hold.
func TestZstdStatedSize(t *testing.T) {
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0} // single segment, eight bytes of size
	frame = append(frame, 0, 0, 0, 1, 0, 0, 0, 0) // 16 MiB
	frame = append(frame, 1, 0, 0)                // one empty last block
	z := NewInflater(64 << 20)
	var err error
	n := allocated(func() { _, err = z.Append(nil, frame, CompressionZstd) })
	if !errors.Is(err, ErrMalformed) || n > 8<<10 {
		t.Errorf("%v, %d bytes allocated", err, n)
	}
	if _, err := NewInflater(1<<20).Append(nil, frame, CompressionZstd); !errors.Is(err, ErrTooLarge) {
		t.Errorf("beyond the limit: %v", err)
	}
}

// TestJavaReadsLZ4 keeps the frame to what Java's reader knows: independent blocks, the magic of version 1.
func TestJavaReadsLZ4(t *testing.T) {
	t.Parallel()
	d, err := NewDeflater(CompressionLZ4)
	if err != nil {
		t.Fatal(err)
	}
	out, err := d.Append(nil, bytes.Repeat([]byte("a"), 1000))
	if err != nil || len(out) < 7 {
		t.Fatal(err)
	}
	const version, independent = 0x40, 0x20
	if !bytes.Equal(out[:4], []byte{0x04, 0x22, 0x4d, 0x18}) || out[4]&0xc0 != version || out[4]&independent == 0 {
		t.Errorf("frame begins with %x", out[:7])
	}
}

func TestUnknownCompression(t *testing.T) {
	t.Parallel()
	if _, err := NewDeflater(4); !errors.Is(err, ErrNotEncodable) {
		t.Errorf("%v", err)
	}
	if s := Compression(4).String(); s != "unknown" {
		t.Errorf("prints as %s", s)
	}
}
