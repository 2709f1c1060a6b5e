package pluginhost

import "context"

// level gives a process that has come up its share of the plugin's lanes: the fullest of the others let some of theirs
// end in peace, and these are opened anew at the newcomer, which has the fewest. Without it an instance that crashed once
// would stay idle, since its lanes went to the others at once.
func (f *fleet) level(newcomer *generation) {
	lanes := map[*generation][]*Lane{newcomer: nil}
	total := 0
	for _, s := range f.slots {
		if g := s.live(); g != nil {
			lanes[g] = g.openLanes()
			total += len(lanes[g])
		}
	}
	for want := total/len(lanes) - len(lanes[newcomer]); want > 0; want-- {
		fullest := newcomer
		for g := range lanes {
			if len(lanes[g]) > len(lanes[fullest]) {
				fullest = g
			}
		}
		if len(lanes[fullest]) < 2 {
			return
		}
		last := len(lanes[fullest]) - 1
		moved := lanes[fullest][last]
		lanes[fullest] = lanes[fullest][:last]
		f.host.work.Go(func() { fullest.drain(context.Background(), []*Lane{moved}) })
	}
}
