package broker

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// The tables in which the store keeps what is no message. A table's values are kept in memory as well, which is where they
// are read; each change goes to the store before its request is answered.
const (
	tableTopics    = "topics"
	tableGroups    = "groups"
	tableOffsets   = "offsets"
	tableForbidden = "forbidden"
	tableKV        = "kv"
	tableChecks    = "checks"
	tableVersions  = "versions"
	tableSettings  = "settings"
	tableNaming    = "names" // the name server's settings
)

// saver stores a value of one table; nil removes it.
type saver func(key string, value []byte)

func (b *Broker) saver(table string) saver {
	return func(key string, value []byte) { b.storage.set(table, key, value) }
}

// wireTables lets the tables store what changes in them.
func (b *Broker) wireTables(own bool) {
	versions := b.saver(tableVersions)
	b.topics.save, b.topics.saveVersion = b.saver(tableTopics), versionSaver(versions, tableTopics)
	b.groups.save, b.groups.saveVersion = b.saver(tableGroups), versionSaver(versions, tableGroups)
	b.offsets.save = b.saver(tableOffsets)
	b.forbidden.save = b.saver(tableForbidden)
	b.halves.save = b.saver(tableChecks)
	if own {
		b.names.save, b.names.saveSetting = b.saver(tableKV), b.saver(tableNaming)
	}
}

func versionSaver(save saver, table string) func(int64) {
	return func(version int64) { save(table, strconv.AppendInt(nil, version, 10)) }
}

// load reads the tables from the store, which it is told when the store was opened.
func (b *Broker) load() error {
	versions, err := b.storage.table(tableVersions)
	if err != nil {
		return err
	}
	for _, t := range []struct {
		name string
		load func(stored map[string][]byte) error
	}{
		{tableTopics, func(stored map[string][]byte) error { return b.topics.load(stored, versionOf(versions, tableTopics)) }},
		{tableGroups, func(stored map[string][]byte) error { return b.groups.load(stored, versionOf(versions, tableGroups)) }},
		{tableOffsets, b.offsets.load},
		{tableForbidden, b.forbidden.load},
		{tableKV, b.names.loadKV},
		{tableNaming, b.names.loadSettings},
		{tableSettings, b.loadSettings},
	} {
		stored, err := b.storage.table(t.name)
		if err == nil {
			err = t.load(stored)
		}
		if err != nil {
			return fmt.Errorf("reading the table %s: %w", t.name, err)
		}
	}
	return b.halves.load(b.storage)
}

func versionOf(versions map[string][]byte, table string) int64 {
	n, err := strconv.ParseInt(string(versions[table]), 10, 64)
	if err != nil {
		return 0 // Never changed.
	}
	return n
}

// encoded is a value as it is stored. Settings of topics and groups always encode.
func encoded(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encoding %T: %v", v, err))
	}
	return text
}

// decodeAll reads a table whose values are JSON.
func decodeAll[T any](stored map[string][]byte) (map[string]T, error) {
	all := make(map[string]T, len(stored))
	for key, text := range stored {
		var v T
		if err := json.Unmarshal(text, &v); err != nil {
			return nil, fmt.Errorf("the entry %q is damaged: %w", key, err)
		}
		all[key] = v
	}
	return all, nil
}

// joinKey makes a key of parts that are keyable: with others it would be read as the key of something else, or as damaged.
func joinKey(parts ...string) string { return strings.Join(parts, "\x00") }

// keyable tells whether a name can be a part of a key.
func keyable(name string) bool { return !strings.Contains(name, "\x00") }
