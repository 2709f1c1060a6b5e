// Package tutorial has the test that runs docs/tutorial.md as a reader would: each command in its order, in a folder of its own,
// with the files that the page shows. It compares what comes out with what the page says.
package tutorial
