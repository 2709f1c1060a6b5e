package allocatetest

import "github.com/streamd/streamd/allocate"

// JavaCase is one row of what RocketMQ's own classes answer (consumer-semantics.md 2.10). Queues and shares are in the
// notation of ParseQueues.
type JavaCase struct {
	Row, Strategy, Config string
	Topic                 string
	Queues                string
	Members               []string
	// Shares holds what each of Members owns, in their order. Nil = Java throws, and so does the strategy.
	Shares []string
}

// JavaCases returns the rows whose question a member of a sound group can have. The rows about doubled or missing
// client ids have no Input: NewInput refuses or repairs them.
func JavaCases() []JavaCase {
	all := averages()
	all = append(all, rooms()...)
	return append(all, hashes()...)
}

func averages() []JavaCase {
	two, three, four, five := ids(2), ids(3), ids(4), ids(5)
	six := ids(6)
	const avg, circle = allocate.NameAveragely, allocate.NameAveragelyByCircle
	return []JavaCase{
		{"A1", avg, "", "T", "b:0-7", three, []string{"b:0,1,2", "b:3,4,5", "b:6,7"}},
		{"A2", avg, "", "T", "b:0-9", four, []string{"b:0,1,2", "b:3,4,5", "b:6,7", "b:8,9"}},
		{"A3", avg, "", "T", "b:0-3", six, []string{"b:0", "b:1", "b:2", "b:3", "", ""}},
		{"A4", avg, "", "T", "b:0-15", five, []string{"b:0-3", "b:4-6", "b:7-9", "b:10-12", "b:13-15"}},
		{"A5", avg, "", "T", "a:0-3 b:0-3", three, []string{"a:0,1,2", "a:3 b:0,1", "b:2,3"}},
		{"A6", avg, "", "T", "b:0-2", two, []string{"b:0,1", "b:2"}},
		{"A9", avg, "", "T", "b:0-2", []string{"10.0.0.10@1", "10.0.0.2@1", "10.0.0.9@1"}, []string{"b:0", "b:1", "b:2"}},
		{"B1", circle, "", "T", "b:0-7", three, []string{"b:0,3,6", "b:1,4,7", "b:2,5"}},
		{"B2", circle, "", "T", "b:0-9", four, []string{"b:0,4,8", "b:1,5,9", "b:2,6", "b:3,7"}},
		{"B3", circle, "", "T", "b:0-3", six, []string{"b:0", "b:1", "b:2", "b:3", "", ""}},
		{"B4", circle, "", "T", "b:0-15", five, []string{"b:0,5,10,15", "b:1,6,11", "b:2,7,12", "b:3,8,13", "b:4,9,14"}},
		{"B5", circle, "", "T", "a:0-3 b:0-3", three, []string{"a:0,3 b:2", "a:1 b:0,3", "a:2 b:1"}},
	}
}

func rooms() []JavaCase {
	two, three, four := ids(2), ids(3), ids(4)
	const room, near = allocate.NameMachineRoom, allocate.NameMachineRoomNearby
	return []JavaCase{
		{"D1", room, `{"rooms":["r1","r2"]}`, "T", "r1@b:0-2 r2@b:0-2 r3@b:0-2", four, []string{"r1@b:0 r2@b:1", "r1@b:1 r2@b:2", "r1@b:2", "r2@b:0"}},
		{"D2", room, `{"rooms":["r1"]}`, "T", "r1@b:0-4", three, []string{"r1@b:0,3", "r1@b:1,4", "r1@b:2"}},
		{"D3", room, `{"rooms":["r1"]}`, "T", "r1@b:0-3 r2@b:0-3", three, []string{"r1@b:0,3", "r1@b:1", "r1@b:2"}},
		{"D4", room, `{"rooms":["r1"]}`, "T", "r1@b:0,1", three, []string{"r1@b:0", "r1@b:1", ""}},
		{"D5", room, `{"rooms":["r1"]}`, "T", "b:0-3", two, []string{"", ""}},
		{"E1", near, "", "T", "A-b:0-3 B-b:0-3", []string{"A-c1", "A-c2", "B-c1"}, []string{"A-b:0,1", "A-b:2,3", "B-b:0-3"}},
		{"E2", near, `{"inner":"averagely"}`, "T", "A-b:0-3 B-b:0-3 C-b:0-3", []string{"A-c1", "A-c2", "B-c1"}, []string{"A-b:0,1 C-b:0,1", "A-b:2,3 C-b:2", "B-b:0-3 C-b:3"}},
		{"E3", near, "", "T", "A-b:0-3 B-b:0-3", []string{"A-c1", "D-c1", "D-c2"}, []string{"A-b:0-3 B-b:0,1", "B-b:2", "B-b:3"}},
		{"E4", near, `{"inner":"averagely_by_circle"}`, "T", "A-b:0-2 C-b:0-2", []string{"A-c1", "A-c2", "B-c1"}, []string{"A-b:0,2 C-b:0", "A-b:1 C-b:1", "C-b:2"}},
		{"E5", near, "", "T", "A-b:0-3", []string{"A-c1", "nowhere"}, nil},
		{"E5 broker", near, "", "T", "A-b:0-3 b:0", []string{"A-c1", "A-c2"}, nil},
	}
}

func hashes() []JavaCase {
	const hash = allocate.NameConsistentHash
	return []JavaCase{
		{"F1", hash, "", "T", "b:0-7", ids(3), []string{"b:2", "b:0,3,4,7", "b:1,5,6"}},
		{"F2", hash, "", "T", "b:0-7", ids(4), []string{"b:2", "", "b:1,5,6", "b:0,3,4,7"}},
		{"F3", hash, "", "T", "b:0-3", ids(2), []string{"b:1,2", "b:0,3"}},
		{"F4", hash, "", "TopicTest", "broker-a:0-7", []string{"192.168.0.1@1001", "192.168.0.2@1002", "192.168.0.3@1003"}, []string{"broker-a:2,5", "", "broker-a:0,1,3,4,6,7"}},
		{"F5", hash, "", "TopicTest", "broker-a:0-7", []string{"192.168.0.1@1001", "192.168.0.2@1002", "192.168.0.3@1003", "192.168.0.4@1004"}, []string{"broker-a:2,5", "", "broker-a:0,1,3,4,6,7", ""}},
		{"F6", hash, `{"virtual_nodes":0}`, "T", "b:0-3", ids(2), []string{"", ""}},
	}
}

// ids returns c1, c2, ...
func ids(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = "c" + string(rune('1'+i))
	}
	return out
}
