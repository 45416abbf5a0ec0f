package loadgen

import (
	"errors"

	"github.com/holdfast-project/holdfast/api/client"
)

func asProblem(err error) (*client.Problem, bool) { return errors.AsType[*client.Problem](err) }

// code is a refusal's, or empty.
func code(err error) string {
	if p, ok := asProblem(err); ok {
		return p.Code
	}
	return ""
}
