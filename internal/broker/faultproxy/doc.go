// Package faultproxy is a proxy that stands before a real broker or name server and disturbs the traffic by rule: it cuts
// the streams at frames and can garble, delay, drop, cut, refuse, half-close or stall by direction, code and count.
//
// Promises: what no rule hits passes byte for byte and in order; a stream that is not made of frames passes too, as it
// is. Close ends all connections and leaves no goroutine behind.
//
// Goroutines: one accepts; each connection has two, one a direction, which read a frame, apply the rules and write it.
// They wait on the sockets, on timers and on channels only.
package faultproxy
