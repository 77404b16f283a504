// SPDX-License-Identifier: Apache-2.0

// Package audit is `shipperctl audit`: one time line of the users' decisions that objects in the management cluster record.
package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/screen"
)

type options struct {
	cli.Flags
	clock  clock.PassiveClock
	all    bool
	output string
	filter
}

// outputs are the values of --output.
var outputs = []string{"table", "json", "csv"}

// NewCommand returns `audit`.
func NewCommand(clock clock.PassiveClock) *cobra.Command {
	o := &options{clock: clock}
	var since time.Duration
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List who started, approved, overrode, blocked and moved what, in one time line",
		Long: "List who started, approved, overrode, blocked and moved what, in one time line, the newest last. It is read from objects:\n" +
			"SequenceRuns, Approvals, overrides that Applications and Releases record, RolloutBlocks and Releases. What was deleted is not\n" +
			"in it, and of several moves of a Release only the last is: how far back each kind goes is said below. The audit log of the API\n" +
			"server has everything.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(since); err != nil {
				return err
			}
			c, namespace, err := o.Client()
			if err != nil {
				return err
			}
			if o.all {
				namespace = ""
			}
			found, err := read(cmd.Context(), c, namespace)
			if err != nil {
				return err
			}
			now := o.clock.Now()
			o.from = now.Add(-since)
			return o.print(cmd.OutOrStdout(), cmd.ErrOrStderr(), timeLine(found, o.filter))
		},
	}
	o.RegisterDaily(cmd.Flags())
	flags := cmd.Flags()
	flags.BoolVarP(&o.all, "all-namespaces", "A", false, "the objects of all namespaces")
	flags.StringVar(&o.app, "app", "", "only what is of this Application, as NAME or NAMESPACE/NAME; blocks are of none")
	flags.StringVar(&o.user, "user", "", "only what this user did")
	flags.DurationVar(&since, "since", 720*time.Hour, "how far to look back")
	flags.StringSliceVar(&o.kinds, "kind", nil, "only these kinds: "+strings.Join(kinds, ", ")+" (default all)")
	flags.StringVarP(&o.output, "output", "o", "table", "table for people, json or csv for programs")
	return cmd
}

func (o *options) check(since time.Duration) error {
	switch {
	case o.all && o.Namespace != "":
		return cli.WithCode(cli.Misused, errors.New("--all-namespaces excludes --namespace"))
	case since <= 0:
		return cli.WithCode(cli.Misused, fmt.Errorf("--since is %s: it must be more than nothing", since))
	case !slices.Contains(outputs, o.output):
		return cli.WithCode(cli.Misused, fmt.Errorf("--output: there are %s", strings.Join(outputs, ", ")))
	}
	for _, kind := range o.kinds {
		if !slices.Contains(kinds, kind) {
			return cli.WithCode(cli.Misused, fmt.Errorf("--kind: there is no %s, only %s", kind, strings.Join(kinds, ", ")))
		}
	}
	return nil
}

// state is what was read.
type state struct {
	runs      []shipper.SequenceRun
	approvals []shipper.Approval
	apps      []shipper.Application
	releases  []shipper.Release
	blocks    []shipper.RolloutBlock
	// unread says what could not be read.
	unread []string
}

// read reads the objects of a namespace and the global blocks; of all namespaces if it is empty. Kinds that the user may not list are left
// out, with a note.
func read(ctx context.Context, c client.Reader, namespace string) (*state, error) {
	out := &state{}
	var runs shipper.SequenceRunList
	var approvals shipper.ApprovalList
	var apps shipper.ApplicationList
	var releases shipper.ReleaseList
	var blocks, global shipper.RolloutBlockList
	for _, one := range []struct {
		what, namespace string
		list            client.ObjectList
	}{
		{"SequenceRuns", namespace, &runs}, {"Approvals", namespace, &approvals}, {"Applications", namespace, &apps},
		{"Releases", namespace, &releases}, {"RolloutBlocks", namespace, &blocks}, {"RolloutBlocks", shipper.GlobalBlocksNamespace, &global},
	} {
		if one.list == &global && (namespace == "" || namespace == shipper.GlobalBlocksNamespace) {
			continue
		}
		switch err := c.List(ctx, one.list, client.InNamespace(one.namespace)); {
		case apierrors.IsForbidden(err):
			where := "any namespace"
			if one.namespace != "" {
				where = "namespace " + one.namespace
			}
			out.unread = append(out.unread, fmt.Sprintf("you may not list %s of %s", one.what, where))
		case err != nil:
			return nil, fmt.Errorf("listing %s: %w", one.what, err)
		}
	}
	if len(out.unread) > 5 {
		return nil, cli.WithCode(cli.Refused, errors.New(strings.Join(out.unread, "; ")))
	}
	out.runs, out.approvals, out.apps, out.releases = runs.Items, approvals.Items, apps.Items, releases.Items
	out.blocks = append(blocks.Items, global.Items...)
	return out, nil
}

// print writes a time line; notes go to errs where the output has no room for them.
func (o *options) print(out, errs io.Writer, line Line) error {
	var text string
	var err error
	switch o.output {
	case "json":
		var raw []byte
		raw, err = cli.JSON.Marshal(line)
		text = string(raw)
	case "csv":
		text, err = line.csv()
		for _, note := range line.notes() {
			fmt.Fprintln(errs, "Note: "+note)
		}
	default:
		width, _ := screen.Of(out)
		text = line.table(width)
	}
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}
