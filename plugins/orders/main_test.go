package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/sdktest"
)

func TestOrders(t *testing.T) {
	spec := sdk.Component("orders", newOrders)
	sdktest.Run(t, spec, `{}`)

	h := sdktest.Start(t, spec).Configure("orders", `{"fail_once": 3, "reject": 5, "delay": "2s"}`)
	var first []sdktest.Message
	for i := range 60 {
		first = append(first, sdktest.Message{ID: fmt.Sprint(i), Body: fmt.Appendf(nil, `{"id":"A-%d","amount":1}`, i)})
	}
	counts := map[sdktest.Kind]int{}
	var again []sdktest.Message
	for i, r := range h.Deliver(first...) {
		counts[r.Kind]++
		switch r.Kind {
		case sdktest.Retried:
			if r.Class != "transient" || r.Delay != 2*time.Second {
				t.Errorf("order %d: %+v", i, r)
			}
			first[i].Attempt = 2
			again = append(again, first[i])
		case sdktest.Rejected:
			if r.Class != "no_customer" {
				t.Errorf("order %d: %+v", i, r)
			}
		default:
		}
	}
	if counts[sdktest.Retried] == 0 || counts[sdktest.Rejected] == 0 || counts[sdktest.Acked] == 0 {
		t.Fatalf("verdicts %v: the sample must show all three", counts)
	}
	for i, r := range h.Deliver(again...) {
		if r.Kind != sdktest.Acked {
			t.Errorf("order %s on its second attempt: %+v", again[i].Body, r)
		}
	}
	if r := h.Deliver(sdktest.Message{Body: []byte("{")})[0]; r.Kind != sdktest.Rejected || r.Class != "bad_json" {
		t.Errorf("garbage: %+v", r)
	}
}
