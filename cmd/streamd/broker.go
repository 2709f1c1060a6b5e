package main

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/streamd/streamd/internal/buildinfo"
	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/daemon"
)

// brokerKeys are the flags that set a key of brokers[].embedded.
func brokerKeys() map[string]string {
	return map[string]string{
		"listen": "listen", "advertise": "advertise", "data": "data_dir", "flush": "flush", "retention-age": "retention.age",
		"retention-size": "retention.size", "tls-cert": "tls.cert", "tls-key": "tls.key", "tls-client-ca": "tls.client_ca",
		"acl": "acl", "topic": "topics", "delay-levels": "delay_levels",
	}
}

func newBroker() *cobra.Command {
	var log config.Log
	cmd := &cobra.Command{
		Use:   "broker",
		Short: "Run a RocketMQ broker with its name server, alone",
		Long: `broker runs the embedded broker as a process of its own: a name server and a broker behind one listener, which RocketMQ's
remoting clients for Java and Go, mqadmin and streamd use. It is one machine's; docs/embedded-broker.md says what it is for.

The first SIGTERM or SIGINT stops it: connections are cut, everything is flushed, exit 0. A second one ends it at once, with
143 or 130. SIGHUP reads the files of --acl and --tls-… again. Exit 2: a flag is wrong, or a file's content. Exit 3: port,
folder, file or name cannot be had; the same command may work later.`,
		Example: `  streamd broker --listen 127.0.0.1:9876 --data ./data --topic Orders:8
  streamd broker --listen 0.0.0.0:9876 --advertise mq.example.org:9876 --retention-age 72h --acl plain_acl.yml`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := config.EmbeddedFrom(brokerFlags(cmd.Flags()))
			if err != nil {
				return err
			}
			signals := make(chan os.Signal, 4)
			signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer signal.Stop(signals)
			return daemon.RunBroker(cmd.Context(), daemon.BrokerOptions{
				Broker: settings, Log: cmd.ErrOrStderr(), LogConfig: log, Out: cmd.OutOrStdout(),
				Version: buildinfo.Read().Version, Signals: signals,
			})
		},
	}
	f := cmd.Flags()
	f.String("listen", "127.0.0.1:9876", "address to listen on")
	f.String("advertise", "", "host:port that clients are told; default: the address listened on")
	f.String("data", "./data", "folder of messages, offsets, topics and groups; empty: in memory, gone with the process")
	f.String("flush", "sync", "when a message is acknowledged: sync, when the disk has it; async, when the operating system has it")
	f.String("retention-age", "", "drop messages that are older, such as 72h; default: none")
	f.String("retention-size", "", "drop the oldest messages when all take more, such as 10GiB; default: none")
	f.String("tls-cert", "", "certificate in PEM: clients must speak TLS then; needs --tls-key")
	f.String("tls-key", "", "private key of the certificate, in PEM")
	f.String("tls-client-ca", "", "authorities in PEM: clients must have a certificate of one")
	f.String("acl", "", "who may do what: a file in the format of RocketMQ's plain_acl.yml; default: everybody everything")
	f.StringSlice("topic", nil, "topic to make when it is not there, NAME or NAME:QUEUES; may be repeated")
	f.String("delay-levels", "", "delays of the levels 1, 2, … such as 1s,5s,10s; default: RocketMQ's 18")
	f.Var(newOneOf(&log.Level, "info", "debug", "info", "warn", "error"), "log-level", "least level that is logged: debug, info, warn, error")
	f.Var(newOneOf(&log.Format, "auto", "auto", "text", "json"), "log-format", "auto, text or json")
	return cmd
}

// brokerFlags are the flags that were given, as keys of brokers[].embedded.
func brokerFlags(f *pflag.FlagSet) []config.Flag {
	var flags []config.Flag
	f.Visit(func(given *pflag.Flag) {
		key, ok := brokerKeys()[given.Name]
		if !ok {
			return
		}
		value := given.Value.String()
		if list, ok := given.Value.(pflag.SliceValue); ok {
			value = strings.Join(list.GetSlice(), ",")
		}
		flags = append(flags, config.Flag{Key: key, Name: fmt.Sprintf("--%s", given.Name), Value: value})
	})
	slices.SortFunc(flags, func(a, b config.Flag) int { return strings.Compare(a.Key, b.Key) })
	return flags
}
