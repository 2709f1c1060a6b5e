package settle

import (
	"errors"
	"slices"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/runtime/internal/queue"
)

// split settles the messages of a job whose outputs are all stored, so that one refused output holds only its own message, and
// what comes after that in its strand.
func (s *Settler) split(j *Job) {
	var held map[line]bool
	j.items = slices.DeleteFunc(j.items, func(it *Item) bool {
		l, bound := lineOf(it.D)
		if len(it.Outputs) > 0 || bound && held[l] {
			if bound {
				if held == nil {
					held = make(map[line]bool)
				}
				held[l] = true
			}
			return false
		}
		endSpan(it.D, j.Verdict, nil)
		s.settled(it.D)
		return true
	})
}

// spoil fails the messages whose outputs no broker may store: each as soon as what comes before it in its strand is settled.
func (s *Settler) spoil(j *Job) {
	for {
		var met map[line]bool
		i := slices.IndexFunc(j.items, func(it *Item) bool {
			l, bound := lineOf(it.D)
			if it.invalid != "" && it.flying == 0 && !met[l] {
				return true
			}
			if bound {
				if met == nil {
					met = make(map[line]bool)
				}
				met[l] = true
			}
			return false
		})
		if i < 0 {
			return
		}
		it := j.items[i]
		j.items = slices.Delete(j.items, i, i+1)
		s.fail(j, it)
	}
}

// fail makes a job of its own of a message one of whose outputs no broker may store: it is retried as failed. In a strand, what the
// handler went on with comes again after it: what is here is given back now, what comes here before the dispatcher has
// heard of it is given back by mend, and the rest the dispatcher takes from the handler itself.
func (s *Settler) fail(j *Job, it *Item) {
	v := frame.Verdict{Kind: frame.VerdictRetry, Class: "output", Text: it.invalid}
	if it.D.Direct != nil { // nobody settles it
		it.D.Direct(v)
		it.D.Own.Settle([]*queue.Delivery{it.D})
		return
	}
	if s.cfg.Failed != nil {
		s.cfg.Failed(it.D, v, &j.Info)
	}
	failed := &Job{Items: []Item{{D: it.D}}, Verdict: v, Info: j.Info}
	l, bound := lineOf(it.D)
	if !bound || s.cfg.Broken == nil {
		s.Submit(failed)
		return
	}
	failed.broken = &l
	s.broken[l] = it.D.Offset
	for _, o := range append([]*Job{j}, s.lines[l]...) {
		s.giveBack(o, l)
		if o == j {
			continue // its progress goes on
		}
		next := s.lines.leave(o, o.items)
		if len(o.items) == 0 {
			s.finish(o, func(*Counters) {})
		} else {
			next = append(next, o)
		}
		s.goOn(next)
	}
	s.cfg.Broken(it.D, failed)
}

var errBehind = errors.New("an output of a message before it cannot be stored; the message comes again after that one")

// giveBack gives the messages of a strand that a job has back to the handler, where they wait for the one before them. They have
// not failed.
func (s *Settler) giveBack(j *Job, l line) {
	j.items = slices.DeleteFunc(j.items, func(it *Item) bool {
		if of, bound := lineOf(it.D); !bound || of != l {
			return false
		}
		endSpan(it.D, frame.Verdict{}, errBehind)
		it.D.Own.Returned(1)
		s.cfg.Again(it.D)
		return true
	})
}

// mend gives back what comes of a strand after one of its messages that is going to be tried again, until the dispatcher gives
// nothing more of that.
func (s *Settler) mend(j *Job) {
	if j.broken != nil {
		delete(s.broken, *j.broken)
		return
	}
	if len(s.broken) == 0 {
		return
	}
	for _, it := range slices.Clone(j.items) {
		l, bound := lineOf(it.D)
		if at, broken := s.broken[l]; bound && broken && it.D.Offset > at {
			s.giveBack(j, l)
		}
	}
}
