package main

import (
	"fmt"
	"slices"
	"strconv"
)

// median of the values that of gives; the upper one of two.
func median[T any](all []T, of func(T) float64) float64 {
	v := values(all, of)
	return v[len(v)/2]
}

func values[T any](all []T, of func(T) float64) []float64 {
	v := make([]float64, 0, len(all))
	for _, a := range all {
		v = append(v, of(a))
	}
	slices.Sort(v)
	return v
}

// spread is "median (min–max)"; the median alone of one run.
func spread[T any](all []T, of func(T) float64, show func(float64) string) string {
	v := values(all, of)
	if len(v) == 1 {
		return show(v[0])
	}
	return fmt.Sprintf("%s (%s–%s)", show(v[len(v)/2]), show(v[0]), show(v[len(v)-1]))
}

func count(v float64) string {
	if v >= 1e6 {
		return fmt.Sprintf("%.2f M", v/1e6)
	}
	return fmt.Sprintf("%.0f k", v/1e3)
}

func millis(nanos float64) string { return fmt.Sprintf("%.2f ms", nanos/1e6) }

func seconds(nanos float64) string { return fmt.Sprintf("%.3f s", nanos/1e9) }

// percentile of sorted values: the smallest that share p of them do not exceed.
func percentile(sorted []int64, p float64) int64 {
	i := int(p*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// numbers reads n integers.
func numbers(words []string, n int) ([]int64, error) {
	if len(words) < n {
		return nil, fmt.Errorf("expected %d numbers, got %q", n, words)
	}
	out := make([]int64, n)
	for i := range out {
		var err error
		if out[i], err = strconv.ParseInt(words[i], 10, 64); err != nil {
			return nil, fmt.Errorf("reading a result: %w", err)
		}
	}
	return out, nil
}
