// Package fromgroup writes a config for a consumer group: what "streamd init" does. Read learns from a live group what its
// members and brokers tell of it, Facts.Draft makes a config of that, and New makes one for a group that is not there yet.
//
// Promises: it joins nothing and changes nothing in the group. What the config says of the group stands beside the place
// that it was read from; what could not be read is said, with what to look at; where members differ a warning names who. No
// secret is written: a key's secret is a reference to a file or to the environment. A draft passes config.Load, and its
// handler is one that does not exist: a stand-in that acknowledged would take messages away from the group.
//
// Goroutines: Read asks members side by side (groupview.Ask) and waits for all of them before it returns.
package fromgroup
