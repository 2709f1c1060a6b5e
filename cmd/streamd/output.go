package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// output is the -o flag.
type output struct{ format string }

func (o *output) bind(cmd *cobra.Command) {
	cmd.Flags().VarP(o, "output", "o", "text for people, json for programs")
	o.format = "text"
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

func (o *output) String() string { return o.format }
func (o *output) Type() string   { return "text|json" }

// Set is called with the flag's value.
func (o *output) Set(v string) error {
	if v != "text" && v != "json" {
		return fmt.Errorf("%q is no output format; write text or json", v)
	}
	o.format = v
	return nil
}

func (o *output) json() bool { return o.format == "json" }

// printJSON writes one indented document.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("writing output: %w", err)
	}
	return nil
}
