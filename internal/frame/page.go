package frame

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// The shared page is memory that the host and a plugin process both map. The SDK marks in it which records the author's
// code has in hand, so that after a crash the host still knows them: the suspects.
//
// The layout, in little-endian 64-bit words; every access is one atomic 64-bit load or store:
//
//	word 0      magic "STRMPAG1"
//	word 1      rows (low 32 bits) and slots per row (high 32 bits)
//	word 2..7   0
//	then, per row (one row a lane; Open.lane is its number), 8 + slots words:
//	  word 0    generation of the lane that uses the row (Open.generation), 0 = none
//	  word 1    records that run without a slot, because the row was full: the suspects are incomplete
//	  word 2..7 0
//	  word 8..  slots: 0 = free, else one run of records of one batch:
//	            seq (low 32 bits of it) << 32 | index of the first record << 16 | number of records
//
// The host writes the header before it starts the process. The SDK writes a slot before the author's code is called and
// clears it after that code has returned (HandleAsync: after done). A row starts on a cache line.
const (
	pageMagic     = 0x31474150_4d525453 // "STRMPAG1"
	pageHeader    = 8                   // words
	rowHeader     = 8                   // words
	rowGeneration = 0
	rowOverflow   = 1
	wordSize      = 8
)

// MaxBatchRecords is how many records one batch may have: the page names a record by 16 bits.
const MaxBatchRecords = 1<<16 - 1

// Page is a view of the shared memory. Its methods may be used from several goroutines, and by both processes at once.
type Page struct {
	words       []uint64
	rows, slots int
}

// Run names records of one batch that were running: Count records from Index on. Seq has only 32 bits.
type Run struct {
	Seq   uint32
	Index uint32
	Count uint32
}

// PageSize returns how many bytes a page takes.
func PageSize(rows, slots int) int { return (pageHeader + rows*rowWords(slots)) * wordSize }

// rowWords rounds a row up to whole cache lines.
func rowWords(slots int) int { return (rowHeader + slots + 7) &^ 7 }

// InitPage makes an empty page of memory that is all zeros and at least PageSize long. The host calls it, and keeps the
// Page: it never reads the geometry back from memory that the plugin can write.
func InitPage(mem []byte, rows, slots int) (*Page, error) {
	if rows < 1 || slots < 1 || slots > MaxBatchRecords {
		return nil, fmt.Errorf("shared page of %d rows and %d slots: both must be at least 1, slots at most %d", rows, slots, MaxBatchRecords)
	}
	words, err := wordsOf(mem, PageSize(rows, slots))
	if err != nil {
		return nil, err
	}
	atomic.StoreUint64(&words[1], uint64(rows)|uint64(slots)<<32)
	atomic.StoreUint64(&words[0], pageMagic)
	return &Page{words: words, rows: rows, slots: slots}, nil
}

// OpenPage reads the geometry that InitPage wrote. The SDK calls it on the memory that the host passed.
func OpenPage(mem []byte) (*Page, error) {
	words, err := wordsOf(mem, pageHeader*wordSize)
	if err != nil {
		return nil, err
	}
	if got := atomic.LoadUint64(&words[0]); got != pageMagic {
		return nil, fmt.Errorf("shared page starts with %#x instead of its magic", got)
	}
	geometry := atomic.LoadUint64(&words[1])
	rows, slots := int(geometry&0xffffffff), int(geometry>>32)
	if rows < 1 || slots < 1 || slots > MaxBatchRecords || rows > len(mem)/wordSize {
		return nil, fmt.Errorf("shared page claims %d rows and %d slots", rows, slots)
	}
	if words, err = wordsOf(mem, PageSize(rows, slots)); err != nil {
		return nil, err
	}
	return &Page{words: words, rows: rows, slots: slots}, nil
}

// wordsOf views mem as aligned 64-bit words.
func wordsOf(mem []byte, size int) ([]uint64, error) {
	if len(mem) < size {
		return nil, fmt.Errorf("shared page has %d bytes and needs %d", len(mem), size)
	}
	start := unsafe.Pointer(unsafe.SliceData(mem))
	if uintptr(start)%wordSize != 0 {
		return nil, errors.New("shared page is not aligned to 8 bytes")
	}
	return unsafe.Slice((*uint64)(start), size/wordSize), nil
}

// Rows returns how many lanes the page has room for.
func (p *Page) Rows() int { return p.rows }

// Row returns the row of a lane; ok is false when the page has no such row.
func (p *Page) Row(lane uint32) (row Row, ok bool) {
	if p == nil || uint64(lane) >= uint64(p.rows) {
		return Row{}, false
	}
	start := pageHeader + int(lane)*rowWords(p.slots)
	return Row{words: p.words[start : start+rowHeader+p.slots]}, true
}

// Row is one lane's part of the page. The zero Row has no slots: marks in it do nothing.
type Row struct {
	words      []uint64
	generation uint64 // whose marks count; 0 = anybody's
}

// Of returns the row as one generation of a lane uses it. Once the host has given the row to another, its marks do nothing:
// a lane that the host has left goes on until the author's code lets go.
func (r Row) Of(generation uint64) Row { return Row{words: r.words, generation: generation} }

// mine tells that the row is still that of the generation it was taken for.
func (r Row) mine() bool {
	return len(r.words) > 0 && (r.generation == 0 || atomic.LoadUint64(&r.words[rowGeneration]) == r.generation)
}

// End gives back the row of a generation, unless another has it already.
func (r Row) End() {
	if len(r.words) > 0 {
		atomic.CompareAndSwapUint64(&r.words[rowGeneration], r.generation, 0)
	}
}

// Slots returns how many runs the row can hold.
func (r Row) Slots() int { return max(0, len(r.words)-rowHeader) }

// Begin empties the row and gives it to a generation of a lane; 0 = to none. The SDK calls it when a lane is opened.
func (r Row) Begin(generation uint64) {
	if len(r.words) == 0 {
		return
	}
	atomic.StoreUint64(&r.words[rowGeneration], 0)
	for i := rowOverflow; i < len(r.words); i++ {
		atomic.StoreUint64(&r.words[i], 0)
	}
	atomic.StoreUint64(&r.words[rowGeneration], generation)
}

// Mark says that the author's code gets count records of batch seq from index on. A slot that the row does not have is
// counted as overflow. Each slot has one owner: two goroutines never mark the same slot.
func (r Row) Mark(slot int, seq uint64, index, count uint32) {
	switch {
	case !r.mine():
	case uint(slot) < uint(r.Slots()):
		atomic.StoreUint64(&r.words[rowHeader+slot], seq<<32|uint64(index&0xffff)<<16|uint64(count&0xffff))
	default:
		atomic.AddUint64(&r.words[rowOverflow], uint64(count))
	}
}

// Clear says that the author's code is done with what Mark named. count is the same as in Mark.
func (r Row) Clear(slot int, count uint32) {
	switch {
	case !r.mine():
	case uint(slot) < uint(r.Slots()):
		atomic.StoreUint64(&r.words[rowHeader+slot], 0)
	default:
		atomic.AddUint64(&r.words[rowOverflow], -uint64(count))
	}
}

// Running returns what was marked when the process ended, and whether that is all: complete is false when records ran
// without a slot, or when the row belongs to another generation. What it returns was written by the plugin: the host
// keeps only records that it had sent and that are unanswered.
func (r Row) Running(generation uint64) (runs []Run, complete bool) {
	if len(r.words) == 0 || atomic.LoadUint64(&r.words[rowGeneration]) != generation {
		return nil, false
	}
	for i := range r.words[rowHeader:] {
		w := atomic.LoadUint64(&r.words[rowHeader+i])
		if count := uint32(w & 0xffff); count > 0 {
			runs = append(runs, Run{Seq: uint32(w >> 32), Index: uint32(w>>16) & 0xffff, Count: count})
		}
	}
	return runs, atomic.LoadUint64(&r.words[rowOverflow]) == 0
}
