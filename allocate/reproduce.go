package allocate

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Question is an Input as a file: what `streamd allocate try` reads.
type Question struct {
	Group    string   `json:"group"`
	Topic    string   `json:"topic"`
	Self     string   `json:"self"`
	Members  []string `json:"members"`
	Queues   []string `json:"queues"` // broker/id
	Previous []int32  `json:"previous,omitempty"`
}

// QuestionOf writes an input as a question.
func QuestionOf(in Input) Question {
	q := Question{Group: in.Group, Topic: in.Topic, Previous: in.Previous}
	for _, m := range in.Members {
		q.Members = append(q.Members, m.ClientID)
	}
	if in.Self >= 0 && in.Self < len(in.Members) {
		q.Self = in.Members[in.Self].ClientID
	}
	for _, queue := range in.Queues {
		q.Queues = append(q.Queues, fmt.Sprintf("%s/%d", queue.Broker, queue.ID))
	}
	return q
}

// View makes the view of a question, for a Guard. Queues and members may come in any order.
func (q Question) View() (View, error) {
	v := View{Group: q.Group, Topic: q.Topic, Self: q.Self, Members: q.Members}
	for _, text := range q.Queues {
		var id int32
		at := strings.LastIndexByte(text, '/')
		if at < 1 {
			return View{}, fmt.Errorf("queue %q: write broker/id", text)
		}
		if _, err := fmt.Sscanf(text[at+1:], "%d", &id); err != nil {
			return View{}, fmt.Errorf("queue %q: write broker/id: %w", text, err)
		}
		v.Queues = append(v.Queues, Queue{Topic: q.Topic, Broker: text[:at], ID: id})
	}
	return v, nil
}

// Input makes the input of a question. With Previous, queues and members must stand in order.
func (q Question) Input() (Input, error) {
	v, err := q.View()
	if err != nil {
		return Input{}, err
	}
	in, err := NewInput(v)
	if err != nil {
		return Input{}, err
	}
	in.Previous = q.Previous
	return in, CheckInput(in)
}

// maxReproduce bounds the text of a reproduction: it goes into a log line and a status page.
const maxReproduce = 32 << 10

// Reproduce returns a shell command that asks a strategy the same question again. A question that is too long for a
// command line is named by its hash and sizes instead; `group status` tells its parts.
func Reproduce(id Identity, in Input) string {
	text, err := json.Marshal(QuestionOf(in))
	if err != nil || len(text) > maxReproduce {
		return fmt.Sprintf("# question %s: group %s, topic %s, %d queues, %d members: too long for a command line",
			HashInput(in), in.Group, in.Topic, len(in.Queues), len(in.Members))
	}
	return fmt.Sprintf("streamd allocate try %s --input - <<'EOF'\n%s\nEOF", quote(id.Strategy), text)
}

// quote makes s one word for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
