package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	topic  = "Orders"
	group  = "billing"
	queues = 8

	failOnce = 150 // one order in so many fails on its first attempt
	reject   = 400 // one order in so many is of an unknown customer
)

// delays are the broker's delay levels, made short: a real broker's first retry comes after 10 s.
const delays = "1s 2s 3s 4s 5s 6s 7s 8s 9s 10s 11s 12s 13s 14s 15s 16s 17s 18s"

// configText is the one config of both members; what differs comes from flags.
const configText = `# Written by the demo. streamd run -c THIS --member m1 --state-dir DIR
brokers:
  - {name: demo, name_servers: [%q]}
plugins:
  - {name: orders, command: [%q]}
  - {name: nearest, command: [%q]}
handlers:
  - {name: billing, plugin: orders, config: {fail_once: %d, reject: %d, delay: 1s}}
streams:
  - name: orders
    group: %s
    subscribe: [{topic: %s}]
    start_from: first
    allocation: {plugin: nearest, config: {zones: [{name: a, brokers: [broker-a]}]}}
    retry: {levels: [%s]}     # as this broker has them
attributes: {zone: a}         # what the strategy reads of a member
log: {level: debug}           # so that the demo can count each handled order
`

func (d *demo) writeConfig(nameServer string) error {
	text := fmt.Sprintf(configText, nameServer, filepath.Join(d.o.bin, "plugins", "orders"), filepath.Join(d.o.bin, "plugins", "nearest"),
		failOnce, reject, group, topic, strings.ReplaceAll(delays, " ", ", "))
	if err := os.WriteFile(d.config, []byte(text), 0o600); err != nil {
		return fmt.Errorf("writing the config: %w", err)
	}
	return nil
}
