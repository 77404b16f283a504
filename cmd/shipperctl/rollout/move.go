// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

func newAdvance(o *options) *cobra.Command {
	var step int
	var force, skip bool
	cmd := &cobra.Command{
		Use:   "advance APPLICATION",
		Short: "Go to the next step, or to one that is further on",
		Long: "Go to the next step, or to one that is further on. A step with a gate is passed only when it is achieved, or with --skip by a\n" +
			"user with the verb skip on the release. From the last step of a wave, go to the first step of the next one: the wave has to be done.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkStep(cmd, step); err != nil {
				return err
			}
			return o.moveTo(cmd, args[0], func(rel *shipper.Release) (position.Position, error) {
				return advanceTo(rel, step, force || skip, skip)
			})
		},
	}
	stepVar(cmd, &step, "index of the step to go to (default the next one)")
	cmd.Flags().BoolVar(&force, "force", false, "do not wait until the step before is achieved")
	cmd.Flags().BoolVar(&skip, "skip", false, "pass gates of steps that are not achieved; the verb skip on the release is needed")
	return cmd
}

func newRetreat(o *options) *cobra.Command {
	var step int
	cmd := &cobra.Command{
		Use:   "retreat APPLICATION",
		Short: "Retreat to the step before, or to an earlier one",
		Long: "Retreat to the step before, or to an earlier one. From the first step of a wave, retreat to the end of the wave before: the\n" +
			"clusters of the wave return to the release that served there.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkStep(cmd, step); err != nil {
				return err
			}
			return o.moveTo(cmd, args[0], func(rel *shipper.Release) (position.Position, error) { return retreatTo(rel, step) })
		},
	}
	stepVar(cmd, &step, "index of the step to retreat to (default the one before)")
	return cmd
}

// checkStep refuses a --step that no release can have.
func checkStep(cmd *cobra.Command, step int) error {
	if step < 0 && cmd.Flags().Changed("step") {
		return cli.WithCode(cli.Misused, fmt.Errorf("--step is %d: steps are counted from 0", step))
	}
	return nil
}

// advanceTo is the position to go on to. From the last step of a wave that is the first step of the next.
func advanceTo(rel *shipper.Release, step int, force, skip bool) (position.Position, error) {
	s, at := rel.Spec.Environment.Strategy, position.Of(rel)
	next, _ := at.Next(s)
	if len(s.Steps) == 0 && next == at && position.HasWaves(rel) {
		return at, fmt.Errorf("release %s is in its last wave, %s, already", rel.Name, position.WaveName(s, at.Wave))
	}
	if step < 0 && at.Step == s.LastStep() && s.BeforeTasksAt(at.Wave, at.Step) != nil && !hasBegun(rel) {
		return at, fmt.Errorf("wave %s of release %s has not begun, and has no further step to skip to: approve it (shipperctl rollout approve)"+
			", wait for its beforeTasks, or change the template", position.WaveName(s, at.Wave), rel.Name)
	}
	if step >= 0 || next.Wave == at.Wave {
		to, err := advance(rel, step, force, skip)
		return position.Position{Wave: at.Wave, Step: int32(to)}, err
	}
	if position.Achieved(rel) != at && !skip {
		return at, fmt.Errorf("wave %s of release %s is not done: `shipperctl rollout status` says what it waits for, and a user with the verb "+
			"skip passes it by --skip", position.WaveName(s, at.Wave), rel.Name)
	}
	return next, nil
}

// hasBegun reports whether the beforeTasks of the wave have passed since the Release was moved there.
func hasBegun(rel *shipper.Release) bool {
	p := rel.Status.Progress
	return strategy.IsCurrent(rel, p) && p.EnteredTime != nil
}

// retreatTo is the position to go back to. From the first step of a wave that is the last step of the wave before.
func retreatTo(rel *shipper.Release, step int) (position.Position, error) {
	at := position.Of(rel)
	if step < 0 && at.Step == 0 && at.Wave > 0 {
		before, _ := at.Previous(rel.Spec.Environment.Strategy)
		return before, nil
	}
	to, err := retreat(rel, step)
	return position.Position{Wave: at.Wave, Step: int32(to)}, err
}

// advance is the step to go on to; step is the one that was asked for, or -1.
func advance(rel *shipper.Release, step int, force, skip bool) (int, error) {
	now, last := int(rel.Spec.TargetStep), lastStep(rel)
	if step < 0 {
		step = now + 1
	}
	achieved := position.Achieved(rel) == position.Of(rel)
	switch {
	case now >= last:
		return 0, fmt.Errorf("release %s is at its last step, %d (%s), already", rel.Name, now, stepName(rel, now))
	case step > last:
		return 0, fmt.Errorf("release %s has no step %d: its last is %d (%s)", rel.Name, step, last, stepName(rel, last))
	case step <= now:
		return 0, fmt.Errorf("release %s is at step %d (%s): to go back there is `shipperctl rollout retreat`", rel.Name, now, stepName(rel, now))
	case !achieved && gated(rel, now) && !skip:
		return 0, fmt.Errorf("step %d (%s) of release %s is a gate and is not achieved: `shipperctl rollout status` says what it waits for%s, "+
			"and a user with the verb skip passes it by --skip", now, stepName(rel, now), rel.Name, approvable(rel))
	case !achieved && !gated(rel, now) && !force:
		return 0, fmt.Errorf("release %s has not achieved step %d (%s) yet: `shipperctl rollout status` says what it waits for, "+
			"and --force advances without that", rel.Name, now, stepName(rel, now))
	}
	return step, nil
}

// approvable names the command by which other users open the gate that a Release is at.
func approvable(rel *shipper.Release) string {
	if progressOf(rel).asked(rel) != nil {
		return ", `shipperctl rollout approve` approves it"
	}
	return ""
}

func gated(rel *shipper.Release, i int) bool {
	return rel.Spec.Environment.Strategy.GatedIn(position.Of(rel).Wave, int32(i))
}

// retreat is the step to go back to; step is the one that was asked for, or -1.
func retreat(rel *shipper.Release, step int) (int, error) {
	now := int(rel.Spec.TargetStep)
	if step < 0 {
		step = now - 1
	}
	switch {
	case now == 0:
		return 0, fmt.Errorf("release %s is at its first step: to give it up there is `shipperctl rollout abort`", rel.Name)
	case step >= now:
		return 0, fmt.Errorf("release %s is at step %d (%s): to go on there is `shipperctl rollout advance`", rel.Name, now, stepName(rel, now))
	}
	return step, nil
}

func lastStep(rel *shipper.Release) int { return int(rel.Spec.Environment.Strategy.LastStep()) }

func stepName(rel *shipper.Release, i int) string {
	if s := rel.Spec.Environment.Strategy; s != nil && i >= 0 && i < len(s.Steps) {
		return s.Steps[i].Name
	}
	return "unknown"
}

// moveTo sets the position of an Application's newest Release to the result of decide, unless it has changed meanwhile.
func (o *options) moveTo(cmd *cobra.Command, app string, decide func(*shipper.Release) (position.Position, error)) error {
	ctx := cmd.Context()
	c, _, rels, err := o.read(ctx, app)
	if err != nil {
		return err
	}
	rel := rels[len(rels)-1]
	to, err := decide(rel)
	if err != nil {
		return err
	}
	step, wave := int(to.Step), ""
	if position.HasWaves(rel) {
		wave = " in wave " + position.WaveName(rel.Spec.Environment.Strategy, to.Wave)
	}
	patch, err := moveIf(rel, to)
	if err != nil {
		return err
	}
	if err := c.Patch(ctx, rel, patch); err != nil {
		return fmt.Errorf("moving release %s to step %d: %w", rel.Name, step, explainConflict(err))
	}
	if s := rel.Spec.Environment.Strategy; position.HasWaves(rel) && len(s.Steps) == 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "release %s goes to %s\n", rel.Name, to.In(s))
		return nil
	}
	fmt.Fprintf(cmd.OutOrStdout(), "release %s goes to step %d of %d (%s)%s\n", rel.Name, step, lastStep(rel), stepName(rel, step), wave)
	return nil
}

// moveIf moves a Release that is where it was read to be. Where there are waves, that is two fields: the whole object has to be as it
// was, or a step of one wave could be requested in the next.
func moveIf(rel *shipper.Release, to position.Position) (client.Patch, error) {
	if !position.HasWaves(rel) {
		return cli.PatchIf("/spec/targetStep", to.Step, "/spec/targetStep", rel.Spec.TargetStep)
	}
	was := rel.DeepCopy()
	is := rel.DeepCopy()
	to.Set(is)
	patch := client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})
	data, err := patch.Data(is)
	if err != nil {
		return nil, fmt.Errorf("writing a patch: %w", err)
	}
	return client.RawPatch(patch.Type(), data), nil
}

// patchFailed is the API server's only message about a JSON patch whose test failed.
const patchFailed = "the server rejected our request due to an error in our request"

// explainConflict explains a patch of cli.PatchIf that failed: the tested field has changed.
func explainConflict(err error) error {
	if apierrors.IsInvalid(err) && strings.Contains(err.Error(), patchFailed) {
		return cli.WithCode(cli.Failed, errors.New("another user changed it meanwhile: "+
			"look at it, and run this again if it is still right"))
	}
	return err
}

// read reads an Application and its Releases, oldest first; having none is an error.
func (o *options) read(ctx context.Context, arg string) (client.Client, *shipper.Application, []*shipper.Release, error) {
	c, namespace, err := o.Client()
	if err != nil {
		return nil, nil, nil, err
	}
	app, rels, err := cli.ReadApplication(ctx, c, cli.ApplicationKey(namespace, arg))
	if err != nil {
		return nil, nil, nil, err
	}
	if len(rels) == 0 {
		return nil, nil, nil, fmt.Errorf("application %s/%s has no release yet: `shipperctl rollout status` says why", app.Namespace, app.Name)
	}
	return c, app, rels, nil
}

func newRollback(o *options) *cobra.Command {
	var wanted wanted
	cmd := &cobra.Command{
		Use:   "rollback APPLICATION",
		Short: "Roll out what an earlier release was made of, through all steps or at once",
		Long: "Roll out what an earlier release was made of, through all steps or at once: spec.rollbackTo asks for it, and the webhook\n" +
			"judges it. What the newest release has already is not rolled out again; that is said, and no failure.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if wanted.generation < 0 {
				return cli.WithCode(cli.Misused, fmt.Errorf("--to-generation is %d: generations are counted from 0", wanted.generation))
			}
			c, app, rels, err := o.read(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			goal, err := wanted.goal(app, rels)
			if err != nil {
				return err
			}
			patch, err := cli.PatchIf("/spec/rollbackTo", goal, "/metadata/generation", app.Generation)
			if err != nil {
				return err
			}
			if err := c.Patch(cmd.Context(), app, patch); err != nil {
				return fmt.Errorf("rolling application %s back: %w", client.ObjectKeyFromObject(app), explainConflict(err))
			}
			said, err := rolledBack(app, rels)
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), said)
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&wanted.release, "to", "", "the release to go back to (default the newest complete one before the newest)")
	flags.Int64Var(&wanted.generation, "to-generation", 0,
		"the generation to go back to, as \"rollout history\" has it; 0 is the newest complete one before the newest")
	flags.BoolVar(&wanted.immediate, "immediate", false, "ask for the last step at once")
	cmd.MarkFlagsMutuallyExclusive("to", "to-generation")
	return cmd
}

// wanted has the flags of a rollback.
type wanted struct {
	release    string
	generation int64
	immediate  bool
}

// goal is the rollbackTo for the flags. Without a named Release it names the previous one: asking for "the one before" twice could
// mean two Releases.
func (w wanted) goal(app *shipper.Application, rels []*shipper.Release) (shipper.RollbackTo, error) {
	to := shipper.RollbackTo{Release: w.release, Generation: w.generation}
	if w.immediate {
		to.Strategy = shipper.RollbackImmediate
	}
	if to.Release == "" && to.Generation == 0 {
		rel := strategy.Previous(rels, &app.Spec.Template)
		if rel == nil {
			return to, fmt.Errorf("no release before %s has completed: name one with --to, `shipperctl rollout history` lists them",
				rels[len(rels)-1].Name)
		}
		to.Release = rel.Name
	}
	return to, nil
}

// rolledBack describes the result of a rollback: app is as stored, rels were its Releases before, oldest first.
func rolledBack(app *shipper.Application, rels []*shipper.Release) (string, error) {
	key, env, newest := client.ObjectKeyFromObject(app), &app.Spec.Template, rels[len(rels)-1]
	_, content := stamp.NextContent(app, rels)
	switch {
	case app.Spec.RollbackTo != nil:
		return "", fmt.Errorf("application %s is asked to roll back, and does not: the webhook did not see it; "+
			"`shipperctl doctor` says why, then take spec.rollbackTo out and run this again", key)
	case !content && stamp.SameTemplate(env, &newest.Spec.Environment):
		return fmt.Sprintf("application %s has that environment already, in release %s: nothing is rolled out", key, newest.Name), nil
	}
	what := strings.TrimSpace(env.Chart.Name + " " + env.Chart.Version)
	if env.Resources != nil {
		what = "its resources"
	}
	return fmt.Sprintf("application %s rolls out the environment of release %s, %s", key, app.Annotations[shipper.AppRolledBackToAnnotation],
		what), nil
}
