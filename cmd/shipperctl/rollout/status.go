// SPDX-License-Identifier: Apache-2.0

// Package rollout is `shipperctl rollout`: it shows a rollout across its clusters, and moves it.
package rollout

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/screen"
)

type options struct {
	cli.Flags
	clock clock.PassiveClock
}

// NewCommand returns `rollout` with its sub-commands.
func NewCommand(clock clock.PassiveClock) *cobra.Command {
	o := &options{clock: clock}
	cmd := cli.Group("rollout", "Show a rollout, and move it",
		newStatus(o), newAdvance(o), newRetreat(o), newPause(o), newResume(o), newApprove(o), newReject(o, "reject"), newReject(o, "refuse"),
		newRetryChecks(o), newAbort(o), newRollback(o), newSet(o), newHistory(o), newDiff(o), newTest(o))
	o.RegisterDaily(cmd.PersistentFlags())
	return cmd
}

func newStatus(o *options) *cobra.Command {
	var watch, all bool
	var format cli.Format
	var w awaiting
	cmd := &cobra.Command{
		Use:   "status APPLICATION",
		Short: "Show one rollout across its clusters: steps, pods, traffic, what it waits for and what blocks it",
		Long: "Show one rollout across its clusters: steps, pods, traffic, what it waits for and what blocks it. With --wait it ends when\n" +
			"a step is achieved, for pipelines. With --all-namespaces it has one line for each application.",
		Args: func(cmd *cobra.Command, args []string) error {
			if all && len(args) > 0 {
				return fmt.Errorf("--all-namespaces shows every application: leave %q out", args[0])
			}
			if all {
				return nil
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := w.check(cmd); err != nil {
				return err
			}
			if all {
				if watch || w.wait || o.Namespace != "" {
					return cli.WithCode(cli.Misused, errAllNamespaces)
				}
				return o.printAll(cmd, format)
			}
			c, namespace, err := o.Client()
			if err != nil {
				return err
			}
			s := &show{options: o, client: c, out: cmd.OutOrStdout(), format: format, key: cli.ApplicationKey(namespace, args[0])}
			switch {
			case w.wait:
				return w.until(cmd.Context(), s, watch)
			case watch:
				return s.watch(cmd.Context())
			}
			p, err := s.observe(cmd.Context())
			if err != nil {
				return err
			}
			return s.print(p)
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on showing what changes, until the rollout is complete")
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "show the rollouts of all applications, one line each")
	w.register(cmd)
	format.Register(cmd.Flags())
	return cmd
}

type show struct {
	*options
	client client.WithWatch
	key    client.ObjectKey
	out    io.Writer
	format cli.Format
	// last is the text printed last.
	last string
}

func (s *show) observe(ctx context.Context) (*View, error) {
	o, err := observe(ctx, s.client, s.key)
	if err != nil {
		return nil, err
	}
	return viewOf(o, s.clock.Now()), nil
}

// text formats a view.
func (s *show) text(p *View, now time.Time) (string, error) {
	width, isTerminal := screen.Of(s.out)
	switch {
	case s.format == cli.JSON: // one line for each view, as programs read a stream
		raw, err := json.Marshal(p)
		if err != nil {
			return "", fmt.Errorf("writing JSON: %w", err)
		}
		return string(raw) + "\n", nil
	case s.format == cli.YAML:
		raw, err := yaml.Marshal(p)
		if err != nil {
			return "", fmt.Errorf("writing YAML: %w", err)
		}
		if s.last != "" {
			return "---\n" + string(raw), nil
		}
		return string(raw), nil
	case isTerminal:
		return p.Screen(width, now), nil
	}
	return screen.Printable(p.Lines(now)), nil
}

// print prints a view, unless it is the same as the last.
func (s *show) print(p *View) error {
	text, err := s.text(p, s.clock.Now())
	if err != nil || text == s.last {
		return err
	}
	s.last = text
	if _, err := io.WriteString(s.out, text); err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
}

// over reports whether a rollout is complete and nothing is pending.
func (p *View) over() bool { return p.Complete && len(p.Waiting) == 0 && len(p.Deleting) == 0 }

// awaiting are the flags of `rollout status` for pipelines.
type awaiting struct {
	wait    bool
	step    int
	timeout time.Duration
}

func (w *awaiting) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&w.wait, "wait", false,
		"wait until the step that is asked for is achieved, and the rollout complete if it is the last; then show it. A rollout that has\n"+
			"failed, by its progressDeadline or by a check, ends the wait with 1, and so does one that lacks only clusters which failed\n"+
			"within maxFailures")
	stepVar(cmd, &w.step, "index of the step to wait for, with --wait (default the one that is asked for)")
	cmd.Flags().DurationVar(&w.timeout, "timeout", 0, "how long to wait, with --wait; then it exits with 4 (default without end)")
}

// asked in place of a step means the one that is asked for.
const asked = -1

// stepVar adds --step, whose usage says what is done without it: help does not print -1 as the default.
func stepVar(cmd *cobra.Command, step *int, usage string) {
	cmd.Flags().IntVar(step, "step", asked, usage)
	cmd.Flags().Lookup("step").DefValue = "0"
}

func (w *awaiting) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	switch {
	case !w.wait && (changed("step") || changed("timeout")):
		return cli.WithCode(cli.Misused, errors.New("--step and --timeout are for --wait: give --wait as well"))
	case changed("step") && w.step < 0:
		return cli.WithCode(cli.Misused, fmt.Errorf("--step is %d: the first step is 0", w.step))
	case changed("timeout") && w.timeout <= 0:
		return cli.WithCode(cli.Misused, fmt.Errorf("--timeout is %s: it must be more than 0", w.timeout))
	}
	return nil
}

// until waits for a step, and shows the rollout at the end or on a timeout; with watch also every change.
func (w *awaiting) until(ctx context.Context, s *show, watch bool) error {
	var last *View
	var pending []string
	achieved, err := s.followFor(ctx, w.timeout, func(o *observed) (bool, error) {
		var err error
		if pending, err = awaited(o, w.step, s.clock.Now()); err != nil {
			return false, err
		}
		if last = viewOf(o, s.clock.Now()); watch && len(pending) > 0 {
			return false, s.print(last)
		}
		return len(pending) == 0, nil
	})
	if last != nil {
		err = errors.Join(err, s.print(last))
	}
	if err != nil || achieved {
		return err
	}
	return cli.WithCode(cli.TimedOut, fmt.Errorf("%s was not achieved within %s: it waits for %s",
		w.describe(), w.timeout, strings.Join(pending, "; ")))
}

func (w *awaiting) describe() string {
	if w.step == asked {
		return "the step that is asked for"
	}
	return fmt.Sprintf("step %d", w.step)
}

// awaited lists the conditions that a step still lacks; it is empty once the step is achieved. Waiting for a step that the strategy
// lacks is an error, and so is a rollout that has failed, or that waits for a person to repair failed clusters. It is pure.
func awaited(o *observed, step int, now time.Time) ([]string, error) {
	var rel *shipper.Release
	if n := len(o.releases); n > 0 {
		rel = o.releases[n-1]
	}
	switch text := unobserved(o.app, rel, now); {
	case text != "":
		return []string{text}, nil
	case rel == nil:
		return []string{"the first release to be made"}, nil
	}
	if text := cmp.Or(abortedAfter(o.app, rel), failedText(rel)); text != "" {
		return nil, errors.New(text)
	}
	target := int(rel.Spec.TargetStep)
	steps := 0
	if s := rel.Spec.Environment.Strategy; s != nil {
		steps = len(s.Steps)
	}
	if step == asked {
		step = target
	} else if step >= steps {
		return nil, fmt.Errorf("release %s has no step %d: its last one is %d", rel.Name, step, steps-1)
	}
	switch {
	case step == steps-1 && step == target && position.Of(rel).Wave == rel.Spec.Environment.Strategy.LastWave():
		if text := awaitsFailed(rel); text != "" {
			return nil, errors.New(text)
		}
		if !strategy.Complete(rel) {
			return orElse(waitsFor(rel), "release "+rel.Name+" to be complete"), nil
		}
	case step > target:
		return []string{fmt.Sprintf("release %s to be advanced, its target is step %d", rel.Name, target)}, nil
	case !reached(rel, step, target):
		return orElse(waitsFor(rel), fmt.Sprintf("step %d of release %s", step, rel.Name)), nil
	}
	return nil, nil
}

// reached reports whether a Release has achieved a step: just that one if it is the target, or one that is further on.
func reached(rel *shipper.Release, step, target int) bool {
	achieved := rel.Status.AchievedStep
	if achieved == nil {
		return false
	}
	if step == target {
		return position.Achieved(rel) == position.Of(rel)
	}
	return !position.Achieved(rel).Before(position.Position{Wave: position.Of(rel).Wave, Step: int32(step)})
}

func orElse(texts []string, text string) []string {
	if len(texts) == 0 {
		return []string{text}
	}
	return texts
}
