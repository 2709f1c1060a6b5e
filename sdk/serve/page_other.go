//go:build !unix

package serve

import "github.com/streamd/streamd/internal/frame"

// openPage has no page to open here.
func openPage() (*frame.Page, error) { return nil, nil } //nolint:nilnil // no page is a valid answer
