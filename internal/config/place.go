package config

import (
	"slices"
	"strconv"
	"strings"
)

// place is a key of a config and the mapping that has it.
type place struct {
	path     []string // of the mapping, "[]" behind lists: streams[], retry; none = the top
	key      string
	required bool
}

// placesOf lists where a key exists. Neither case nor underscores matter; a key that is nowhere may be one together with the
// section that it stands in: loglevel is level of log.
func (f *field) placesOf(word string) []place {
	var same, joined []place
	word = plain(word)
	f.visitKeys(nil, func(path []string, c *field) {
		here := place{slices.Clone(path), c.key, c.required}
		key := plain(c.key)
		if key == word {
			same = append(same, here)
		}
		if len(path) > 0 {
			section := plain(strings.TrimSuffix(path[len(path)-1], "[]"))
			if section+key == word || key+section == word {
				joined = append(joined, here)
			}
		}
	})
	if len(same) > 0 {
		return same
	}
	return joined
}

// visitKeys calls visit for each key below f, with the path of its mapping.
func (f *field) visitKeys(path []string, visit func(path []string, c *field)) {
	for _, c := range f.fields {
		visit(path, c)
		below, step := c, c.key
		if c.kind == listField {
			below, step = c.items, step+"[]"
		}
		below.visitKeys(append(slices.Clip(path), step), visit)
	}
}

func plain(word string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(word))
}

// levelOf is a JSON pointer's path as places have it: streams/0/retry is streams[], retry.
func levelOf(path []string) []string {
	var level []string
	for _, step := range path {
		if _, err := strconv.Atoi(step); err == nil && len(level) > 0 {
			level[len(level)-1] += "[]"
			continue
		}
		level = append(level, step)
	}
	return level
}

// mostPlaces is how many places are told; a key that is at more, such as name, says nothing of what was meant.
const mostPlaces = 3

// below are the places under a level, those first that have to be written.
func below(all []place, level []string) []place {
	under := slices.DeleteFunc(slices.Clone(all), func(p place) bool {
		return len(p.path) <= len(level) || !slices.Equal(p.path[:len(level)], level)
	})
	slices.SortStableFunc(under, func(a, b place) int {
		switch {
		case a.required == b.required:
			return 0
		case a.required:
			return -1
		}
		return 1
	})
	return under
}

// belongs says of a key at the wrong level where it has its place.
func belongs(word string, places []place) string {
	who := "it"
	if word != places[0].key {
		who = places[0].key
	}
	var under []string
	top := false
	for _, p := range places {
		if len(p.path) == 0 {
			top = true
		} else {
			under = append(under, strings.Join(p.path, "."))
		}
	}
	switch {
	case len(under) == 0:
		return who + " belongs at the top"
	case top:
		return who + " belongs at the top, or under " + oneOf(under)
	}
	return who + " belongs under " + oneOf(under)
}

// within is how a place is written from a level above it: retry: {max_retries: …}.
func (p place) within(level []string) string {
	text := p.key + ": …"
	for _, step := range slices.Backward(p.path[len(level):]) {
		if name, ok := strings.CutSuffix(step, "[]"); ok {
			text = name + ": [{" + text + "}]"
		} else {
			text = step + ": {" + text + "}"
		}
	}
	return text
}

// otherName is streamd's key for a word of RocketMQ's clients or of other software; "" = there is none.
func otherName(word string) string {
	return map[string]string{
		"retries": "max_retries", "attempts": "max_retries", "maxattempts": "max_retries", "maxreconsumetimes": "max_retries",
		"timeout": "deadline", "consumetimeout": "deadline",
		"threads": "concurrency", "workers": "concurrency", "parallelism": "concurrency", "consumethreadmax": "concurrency", "consumethreadmin": "concurrency",
		"topics": "subscribe", "subscription": "subscribe", "subscriptions": "subscribe",
		"consumergroup": "group", "messagemodel": "model", "consumefromwhere": "start_from",
		"namesrv": "name_servers", "namesrvaddr": "name_servers", "nameserveraddress": "name_servers",
	}[plain(word)]
}

// misplaced says of a key that exists, but not at this level, where it belongs. under is its place below this level, nil when
// it has to be moved elsewhere; what is empty when nothing is known of it.
func (f *field) misplaced(key string, level []string) (what string, under *place) {
	if other := otherName(key); other != "" {
		if down := below(f.placesOf(other), level); len(down) > 0 {
			return belongs(key, down), &down[0]
		}
	}
	all := f.placesOf(key)
	if down := below(all, level); len(down) > 0 && len(down) <= mostPlaces {
		return belongs(key, down), &down[0]
	}
	if len(all) == 0 || len(all) > mostPlaces {
		return "", nil
	}
	return belongs(key, all), nil
}

// longer is the one key of f that begins with a word, such as max_retries with max; "" = none or several do.
func (f *field) longer(word string) (key string) {
	if f == nil {
		return ""
	}
	for _, c := range f.fields {
		if strings.HasPrefix(c.key, word+"_") {
			if key != "" {
				return ""
			}
			key = c.key
		}
	}
	return key
}

// like is the key of f that was meant by another word; "" = none looks alike. Sure tells that it can be no other.
func (f *field) like(key string) (near string, sure bool) {
	if f == nil {
		return "", false
	}
	keys := f.keys()
	if other := otherName(key); slices.Contains(keys, other) {
		return other, true
	}
	near = nearest(key, keys)
	return near, near != "" && distance(strings.ToLower(key), near) <= 1
}
