// Command bench measures streamd beside the Java and the Go push consumer, on a real broker of this machine, and prints
// Markdown. docs/benchmarks.md tells how to read it.
//
//	bench [all]                        everything, medians of three interleaved runs
//	bench drain -runs 1 -n 200000      a stored backlog through a handler that does nothing
//	bench border                       the process border alone
//	bench latency -for 5s              producer's clock to handler, at steady load
//	bench handover                     gaps and duplicates when members come and go
//	bench allocate                     the strategies over 100,000 queues and 1,000 members
//
// Rows of one table run interleaved, so that noise of the machine spreads over all of them. Progress goes to stderr. One
// goroutine does everything; children die with the program.
package main
