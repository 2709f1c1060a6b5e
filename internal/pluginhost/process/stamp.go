package process

// Stamp is what tells one program file from another without reading it; two are compared by ==. The zero Stamp is a file
// that is not there, or that may not be looked at.
type Stamp struct {
	device, inode uint64
	size          int64
	mode          uint32
	mtime, ctime  int64 // Unix nanoseconds; ctime shows what keeps mtime: a change of owner, a copy with its old times
}

// Watch notices that a file is another one than a try has seen. Not safe for concurrent use.
type Watch struct{ seen, last Stamp }

// NewWatch begins with what the try saw.
func NewWatch(seen Stamp) *Watch { return &Watch{seen, seen} }

// Another takes the next look. It tells whether the file is there, is another one, and is what it was at the look before: one
// that is just being copied is not.
func (w *Watch) Another(now Stamp) bool {
	rests := now == w.last
	w.last = now
	return rests && now != w.seen && now != Stamp{}
}
