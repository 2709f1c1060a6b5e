package uses

import (
	"context"
	"fmt"
	"slices"

	"github.com/streamd/streamd/internal/config"
	"github.com/streamd/streamd/internal/firstparty"
	"github.com/streamd/streamd/sdk"
)

// CheckBuiltin holds the configs of streamd's own strategies against their schemas, and has each strategy judge its own: that
// takes no process. What is wrong is a *config.InvalidError with all of it, each at its place. A strategy that there is not is
// the config's own fault, and told by config.Load.
func CheckBuiltin(c *config.Config) error {
	specs := firstparty.Specs()
	var bad []config.Problem
	for i := range c.Streams {
		s := &c.Streams[i]
		at := slices.IndexFunc(specs, func(spec sdk.Spec) bool { return spec.Name == s.Allocation.Strategy })
		if s.Allocation.Plugin != "" || at < 0 {
			continue
		}
		found, err := judgeBuiltin(specs[at], s.Allocation.Config)
		if err != nil {
			return err
		}
		for _, p := range found {
			bad = append(bad, p.By(fmt.Sprintf("the allocation of stream %s (%s)", s.Name, s.Allocation.Strategy)))
		}
	}
	if len(bad) == 0 {
		return nil
	}
	slices.SortStableFunc(bad, func(a, b config.Problem) int { return a.Where.Compare(b.Where) })
	return &config.InvalidError{Problems: bad}
}

func judgeBuiltin(spec sdk.Spec, conf config.Raw) ([]config.Problem, error) {
	found, err := conf.Check(spec.Schema)
	if err != nil || len(found) > 0 {
		return found, err //nolint:wrapcheck // says which schema, and why
	}
	_, said := spec.New(context.Background(), conf.JSON(), sdk.Env{}) // a pure function of its config
	for _, d := range said {
		if d.Severity != sdk.SeverityWarning {
			found = append(found, conf.Diagnose(d.Pointer, d.Text, d.Hint))
		}
	}
	return found, nil
}
