// Package logtest collects what is logged in a test, to be read while it is still written.
//
// A test that hands a plain buffer to a logger races with whatever logs in the background (a store's compactions, a host's
// processes) as soon as it reads; habits_test.go in internal/archtest keeps tests from it.
package logtest
