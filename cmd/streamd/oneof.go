package main

import (
	"fmt"
	"slices"
	"strings"
)

// oneOf is a flag that takes one of a few words.
type oneOf struct {
	value *string
	words []string
}

func newOneOf(value *string, preset string, words ...string) *oneOf {
	*value = preset
	return &oneOf{value, words}
}

func (o *oneOf) String() string {
	if o.value == nil {
		return ""
	}
	return *o.value
}

// Type is what help shows.
func (o *oneOf) Type() string { return "string" }

// Set is called with the flag's value.
func (o *oneOf) Set(v string) error {
	if !slices.Contains(o.words, v) {
		return fmt.Errorf("%q is not one of %s", v, strings.Join(o.words, ", "))
	}
	*o.value = v
	return nil
}
