package pluginhost

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/streamd/streamd/sdk/pluginv1"
)

// PluginSpec is one entry under plugins:.
type PluginSpec struct {
	Name      string
	Command   []string          // argv; [0] is a path, or a name in PATH
	Dir       string            // working directory; "" = the host's
	Checksum  string            // "sha256:..." of the file Command[0] names; "" = any
	Instances int               // processes that share the lanes; 0 = 1
	Env       map[string]string // added to the short list that every plugin gets
	TLSOff    bool              // plain gRPC over the private socket; the default is mutual TLS
	Datapath  Datapath          // what lanes' frames take
	Memory    int64             // bytes a process and its children may hold; 0 = no limit
	// StartTimeout bounds the time from exec to the handshake; 0 = 10 s.
	StartTimeout time.Duration
}

// Datapath is what the frames of a plugin's lanes take.
type Datapath uint8

// The data paths.
const (
	DatapathAuto       Datapath = iota // a socket for each lane where the plugin takes them, else gRPC
	DatapathGRPC                       // the gRPC call that opens the lane
	DatapathSocketPair                 // as DatapathAuto, and a plugin that takes no sockets is warned of
)

// defaultStart is enough for a compiled plugin; a JVM or Python needs it raised.
const defaultStart = 10 * time.Second

func (s PluginSpec) withDefaults() PluginSpec {
	s.Instances = max(1, s.Instances)
	if s.StartTimeout <= 0 {
		s.StartTimeout = defaultStart
	}
	return s
}

func (s PluginSpec) validate() error {
	switch {
	case s.Name == "":
		return errors.New("a plugin needs a name")
	case len(s.Command) == 0:
		return fmt.Errorf("plugin %s has no command; write the path of its binary there", s.Name)
	case s.Memory < 0:
		return fmt.Errorf("plugin %s has a memory limit of %d bytes; write a positive one or none", s.Name, s.Memory)
	}
	return nil
}

func (s PluginSpec) equal(o PluginSpec) bool {
	return s.Name == o.Name && slices.Equal(s.Command, o.Command) && s.Dir == o.Dir && s.Checksum == o.Checksum &&
		s.Instances == o.Instances && maps.Equal(s.Env, o.Env) && s.TLSOff == o.TLSOff && s.Datapath == o.Datapath && s.Memory == o.Memory && s.StartTimeout == o.StartTimeout
}

// HandlerSpec is one configured use of a plugin's component: an entry under handlers:, or a stream's strategy.
type HandlerSpec struct {
	Name   string
	Plugin string
	Use    string                  // component; "" when the plugin has only one, of the kind
	Kind   pluginv1.Component_Kind // what the component must be; unspecified = either
	Config []byte                  // JSON; empty = {}
}

// hash identifies a config as delivered.
func (s HandlerSpec) hash() string {
	sum := sha256.Sum256(append([]byte(s.Use+"\x00"), s.Config...))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (s HandlerSpec) config() []byte {
	if len(s.Config) == 0 {
		return []byte("{}")
	}
	return s.Config
}

// Diagnostic is what a plugin says about a config.
type Diagnostic struct {
	Warning bool   // else an error: the config is not taken
	Pointer string // JSON pointer into the config
	Text    string
	Hint    string // what to write instead
}

// String is for logs and errors.
func (d Diagnostic) String() string {
	out := d.Text
	if d.Pointer != "" {
		out = d.Pointer + ": " + out
	}
	if d.Hint != "" {
		out += "; " + d.Hint
	}
	return out
}

// Choose finds the component that a spec means among those that a plugin offers. The error says what it offers instead.
func Choose(components []*pluginv1.Component, spec HandlerSpec) (*pluginv1.Component, error) {
	var fit []*pluginv1.Component
	names := make([]string, 0, len(components))
	for _, c := range components {
		right := spec.Kind == pluginv1.Component_KIND_UNSPECIFIED || c.GetKind() == spec.Kind
		switch {
		case c.GetName() == spec.Use && !right:
			return nil, fmt.Errorf("%w: %s of plugin %s is a %s, and is used as a %s", errKind, spec.Use, spec.Plugin, kindName(c.GetKind()), kindName(spec.Kind))
		case c.GetName() == spec.Use:
			return c, nil
		case right:
			fit = append(fit, c)
		}
		names = append(names, kindName(c.GetKind())+" "+c.GetName())
	}
	offers := strings.Join(names, ", ")
	switch {
	case len(components) == 0:
		return nil, fmt.Errorf("plugin %s offers no component", spec.Plugin)
	case spec.Use != "":
		return nil, fmt.Errorf("plugin %s offers no component %q; it offers %s", spec.Plugin, spec.Use, offers)
	case len(fit) == 0:
		return nil, fmt.Errorf("%w: plugin %s offers no %s; it offers %s", errKind, spec.Plugin, kindName(spec.Kind), offers)
	case len(fit) > 1:
		return nil, fmt.Errorf("plugin %s offers several components (%s); name one of them with use", spec.Plugin, offers)
	}
	return fit[0], nil
}
