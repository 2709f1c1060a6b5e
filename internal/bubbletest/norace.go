//go:build !race

package bubbletest

func narrow() (widen func()) { return func() {} }
