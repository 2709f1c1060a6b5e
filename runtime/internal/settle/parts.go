package settle

import (
	"slices"
)

// memory is what the outputs of an answer take until the last job with messages of it is done.
type memory struct {
	bytes int64
	jobs  int // of the loop, once they are submitted
}

// parts divides the messages of a job into those that depend on each other, in their order: by a strand, or by a sharding key of
// outputs. What happens to one part is nothing to the others.
func (s *Settler) parts(j *Job) [][]*Item {
	group := make([]int, len(j.items)) // by item, the first item that it depends on
	find := func(i int) int {
		for group[i] != i {
			i = group[i]
		}
		return i
	}
	strands, keys := make(map[line]int), make(map[string]int)
	for i, it := range j.items {
		group[i] = i
		join := func(first int, known bool) {
			if known {
				a, b := find(first), find(i)
				group[max(a, b)] = min(a, b)
			}
		}
		if l, bound := lineOf(it.D); bound {
			first, known := strands[l]
			join(first, known)
			strands[l] = i
		}
		for _, o := range it.Outputs {
			if key := s.keyOf(j.Results, o); key != "" {
				first, known := keys[key]
				join(first, known)
				keys[key] = i
			}
		}
	}
	var parts [][]*Item
	at := make(map[int]int, len(j.items))
	for i, it := range j.items {
		root := find(i)
		n, known := at[root]
		if !known {
			n = len(parts)
			at[root] = n
			parts = append(parts, nil)
		}
		parts[n] = append(parts[n], it)
	}
	return parts
}

// detach makes a job of its own of a part that no call has. It stands where j stood in the part's lines.
func (s *Settler) detach(j *Job, part []*Item) *Job {
	d := &Job{
		Verdict: j.Verdict, Info: j.Info, Results: j.Results, items: part, step: j.step, checked: j.checked, tries: j.tries, since: j.since, memory: j.memory,
	}
	j.memory.jobs++
	j.items = slices.DeleteFunc(j.items, func(it *Item) bool { return slices.Contains(part, it) })
	j.lines = slices.DeleteFunc(j.lines, func(l line) bool {
		if !slices.ContainsFunc(part, func(it *Item) bool { return it.D.Own == l.own && it.D.Strand == l.strand }) {
			return false
		}
		d.lines = append(d.lines, l)
		s.lines[l][slices.Index(s.lines[l], j)] = d
		return true
	})
	s.mu.Lock()
	s.pending++
	s.mu.Unlock()
	return d
}

// unpark lets a job of acked messages begin, or what of it is the first of all its lines: what else is in its answer is no reason
// to wait.
func (s *Settler) unpark(j *Job) {
	if len(j.items) == 0 {
		return
	}
	if !s.lines.first(j) {
		var free []*Item
		for _, part := range s.parts(j) {
			if !slices.ContainsFunc(part, func(it *Item) bool { return s.lines.waits(j, it) }) {
				free = append(free, part...)
			}
		}
		if len(free) == 0 {
			return
		}
		j = s.detach(j, free)
	}
	j.parked = false
	s.next(j, s.cfg.Policy().First(s.facts(j)))
}

// partsOf makes jobs of the parts of which a call has failed, and no other call has anything: their pauses are their own. What another
// broker leaves without an answer is no matter of theirs.
func (s *Settler) partsOf(c *call) (jobs []*Job) {
	j := c.job
	if j.calls == 0 || !slices.ContainsFunc(c.outputs, (*output).failed) {
		return nil
	}
	failed := make(map[*Item]bool)
	for _, o := range c.outputs {
		failed[o.item] = failed[o.item] || o.failed()
	}
	for _, part := range s.parts(j) {
		if slices.ContainsFunc(part, func(it *Item) bool { return it.flying > 0 }) ||
			!slices.ContainsFunc(part, func(it *Item) bool { return failed[it] }) {
			continue
		}
		d := s.detach(j, part)
		d.why = c.text
		jobs = append(jobs, d)
	}
	return jobs
}

// failed tells that an output is to be tried again.
func (o *output) failed() bool { return !o.stored && o.invalid == "" }
