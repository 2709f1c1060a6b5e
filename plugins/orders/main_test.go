package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/sdktest"
)

func TestOrders(t *testing.T) {
	spec := sdk.Component("orders", newOrders)
	sdktest.Run(t, spec, `{}`)

	h := sdktest.Start(t, spec).Configure("orders", `{"fail_once": 3, "fail_always": 7, "reject": 5, "delay": "2s"}`)
	var first []sdktest.Message
	for i := range 60 {
		first = append(first, sdktest.Message{ID: fmt.Sprint(i), Body: fmt.Appendf(nil, `{"id":"A-%d","amount":1}`, i)})
	}
	counts := map[sdktest.Kind]int{}
	var again []sdktest.Message
	var always []bool
	for i, r := range h.Deliver(first...) {
		counts[r.Kind]++
		switch r.Kind {
		case sdktest.Retried:
			if r.Delay != 2*time.Second {
				t.Errorf("order %d: %+v", i, r)
			}
			first[i].Attempt = 2
			again = append(again, first[i])
			always = append(always, r.Class == "no_customer")
			if r.Class != "transient" && r.Class != "no_customer" {
				t.Errorf("order %d: %+v", i, r)
			}
		case sdktest.Rejected:
			if r.Class != "canceled" {
				t.Errorf("order %d: %+v", i, r)
			}
		default:
		}
	}
	if counts[sdktest.Retried] == 0 || counts[sdktest.Rejected] == 0 || counts[sdktest.Acked] == 0 {
		t.Fatalf("verdicts %v: the sample must show all three", counts)
	}
	for i, r := range h.Deliver(again...) {
		want := sdktest.Acked
		if always[i] {
			want = sdktest.Retried
		}
		if r.Kind != want {
			t.Errorf("order %s on its second attempt: %+v, want %v", again[i].Body, r, want)
		}
	}
	if r := h.Deliver(sdktest.Message{Body: []byte("{")})[0]; r.Kind != sdktest.Rejected || r.Class != "bad_json" {
		t.Errorf("garbage: %+v", r)
	}
}

// TestJournal_hasEachAttempt holds the journal against the verdicts.
func TestJournal_hasEachAttempt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	text, err := json.Marshal(map[string]any{"fail_once": 1, "reject": 0, "takes": "1ms", "journal": path})
	if err != nil {
		t.Fatal(err)
	}
	h := sdktest.Start(t, sdk.Component("orders", newOrders)).Configure("orders", string(text))
	for attempt := 1; attempt <= 2; attempt++ {
		h.Deliver(sdktest.Message{ID: "1", Attempt: attempt, Body: []byte(`{"id":"A-1"}`)})
	}
	lines, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"order":"A-1","attempt":1,"outcome":"failed","error":"order A-1: db timeout"}` + "\n" +
		`{"order":"A-1","attempt":2,"outcome":"handled"}` + "\n"
	if string(lines) != want {
		t.Errorf("the journal has\n%s\nwant\n%s", lines, want)
	}
}

func TestJournal_thatCannotBeWrittenIsTold(t *testing.T) {
	_, err := newOrders(t.Context(), Config{Journal: filepath.Join(t.TempDir(), "none", "journal")}, sdk.Env{})
	if err == nil || !strings.Contains(err.Error(), "opening the journal") {
		t.Errorf("a journal in a folder that is not there: %v", err)
	}
}
