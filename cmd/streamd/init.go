package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/exitcode"
	"github.com/streamd/streamd/internal/fromgroup"
	"github.com/streamd/streamd/internal/groupview"
	"github.com/streamd/streamd/internal/rocketmq"
)

// initFlags is the command line of init.
type initFlags struct {
	cluster clusterFlags
	out     output
	from    string
	group   string
	topics  []string
	file    string
	force   bool
}

func newInit() *cobra.Command {
	var i initFlags
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a commented config: for a new group, or as a member of a live one",
		Long: `init writes a config to standard output or to --file. With --from-group it asks the brokers and the members of a group what
they subscribe to and how they are set: the config joins that group as one more member, each line with the place that it was
read from. It joins nothing, changes nothing, and writes no secret. What could not be read, and where members differ, stands
in the file and on standard error.`,
		Example: `  streamd init --group billing --topic Orders -n mq-ns1:9876 --file streamd.yaml
  streamd init --from-group billing -n mq-ns1:9876 --file streamd.yaml
  streamd init --from-group billing -c cluster.yaml --topic Orders`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return i.run(cmd) },
	}
	i.cluster.bind(cmd, 30*time.Second)
	i.out.bind(cmd)
	f := cmd.Flags()
	f.StringVar(&i.from, "from-group", "", "write a member of this group, as the members that are online are set")
	f.StringVarP(&i.group, "group", "g", "", "group of the new config, without --from-group")
	f.StringArrayVarP(&i.topics, "topic", "t", nil, "topic; repeatable. With --from-group one more to look at, for a group that nobody is in")
	f.StringVarP(&i.file, "file", "f", "", "write the config to this file, which must not be there yet")
	f.BoolVar(&i.force, "force", false, "replace the file if it is there")
	return cmd
}

func (i *initFlags) run(cmd *cobra.Command) error {
	usage := func(err error) error { return usageError{cmd.CommandPath(), err} }
	switch {
	case i.from != "" && i.group != "":
		return usage(errors.New("--group names a new group and --from-group one that is there; write one of them"))
	case cmd.Flags().Changed("from-group") && i.from == "":
		return usage(errors.New("--from-group is empty; write the name of a group"))
	case i.force && i.file == "":
		return usage(errors.New("--force replaces a file, and --file is not there"))
	}
	if err := i.free(); err != nil {
		return exitcode.With(exitcode.Usage, err)
	}
	draft, facts, err := i.draft(cmd)
	if err != nil {
		return err
	}
	for _, w := range draft.Warnings {
		fmt.Fprintf(cmd.ErrOrStderr(), "look: %s\n", w)
	}
	return i.write(cmd, draft, facts)
}

// free tells of a file in the way before the cluster is asked; writing looks again.
func (i *initFlags) free() error {
	if i.file == "" || i.force {
		return nil
	}
	if _, err := os.Lstat(i.file); err == nil {
		return fmt.Errorf("%s exists; write another --file, or --force to replace it", i.file)
	}
	return nil
}

func (i *initFlags) draft(cmd *cobra.Command) (*fromgroup.Draft, *fromgroup.Facts, error) {
	b, err := i.broker(cmd)
	if err != nil {
		return nil, nil, err
	}
	if i.from == "" {
		draft, err := fromgroup.New(b, i.group, i.topics)
		if err != nil {
			return nil, nil, usageError{cmd.CommandPath(), err}
		}
		return draft, nil, nil
	}
	if err := groupview.CheckNames(i.from, i.topics); err != nil {
		return nil, nil, usageError{cmd.CommandPath(), err}
	}
	var facts *fromgroup.Facts
	err = i.cluster.with(cmd, func(ctx context.Context, client *rocketmq.Client) error {
		facts, err = fromgroup.Read(ctx, client, i.from, i.topics)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return facts.Draft(b), facts, nil
}

// broker is the cluster as the config will name it.
func (i *initFlags) broker(cmd *cobra.Command) (fromgroup.Broker, error) {
	target, err := i.cluster.target(i.cluster.logger(cmd.ErrOrStderr()))
	if errors.Is(err, errNoCluster) && i.from == "" {
		return fromgroup.Broker{NameServers: []string{"127.0.0.1:9876"}, Source: "host:port of each name server; change it"}, nil
	}
	if err != nil {
		return fromgroup.Broker{}, err
	}
	b := fromgroup.Broker{NameServers: target.NameServers, Namespace: target.Namespace, NamespaceV2: target.NamespaceV2, HeartbeatV2: target.ShortHeartbeats}
	if len(i.cluster.paths) == 0 {
		return b, nil
	}
	err = i.trust(&b)
	return b, err
}

// trust takes name, keys and certificates from the broker of the config. Secrets stay what the config has for them: a
// reference, or nothing that could be written.
func (i *initFlags) trust(b *fromgroup.Broker) error {
	loaded, err := config.Load(config.Options{Paths: i.cluster.paths})
	if err != nil {
		return err
	}
	doc, err := loaded.JSON()
	if err != nil {
		return err
	}
	var shown struct {
		Brokers []struct {
			Name      string `json:"name"`
			AccessKey string `json:"access_key"`
			SecretKey string `json:"secret_key"`
		} `json:"brokers"`
	}
	if err := json.Unmarshal(doc, &shown); err != nil {
		return fmt.Errorf("reading the config's brokers: %w", err)
	}
	brokers := loaded.Config.Brokers
	at := max(0, slices.IndexFunc(brokers, func(one config.Broker) bool { return one.Name == i.cluster.broker }))
	b.Name, b.TLS = brokers[at].Name, brokers[at].TLS
	b.AccessKey, b.SecretKey = shown.Brokers[at].AccessKey, shown.Brokers[at].SecretKey
	return nil
}

func (i *initFlags) write(cmd *cobra.Command, draft *fromgroup.Draft, facts *fromgroup.Facts) error {
	if i.file != "" {
		if err := writeNew(i.file, draft.Text, i.force); err != nil {
			return err
		}
	}
	switch {
	case i.out.json():
		return printJSON(cmd.OutOrStdout(), written{draft, i.file, facts})
	case i.file != "":
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "wrote %s; next: put a handler in, then\n  streamd validate -c %s\n  streamd run -c %s\n", i.file, i.file, i.file)
		return err
	}
	_, err := strings.NewReader(draft.Text).WriteTo(cmd.OutOrStdout())
	return err
}

// written is what init -o json prints.
type written struct {
	*fromgroup.Draft
	File  string           `json:"file,omitempty"`
	Group *fromgroup.Facts `json:"group,omitempty"`
}

// writeNew writes a file that only its owner may read, and replaces one only if told to.
func writeNew(path, text string, replace bool) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if replace {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(path, flags, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return exitcode.With(exitcode.Usage, fmt.Errorf("%s exists; write another --file, or --force to replace it", path))
	case err != nil:
		return exitcode.With(exitcode.Environment, fmt.Errorf("writing the config: %w", err))
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return exitcode.With(exitcode.Environment, fmt.Errorf("writing the config: %w", err))
	}
	return nil
}
