// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"context"
	"errors"

	"shipper.dev/shipper/chart/keyedsemaphore"
)

// compilers bound the texts of users that are parsed and compiled at the same time: two, and one of each namespace. Namespaces take
// turns, so one with a thousand texts delays each text of another by one of its own.
func compilers() *keyedsemaphore.Semaphore { return keyedsemaphore.New(2, 1) }

// compilersKey is the key of the compilers in the context of a review.
type compilersKey struct{}

// ErrCompiling means that the request ended before its namespace had its turn.
var ErrCompiling = errors.New("waited too long for other expressions to be compiled")

// Compile calls compile, which parses or compiles a text of a user, when it is the turn of the namespace among the reviews of a server.
// It does not once ctx is done: the API server has given up then.
func Compile(ctx context.Context, namespace string, compile func() error) error {
	if ctx.Err() != nil {
		return ErrCompiling
	}
	if turns, bounded := ctx.Value(compilersKey{}).(*keyedsemaphore.Semaphore); bounded {
		if turns.Enter(ctx, namespace) != nil {
			return ErrCompiling
		}
		defer turns.Leave(namespace)
	}
	return compile()
}
