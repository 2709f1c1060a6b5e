package brokersuite

// sendDifferences are those of messages on their way in, of delays and of transactions.
func sendDifferences() []Difference {
	return []Difference{
		{
			"delayed-transaction",
			"A transaction's message with a delay level becomes visible when it is committed. 5.3.3 says that it is committed and never shows it.",
			[]string{"transaction/what is visible at last"},
		},
		{
			"half-messages-stay",
			"A half message is stored once and not again before each check, so the committed message does not carry the number of checks (TRANSACTION_CHECK_TIMES).",
			[]string{"transaction-checks/visible"},
		},
		{
			"timer-wheel",
			"Timer messages do not go through a wheel: TIMER_ENQUEUE_MS and TIMER_DEQUEUE_MS, which say when 5.3.3's wheel had them, are not there. They come at their millisecond, not at the next second.",
			[]string{"timer/delivered, seconds", "timer/delivered, milliseconds", "timer/delivered, moment"},
		},
		{
			"delivered-once-kept-once",
			"A message that waited for its time is removed from where it waited when it is delivered, and so is one that is recalled: the offset id that its sender was given finds it until then (33). 5.3.3 keeps both until they expire.",
			[]string{"delay-levels/what waited, by the id that its sender was given"},
		},
		{
			"timer-in-a-batch",
			"A batch with a timer is refused with 13, as one with a delay level is. 5.3.3 takes it and delivers at once.",
			[]string{"timer-refused/batch with a timer"},
		},
		{
			"refusals-in-detail",
			"Some refusals say more: the limit that was passed, the place where an expression goes wrong. A topic with a negative number of queues, a group name of more than 255 bytes and names with a zero byte are refused; 5.3.3 takes them.",
			[]string{
				"admin-group/name of 256", "admin-topic/name of 128", "admin-topic/negative queues",
				"produce-names/name of 128", "pull/tag that cannot be parsed",
			},
		},
	}
}

func filterDifferences() []Difference {
	return []Difference{
		{
			"bad-expressions-are-refused",
			"A pull with an SQL92 expression that cannot be parsed gets 23, as the check of a client's configuration (46) does. 5.3.3 ignores the expression and lets everything pass.",
			[]string{
				"filter-sql/sql s between 'a' and 'z'", "filter-sql/sql s > 'a'", "filter-sql/sql a in (1, 2)", "filter-sql/sql a > 'x'",
				"filter-sql/sql a.b = 1", "filter-sql-bad/pull with what cannot be parsed",
			},
		},
		{
			"whole-expressions",
			"An expression is read to its end: what follows a whole one is refused with 23. 5.3.3 ignores it, so that a = 1 b means a = 1 there and a-b = 1 means a.",
			[]string{
				"filter-sql-bad/client check s like 'x'", "filter-sql-bad/client check a + 1 = 2", "filter-sql-bad/client check a = 1)",
				"filter-sql-bad/client check a = 1 b", "filter-sql-bad/client check a > 0x10", "filter-sql/client check a-b = 1", "filter-sql/sql a-b = 1",
			},
		},
		{
			"unknown-expression-types",
			"A pull with an expression type that is neither TAG nor SQL92 is refused. 5.3.3 lets everything pass.",
			[]string{"pull/unknown expression type"},
		},
	}
}
