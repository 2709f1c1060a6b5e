package queue

import "time"

// Hold says why something waits; the zero value means that nothing holds it.
type Hold struct {
	Kind    HoldKind      `json:"kind"`
	Text    string        `json:"text,omitempty"`    // for people: what, and what to do
	Message string        `json:"message,omitempty"` // identity of the message that holds
	Member  string        `json:"member,omitempty"`  // client id of the member that is waited for
	Since   time.Time     `json:"since,omitzero"`
	For     time.Duration `json:"for,omitempty"`
}

// HoldKind is the class of a Hold, as it stands in status output.
type HoldKind string

// The kinds of holds.
const (
	HoldWindowCount    HoldKind = "window_messages"     // flow control: too many unsettled messages
	HoldWindowBytes    HoldKind = "window_bytes"        // flow control: their memory
	HoldWindowSpan     HoldKind = "window_span"         // one old message holds the offset; Message names it
	HoldStreamBytes    HoldKind = "stream_bytes"        // the stream's or the process's memory budget is used up
	HoldPluginDown     HoldKind = "plugin_down"         // no process answers for the handler
	HoldPluginBroken   HoldKind = "plugin_broken"       // every process dies; nothing is dead-lettered
	HoldNoCredit       HoldKind = "plugin_no_credit"    // the handler has nothing to do and takes no records
	HoldMembersUnknown HoldKind = "members_unknown"     // no member list, or the own id is not in it
	HoldRouteUnknown   HoldKind = "route_unknown"       // no name server told the topic's queues
	HoldStrategy       HoldKind = "strategy_kept_share" // the strategy's answer was refused; the last verified share stays
	HoldHandOver       HoldKind = "waiting_hand_over"   // another streamd member still owns or drains the queue
	HoldStartUnknown   HoldKind = "start_unknown"       // the start position could not be read or confirmed
	HoldOffsetsLost    HoldKind = "offsets_lost"        // no offset, while other queues of the topic have one: the operator decides
	HoldOutOfRange     HoldKind = "offset_out_of_range" // above the queue's end with no time to go by: the operator decides
	HoldGarbage        HoldKind = "garbage"             // a stored message does not decode
	HoldBroker         HoldKind = "broker"              // the broker refuses or does not answer
	HoldSettle         HoldKind = "settle_refused"      // a verdict cannot be made durable
	HoldRetryOff       HoldKind = "retry_topic_off"     // the retry topic takes no messages
	HoldExhausted      HoldKind = "retries_exhausted"   // on_exhausted: block
	HoldDraining       HoldKind = "draining"
	HoldCommit         HoldKind = "commit_refused"
)

// Held tells whether something holds.
func (h Hold) Held() bool { return h.Kind != "" }
