package remote

import "errors"

// Shares of one connection while more than Options.MaxTotal waits: below the first it is served as ever, and beyond the
// second it is cut once twice MaxTotal waits.
const (
	fairShare  = 64 << 10
	largeShare = 1 << 20
)

// mayWait is how much may wait for a connection before it is no longer read from.
func (o *Options) mayWait(total int64) int {
	if o.MaxTotal > 0 && total > o.MaxTotal {
		return min(fairShare, o.MaxPending)
	}
	return o.MaxPending
}

// tooSlow tells whether a client must be cut: it did not take what waits for it, and what it is sent without asking anew,
// such as held pulls, goes on.
func (o *Options) tooSlow(pending int, total int64) bool {
	return pending > 2*o.MaxPending+maxAnswer || o.MaxTotal > 0 && total > 2*o.MaxTotal && pending > largeShare
}

// maxAnswer is room for one answer more.
const maxAnswer = 16 << 20

// errReading cuts a connection whose frame does not fit into what is left for large frames.
var errReading = errors.New("too much of too many large frames is on its way")

// reserve takes what a frame of a size needs beyond the buffer that every connection may have.
func (c *Conn) reserve(size int) error {
	more := size - keepBuffer - c.reserved
	if more <= 0 {
		return nil
	}
	c.reserved += more
	if total := c.server.reading.Add(int64(more)); c.server.options.MaxReading > 0 && total > c.server.options.MaxReading {
		return errReading // The connection ends, which gives it back.
	}
	return nil
}

// release gives back what the last frame took.
func (c *Conn) release() {
	c.server.reading.Add(-int64(c.reserved))
	c.reserved = 0
}
