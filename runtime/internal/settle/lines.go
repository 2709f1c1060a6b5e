package settle

import (
	"slices"

	"github.com/streamd/streamd/runtime/internal/queue"
)

// line is a strand of an ordered queue whose messages have outputs to be stored. They are stored in the order of the messages,
// however many answers they came in: a later one's outputs must not get before those of an earlier one that a broker refuses
// for a while.
type line struct {
	own    *queue.Ownership
	strand uint32
}

// lines holds the jobs of each line in the order in which they came: the first may go on, the others wait.
type lines map[line][]*Job

// lineOf is the line of a message; false: it is in no strand.
func lineOf(d *queue.Delivery) (l line, ok bool) {
	if d.Strand == 0 {
		return l, false
	}
	return line{d.Own, d.Strand}, true
}

// enter lines a job up that stores outputs, or whose messages come after some that do. Jobs come in the order in which the
// handler answered, which is that of each strand.
func (ls lines) enter(j *Job) {
	for _, it := range j.items {
		l, ok := lineOf(it.D)
		if ok && (len(it.Outputs) > 0 || len(ls[l]) > 0) && !slices.Contains(j.lines, l) {
			j.lines = append(j.lines, l)
			ls[l] = append(ls[l], j)
		}
	}
}

// first tells whether a job is the first of all its lines.
func (ls lines) first(j *Job) bool {
	return !slices.ContainsFunc(j.lines, func(l line) bool { return ls[l][0] != j })
}

// waits tells whether a message of a job waits for its turn.
func (ls lines) waits(j *Job, it *Item) bool {
	l, bound := lineOf(it.D)
	return bound && len(ls[l]) > 0 && ls[l][0] != j && slices.Contains(j.lines, l)
}

// leave takes a job out of the lines of which it has no message any more, and returns those that are the first of one now.
func (ls lines) leave(j *Job, rest []*Item) (next []*Job) {
	j.lines = slices.DeleteFunc(j.lines, func(l line) bool {
		if slices.ContainsFunc(rest, func(it *Item) bool { return it.D.Own == l.own && it.D.Strand == l.strand }) {
			return false
		}
		left := slices.DeleteFunc(ls[l], func(o *Job) bool { return o == j })
		if ls[l] = left; len(left) == 0 {
			delete(ls, l)
		} else {
			next = append(next, left[0])
		}
		return true
	})
	return next
}

// goOn lets jobs go on that waited for their turn.
func (s *Settler) goOn(jobs []*Job) {
	for _, j := range jobs {
		if j.parked {
			s.unpark(j)
		}
	}
}
