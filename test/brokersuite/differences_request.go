package brokersuite

// requestDifferences are those of any request, and of groups and offsets.
func requestDifferences() []Difference {
	return []Difference{
		{
			"missing-fields",
			"A request without a field that RocketMQ's header class marks as required, or with text where a number belongs, gets code 1 and the field's name. 5.3.3 goes on with null and answers whatever comes of it, a success in places.",
			[]string{
				"admin-clone/no destination", "admin-reset/no time", "admin-topic/delete without name", "callback-running-info/no client",
				"filter-sql-bad/client check without body", "heartbeat/empty body", "names-foreign/without name", "names-kv/put without value",
				"names-kv/without key", "offsets/of text", "offsets/without offset", "offsets/without queue", "offsets/without group", "query-key/no key",
				"timer-recall/no handle", "transaction-refused/no group",
			},
		},
		{
			"pop",
			"There is no POP: its codes (200050 and on) get 3. Assignments are answered as pull, so clients of 5.x stay with pulling.",
			[]string{"pop/pop", "pop/peek", "pop/notification", "pop/polling information"},
		},
		{
			"commit-of-no-queue",
			"An offset of a queue that the topic does not have is refused with 29. 5.3.3 stores it for ever.",
			[]string{"offsets/queue beyond the topic", "offsets/negative queue"},
		},
		{
			"reset-of-no-queue",
			"A reset of a queue that the topic does not have is refused. 5.3.3 notes it for ever.",
			[]string{"admin-reset/queue beyond the topic"},
		},
		{
			"asking-makes-no-group",
			"Asking for a group's configuration (352) does not make the group. In 5.3.3 it does, when groups are made by themselves.",
			[]string{"admin-group/made by asking", "admin-group/all groups"},
		},
		{
			"clone-of-all-topics",
			"Cloning a group's offsets (314) without a topic clones those of all its topics. 5.3.3 answers success and clones none.",
			[]string{"admin-clone/all cloned"},
		},
		{
			"groups-of-a-topic",
			"Code 300 lists the groups whose members subscribe to the topic. 5.3.3 lists the topic's own name in their stead.",
			[]string{"heartbeat/a topic's groups"},
		},
		{
			"progress-details",
			"Before a group's first pull its pull offset is 0 here and the committed offset there; times stand as numbers, not also as texts in the zone of the server.",
			[]string{
				"admin-progress/a topic", "admin-progress/all topics", "admin-progress/topics of a list", "admin-progress/only what its members subscribe to",
				"admin-progress/time span",
			},
		},
	}
}
