// Command faulty is a plugin for the host's tests that misbehaves on demand. Its first argument chooses how the process
// behaves; what a record's body says chooses how it is answered.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/streamd/streamd/internal/border"
	"github.com/streamd/streamd/sdk/pluginv1"
)

func main() {
	mode := "ok"
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	before(mode)
	link, err := border.NewLink()
	if err != nil {
		fatal(err)
	}
	server := &server{mode: mode}
	if err := server.openPage(); err != nil {
		fatal(err)
	}
	if mode == "bare" {
		fatal(server.serveBare())
	}
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig:  goplugin.HandshakeConfig{MagicCookieKey: border.CookieKey, MagicCookieValue: cookie(mode)},
		VersionedPlugins: map[int]goplugin.PluginSet{version(mode): {border.PluginName: &adapter{server: server}}},
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(options, link.ServerOptions()...)...)
		},
		Logger: quiet(),
	})
	if mode == "stubborn" {
		forever()
	}
}

// forever waits for something: without cgo Go ends a program in which nothing can ever happen.
func forever() { <-time.NewTimer(24 * time.Hour).C }

func fatal(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func cookie(mode string) string {
	if mode == "wrong-magic" {
		return "another-application"
	}
	return border.CookieValue
}

func version(mode string) int {
	if mode == "wrong-version" {
		return 99
	}
	return border.ProtocolVersion
}

// serveBare is a plugin without go-plugin: no health, controller, broker or stdio service.
func (s *server) serveBare() error {
	path := filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "s")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err
	}
	bare := grpc.NewServer()
	pluginv1.RegisterPluginServer(bare, s)
	fmt.Printf("1|1|unix|%s|grpc\n", path)
	return bare.Serve(listener)
}

// before does what goes wrong before the handshake.
func before(mode string) {
	switch mode {
	case "exits":
		fmt.Fprintln(os.Stderr, "no license found")
		os.Exit(7)
	case "prints":
		fmt.Println("Welcome to acme!")
	case "hangs":
		forever()
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "environment":
		fmt.Fprintln(os.Stderr, "ENV "+strings.Join(os.Environ(), " "))
	case "grandchild":
		child := exec.CommandContext(context.Background(), "sleep", "300")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			fatal(err)
		}
	}
}

// noise does what goes wrong on the pipes once the process serves.
func noise(mode string) {
	raw := os.NewFile(1, "stdout") // go-plugin replaces os.Stdout
	switch mode {
	case "floods":
		line := []byte(strings.Repeat("x", 99) + "\n")
		stderr := os.NewFile(2, "stderr")
		for range 100_000 {
			_, _ = stderr.Write(line)
		}
		fmt.Fprintln(os.Stderr, "printed after the handshake")
	case "long-line":
		_, _ = raw.Write(append(bytes.Repeat([]byte("y"), 70<<10), '\n'))
		_, _ = raw.Write(bytes.Repeat([]byte("z"), 300<<10))
	case "bombs":
		_, _ = io.WriteString(os.NewFile(2, "stderr"),
			"{\"@message\":5}\n{\"@level\":{},\"@message\":[1],\"@timestamp\":7}\n{\"@level\":\"info\",\"@message\":null}\n")
	}
}

type adapter struct {
	goplugin.NetRPCUnsupportedPlugin
	server *server
}

func (a *adapter) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error { //nolint:unparam // the interface is go-plugin's
	pluginv1.RegisterPluginServer(s, a.server)
	return nil
}

func (*adapter) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, nil
}
