package queue

import (
	"encoding/json"
	"testing"
)

// A message's id is msg_id in all JSON; message, which the docs named before, goes on beside it.
func TestHold_jsonNamesTheMessage(t *testing.T) {
	text, err := json.Marshal([]Hold{{Kind: HoldWindowSpan, Message: "A1"}, {Kind: HoldBroker}})
	if want := `[{"kind":"window_span","msg_id":"A1","message":"A1"},{"kind":"broker"}]`; err != nil || string(text) != want {
		t.Fatalf("%s, %v, want %s", text, err, want)
	}
	var back []Hold
	if err := json.Unmarshal(text, &back); err != nil || back[0].Message != "A1" || back[1] != (Hold{Kind: HoldBroker}) {
		t.Errorf("read back: %+v, %v", back, err)
	}
}
