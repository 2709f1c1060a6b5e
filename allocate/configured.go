package allocate

import "errors"

// ConfiguredConfig lists the queues of this member, of all topics. Members have unlike lists on purpose.
type ConfiguredConfig struct {
	Queues []ConfiguredQueue `json:"queues" doc:"the queues of this member, of all topics"`
}

// ConfiguredQueue names one queue in a config.
type ConfiguredQueue struct {
	Topic  string `json:"topic" required:"true" doc:"topic"`
	Broker string `json:"broker" required:"true" doc:"broker name"`
	ID     int32  `json:"id" required:"true" min:"0" doc:"queue id"`
}

// NewConfigured makes Java's CONFIG: this member owns what its config lists, whoever else is in the group
// (AllocateMessageQueueByConfig). No member knows what others list, so the answer leaves their queues NotComputed, and
// nobody notices two lists that overlap or leave a gap. One difference to Java: a listed queue that the topic does not
// have is left out instead of being pulled from in vain.
func NewConfigured(c ConfiguredConfig) (Strategy, error) {
	own := make(map[Queue]bool, len(c.Queues))
	for _, q := range c.Queues {
		if q.Topic == "" || q.Broker == "" || q.ID < 0 {
			return nil, errors.New("strategy config: each of queues needs topic, broker and an id of 0 or more")
		}
		own[Queue(q)] = true
	}
	return &builtin{name: NameConfig, needs: Needs{Partial: true, PerMember: true}, allocate: func(in Input) ([]int32, error) {
		owner := make([]int32, len(in.Queues))
		for i, q := range in.Queues {
			owner[i] = NotComputed
			if own[q] {
				owner[i] = asOwner(in.Self)
			}
		}
		return owner, nil
	}}, nil
}
