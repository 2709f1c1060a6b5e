package serve

import (
	"context"

	"github.com/streamd/streamd/sdk/pluginv1"
)

// Solver is what an instance of a component of kind sdk.KindStrategy must be: the Solve call of the contract ends here.
// An error becomes the text of SolveResponse.Error: the strategy itself said no. Calls may run concurrently, and a panic
// is answered as an error.
type Solver interface {
	Solve(ctx context.Context, request *pluginv1.SolveRequest) (*pluginv1.SolveResponse, error)
}
