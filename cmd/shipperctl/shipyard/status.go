// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"shipper.dev/shipper/apis/rules/printable"
	rules "shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/screen"
)

func newStatus(o *options) *cobra.Command {
	var watch bool
	var format cli.Format
	cmd := &cobra.Command{
		Use:   "status RUN",
		Short: "Show one run: its tasks, what it waits for, and the runs that follow from it",
		Long: "Show one run: its tasks, what it waits for, and the runs that follow from it. With --watch it ends with the run, and exits as\n" +
			"`shipperctl shipyard wait` does.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, run, err := o.readRun(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			s := &show{options: o, client: c, out: cmd.OutOrStdout(), format: format, key: client.ObjectKeyFromObject(run)}
			if watch {
				return s.watch(cmd.Context())
			}
			seen, err := s.observe(cmd.Context())
			if err != nil {
				return err
			}
			return s.print(seen.view(o.clock.Now()))
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on showing what changes, until the run is finished")
	format.Register(cmd.Flags())
	return cmd
}

func newWait(o *options) *cobra.Command {
	var timeout time.Duration
	var all bool
	cmd := &cobra.Command{
		Use:   "wait RUN",
		Short: "Wait until a run is finished",
		Long: "Wait until a run is finished, and show it. The exit code is 0 for pass and warning, 1 for fail, and 4 after --timeout. With\n" +
			"--follow-ups it waits for the whole delivery: all runs of the same context, also those whose stage still requires something.\n" +
			"It fails if one of them fails or is refused.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("timeout") {
				if err := cli.CheckTimeout(timeout); err != nil {
					return err
				}
			}
			c, run, err := o.readRun(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			s := &show{options: o, client: c, out: cmd.OutOrStdout(), key: client.ObjectKeyFromObject(run)}
			return s.await(cmd.Context(), timeout, all)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long to wait; then it exits with 4 (default without end)")
	cmd.Flags().BoolVar(&all, "follow-ups", false, "wait for the runs that follow from it, too, in all stages")
	return cmd
}

// show prints a run, again and again or once.
type show struct {
	*options
	client client.WithWatch
	key    client.ObjectKey
	out    io.Writer
	format cli.Format
	// last is the text printed last.
	last string
}

// observed is a run, and the runs of its Shipyard.
type observed struct {
	run    *shipper.SequenceRun
	others []shipper.SequenceRun
}

func (o *observed) view(now time.Time) *View {
	v := viewOf(o.run, o.others)
	if !v.Finished {
		v.Unanswered = cli.Unanswered(o.run, o.run.Status.ObservedGeneration, now)
	}
	return v
}

func (s *show) observe(ctx context.Context) (*observed, error) {
	out := &observed{run: &shipper.SequenceRun{}}
	if err := s.client.Get(ctx, s.key, out.run); err != nil {
		return nil, fmt.Errorf("reading run %s: %w", s.key, err)
	}
	var list shipper.SequenceRunList
	if err := s.client.List(ctx, &list, besides(out.run)...); err != nil {
		return nil, fmt.Errorf("listing runs of shipyard %s: %w", out.run.Spec.Shipyard, err)
	}
	out.others = list.Items
	return out, nil
}

// besides selects the runs of the same Shipyard.
func besides(run *shipper.SequenceRun) []client.ListOption {
	out := []client.ListOption{client.InNamespace(run.Namespace)}
	if name := run.Labels[shipper.ShipyardLabel]; name != "" {
		out = append(out, client.MatchingLabels{shipper.ShipyardLabel: name})
	}
	return out
}

// print prints a view, unless it is the same as the last.
func (s *show) print(v *View) error {
	text, err := s.text(v)
	if err != nil || text == s.last {
		return err
	}
	first := s.last == ""
	s.last = text
	switch {
	case first:
	case s.format == cli.YAML:
		text = "---\n" + text
	case s.format.ForPeople():
		text = "\n" + text
	}
	if _, err := io.WriteString(s.out, text); err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
}

func (s *show) text(v *View) (string, error) {
	switch s.format {
	case cli.JSON: // one line for each view, as programs read a stream
		raw, err := json.Marshal(v)
		if err != nil {
			return "", fmt.Errorf("writing JSON: %w", err)
		}
		return string(raw) + "\n", nil
	case cli.YAML:
		raw, err := yaml.Marshal(v)
		if err != nil {
			return "", fmt.Errorf("writing YAML: %w", err)
		}
		return string(raw), nil
	}
	width, _ := screen.Of(s.out)
	return v.Text(width, s.clock.Now()), nil
}

// await waits for the end of a run, or of all runs of its context, and shows the run then.
func (s *show) await(ctx context.Context, timeout time.Duration, all bool) error {
	within := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	var last *observed
	var pending []string
	var failed error
	ended := false
	err := s.follow(within, func(o *observed) (bool, error) {
		last = o
		pending, failed = awaited(o, all)
		ended = len(pending) == 0
		return ended, nil
	})
	if last != nil && (err == nil || errors.Is(err, context.DeadlineExceeded)) {
		err = errors.Join(err, s.print(last.view(s.clock.Now())))
	}
	switch {
	case ended:
		return errors.Join(err, failed)
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && within.Err() == nil:
		return err
	}
	return cli.WithCode(cli.TimedOut, fmt.Errorf("not finished within %s: %s", timeout, strings.Join(pending, "; ")))
}

// awaited lists what is not finished yet: the run, and with all the runs of its context. The error says what failed, once nothing is
// pending. It is pure.
func awaited(o *observed, all bool) ([]string, error) {
	if !all {
		if isFinished(o.run) {
			return nil, failure(o.run)
		}
		return []string{"run " + o.run.Name + " is " + stateOf(o.run)}, nil
	}
	runs := delivery(o)
	type key struct{ stage, sequence string }
	there := map[key]bool{}
	for _, run := range runs {
		there[key{run.Spec.Stage, run.Spec.Sequence}] = true
	}
	names := byName(o.others)
	var pending []string
	var failed []error
	for _, run := range runs {
		if !isFinished(run) {
			pending = append(pending, "run "+run.Name+" is "+stateOf(run))
			continue
		}
		if err := failure(run); err != nil {
			failed = append(failed, err)
		}
		for _, t := range run.Status.Triggered {
			switch {
			case names[t.Name] != nil || t.CreateTime != nil, there[key{t.Stage, t.Sequence}]: // of several that trigger it, one creates it
			case t.Refused:
				failed = append(failed, cli.WithCode(cli.Failed, fmt.Errorf("sequence %s of stage %s was not run: %s", t.Sequence, t.Stage,
					printable.OneLine(t.Message))))
			default:
				pending = append(pending, notThere(&t))
			}
		}
	}
	if len(pending) > 0 {
		return pending, nil
	}
	return nil, errors.Join(failed...)
}

// notThere says why a run that was triggered is not there yet.
func notThere(t *shipper.TriggeredRun) string {
	if t.Message == "" {
		return "run " + t.Name + " is not created yet"
	}
	return fmt.Sprintf("sequence %s of stage %s waits: %s", t.Sequence, t.Stage, printable.OneLine(t.Message))
}

// delivery are the runs of the context of a run, itself included.
func delivery(o *observed) []*shipper.SequenceRun {
	out := []*shipper.SequenceRun{o.run}
	for i := range o.others {
		if other := &o.others[i]; other.Name != o.run.Name && rules.ContextOf(other) != "" && rules.ContextOf(other) == rules.ContextOf(o.run) {
			out = append(out, other)
		}
	}
	return out
}

// collectInterval is how long changes are collected before they are shown.
const collectInterval = 200 * time.Millisecond

// redrawInterval is how long a view stands on a terminal before it is drawn again, that the ages in it are right.
const redrawInterval = time.Second

// watch shows the run whenever it changes, until it is finished.
func (s *show) watch(ctx context.Context) error {
	var last *observed
	var mu sync.Mutex
	do := func(o *observed) error { return s.print(o.view(s.clock.Now())) }
	if s.format.ForPeople() && screen.Draws(s.out) {
		canvas := screen.Open(s.out)
		draw := func() error {
			mu.Lock()
			defer mu.Unlock()
			if last == nil {
				return nil
			}
			text, err := s.text(last.view(s.clock.Now()))
			if err != nil {
				return err
			}
			return canvas.Draw(text)
		}
		ended, stop := context.WithCancel(ctx)
		var redrawing sync.WaitGroup
		redrawing.Go(func() {
			wait.UntilWithContext(ended, func(context.Context) { _ = draw() }, redrawInterval) // do reports what cannot be written
		})
		defer func() {
			stop()
			redrawing.Wait()
			canvas.Close()
			if last != nil {
				_ = s.print(last.view(s.clock.Now())) // the terminal is gone if this fails
			}
		}()
		do = func(*observed) error { return draw() }
	}
	err := s.follow(ctx, func(o *observed) (bool, error) {
		mu.Lock()
		last = o
		mu.Unlock()
		return isFinished(o.run), do(o)
	})
	if err == nil && last != nil && isFinished(last.run) {
		return failure(last.run)
	}
	return err
}

// follow observes the run whenever it, or another run of its Shipyard, changes, until do is done. Being interrupted is no error.
func (s *show) follow(ctx context.Context, do func(*observed) (done bool, err error)) error {
	for ctx.Err() == nil {
		done, err := s.followOnce(ctx, do)
		if done || err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// followOnce follows until the API server ends the watch.
func (s *show) followOnce(ctx context.Context, do func(*observed) (done bool, err error)) (bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen, err := s.observe(ctx)
	if err != nil {
		return false, err
	}
	w, err := s.client.Watch(ctx, &shipper.SequenceRunList{}, besides(seen.run)...)
	if err != nil {
		return false, fmt.Errorf("watching runs: %w", err)
	}
	defer w.Stop()
	for {
		if seen, err = s.observe(ctx); err != nil {
			return false, err
		}
		if done, err := do(seen); done || err != nil {
			return done, err
		}
		select {
		case <-ctx.Done():
			return false, nil
		case _, open := <-w.ResultChan():
			if !open {
				return false, nil
			}
		}
		collect(ctx, w.ResultChan())
	}
}

// collect reads changes for a moment, that related ones are shown at once.
func collect[T any](ctx context.Context, changes <-chan T) {
	timer := time.NewTimer(collectInterval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case _, open := <-changes:
			if !open {
				return
			}
		}
	}
}
