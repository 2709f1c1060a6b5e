package store

import "errors"

// Errors of a store. ErrFull and ErrBusy pass; after ErrFailed the store opens itself again; ErrClosed stays.
var (
	// ErrFull says that the disk has no space to store anything in.
	ErrFull = errors.New("the disk is full")
	// ErrBusy says that more waits to be stored than Options.MaxPending.
	ErrBusy = errors.New("too much waits to be stored")
	// ErrFailed says that the disk refused to store something.
	ErrFailed = errors.New("the store has failed")
	// ErrClosed says that the store was closed.
	ErrClosed = errors.New("the store is closed")
)

// Errors of Open.
var (
	// ErrInUse says that another process has the folder.
	ErrInUse = errors.New("another process uses it")
	// ErrNewer says that the folder was written by a newer version.
	ErrNewer = errors.New("it was written by a newer version")
	// ErrForeign says that the folder has something else in it.
	ErrForeign = errors.New("it is not a broker's")
	// ErrDamaged says that a file is not what was written.
	ErrDamaged = errors.New("it is damaged")
)
