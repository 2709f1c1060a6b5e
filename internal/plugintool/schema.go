package plugintool

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// writeSchema lists the keys of a component's config.
func writeSchema(w io.Writer, schema string) {
	var s struct {
		Properties map[string]struct {
			Type        any    `json:"type"`
			Description string `json:"description"`
			Default     any    `json:"default"`
			Enum        []any  `json:"enum"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if schema == "" {
		fmt.Fprintln(w, "  takes no config")
		return
	}
	if err := json.Unmarshal([]byte(schema), &s); err != nil {
		fmt.Fprintf(w, "  its config schema cannot be read: %v\n", err)
		return
	}
	if len(s.Properties) == 0 {
		fmt.Fprintln(w, "  takes no config")
	}
	for _, key := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[key]
		line := fmt.Sprintf("  %s", key)
		if p.Type != nil {
			line += fmt.Sprintf("  %v", p.Type)
		}
		if slices.Contains(s.Required, key) {
			line += "  required"
		}
		if p.Default != nil {
			line += fmt.Sprintf("  default %v", p.Default)
		}
		if len(p.Enum) > 0 {
			line += fmt.Sprintf("  one of %v", p.Enum)
		}
		if p.Description != "" {
			line += "  " + p.Description
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}
