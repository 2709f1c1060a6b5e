// Command streamd consumes RocketMQ through handler and strategy plugins.
//
// One file a command; none holds logic: commands read flags, call a package, and print. Exit codes are those of
// docs/reference/exit-codes.md.
package main

import (
	"context"
	"io"
	"os"
)

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is main with its surroundings passed in.
func run(ctx context.Context, args []string, in io.Reader, out, talk io.Writer) int {
	root := newRoot() //nolint:contextcheck // commands take theirs from cobra
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(talk)
	return report(root.ErrOrStderr(), root.ExecuteContext(ctx))
}
