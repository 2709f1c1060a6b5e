//go:build proof

package interop

import (
	"fmt"
	"testing"
	"time"

	"github.com/streamd/streamd/test/interop/ledger"
)

// TestMigration takes the steps of docs/migration.md with a real group under a steady load: streamd joins two Java members, they
// leave one by one, and later the same the other way. Nothing is lost; what is handled again was in flight, or a Java member had
// handled it and not stored its offset yet; and of an ordered group the order of each queue holds at the streamd members.
func TestMigration(t *testing.T) {
	t.Parallel()
	for _, order := range []string{"none", "queue"} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			p := newProof(t, mainCluster(t), "Migrate"+order, order, orderedQueues)
			p.seconds = 300
			p.load()
			p.java("java 1")
			if order == "none" {
				p.migrate2()
			} else {
				p.migrate1()
			}
			p.holds()
			if n := p.again(); n > p.rate*javaPersists*len(p.causes) {
				t.Errorf("%d messages were handled again", n)
			}
		})
	}
}

// migrate2 exchanges two Java members for two streamd members, and back.
func (p *proof) migrate2() {
	p.t.Helper()
	p.java("java 2")
	p.step("two Java members")

	p.streamd(1) // beside them
	p.step("streamd joins")
	p.stopJava("java 1")
	p.step("a Java member leaves")
	p.streamd(2)
	p.stopJava("java 2")
	p.step("streamd alone")

	p.java("java 3") // and back
	p.step("a Java member joins")
	p.stopStreamd(1)
	p.step("a streamd leaves")
	p.java("java 4")
	p.stopStreamd(2)
	p.step("Java alone")
}

// migrate1 exchanges one for one, and back.
func (p *proof) migrate1() {
	p.t.Helper()
	p.streamd(1)
	p.step("streamd joins")
	p.stopJava("java 1")
	p.step("streamd alone")
	p.java("java 2")
	p.step("a Java member joins")
	p.stopStreamd(1)
	p.step("Java alone")
}

// javaPersists is how often the Java client stores its offsets, in seconds.
const javaPersists = 5

// step waits until every queue has one owner and messages flow, and says how far the ledger has come.
func (p *proof) step(what string) {
	p.t.Helper()
	p.whole()
	before := len(p.entries())
	until(p.t, time.Minute, "work goes on: "+what, func() (bool, string) { n := len(p.entries()); return n > before+100, fmt.Sprint(n - before) })
	p.t.Logf("%s: %d entries in the ledger", what, len(p.entries()))
}

// again counts the messages that were handled more than once.
func (p *proof) again() (n int) {
	p.t.Helper()
	for _, times := range ledger.Handled(p.entries()) {
		n += min(times-1, 1)
	}
	return n
}
