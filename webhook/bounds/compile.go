// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"context"
	"errors"

	"shipper.dev/shipper/chart/keyedsemaphore"
)

// compiling bounds the texts of users that are parsed and compiled at the same time: two, and one of each namespace. Namespaces take
// turns, so one with a thousand texts delays each text of another by one of its own.
var compiling = keyedsemaphore.New(2, 1)

// ErrCompiling means that the request ended before its namespace had its turn.
var ErrCompiling = errors.New("waited too long for other expressions to be compiled")

// Compile calls compile, which parses or compiles a text of a user, when it is the turn of the namespace. It does not once ctx is done:
// the API server has given up then.
func Compile(ctx context.Context, namespace string, compile func()) error {
	if ctx.Err() != nil || compiling.Enter(ctx, namespace) != nil {
		return ErrCompiling
	}
	defer compiling.Leave(namespace)
	compile()
	return nil
}
