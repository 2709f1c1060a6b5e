package fromgroup

import (
	"slices"
	"strings"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Facts is what a group's brokers and members tell of it.
type Facts struct {
	Group   string    `json:"group"`
	Time    time.Time `json:"time"`
	Members []Member  `json:"members"`
	// Model, ConsumeType and StartFrom are as brokers heard them last; empty when no member is online.
	Model       string  `json:"model,omitempty"`
	ConsumeType string  `json:"consume_type,omitempty"`
	StartFrom   string  `json:"start_from,omitempty"`
	Topics      []Topic `json:"topics"`
	// Settings are those of the group itself, one entry for each broker.
	Settings []GroupSettings `json:"settings"`
	// Notes say what could not be learned, and why.
	Notes []string `json:"notes"`
}

// Member is one client of the group with what it tells of itself (307).
type Member struct {
	ClientID string `json:"client_id"`
	Language string `json:"language"`
	Version  string `json:"version"`
	// Silent says why the member's own view is missing; empty when it is there.
	Silent string `json:"silent,omitempty"`
	// Told are the properties of its running info: for a Java client all settings of DefaultMQPushConsumer.
	Told     map[string]string `json:"told,omitempty"`
	Strategy string            `json:"strategy,omitempty"` // of streamd's names
	Streamd  bool              `json:"streamd,omitempty"`
	Order    string            `json:"order,omitempty"` // none, queue or key
	Pops     bool              `json:"pops,omitempty"`
	// Queues are those that it says it owns, retry topics aside.
	Queues []wire.MessageQueue `json:"queues,omitempty"`

	subscriptions []rocketmq.Subscription
}

// Topic is one that the group consumes.
type Topic struct {
	Name    string   `json:"name"`
	Filters []Filter `json:"filters"` // the one that most members have first; none when nobody tells
	// Without are members that tell their subscriptions, and have none to this topic.
	Without []string `json:"without,omitempty"`
	// Offsets tells that the topic was found by the group's stored offsets.
	Offsets bool `json:"offsets"`
	Asked   bool `json:"asked"` // was named by whoever asks
}

// Filter is what some members let pass.
type Filter struct {
	Expression string   `json:"expression"`
	Type       string   `json:"type"`
	Source     string   `json:"source"`  // who told
	Members    []string `json:"members"` // client ids; empty when a broker told
}

// GroupSettings are those of the group at one broker.
type GroupSettings struct {
	Broker  string                  `json:"broker"`
	Group   *wire.SubscriptionGroup `json:"group,omitempty"`
	Unknown string                  `json:"unknown,omitempty"` // why they could not be read
}

// answer is what the members say to one question.
type answer struct {
	value  string // that most of them give; "" = nobody tells
	source string // for a comment
	unlike string // who says otherwise; empty = nobody
}

// told asks the members for a property. Of equally many the lesser value counts, so that a draft is the same each time.
func (f *Facts) told(name string) answer {
	return f.ask(name, func(m *Member) string { return m.Told[name] })
}

func (f *Facts) ask(what string, of func(*Member) string) answer {
	by := map[string][]string{}
	all := 0
	for i := range f.Members {
		if v := of(&f.Members[i]); v != "" {
			by[v] = append(by[v], f.Members[i].ClientID)
			all++
		}
	}
	if all == 0 {
		return answer{}
	}
	values := make([]string, 0, len(by))
	for v := range by {
		values = append(values, v)
	}
	slices.SortFunc(values, func(a, b string) int {
		if d := len(by[b]) - len(by[a]); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	a := answer{value: values[0], source: f.who(by[values[0]], all) + ": " + what}
	var unlike []string
	for _, v := range values[1:] {
		unlike = append(unlike, v+" ("+strings.Join(by[v], ", ")+")")
	}
	a.unlike = strings.Join(unlike, ", ")
	return a
}

// who counts those who say something, of all that tell.
func (f *Facts) who(some []string, all int) string {
	telling := number(all) + " members"
	if all < len(f.Members) {
		telling += " that tell"
	}
	switch {
	case all == 1:
		return "member " + some[0]
	case len(some) == all:
		return "all " + telling
	}
	return number(len(some)) + " of " + telling
}
