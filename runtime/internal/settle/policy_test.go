package settle

import (
	"testing"
	"time"

	"github.com/streamd/streamd/internal/frame"
)

func TestLevelIsTheSmallestOfAtLeastTheDelay(t *testing.T) {
	p := Policy{Levels: DefaultLevels()}
	for d, want := range map[time.Duration]int{0: 0, time.Millisecond: 1, time.Second: 1, 1001 * time.Millisecond: 2, 30 * time.Second: 4, 11 * time.Minute: 15, 9 * time.Hour: 18} {
		if got := p.Level(d); got != want {
			t.Errorf("level for %s is %d, want %d", d, got, want)
		}
	}
}

// The whole transition table: what is done for a verdict, and after each outcome.
func TestPolicyTable(t *testing.T) {
	retry, reject, ack := frame.Verdict{Kind: frame.VerdictRetry}, frame.Verdict{Kind: frame.VerdictReject}, frame.Verdict{Kind: frame.VerdictAck}
	base := Policy{Group: "G", MaxRetries: 2, Levels: DefaultLevels(), BlockPause: time.Minute}
	with := func(on Exhausted) *Policy { p := base; p.OnExhausted = on; return &p }
	for name, c := range map[string]struct {
		p    *Policy
		f    Facts
		want Step
	}{
		"ack":                    {&base, Facts{Verdict: ack, Attempts: 9}, Step{Kind: StepSettle}},
		"ack with outputs":       {&base, Facts{Verdict: ack, Outputs: true}, Step{Kind: StepProduce}},
		"retry":                  {&base, Facts{Verdict: retry, Attempts: 1}, Step{Kind: StepSendBack}},
		"the last retry":         {&base, Facts{Verdict: retry, Attempts: 2}, Step{Kind: StepSendBack}},
		"used up":                {&base, Facts{Verdict: retry, Attempts: 3}, Step{Kind: StepSendBack, Level: -1}},
		"used up, skip":          {with(ExhaustedSkip), Facts{Verdict: retry, Attempts: 3}, Step{Kind: StepSkip}},
		"reject":                 {with(ExhaustedSkip), Facts{Verdict: reject, Attempts: 1}, Step{Kind: StepSendBack, Level: -1}},
		"retry topic off":        {&base, Facts{Verdict: retry, Attempts: 1, RetryOff: true}, Step{Kind: StepResend, Topic: "%DLQ%G"}},
		"reject, retry off":      {&base, Facts{Verdict: reject, Attempts: 1, RetryOff: true}, Step{Kind: StepResend, Topic: "%DLQ%G"}},
		"retry topic off, skip":  {with(ExhaustedSkip), Facts{Verdict: retry, Attempts: 1, RetryOff: true}, Step{Kind: StepSkip}},
		"used up, skip, not rej": {with(ExhaustedSkip), Facts{Verdict: retry, Attempts: 2}, Step{Kind: StepSendBack}},
	} {
		if got := c.p.First(c.f); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := with(ExhaustedBlock).First(Facts{Verdict: retry, Attempts: 3}); got.Kind != StepAgain || got.Wait != time.Minute || got.Why == "" {
		t.Errorf("block: %+v", got)
	}
	f := Facts{Verdict: retry, Attempts: 1}
	sent := Step{Kind: StepSendBack, Level: 4}
	if got := base.Next(f, sent, OutcomeDone, ""); got.Kind != StepSettle {
		t.Errorf("done: %+v", got)
	}
	if got := base.Next(f, sent, OutcomeRefused, "busy"); got.Kind != StepSendBack || got.Level != 4 || got.Wait <= 0 || got.Why != "busy" {
		t.Errorf("refused: %+v", got)
	}
	if got := base.Next(f, sent, OutcomeGone, ""); got != (Step{Kind: StepResend, Topic: "%RETRY%G", Level: 4}) {
		t.Errorf("gone: %+v", got)
	}
	if got := base.Next(f, Step{Kind: StepSendBack, Level: -1}, OutcomeGone, ""); got != (Step{Kind: StepResend, Topic: "%DLQ%G"}) {
		t.Errorf("gone on the way to the dead letters: %+v", got)
	}
	if got := base.Next(f, sent, OutcomeRetryOff, ""); got.Kind != StepResend || got.Topic != "%DLQ%G" || !got.Off {
		t.Errorf("retry topic not writable: %+v", got)
	}
	if got := base.Next(f, Step{Kind: StepResend, Topic: "%DLQ%G"}, OutcomeNoTopic, "x"); got.Topic != "%RETRY%G" || got.Level != -1 {
		t.Errorf("no dead-letter topic: %+v", got)
	}
	if backoff(0) >= backoff(3) || backoff(50) != longBackoff {
		t.Error("backoff does not grow to its limit")
	}
}
