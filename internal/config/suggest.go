package config

import (
	"slices"
	"strings"
)

// nearest returns the candidate that looks most like word, "" when none looks alike.
func nearest(word string, candidates []string) string {
	limit := max(2, len(word)/3)
	if len(word) <= 4 {
		limit = 1
	}
	best, at := "", limit+1
	for _, c := range candidates {
		d := distance(strings.ToLower(word), strings.ToLower(c))
		if d < at && d < max(len(c), 2) {
			best, at = c, d
		}
	}
	return best
}

// distance counts the edits (insert, delete, replace, swap of neighbors) from a to b.
func distance(a, b string) int {
	var before []int
	last, row := []int(nil), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}

// oneOf lists choices for a person: "a, b or c".
func oneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	words = slices.Clone(words)
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
