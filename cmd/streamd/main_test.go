package main

import (
	"context"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets this test binary be the commands that scripts run: streamd itself, and plugins as any author writes them.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"streamd": func() { os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
		"orders":  servePlugin,
	})
}
