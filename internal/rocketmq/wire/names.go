package wire

import (
	"fmt"
	"strings"
)

// Names of topics and groups that RocketMQ gives a meaning (remoting-protocol.md 5.2, 5.3).
const (
	RetryPrefix        = "%RETRY%"
	DLQPrefix          = "%DLQ%"
	SystemTopicPrefix  = "rmq_sys_"
	DefaultTopic       = "TBW102" // the template of auto creation
	ScheduleTopic      = "SCHEDULE_TOPIC_XXXX"
	HalfTopic          = "RMQ_SYS_TRANS_HALF_TOPIC"
	HalfOpTopic        = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
	TransCheckMaxTopic = "TRANS_CHECK_MAX_TIME_TOPIC"
	TraceTopic         = "RMQ_SYS_TRACE_TOPIC"
	BenchmarkTopic     = "BenchmarkTest"
	SelfTestTopic      = "SELF_TEST_TOPIC"
	OffsetMovedTopic   = "OFFSET_MOVED_EVENT"
	TimerTopic         = "rmq_sys_wheel_timer"

	// InnerProducerGroup is the group under which a consumer's own producer shows in heartbeats.
	InnerProducerGroup = "CLIENT_INNER_PRODUCER"
	// ToolsGroup is the group that RocketMQ's own tools read with; every broker has it.
	ToolsGroup = "TOOLS_CONSUMER"
	// DefaultConsumerGroup and DefaultProducerGroup are refused by clients.
	DefaultConsumerGroup = "DEFAULT_CONSUMER"
	DefaultProducerGroup = "DEFAULT_PRODUCER"

	// MasterID is the broker id of a master; replicas have higher ones.
	MasterID int64 = 0
)

// The permission bits of a topic (PermName).
const (
	PermInherit  int32 = 1
	PermWrite    int32 = 2
	PermRead     int32 = 4
	PermPriority int32 = 8
)

// The longest names that brokers take (remoting-protocol.md 4.5; groups: 5.3.4, which is stricter than 5.3.3's 255).
const (
	MaxTopicName = 127
	MaxGroupName = 120

	maxOldGroupName = 255
)

// RetryTopic returns the topic that holds a group's messages for their next attempt.
func RetryTopic(group string) string { return RetryPrefix + group }

// DLQTopic returns the topic that holds a group's dead letters.
func DLQTopic(group string) string { return DLQPrefix + group }

// IsRetryTopic tells whether topic is a retry topic, of POP or of the classic kind.
func IsRetryTopic(topic string) bool { return strings.HasPrefix(topic, RetryPrefix) }

// IsDLQTopic tells whether topic holds dead letters.
func IsDLQTopic(topic string) bool { return strings.HasPrefix(topic, DLQPrefix) }

// IsSystemTopic tells whether RocketMQ itself made the topic, for its own use (TopicValidator).
func IsSystemTopic(topic string) bool {
	if strings.HasPrefix(topic, SystemTopicPrefix) {
		return true
	}
	switch topic {
	case DefaultTopic, BenchmarkTopic, TraceTopic, "CHECKPOINT_TOPIC":
		return true
	}
	return !IsSendable(topic)
}

// IsSendable tells whether brokers take messages for the topic from clients (remoting-protocol.md 5.2).
func IsSendable(topic string) bool {
	switch topic {
	case ScheduleTopic, HalfTopic, HalfOpTopic, TransCheckMaxTopic, SelfTestTopic, OffsetMovedTopic:
		return false
	}
	return true
}

// ValidateTopic checks a topic's name as brokers and Java clients do. The error wraps ErrName and says what is wrong.
func ValidateTopic(topic string) error { return validateName("topic", topic, MaxTopicName) }

// ValidateGroup checks a group's name like ValidateTopic.
func ValidateGroup(group string) error { return validateName("group", group, MaxGroupName) }

// ValidateKnownGroup is ValidateGroup for a group that somebody else made: brokers up to 5.3.3 let it have a longer name.
func ValidateKnownGroup(group string) error { return validateName("group", group, maxOldGroupName) }

func validateName(what, name string, limit int) error {
	if name == "" {
		return fmt.Errorf("%w: the %s is empty", ErrName, what)
	}
	if len(name) > limit {
		return fmt.Errorf("%w: %s %q has %d bytes, the limit is %d", ErrName, what, shorten(name), len(name), limit)
	}
	for i, r := range name {
		if !isNameRune(r) {
			return fmt.Errorf("%w: %s %q has %q at byte %d; letters, digits and %%|-_ are allowed", ErrName, what, name, r, i)
		}
	}
	return nil
}

func isNameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("%|-_", r)
}
