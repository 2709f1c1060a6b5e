package offsetfile

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"sync"
)

var errFault = errors.New("no space left on the device")

// memory is a file system that knows what would survive the end of the machine: the content of a file up to its last sync,
// and of the renames those before the folder's last sync, or any of them.
type memory struct {
	mu      sync.Mutex
	steps   int  // so far
	failAt  int  // the step that fails; 0 = none
	half    bool // the failing write leaves half of its bytes
	names   map[string]*inode
	durable map[string]*inode // as of the last sync of the folder
	pending []func(map[string]*inode)
}

type inode struct{ data, synced []byte }

func newMemory() *memory { return &memory{names: map[string]*inode{}, durable: map[string]*inode{}} }

// step counts a step and fails when its turn has come.
func (m *memory) step() error {
	m.steps++
	if m.steps == m.failAt {
		return errFault
	}
	return nil
}

func (m *memory) MkdirAll(string) error { return nil }

func (m *memory) ReadFile(name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.names[name]
	if n == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return bytes.Clone(n.data), nil
}

func (m *memory) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step(); err != nil {
		return nil, err
	}
	n := &inode{}
	m.link(func(names map[string]*inode) { names[name] = n })
	return &handle{m: m, n: n}, nil
}

func (m *memory) link(change func(map[string]*inode)) {
	change(m.names)
	m.pending = append(m.pending, change)
}

func (m *memory) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step(); err != nil {
		return err
	}
	if m.names[from] == nil {
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	n := m.names[from]
	m.link(func(names map[string]*inode) {
		if names[from] == n {
			delete(names, from)
		}
		names[to] = n
	})
	return nil
}

func (m *memory) SyncDir(string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.step(); err != nil {
		return err
	}
	m.durable, m.pending = maps.Clone(m.names), nil
	return nil
}

type handle struct {
	m *memory
	n *inode
}

func (h *handle) Write(p []byte) (int, error) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if err := h.m.step(); err != nil {
		if h.m.half {
			h.n.data = append(h.n.data, p[:len(p)/2]...)
			return len(p) / 2, err
		}
		return 0, err
	}
	h.n.data = append(h.n.data, p...)
	return len(p), nil
}

func (h *handle) Sync() error {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if err := h.m.step(); err != nil {
		return err
	}
	h.n.synced = bytes.Clone(h.n.data)
	return nil
}

func (h *handle) Close() error {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	return h.m.step()
}

// after lists what may be there once the machine was cut off: every choice of the changes of the folder that were not
// synced, in their order, each with the contents that were synced and with all that was written.
func (m *memory) after() (all []*memory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for choice := range 1 << len(m.pending) {
		for _, torn := range []bool{false, true} {
			names := maps.Clone(m.durable)
			for i, change := range m.pending {
				if choice>>i&1 == 1 {
					change(names)
				}
			}
			next := newMemory()
			for name, n := range names {
				data := n.data
				if torn {
					data = n.synced
				}
				kept := &inode{data: bytes.Clone(data), synced: bytes.Clone(data)}
				next.names[name], next.durable[name] = kept, kept
			}
			all = append(all, next)
		}
	}
	return all
}

// now is what another process finds when this one is killed.
func (m *memory) now() *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := newMemory()
	for name, n := range m.names {
		kept := &inode{data: bytes.Clone(n.data), synced: bytes.Clone(n.synced)}
		next.names[name], next.durable[name] = kept, kept
	}
	return next
}
