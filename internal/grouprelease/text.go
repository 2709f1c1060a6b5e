package grouprelease

import (
	"fmt"
	"io"

	"github.com/streamd/streamd/internal/plain"
)

// Text writes the steps as a table for people.
func Text(w io.Writer, steps []Step) error {
	t := plain.NewTable(w)
	fmt.Fprintln(t, "TOPIC\tBROKER\tQUEUE\tOWNER\tHELD FOR\tMIN\tMAX\tOFFSET\tSTATE")
	for i := range steps {
		s := &steps[i]
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%d\t%d\t%d\t%s\n", s.Topic, s.Broker, s.ID, s.Owner, s.Hold, s.Min, s.Max, s.Offset, s.State)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return nil
}
