package broker

import (
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// permUsual is what an ordinary topic allows.
const permUsual = wire.PermRead | wire.PermWrite

// maxRetryTopic is the longest name of a retry or dead-letter topic.
const maxRetryTopic = 255

// topicNameFault says what is wrong with a name, in RocketMQ's words; "" = nothing (TopicValidator).
func topicNameFault(topic string) string {
	limit := wire.MaxTopicName
	if wire.IsRetryTopic(topic) || wire.IsDLQTopic(topic) {
		limit = maxRetryTopic
	}
	switch {
	case strings.TrimSpace(topic) == "":
		return "The specified topic is blank."
	case strings.ContainsFunc(topic, illegalInName):
		return "The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"
	case len(topic) > limit:
		return "The specified topic is longer than topic max length " + strconv.Itoa(limit) + "."
	}
	return ""
}

func illegalInName(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '%', r == '|', r == '_', r == '-':
		return false
	}
	return true
}

// javaHash is String.hashCode: over UTF-16 code units (remoting-protocol.md 3.4). It is the broker's own, so that a
// mistake in the client's shows.
func javaHash(s string) int32 {
	var h int32
	for _, r := range s {
		if r > 0xFFFF {
			hi, lo := utf16.EncodeRune(r)
			h = 31*(31*h+hi) + lo
			continue
		}
		h = 31*h + r
	}
	return h
}

// tagHash is the tag code of a message: 0 without tags.
func tagHash(properties []byte) int32 {
	tags, _ := wire.FindProperty(properties, wire.PropTags)
	return javaHash(string(tags))
}
