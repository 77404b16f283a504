// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"context"

	"shipper.dev/shipper/chart/keyedsemaphore"
	"shipper.dev/shipper/outward/boundedcel"
)

// compilers bound the texts of users that are parsed and compiled at the same time: two, and one of each namespace. Namespaces take
// turns, so one with a thousand texts delays each text of another by one of its own.
func compilers() *keyedsemaphore.Semaphore { return keyedsemaphore.New(2, 1) }

// compilersKey is the key of the compilers in the context of a review.
type compilersKey struct{}

// Compile calls compile, which parses or compiles a text of a user, when it is the turn of the namespace among the reviews of a server.
// Once ctx is done the API server has given up: nothing is compiled then, and the error is boundedcel.ErrBusy.
func Compile(ctx context.Context, namespace string, compile func() error) error {
	if ctx.Err() != nil {
		return boundedcel.ErrBusy
	}
	if turns, bounded := ctx.Value(compilersKey{}).(*keyedsemaphore.Semaphore); bounded {
		if turns.Enter(ctx, namespace) != nil {
			return boundedcel.ErrBusy
		}
		defer turns.Leave(namespace)
	}
	return compile()
}
