package main

import (
	"slices"
	"testing"
)

func TestJudge(t *testing.T) {
	all := []delivery{
		{0, "a/0", 0, 10},
		{0, "a/1", 0, 11},
		{0, "a/0", 1, 20},
		{1, "a/0", 2, 90},
		{0, "a/1", 1, 100},
		{1, "a/0", 2, 101}, // again
		{1, "a/0", 4, 200}, // offset 3 is missing; after the window
	}
	if h := judge(all, 30, 100); h != (handOver{gap: 89, moved: 70, duplicates: 1, lost: 1}) {
		t.Errorf("%+v", h)
	}
}

func TestShares(t *testing.T) {
	all := []delivery{{0, "a/0", 0, 10}, {1, "a/0", 1, 20}, {1, "a/1", 0, 21}, {0, "a/2", 0, 22}, {1, "a/2", 1, 23}}
	if n := shares(all, 15, 2); !slices.Equal(n, []int{0, 2}) {
		t.Errorf("shares %v: a/0 and a/1 are the second's, a/2 nobody's", n)
	}
}

func TestPercentile(t *testing.T) {
	sorted := make([]int64, 1000)
	for i := range sorted {
		sorted[i] = int64(i + 1)
	}
	for p, want := range map[float64]int64{0.5: 500, 0.99: 990, 0.999: 999, 1: 1000} {
		if got := percentile(sorted, p); got != want {
			t.Errorf("percentile %v = %d, want %d", p, got, want)
		}
	}
}

func TestDeliveries_refusesWhatItCannotRead(t *testing.T) {
	if d, err := deliveries(1, []string{"#ready", "got b/3 7 99"}); err != nil || len(d) != 1 || d[0] != (delivery{1, "b/3", 7, 99}) {
		t.Errorf("%+v, %v", d, err)
	}
	for _, bad := range []string{"got b/3 7", "got b/3 x 9"} {
		if _, err := deliveries(1, []string{bad}); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}
