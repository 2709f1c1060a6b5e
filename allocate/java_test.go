package allocate_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/allocate/allocatetest"
)

func queues(t *testing.T, text string) []allocate.Queue {
	t.Helper()
	out, err := allocatetest.ParseQueues("T", text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestJavaTables(t *testing.T) {
	for _, c := range allocatetest.JavaCases() {
		t.Run(c.Row, func(t *testing.T) {
			strategy, err := allocate.New(c.Strategy, []byte(c.Config))
			if err != nil {
				t.Fatal(err)
			}
			all, err := allocatetest.ParseQueues(c.Topic, c.Queues)
			if err != nil {
				t.Fatal(err)
			}
			in := allocatetest.Input(t, all, c.Members)
			owner, err := strategy.Allocate(in)
			if c.Shares == nil {
				if err == nil {
					t.Fatalf("answered %v, want an error", owner)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := allocate.Check(in, owner, strategy.Needs()); err != nil {
				t.Fatal(err)
			}
			for i, id := range c.Members {
				want, err := allocatetest.ParseQueues(c.Topic, c.Shares[i])
				if err != nil {
					t.Fatal(err)
				}
				if got := allocate.Share(in, owner, i); !slices.Equal(got, want) {
					t.Errorf("%s owns %v, Java gives it %v", id, got, want)
				}
			}
		})
	}
}

// Rows A7, A8, B6, F7 and A10: views in which Java leaves queues unread or reads them twice.
func TestViewsThatJavaGetsWrong(t *testing.T) {
	base := allocate.View{Group: "G", Topic: "T", Queues: queues(t, "b:0-7"), Members: []string{"c1", "c1", "c2"}}
	with := func(change func(*allocate.View)) allocate.View {
		v := base
		change(&v)
		return v
	}
	unusable := map[string]allocate.View{
		"A7 own id missing": with(func(v *allocate.View) { v.Self = "zz" }),
		"A8 own id doubled": with(func(v *allocate.View) { v.Self = "c1" }),
		"A10 no queues":     with(func(v *allocate.View) { v.Self, v.Queues = "c2", nil }),
		"A10 no members":    with(func(v *allocate.View) { v.Self, v.Members = "c2", nil }),
		"own id empty":      with(func(v *allocate.View) { v.Self = "" }),
		"another's queue":   with(func(v *allocate.View) { v.Self, v.Topic = "c2", "U" }),
	}
	for name, v := range unusable {
		t.Run(name, func(t *testing.T) {
			if in, err := allocate.NewInput(v); !errors.Is(err, allocate.ErrUnusableView) {
				t.Fatalf("got %v, %v, want ErrUnusableView", in, err)
			}
		})
	}
	// Another member's id is doubled: it counts once, so that no queue stays unread. Java leaves 3, 4, 5 to nobody (A8).
	for row, name := range map[string]string{
		"A8": allocate.NameAveragely, "B6": allocate.NameAveragelyByCircle, "F7": allocate.NameConsistentHash,
	} {
		t.Run(row+" another's id doubled", func(t *testing.T) {
			in, err := allocate.NewInput(with(func(v *allocate.View) { v.Self = "c2" }))
			if err != nil {
				t.Fatal(err)
			}
			if len(in.Members) != 2 || in.Members[in.Self].ClientID != "c2" {
				t.Fatalf("members %v, self %d", in.Members, in.Self)
			}
			strategy, err := allocate.New(name, nil)
			if err != nil {
				t.Fatal(err)
			}
			owner, err := strategy.Allocate(in)
			if err != nil {
				t.Fatal(err)
			}
			if err := allocate.Check(in, owner, allocate.Needs{}); err != nil {
				t.Error(err)
			}
			if row == "F7" { // consistent hash covers in Java as well
				if got, want := allocate.Share(in, owner, 1), queues(t, "b:0,3,4,7"); !slices.Equal(got, want) {
					t.Errorf("c2 owns %v, want %v", got, want)
				}
			}
		})
	}
}

// Rows C1 to C3: every member has its own list.
func TestConfigured(t *testing.T) {
	const own01 = `{"queues":[{"topic":"T","broker":"b","id":0},{"topic":"T","broker":"b","id":1},{"topic":"T","broker":"b","id":99},{"topic":"U","broker":"b","id":2}]}`
	const own23 = `{"queues":[{"topic":"T","broker":"b","id":3},{"topic":"T","broker":"b","id":2}]}`
	cases := []struct {
		row    string
		config [2]string
		shares [2]string
	}{
		{"C1", [2]string{"", ""}, [2]string{"", ""}},
		{"C2", [2]string{own01, own01}, [2]string{"b:0,1", "b:0,1"}},
		{"C3", [2]string{own01, own23}, [2]string{"b:0,1", "b:2,3"}},
	}
	for _, c := range cases {
		t.Run(c.row, func(t *testing.T) {
			in := allocatetest.Input(t, queues(t, "b:0-3"), []string{"c1", "c2"})
			for self := range in.Members {
				strategy, err := allocate.New(allocate.NameConfig, []byte(c.config[self]))
				if err != nil {
					t.Fatal(err)
				}
				in.Self = self
				owner, err := strategy.Allocate(in)
				if err != nil {
					t.Fatal(err)
				}
				if err := allocate.Check(in, owner, strategy.Needs()); err != nil {
					t.Fatal(err)
				}
				if got, want := allocate.Share(in, owner, self), queues(t, c.shares[self]); !slices.Equal(got, want) {
					t.Errorf("member %d owns %v, want %v", self, got, want)
				}
			}
		})
	}
}

func TestBadConfigs(t *testing.T) {
	for _, c := range []struct{ name, strategy, config string }{
		{"D6 no rooms", allocate.NameMachineRoom, ""},
		{"a key that does not exist", allocate.NameMachineRoom, `{"room":["a"]}`},
		{"negative points", allocate.NameConsistentHash, `{"virtual_nodes":-1}`},
		{"inner with an own list", allocate.NameMachineRoomNearby, `{"inner":"config"}`},
		{"config for one that takes none", allocate.NameAveragely, `{"x":1}`},
		{"two values", allocate.NameAveragely, `{} {}`},
		{"queue without a topic", allocate.NameConfig, `{"queues":[{"broker":"b","id":1}]}`},
		{"no such strategy", "average", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if s, err := allocate.New(c.strategy, []byte(c.config)); err == nil {
				t.Errorf("made %v, want an error", s)
			}
		})
	}
	_, err := allocate.New("average", nil)
	if !errors.Is(err, allocate.ErrUnknownStrategy) {
		t.Errorf("%v, want ErrUnknownStrategy", err)
	}
}
