package allocate

import (
	"fmt"
	"slices"
	"strings"
)

// PeerKind tells what kind of client a member is.
type PeerKind uint8

// The kinds of peers. A member that denied or did not answer 307 is unknown, which never means that it agrees.
const (
	PeerUnknown PeerKind = iota
	PeerStreamd
	PeerJava
	PeerGo
)

// Peer is what a member's running info (307) says of it.
type Peer struct {
	ClientID string
	Kind     PeerKind
	Strategy string            // config name of a Java or Go peer's strategy; empty = unknown or its own
	Digests  map[string]Digest // of a streamd peer, by topic
}

// Names of properties in the running info of streamd members; the engine writes them, PeerOf reads them.
const (
	// PropertyStreamd holds streamd's version and marks a member as streamd's.
	PropertyStreamd = "streamd.version"
	// PropertyDigestPrefix and the topic name the property that holds a Digest.
	PropertyDigestPrefix = "streamd.digest."
)

// PeerOf reads the properties of a member's running info (307). A Java client lists its configuration, with the class of
// its strategy; a Go client does not. It returns an error, with what could be read, when a digest is garbled.
func PeerOf(clientID string, properties map[string]string) (Peer, error) {
	p := Peer{ClientID: clientID}
	if properties[PropertyStreamd] != "" {
		p.Kind = PeerStreamd
		var failed error
		for name, value := range properties {
			topic, ok := strings.CutPrefix(name, PropertyDigestPrefix)
			if !ok {
				continue
			}
			d, err := ParseDigest(value)
			if err != nil {
				failed = fmt.Errorf("member %s, topic %s: %w", clientID, topic, err)
				continue
			}
			if p.Digests == nil {
				p.Digests = map[string]Digest{}
			}
			p.Digests[topic] = d
		}
		return p, failed
	}
	if class, ok := properties["allocateMessageQueueStrategy"]; ok {
		p.Kind, p.Strategy = PeerJava, strategyOfJavaClass(class)
		return p, nil
	}
	if len(properties) > 0 {
		// Go clients report no strategy; averagely is what they use unless the application changed it.
		p.Kind, p.Strategy = PeerGo, NameAveragely
	}
	return p, nil
}

// strategyOfJavaClass reads "org.apache…AllocateMessageQueueAveragely@48bef49". A class of the application has no name here.
func strategyOfJavaClass(text string) string {
	class, _, _ := strings.Cut(text, "@")
	class = class[strings.LastIndex(class, ".")+1:]
	switch class {
	case "AllocateMessageQueueAveragely":
		return NameAveragely
	case "AllocateMessageQueueAveragelyByCircle":
		return NameAveragelyByCircle
	case "AllocateMessageQueueByConfig":
		return NameConfig
	case "AllocateMessageQueueByMachineRoom":
		return NameMachineRoom
	case "AllocateMachineRoomNearby":
		return NameMachineRoomNearby
	case "AllocateMessageQueueConsistentHash":
		return NameConsistentHash
	}
	return ""
}

// MixedGroupError means that a strategy must not be applied with the members that are in the group: they compute
// otherwise, so queues would be read twice or not at all.
type MixedGroupError struct {
	Strategy string
	Members  []string // whom the strategy does not fit
	Unknown  bool     // those members are of an unknown kind
	Use      string   // the strategy that those members report; empty when they report none, or unlike ones
}

// Error names the members and the way out.
func (e *MixedGroupError) Error() string {
	who := strings.Join(e.Members[:min(len(e.Members), 5)], ", ")
	if len(e.Members) > 5 {
		who += fmt.Sprintf(" and %d more", len(e.Members)-5)
	}
	if e.Unknown {
		return fmt.Sprintf("strategy %s is not applied: members %s do not tell what they run; only strategies that equal Java's are safe with them, "+
			"use averagely or allow code 307 for the group", e.Strategy, who)
	}
	if e.Use == "" {
		return fmt.Sprintf("strategy %s is not applied: members %s compute otherwise and do not agree on a strategy that streamd knows; "+
			"set the same one of RocketMQ's strategies on every member", e.Strategy, who)
	}
	return fmt.Sprintf("strategy %s is not applied: members %s use %s; set allocation.strategy: %s, or %s on them if they can", e.Strategy, who, e.Use, e.Use, e.Strategy)
}

// CheckPeers tells whether strategy may be applied with these other members in the group: with a Java or Go member only
// a strategy that computes exactly what that client computes, and that this client does not report to be another one;
// with an unknown member only a Java-exact one. The error is a *MixedGroupError whose Use is the fallback. Members that
// are all streamd's are compared by digest (AgreeInvalid, Disagree), not here.
func CheckPeers(strategy string, peers []Peer) error {
	var foreign, unknown []string
	uses := map[string]bool{}
	for _, p := range peers {
		switch p.Kind {
		case PeerJava, PeerGo:
			uses[p.Strategy] = true
			if !fits(strategy, p) {
				foreign = append(foreign, p.ClientID)
			}
		case PeerUnknown:
			if !JavaExact(strategy) {
				unknown = append(unknown, p.ClientID)
			}
		case PeerStreamd:
		}
	}
	if len(foreign) > 0 {
		e := &MixedGroupError{Strategy: strategy, Members: foreign}
		for use := range uses {
			if len(uses) == 1 {
				e.Use = use
			}
		}
		return e
	}
	if len(unknown) > 0 {
		return &MixedGroupError{Strategy: strategy, Members: unknown, Unknown: true}
	}
	return nil
}

func fits(strategy string, p Peer) bool {
	exact := JavaExact(strategy)
	if p.Kind == PeerGo {
		// What a Go client uses is a guess, so any strategy in which it equals Java fits.
		return GoExact(strategy)
	}
	return exact && p.Strategy == strategy
}

// Disagree returns the ids of the streamd peers that show another result than own for the same topic and input, or
// another identity. A peer without a digest, or with one of another input, says nothing yet.
func Disagree(own Digest, topic string, peers []Peer) []string {
	var out []string
	for _, p := range peers {
		d, ok := p.Digests[topic]
		if !ok {
			continue
		}
		differs := d.Input == own.Input && d.Result != own.Result && d.Result != "" && own.Result != ""
		if d.Identity != own.Identity || differs {
			out = append(out, p.ClientID)
		}
	}
	slices.Sort(out)
	return out
}

// AgreeInvalid tells whether the group may go over to the fallback: own is invalid, and every other member listed in the
// question is a streamd member that shows the very same digest for the topic: strategy, version, config, input, result
// and broken rule. A member that is unknown, silent or foreign never agrees.
func AgreeInvalid(own Digest, in Input, peers []Peer) bool {
	if own.Invalid == "" {
		return false
	}
	shown := make(map[string]Digest, len(peers))
	for _, p := range peers {
		if d, ok := p.Digests[in.Topic]; ok && p.Kind == PeerStreamd {
			shown[p.ClientID] = d
		}
	}
	for i, m := range in.Members {
		if i == in.Self {
			continue
		}
		if d, ok := shown[m.ClientID]; !ok || d != own {
			return false
		}
	}
	return true
}
