package rocketmq

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/streamd/streamd/internal/rocketmq/remoting"
)

// refusedGroupsError are the groups that a broker's access control did not take, one by one, and why; the client's other groups
// it took.
type refusedGroupsError map[string]error

func (r refusedGroupsError) Error() string {
	texts := make([]string, 0, len(r))
	for _, group := range slices.Sorted(maps.Keys(r)) {
		texts = append(texts, "group "+group+": "+r[group].Error())
	}
	return strings.Join(texts, "; ")
}

func (r refusedGroupsError) Unwrap() []error { return slices.Collect(maps.Values(r)) }

// beat sends one heartbeat. Access control refuses it as a whole when one of its groups may not be consumed: then each group
// gets a heartbeat of its own, so that the others stay members. Brokers add the groups of one client up.
func (c *Client) beat(ctx context.Context, one *peer, conn *remoting.Conn) error {
	defer one.beats.begin()()
	specs := c.groups.all()
	err := c.tell(ctx, one, conn, specs)
	if _, refused := AccessRefused(err); !refused || len(specs) < 2 {
		return err
	}
	each := refusedGroupsError{}
	for i := range specs {
		if err := c.tell(ctx, one, conn, specs[i:i+1]); err != nil {
			each[specs[i].Name] = err
		}
	}
	if len(each) == 0 {
		return nil // what was refused a moment ago was granted
	}
	return each
}
