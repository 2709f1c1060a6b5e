package queue

import (
	"encoding/json"
	"fmt"
	"time"
)

// Hold says why something waits; the zero value means that nothing holds it.
type Hold struct {
	Kind    HoldKind      `json:"kind"`
	Text    string        `json:"text,omitempty"`   // for people: what, and what to do
	Message string        `json:"msg_id,omitempty"` // identity of the message that holds
	Member  string        `json:"member,omitempty"` // client id of the member that is waited for
	Since   time.Time     `json:"since,omitzero"`
	For     time.Duration `json:"for,omitempty"`
}

// MarshalJSON writes msg_id as message too, its name before all of streamd called it msg_id.
func (h Hold) MarshalJSON() ([]byte, error) {
	type fields Hold // without this method
	text, err := json.Marshal(struct {
		fields
		Old string `json:"message,omitempty"`
	}{fields(h), h.Message})
	if err != nil {
		return nil, fmt.Errorf("encoding a hold: %w", err)
	}
	return text, nil
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
	HoldHandlerDown    HoldKind = "handler_down"        // the member left its group because its handler stays down
	HoldNoCredit       HoldKind = "plugin_no_credit"    // the handler has nothing to do and takes no records
	HoldFilter         HoldKind = "filter_refused"      // a broker does not filter as the subscription wants
	HoldGroupMissing   HoldKind = "group_missing"       // a broker does not know the group and does not make it
	HoldGroupDisabled  HoldKind = "group_disabled"      // an operator switched the group's consumption off: paused
	HoldMembersUnknown HoldKind = "members_unknown"     // no member list, or the own id is not in it
	HoldRouteUnknown   HoldKind = "route_unknown"       // no name server told the topic's queues
	HoldStrategy       HoldKind = "strategy_kept_share" // the strategy's answer was refused; the last verified share stays
	HoldHandOver       HoldKind = "waiting_hand_over"   // another streamd member still owns or drains the queue
	HoldStartUnknown   HoldKind = "start_unknown"       // the start position could not be read or confirmed
	HoldOffsetsLost    HoldKind = "offsets_lost"        // no offset, while other queues of the topic have one: the operator decides
	HoldOutOfRange     HoldKind = "offset_out_of_range" // above the queue's end with no time to go by: the operator decides
	HoldGarbage        HoldKind = "garbage"             // a stored message does not decode
	HoldBroker         HoldKind = "broker"              // the broker refuses or does not answer
	HoldAccess         HoldKind = "access_refused"      // access control refuses the key, or a right is missing; Text says which
	HoldSettle         HoldKind = "settle_refused"      // a verdict cannot be made durable
	HoldRetryOff       HoldKind = "retry_topic_off"     // the retry topic takes no messages
	HoldExhausted      HoldKind = "retries_exhausted"   // on_exhausted: block
	HoldInPlace        HoldKind = "retry_in_place"      // a failed message waits for its next try; in an ordered queue what follows waits too
	HoldLock           HoldKind = "queue_lock"          // order: the broker's lock of the queue is not ours
	HoldDraining       HoldKind = "draining"
	HoldCommit         HoldKind = "commit_refused"
)

// Held tells whether something holds.
func (h Hold) Held() bool { return h.Kind != "" }
