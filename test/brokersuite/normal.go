package brokersuite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// normal makes answers comparable.
type normal struct {
	session *session
	words   *strings.Replacer
	millis  *regexp.Regexp
	hex     *regexp.Regexp
	clock   *regexp.Regexp
}

func (s *session) normal() *normal {
	pairs := []string{}
	for _, p := range s.peers {
		pairs = append(pairs, p.address(), "<client>")
	}
	pairs = append(pairs, s.broker, "<broker>", s.nameServer, "<name server>")
	return &normal{
		session: s, words: strings.NewReplacer(pairs...),
		millis: regexp.MustCompile(`\b1[6-9]\d{11}\b`), hex: regexp.MustCompile(`\b[0-9A-F]{32,56}\b`),
		clock: regexp.MustCompile(`\b\d{4}-\d\d-\d\d#\d\d:\d\d:\d\d:\d{3}\b`),
	}
}

// text replaces what differs from run to run.
func (n *normal) text(s string) string {
	s = n.words.Replace(s)
	s = n.clock.ReplaceAllString(n.millis.ReplaceAllString(s, "<millis>"), "<time>")
	return n.hex.ReplaceAllStringFunc(s, func(id string) string {
		if host, _, err := wire.ParseOffsetID(id); err == nil && host.String() == n.session.broker {
			return "<offset id>"
		}
		return "<unique id>"
	})
}

// shape changes what is written down of an answer.
type shape func(*view)

// view is an answer on its way to its lines.
type view struct {
	drop     func(path string) bool // members of a JSON body that are left out, by their path
	only     func(path string) bool // members of the body's first level, or of the named one, that stay
	messages bool
	pairs    bool // the body is text of the form name=value
	codeOnly bool // nothing but the code
	keys     []string
	keyNames []string // of the body's table only whether these are there
	unsorted bool     // messages come in no order that matters
	noFields []string // fields of which only their being there is written down
	remark   bool     // write down a success's remark
	// hideOffset leaves out a queue offset that other scenarios have moved.
	hideOffset bool
}

// answer is the lines of an answer to a request code.
func (n *normal) answer(code wire.RequestCode, a *wire.Command, shapes ...shape) []string {
	if a == nil {
		return []string{fmt.Sprintf("%d -> connection closed", code)}
	}
	v := &view{}
	switch code {
	case wire.ReqPullMessage, wire.ReqLitePullMessage:
		v.messages, v.remark = true, true
	case wire.ReqQueryMessage, wire.ReqViewMessageByID, wire.ReqPopMessage:
		v.messages = true
	default:
	}
	for _, f := range shapes {
		f(v)
	}
	lines := []string{fmt.Sprintf("%d -> %d %s", code, a.Code, a.ResponseCode())}
	if v.codeOnly {
		return lines
	}
	if a.Code != 0 || v.remark {
		lines = append(lines, n.remark(a.Remark))
	}
	if _, has := a.Ext.Lookup("queueOffset"); has && v.hideOffset {
		a = &wire.Command{Code: a.Code, Ext: slices.Clone(a.Ext), Body: a.Body}
		a.Ext.Set("queueOffset", "<queue offset>")
	}
	for _, k := range v.noFields {
		if _, has := a.Ext.Lookup(k); has {
			a = &wire.Command{Code: a.Code, Ext: slices.Clone(a.Ext), Body: a.Body}
			a.Ext.Set(k, "<value>")
		}
	}
	lines = append(lines, n.fields(a.Ext)...)
	return append(lines, n.body(a.Body, v)...)
}

func (n *normal) remark(r string) string {
	if strings.Contains(r, "Exception") || strings.Contains(r, "java.lang.") || strings.Contains(r, "org.apache.") {
		return remarkException
	}
	return fmt.Sprintf("remark %q", n.text(r))
}

func (n *normal) fields(f wire.Fields) []string {
	if f == nil {
		return nil
	}
	m := f.Map()
	if len(m) == 0 {
		return []string{"fields {}"}
	}
	var lines []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		lines = append(lines, fmt.Sprintf("field %s=%s", k, n.value(k, m[k])))
	}
	return lines
}

func (n *normal) value(key, v string) string {
	switch key {
	case "commitLogOffset", "tranStateTableOffset", "indexLastUpdatePhyoffset":
		return "<log offset>"
	case "recallHandle":
		return "<handle>"
	case "properties":
		return n.properties([]byte(v))
	}
	return n.text(v)
}

func (n *normal) body(body []byte, v *view) []string {
	switch {
	case len(body) == 0:
		return nil
	case v.messages:
		lines := n.messages(body)
		if v.unsorted {
			slices.Sort(lines)
		}
		return lines
	case v.pairs:
		return n.pairLines(body, v)
	}
	std, err := wire.Normalize(body)
	if err != nil {
		return []string{fmt.Sprintf("body %q", n.text(string(body)))}
	}
	d := json.NewDecoder(bytes.NewReader(std))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return []string{"body that is no JSON: " + err.Error()}
	}
	if v.keyNames != nil {
		return tableKeys(tree, v.keyNames)
	}
	var lines []string
	n.tree("", tree, v, &lines)
	slices.Sort(lines)
	return lines
}

// tree writes JSON as one line for each leaf, so that two bodies differ in lines and not as a whole.
func (n *normal) tree(path string, value any, v *view, lines *[]string) {
	if v.drop != nil && v.drop(path) {
		return
	}
	switch t := value.(type) {
	case map[string]any:
		kept := 0
		for k, e := range t {
			if v.only != nil && !v.only(path+"/"+k) {
				continue
			}
			kept++
			n.tree(path+"/"+n.text(sortedKey(k)), e, v, lines)
		}
		if kept == 0 { // one with nothing but others' members is as an empty one
			*lines = append(*lines, "body "+path+" {}")
		}
	case []any:
		if len(t) == 0 {
			*lines = append(*lines, "body "+path+" []")
		}
		for _, e := range t {
			if s, ok := e.(string); ok && v.only != nil && !v.only(path+"/"+s) {
				continue
			}
			n.element(path, e, v, lines)
		}
	default:
		text, err := json.Marshal(t)
		if err != nil {
			n.session.tb.Fatal(err)
		}
		*lines = append(*lines, "body "+path+" "+n.text(string(text)))
	}
}

// tableKeys writes down which of the wanted entries a table (KVTable) has.
func tableKeys(tree any, wanted []string) (lines []string) {
	body, _ := tree.(map[string]any)
	table, _ := body["table"].(map[string]any)
	for _, k := range wanted {
		_, has := table[k]
		lines = append(lines, fmt.Sprintf("entry %s %t", k, has))
	}
	return lines
}

// sortedMessages is for answers whose messages come in the order of an index.
func sortedMessages(v *view) { v.unsorted = true }

// noIndexTime hides how far the index is, which other scenarios move.
func noIndexTime(v *view) {
	v.noFields = []string{"indexLastUpdateTimestamp", "indexLastUpdatePhyoffset"}
}

// onlyCode is for answers that tell how a Java store is built.
func onlyCode(v *view) { v.codeOnly = true }

// sortedKey gives a key that is an object, as queues are, an order of its own.
func sortedKey(k string) string {
	if !strings.HasPrefix(k, "{") {
		return k
	}
	var members map[string]any
	if json.Unmarshal([]byte(k), &members) != nil {
		return k
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		parts = append(parts, fmt.Sprintf("%s=%v", name, members[name]))
	}
	return "<" + strings.Join(parts, " ") + ">"
}

// element writes an element of a list as one line, since lists have no order that matters.
func (n *normal) element(path string, e any, v *view, lines *[]string) {
	var inner []string
	n.tree("", e, v, &inner)
	slices.Sort(inner)
	for i := range inner {
		inner[i] = strings.TrimPrefix(inner[i], "body ")
	}
	*lines = append(*lines, "body "+path+"[] "+strings.Join(inner, " "))
}

func (n *normal) pairLines(body []byte, v *view) []string {
	var lines []string
	for l := range strings.SplitSeq(string(body), "\n") {
		key, value, _ := strings.Cut(l, "=")
		if slices.Contains(v.keys, key) {
			lines = append(lines, fmt.Sprintf("setting %s=%s", key, n.text(value)))
		}
	}
	slices.Sort(lines)
	return lines
}

func (n *normal) messages(body []byte) []string {
	var lines []string
	for len(body) > 0 {
		var m wire.Message
		size, err := m.Decode(body)
		if err != nil {
			return append(lines, "message that cannot be read: "+err.Error())
		}
		lines, body = append(lines, n.message(&m)), body[size:]
	}
	return lines
}

func (n *normal) message(m *wire.Message) string {
	crc := ""
	if m.CheckCRC() != nil {
		crc = " crc=wrong"
	}
	prepared := "0"
	if m.PreparedTransactionOffset != 0 {
		prepared = "<log offset>"
	}
	body := fmt.Sprintf("%q", m.Body)
	if len(m.Body) > 200 {
		body = fmt.Sprintf("%d bytes", len(m.Body))
	}
	return fmt.Sprintf("message %s/%d@%d body=%s flag=%d sysflag=%d attempts=%d prepared=%s wide=%t born=%s store=%s%s {%s}",
		m.Topic, m.QueueID, m.QueueOffset, body, m.Flag, m.SysFlag, m.ReconsumeTimes, prepared, m.WideTopic,
		n.text(m.BornHost.String()), n.text(m.StoreHost.String()), crc, n.properties(m.Properties))
}

// properties is the text form of properties in an order of its own: a real broker's is that of a hash map.
func (n *normal) properties(text []byte) string {
	var props []string
	for k, v := range wire.Properties(text) {
		props = append(props, fmt.Sprintf("%s=%s", k, n.property(string(k), string(v))))
	}
	slices.Sort(props)
	return n.text(strings.Join(props, "; "))
}

func (n *normal) property(key, v string) string {
	switch key {
	case "TRAN_PREPARED_QUEUE_OFFSET", "TIMER_ENQUEUE_MS", "TIMER_DEQUEUE_MS":
		return "<number>"
	}
	return fmt.Sprintf("%q", v)
}
