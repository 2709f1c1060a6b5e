package damage_test

import (
	"bytes"
	"testing"

	"github.com/streamd/streamd/internal/broker/damage"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func TestApply_takesAnyFrame(t *testing.T) {
	t.Parallel()
	frame := func(body string) []byte {
		t.Helper()
		f, err := wire.AppendFrame(nil, &wire.Command{Code: 11, Ext: wire.Fields{{Key: "topic", Value: "T"}}, Body: []byte(body)})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for name, original := range map[string][]byte{
		"nothing": nil, "a prefix": {0, 0, 0, 9}, "no body": frame(""), "a short body": frame("x"), "no message": frame("some text, no message"),
		"header beyond": {0, 0, 0, 4, 0, 0xff, 0xff, 0xff},
	} {
		for _, kind := range damage.Kinds() {
			got := damage.Apply(kind, bytes.Clone(original))
			if len(got) > len(original) {
				t.Errorf("%s, %s: grew from %d to %d bytes", name, kind, len(original), len(got))
			}
		}
	}
	for _, kind := range []damage.Kind{damage.AbsurdFrameLength, damage.GarbageHeader, damage.UnknownEncoding, damage.HeaderBeyondFrame} {
		if bytes.Equal(damage.Apply(kind, frame("")), frame("")) {
			t.Errorf("%s left a frame whole", kind)
		}
	}
}
