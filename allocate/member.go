package allocate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ParseMember reads the attributes off a client id: the parts between '@' after the first that consist of key=value
// pairs only, as in "10.0.0.7@4711#99@zone=a,weight=2". Ids of Java and Go clients ("ip@pid#nanos", with "@unit" or
// "@STREAM" behind) have none. Any text is a valid id; where a key repeats the last one counts.
func ParseMember(clientID string) Member {
	m := Member{ClientID: clientID}
	_, rest, found := strings.Cut(clientID, "@")
	for found {
		var part string
		part, rest, found = strings.Cut(rest, "@")
		pairs, ok := parseAttributes(part)
		if !ok {
			continue
		}
		if m.Attributes == nil {
			m.Attributes = make(map[string]string, len(pairs))
		}
		maps.Copy(m.Attributes, pairs)
	}
	return m
}

// parseAttributes reads "k=v,k=v". It is all or nothing: an instance name that happens to hold a '=' is no attribute.
func parseAttributes(part string) (map[string]string, bool) {
	pairs := map[string]string{}
	for pair := range strings.SplitSeq(part, ",") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || !isAttributeText(key) || !isAttributeText(value) {
			return nil, false
		}
		pairs[key] = value
	}
	return pairs, true
}

// MemberID appends attributes to the base of a client id ("ip@pid#nanos"), keys in order, so that
// ParseMember(MemberID(base, a)).Attributes equals a. The base must hold an '@' and no attributes of its own. Keys and
// values are letters, digits, '.', '_' and '-', at least one: anything else could change the id's structure.
func MemberID(base string, attributes map[string]string) (string, error) {
	if len(attributes) == 0 {
		return base, nil
	}
	if !strings.Contains(base, "@") {
		return "", fmt.Errorf("client id %q has no '@': attributes can only follow ip@instance", base)
	}
	if len(ParseMember(base).Attributes) > 0 {
		return "", fmt.Errorf("client id %q carries attributes already", base)
	}
	var b strings.Builder
	b.WriteString(base)
	separator := byte('@')
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		value := attributes[key]
		if !isAttributeText(key) || !isAttributeText(value) {
			return "", fmt.Errorf("attribute %q=%q of member %s: use letters, digits, '.', '_' and '-' only", key, value, base)
		}
		b.WriteByte(separator)
		b.WriteString(key)
		b.WriteByte('=')
		b.WriteString(value)
		separator = ','
	}
	return b.String(), nil
}

func isAttributeText(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return s != ""
}
