package wire

import "strings"

// systemGroupPrefix begins the names of RocketMQ's own groups.
const systemGroupPrefix = "CID_RMQ_SYS_"

// WithNamespace returns the name of a topic or group as it travels in a namespace: NS%name, behind the mark of a retry or
// dead-letter topic. RocketMQ's own topics and groups, and names that have the namespace already, stay as they are
// (NamespaceUtil, remoting-protocol.md 5.4). So does the group of its tools, which know no namespaces: each broker has that one.
func WithNamespace(ns, name string) string {
	if ns == "" || name == "" {
		return name
	}
	mark, rest := splitMark(name)
	if mark == "" && (IsSystemTopic(name) || isSystemGroup(name)) || strings.HasPrefix(rest, ns+"%") {
		return name
	}
	return mark + ns + "%" + rest
}

// WithoutNamespace takes off what WithNamespace puts on.
func WithoutNamespace(ns, name string) string {
	if ns == "" {
		return name
	}
	mark, rest := splitMark(name)
	return mark + strings.TrimPrefix(rest, ns+"%")
}

func isSystemGroup(name string) bool {
	return strings.HasPrefix(name, systemGroupPrefix) || name == InnerProducerGroup || name == ToolsGroup
}

// splitMark splits the mark of a retry or dead-letter topic off.
func splitMark(name string) (mark, rest string) {
	for _, m := range []string{RetryPrefix, DLQPrefix} {
		if rest, ok := strings.CutPrefix(name, m); ok {
			return m, rest
		}
	}
	return "", name
}
