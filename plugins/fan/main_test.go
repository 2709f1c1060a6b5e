package main

import (
	"testing"
	"time"

	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/sdktest"
)

func TestFan(t *testing.T) {
	spec := sdk.Component("fan", newFan)
	sdktest.Run(t, spec, `{"topics":["A"]}`)

	p := sdktest.Start(t, spec)
	if got := p.Check("fan", `{"topics":[]}`); len(got) != 1 || got[0].Pointer != "/topics" {
		t.Errorf("no topics: %+v", got)
	}
	r := p.Configure("fan", `{"topics":["A","B"],"delay":"3s"}`).Deliver(sdktest.Message{ID: "m", Tag: "t", Keys: []string{"k"}, Body: []byte("x")})[0]
	if len(r.Outputs) != 2 || r.Outputs[0].Topic != "A" || r.Outputs[1].Topic != "B" || string(r.Outputs[1].Body) != "x" ||
		r.Outputs[0].Delay != 3*time.Second || r.Outputs[0].Properties["source_id"] != "m" || r.Outputs[0].Tag != "t" {
		t.Errorf("outputs %+v", r.Outputs)
	}
}
