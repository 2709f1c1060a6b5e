// Package porttest keeps addresses of the loopback for tests that have to name one before somebody listens there, or that stop a
// server and start it again.
//
// A port that was only probed, or given back for a while, may be given to whoever asks for any port meanwhile: to another test, or
// to another package's.
package porttest
