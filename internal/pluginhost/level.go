package pluginhost

import "context"

// level spreads the plugin's lanes over its processes: while one has two more than another, some of its lanes end in peace
// and are opened anew where there are fewest. Without it a process that crashed once would stay idle, since its lanes went
// to the others at once, and so would one that came up after the first. It is called when a process has come up and when
// a lane was opened, and does nothing while lanes are on their way.
func (f *fleet) level() {
	if len(f.slots) < 2 || f.host.stopping() {
		return
	}
	f.leveling.Lock()
	defer f.leveling.Unlock()
	if f.moving {
		return
	}
	var fullest, emptiest *generation
	lanes := map[*generation][]*Lane{}
	for _, s := range f.slots {
		g := s.live()
		if g == nil {
			continue
		}
		lanes[g] = g.openLanes()
		for _, l := range lanes[g] {
			if l.onItsWay() {
				return
			}
		}
		if fullest == nil || len(lanes[g]) > len(lanes[fullest]) {
			fullest = g
		}
		if emptiest == nil || len(lanes[g]) < len(lanes[emptiest]) {
			emptiest = g
		}
	}
	if fullest == nil || len(lanes[fullest])-len(lanes[emptiest]) < 2 {
		return
	}
	moved := lanes[fullest][:(len(lanes[fullest])-len(lanes[emptiest]))/2]
	f.moving = true
	f.host.work.Go(func() {
		fullest.drain(context.Background(), moved)
		f.leveling.Lock()
		defer f.leveling.Unlock()
		f.moving = false
	})
}

// onItsWay tells whether the lane is ending.
func (l *Lane) onItsWay() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.draining || l.closed
}
