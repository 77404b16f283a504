// SPDX-License-Identifier: Apache-2.0

package block

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/screen"
)

func newList(o *options) *cobra.Command {
	var all bool
	var format cli.Format
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the blocks that hold in a namespace, the global ones included, now or later",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if all && (o.global || o.Namespace != "") {
				return cli.WithCode(cli.Misused, errors.New("--all-namespaces excludes --namespace and --global"))
			}
			c, namespace, err := o.clientAt()
			if err != nil {
				return err
			}
			namespaces := []string{namespace, shipper.GlobalBlocksNamespace}
			if all {
				namespaces = []string{""}
			}
			slices.Sort(namespaces)
			var blocks []shipper.RolloutBlock
			for _, ns := range slices.Compact(namespaces) {
				var list shipper.RolloutBlockList
				if err := c.List(cmd.Context(), &list, client.InNamespace(ns)); err != nil {
					return fmt.Errorf("listing blocks: %w", err)
				}
				blocks = append(blocks, list.Items...)
			}
			now := o.clock.Now()
			found := listed(blocks, now)
			return format.Print(cmd.OutOrStdout(), found, func(width int) string { return table(found, width, now) })
		},
	}
	format.Register(cmd.Flags())
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "the blocks of all namespaces")
	return cmd
}

// listedBlock is a block as it is listed, also by `-o json`.
type listedBlock struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Active is true while it holds; then it does until Until, or until it is lifted. Otherwise From is when it will hold next.
	Active bool      `json:"active"`
	Until  time.Time `json:"until,omitzero"`
	From   time.Time `json:"from,omitzero"`
	// Enforcement is Deny, Warn or Audit.
	Enforcement string `json:"enforcement"`
	// Stops describes, in words for people, what the block stops.
	Stops   string `json:"stops"`
	Author  string `json:"author,omitempty"`
	Message string `json:"message"`
	// Problem is why its schedule cannot be read; it holds all the time then.
	Problem string `json:"problem,omitempty"`
}

// listed are blocks, those in effect first.
func listed(blocks []shipper.RolloutBlock, now time.Time) []listedBlock {
	out := []listedBlock{}
	for i := range blocks {
		b := &blocks[i]
		t, err := block.When(b, now)
		one := listedBlock{
			Namespace: b.Namespace, Name: b.Name, Active: block.Active(b, now), Until: t.NextEnd, From: t.NextStart,
			Enforcement: cmp.Or(string(b.Spec.Enforcement), string(shipper.RolloutBlockDeny)), Stops: what(b),
			Author: b.Spec.Author.Name, Message: b.Spec.Message,
		}
		if one.Active {
			one.From = time.Time{}
		} else {
			one.Until = time.Time{}
		}
		if err != nil {
			one.Problem = err.Error()
		}
		out = append(out, one)
	}
	rank := func(l listedBlock) int {
		if l.Active {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(out, func(a, b listedBlock) int {
		return cmp.Or(rank(a)-rank(b), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func table(blocks []listedBlock, width int, now time.Time) string {
	if len(blocks) == 0 {
		return "there are no blocks\n"
	}
	var rows [][]string
	for _, b := range blocks {
		rows = append(rows, []string{b.Namespace + "/" + b.Name, b.when(now), b.Stops, cmp.Or(b.Author, "unknown"), b.Message})
	}
	return screen.Table(width, []string{"BLOCK", "HOLDS", "STOPS", "BY", "WHY"}, rows)
}

// when reports whether a block holds, and until or from when.
func when(b *shipper.RolloutBlock, now time.Time) string {
	one := listed([]shipper.RolloutBlock{*b}, now)[0]
	return one.when(now)
}

func (b *listedBlock) when(now time.Time) string {
	in := func(at time.Time) string {
		return at.Local().Format("Mon 2 Jan 15:04 MST") + ", in " + duration.HumanDuration(at.Sub(now))
	}
	switch {
	case b.Problem != "":
		return "all the time: its schedule cannot be read"
	case b.Active && !b.Until.IsZero():
		return "until " + in(b.Until)
	case b.Active:
		return "until it is lifted"
	case !b.From.IsZero():
		return "from " + in(b.From)
	}
	return "no more"
}

// what lists the changes that a block stops, and those that it lets pass.
func what(b *shipper.RolloutBlock) string {
	parts := []string{}
	switch b.Spec.Enforcement {
	case shipper.RolloutBlockWarn:
		parts = append(parts, "only warns of")
	case shipper.RolloutBlockAudit:
		parts = append(parts, "only notes")
	}
	scope := []string{}
	if s := b.Spec.Scope; s != nil {
		for _, names := range [][]string{s.Regions, s.Clusters, s.Charts} {
			if len(names) > 0 {
				scope = append(scope, strings.Join(names, ","))
			}
		}
		if s.Applications != nil {
			scope = append(scope, "some applications")
		}
	}
	if len(b.Spec.MatchConditions) > 0 {
		scope = append(scope, "what its conditions match")
	}
	if len(scope) == 0 {
		scope = []string{"everything"}
	}
	parts = append(parts, strings.Join(scope, " & "))
	if len(b.Spec.Allow) > 0 {
		allowed := make([]string, len(b.Spec.Allow))
		for i, change := range b.Spec.Allow {
			allowed[i] = string(change)
		}
		parts = append(parts, "but "+strings.Join(allowed, ", "))
	}
	return strings.Join(parts, " ")
}
