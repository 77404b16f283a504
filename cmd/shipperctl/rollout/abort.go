// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

type abort struct {
	*options
	wait    bool
	timeout time.Duration
}

func newAbort(o *options) *cobra.Command {
	a := &abort{options: o}
	cmd := &cobra.Command{
		Use:   "abort APPLICATION",
		Short: "Give the newest release up: the one before it gets its Pods and traffic back, then it is removed",
		Long: "Give the newest release up: the one before it gets its Pods and traffic back, then it is removed. The command returns at once,\n" +
			"unless --wait is given.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(cmd, args[0]) },
	}
	cmd.Flags().BoolVar(&a.wait, "wait", false, "wait until the deleted release is gone and the one before it has achieved its step")
	cmd.Flags().DurationVar(&a.timeout, "timeout", 0, "how long to wait, with --wait; then it exits with 4 (default without end)")
	return cmd
}

func (a *abort) run(cmd *cobra.Command, arg string) error {
	if cmd.Flags().Changed("timeout") && (!a.wait || a.timeout <= 0) {
		return cli.WithCode(cli.Misused, errors.New("--timeout must be more than 0, and is for --wait: give --wait as well"))
	}
	c, namespace, err := a.Client()
	if err != nil {
		return err
	}
	key, out := cli.ApplicationKey(namespace, arg), cmd.OutOrStdout()
	app, rels, deleting, err := cli.ReadApplicationWithDeleting(cmd.Context(), c, key)
	if err != nil {
		return err
	}
	given, err := toAbort(app, rels, deleting)
	if err != nil {
		return err
	}
	if given.DeletionTimestamp.IsZero() {
		before := rels[len(rels)-2]
		// Background: foreground deletion would remove the targets, and the Pods that serve, before the Release.
		err := c.Delete(cmd.Context(), given, client.Preconditions{UID: &given.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if err != nil {
			return fmt.Errorf("deleting release %s: %w", given.Name, err)
		}
		fmt.Fprintf(out, "release %s is given up, %s comes back; %s is removed when %s is at its step again\n",
			given.Name, called(before), given.Name, before.Name)
	} else {
		fmt.Fprintf(out, "release %s is being deleted already\n", given.Name)
	}
	if !a.wait {
		return nil
	}
	return a.await(cmd.Context(), &show{options: a.options, client: c, key: key, out: out}, given)
}

// toAbort is the Release to delete, or the one that an earlier abort deleted and that Shipper still keeps. A repeated command must not
// delete the next one too, and so refuses a complete Release.
func toAbort(app *shipper.Application, rels, deleting []*shipper.Release) (*shipper.Release, error) {
	if n := len(deleting); n > 0 && newer(deleting[n-1], rels) {
		return deleting[n-1], nil
	}
	if len(rels) == 0 {
		return nil, fmt.Errorf("application %s/%s has no release yet: `shipperctl rollout status` says why", app.Namespace, app.Name)
	}
	rel := rels[len(rels)-1]
	switch {
	case len(rels) == 1:
		return nil, fmt.Errorf("release %s is the only one: it would be made again; to take everything away, delete the application", rel.Name)
	case strategy.Complete(rel):
		return nil, fmt.Errorf("release %s is complete, nothing is being rolled out: to go back to an earlier one there is "+
			"`shipperctl rollout rollback`", rel.Name)
	}
	return rel, nil
}

// serving reports whether a Release has traffic anywhere.
func serving(o *observed, rel *shipper.Release) bool {
	tt := o.traffic[rel.Name]
	return tt != nil && slices.ContainsFunc(tt.Status.Clusters, func(c shipper.ClusterTrafficStatus) bool { return c.AchievedTraffic > 0 })
}

// newer reports whether a Release comes after all of rels, which are oldest first.
func newer(rel *shipper.Release, rels []*shipper.Release) bool {
	if len(rels) == 0 {
		return true
	}
	sorted, _ := stamp.SortByGeneration([]*shipper.Release{rels[len(rels)-1], rel})
	return len(sorted) == 2 && sorted[1] == rel
}

// await prints the progress of an abort until the deleted Release is gone and the newest one left has achieved its step.
func (a *abort) await(ctx context.Context, s *show, given *shipper.Release) error {
	last := ""
	done, err := s.followFor(ctx, a.timeout, func(o *observed) (bool, error) {
		text, over, err := abortProgress(o, given, s.clock.Now())
		if err == nil && text != last {
			last = text
			_, err = io.WriteString(s.out, text+"\n")
		}
		return over, err
	})
	if err != nil || done {
		return err
	}
	return cli.WithCode(cli.TimedOut, fmt.Errorf("the abort was not over within %s: %s", a.timeout, last))
}

// abortProgress describes how far an abort is, and whether it is over. It is pure.
func abortProgress(o *observed, given *shipper.Release, now time.Time) (text string, over bool, err error) {
	for _, rel := range o.deleting {
		if rel.UID == given.UID {
			return "release " + rel.Name + " is " + removal(rel), false, nil
		}
	}
	for _, rel := range o.releases {
		if rel.UID == given.UID { // the cache is older than the deletion
			return "release " + rel.Name + " is being deleted", false, nil
		}
	}
	pending, err := awaited(o, asked, now)
	switch {
	case err != nil:
		return "", false, err
	case len(pending) > 0:
		return "release " + given.Name + " is removed; the rollout waits for " + strings.Join(pending, "; "), false, nil
	}
	back := o.releases[len(o.releases)-1]
	if serving(o, back) {
		return "release " + given.Name + " is removed, " + called(back) + " serves in its place", true, nil
	}
	text = "release " + given.Name + " is removed, " + called(back) + " is at its step again, without traffic"
	if before := incumbentOf(o); before != nil && serving(o, before) {
		text += "; " + before.Name + " serves"
	}
	return text, true, nil
}

// called names a Release that an abort brings back, and says if its own rollout has failed.
func called(rel *shipper.Release) string {
	if shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseFailed) {
		return rel.Name + " (which has failed, too)"
	}
	return rel.Name
}

func removal(rel *shipper.Release) string {
	c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseStrategyExecuted)
	if c == nil || !strings.HasPrefix(c.Message, deletingPrefix) {
		return "being deleted"
	}
	return c.Message
}

// deletingPrefix begins the message of the condition StrategyExecuted of a Release that is being deleted.
const deletingPrefix = "being deleted"
