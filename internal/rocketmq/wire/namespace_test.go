package wire

import "testing"

// TestNamespace has the names that Java's NamespaceUtil makes, and that of mqadmin's group.
func TestNamespace(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Orders":                "INST_1%Orders",
		"%RETRY%billing":        "%RETRY%INST_1%billing",
		"%DLQ%billing":          "%DLQ%INST_1%billing",
		"INST_1%Orders":         "INST_1%Orders",
		"%RETRY%INST_1%g":       "%RETRY%INST_1%g",
		"TBW102":                "TBW102",
		"RMQ_SYS_TRACE_TOPIC":   "RMQ_SYS_TRACE_TOPIC",
		"rmq_sys_wheel_timer":   "rmq_sys_wheel_timer",
		"CID_RMQ_SYS_TRANS":     "CID_RMQ_SYS_TRANS",
		"SCHEDULE_TOPIC_XXXX":   "SCHEDULE_TOPIC_XXXX",
		"CLIENT_INNER_PRODUCER": "CLIENT_INNER_PRODUCER",
		"TOOLS_CONSUMER":        "TOOLS_CONSUMER",
		"":                      "",
	} {
		if got := WithNamespace("INST_1", name); got != want {
			t.Errorf("WithNamespace(%q) = %q, want %q", name, got, want)
		}
		if got := WithNamespace("", name); got != name {
			t.Errorf("without a namespace %q became %q", name, got)
		}
	}
	for name, want := range map[string]string{
		"INST_1%Orders": "Orders", "%RETRY%INST_1%g": "%RETRY%g", "%DLQ%INST_1%g": "%DLQ%g", "INST_2%Orders": "INST_2%Orders", "Orders": "Orders", "": "",
	} {
		if got := WithoutNamespace("INST_1", name); got != want {
			t.Errorf("WithoutNamespace(%q) = %q, want %q", name, got, want)
		}
	}
	if got := WithoutNamespace("", "INST_1%Orders"); got != "INST_1%Orders" {
		t.Errorf("without a namespace the name became %q", got)
	}
}
