// Package groupview reads the state of a consumer group from its brokers and its members: what "streamd group status"
// shows. It works for any group, streamd in it or not, and changes nothing: it joins no group and stores no offset.
//
// Promises: what could not be learned is said to be unknown, with the reason; it is never shown as zero or empty. A queue
// that nobody handles says why.
//
// Goroutines: Read and Ask ask members and brokers side by side and wait for all of them before they return.
package groupview
