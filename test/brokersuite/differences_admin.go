package brokersuite

// adminDifferences are those that only tools meet.
func adminDifferences() []Difference {
	return []Difference{
		{
			"unknown-settings",
			"A setting that is not known, or cannot be changed while the broker runs, is refused with 29 and its name (25, 318). 5.3.3 says success and does nothing.",
			[]string{"admin-broker/a setting that is not known", "names-cluster/settings that are not known"},
		},
		{
			"replicas-and-wheels",
			"There are no replicas and no timer wheel, so what a replica asks its master (45, 60, 61, 906) gets 3.",
			[]string{"admin-broker/delays' offsets", "admin-broker/timer check point", "admin-broker/timer metrics", "admin-broker/replication state"},
		},
		{
			"static-topics",
			"There are no static topics: code 21 does not list their mappings.",
			[]string{"admin-topic-lists/all configurations"},
		},
	}
}

func nameServerDifferences() []Difference {
	return []Difference{
		{
			"ordered-topics",
			"The name server hands out the order of a topic's queues (orderTopicConf) always; 5.3.3 with orderMessageEnable=true only. Its other settings are not there.",
			[]string{"names-cluster/name server's settings"},
		},
		{
			"other-brokers",
			"A broker of another make that registers here is told each time that its topics have changed (322), and nothing is said of an acting master.",
			[]string{
				"names-foreign/route", "names-foreign/data version, the same", "names-foreign/data version, another", "names-foreign/in the cluster",
				"names-foreign/unregister",
			},
		},
	}
}
