// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"errors"

	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/install"
)

// guarding is what to do about the guard of application clusters.
type guarding struct {
	asked bool   // --guard was given; without it, what is there stays
	on    bool   // its value
	group string // whom the guard refuses nothing
}

// check refuses flags that say nothing together.
func (g *guarding) check(named bool) error {
	if named && !g.on {
		return cli.WithCode(cli.Misused, errors.New("--guard-break-glass-group is for the guard: give --guard as well"))
	}
	var err error
	g.group, err = install.ParseBreakGlassGroup(g.group)
	return cli.WithCode(cli.Misused, err)
}

// possible tells in its error which clusters cannot have the guard that is asked for. It writes nothing.
func (g guarding) possible(ctx context.Context, members []member) error {
	if !g.on {
		return nil
	}
	var problems []error
	for _, m := range members {
		problems = append(problems, m.CanGuard(ctx))
	}
	return errors.Join(problems...)
}

// do installs, removes or keeps the guard of one cluster, whose accounts are there.
func (g guarding) do(ctx context.Context, m member) error {
	switch {
	case !g.asked:
		return m.KeepGuard(ctx)
	case g.on:
		return m.Guard(ctx, g.group)
	default:
		return m.Unguard(ctx)
	}
}
