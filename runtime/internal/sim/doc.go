// Package sim is the first simulation of the engine: seeds drive the pure cores (group, window, dispatch, settle's policy)
// of several members single-threaded against a model broker with faults. A failing seed replays exactly: there is no
// goroutine, no clock and no map order in it. The package has tests only.
package sim
