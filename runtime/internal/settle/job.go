package settle

import (
	"container/heap"
	"slices"
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/runtime/internal/queue"
)

// Job is messages with one verdict: one message, or several acked ones of one answer whose outputs are stored together.
type Job struct {
	Items   []Item
	Verdict frame.Verdict
	Info    frame.LaneInfo // who answered
	Results *frame.Results // the outputs' columns

	items   []*Item // of Items, those that are not done
	step    Step
	calls   int    // queued or in flight
	why     string // how one of them failed since the last pause
	checked bool   // its outputs were
	broken  *line  // it answers for the strand: see Settler.fail

	tries int
	since time.Time
	index int // in the heap of waiting jobs
	due   time.Time

	lines  []line // in which it stands
	parked bool   // until it is the first of them
	memory *memory
}

// Item is one message of a job.
type Item struct {
	D       *queue.Delivery
	Outputs []int // indexes into Results.Outputs; those stored are taken out

	tried   []int  // those that were given to a call since the job's last pause
	flying  int    // those that a call has now
	invalid string // why one of the outputs can never be stored
}

// held is the memory that the job's outputs take until it is done.
func (j *Job) held() int64 {
	if j.Results == nil || !j.hasOutputs() {
		return 0
	}
	return int64(len(j.Results.Outputs.Payload))
}

func (j *Job) first() *queue.Delivery { return j.items[0].D }

func (j *Job) hasOutputs() bool {
	return slices.ContainsFunc(j.items, func(it *Item) bool { return len(it.Outputs) > 0 })
}

func (j *Job) facts(retryOff, inPlace bool) Facts {
	return Facts{
		Verdict: j.Verdict, Attempts: j.first().Attempt, Outputs: j.hasOutputs(), RetryOff: retryOff, Part: j.first().Part != nil,
		InPlace: inPlace, Tries: j.tries,
	}
}

// waiting is a heap of jobs by due time.
type waiting []*Job

func (w *waiting) Len() int           { return len(*w) }
func (w *waiting) Less(i, j int) bool { return (*w)[i].due.Before((*w)[j].due) }
func (w *waiting) Swap(i, j int) {
	h := *w
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (w *waiting) Push(x any) {
	j, ok := x.(*Job)
	if !ok {
		return
	}
	j.index = len(*w)
	*w = append(*w, j)
}

// Pop implements heap.Interface.
func (w *waiting) Pop() any {
	old := *w
	j := old[len(old)-1]
	old[len(old)-1] = nil
	*w = old[:len(old)-1]
	return j
}

// remove takes out the jobs that match.
func (w *waiting) remove(match func(*Job) bool) {
	before := len(*w)
	*w = slices.DeleteFunc(*w, match)
	if len(*w) == before {
		return
	}
	for i, j := range *w {
		j.index = i
	}
	heap.Init(w)
}

func (j *Job) endSpans(err error) {
	for _, it := range j.items {
		endSpan(it.D, j.Verdict, err)
	}
}

func endSpan(d *queue.Delivery, v frame.Verdict, err error) {
	if d.Span != nil {
		d.Span.End(v, err)
		d.Span = nil
	}
}
