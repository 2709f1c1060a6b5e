package queue

import "github.com/streamd/streamd/internal/rocketmq"

// startPull sends a pull that needs no goroutine to wait for it, when memory and a connection are at hand. Its answer comes
// to answers, which has room for it: a queue never has two pulls.
func (w *Worker) startPull(req *rocketmq.PullRequest, p *pulled) bool {
	if w.pullWaits {
		w.pullWaits = false
		return false
	}
	if !w.cfg.Budget.TryAcquire(p.reserved) {
		return false
	}
	began := w.cfg.Now()
	cancel, ok := w.cfg.Broker.StartPull(req, func(res *rocketmq.PullResult, err error) {
		p.res, p.err, p.took = res, err, w.cfg.Now().Sub(began)
		w.answers <- p
	})
	if !ok {
		w.cfg.Budget.Give(p.reserved)
		return false
	}
	w.pullStarted, w.pullStop = true, cancel
	return true
}

// endPull gives up a started pull and takes its answer.
func (w *Worker) endPull() {
	if w.pullStarted {
		w.pullStop()
		(<-w.answers).discard(w)
	}
}
