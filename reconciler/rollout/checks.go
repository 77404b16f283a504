// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/check"
	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/progress"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// checksScope is what was read of the newest Release's checks.
type checksScope struct {
	// target is the Release's CheckTarget; nil when it has none.
	target *shipper.CheckTarget
	// found are the Checks that the requested step names, as far as they are there. Nil while the run of the step is under way, and before
	// the step first had what it wants.
	found map[types.NamespacedName]*shipper.Check
	// shared is the namespace with the Checks that all share.
	shared string
}

// observeChecks reads the CheckTarget of the newest Release, and the Checks of its step if their run has not begun.
func (r *Reconciler) observeChecks(ctx context.Context, s *scope) (checksScope, error) {
	out := checksScope{shared: r.sharedChecks}
	newest := s.history.Newest()
	if newest == nil || !newest.Spec.Environment.Strategy.HasChecks() {
		return out, nil
	}
	target := &shipper.CheckTarget{}
	err := r.client.Get(ctx, client.ObjectKeyFromObject(newest), target)
	switch {
	case err == nil:
		out.target = target
	case !apierrors.IsNotFound(err):
		return out, fmt.Errorf("reading CheckTarget %s/%s: %w", newest.Namespace, newest.Name, err)
	}
	if check.Current(out.target, newest) || !converged(newest) {
		return out, nil
	}
	out.found = map[types.NamespacedName]*shipper.Check{}
	for _, c := range check.Of(newest) {
		key, err := check.KeyOf(c.Check, newest.Namespace, out.shared)
		if err != nil {
			continue // the plan says so
		}
		found := &shipper.Check{}
		switch err := r.client.Get(ctx, key, found); {
		case err == nil:
			out.found[key] = found
		case !apierrors.IsNotFound(err):
			return out, fmt.Errorf("reading Check %s: %w", key, err)
		}
	}
	return out, nil
}

// converged reports whether the stored status says that a Release's requested step has had what it wants.
func converged(rel *shipper.Release) bool {
	p := rel.Status.Progress
	return strategy.IsCurrent(rel, p) && p.ConvergedTime != nil
}

// checksPlan is what is planned of the checks of the newest Release's step.
type checksPlan struct {
	// state is how far they are; nil when the step has none, or before they begin.
	state *check.State
	// run is the run that begins; nil when none does.
	run *shipper.CheckTargetSpec
}

// planChecks plans the run that begins when the step has what it wants.
func planChecks(s *scope, now metav1.Time) checksPlan {
	newest := s.history.Newest()
	if newest == nil || len(check.Of(newest)) == 0 {
		return checksPlan{}
	}
	if check.Current(s.checks.target, newest) {
		state := check.StateOf(s.checks.target)
		return checksPlan{state: &state}
	}
	if !converged(newest) {
		return checksPlan{}
	}
	rels := s.history.Releases()
	request := check.Request{
		Release: newest, Shared: s.checks.shared,
		Find: func(key types.NamespacedName) *shipper.Check { return s.checks.found[key] },
	}
	i := slices.Index(strategy.Roles(rels), strategy.Incumbent)
	if front := waves.Measured(newest, stamp.Clusters(newest)); position.HasWaves(newest) && len(front) > 0 {
		i = strategy.IncumbentIn(rels, front[0])
	}
	if i >= 0 {
		request.Incumbent = rels[i].Name
	}
	if t := s.checks.target; t != nil && stamp.OwnedBy(t, newest) {
		request.Last = t.Spec.Run
	}
	run, err := check.Plan(request, now.Time)
	if err != nil {
		return checksPlan{state: &check.State{
			Undecided: &check.Finding{Message: err.Error()}, Awaited: err.Error(),
		}}
	}
	return checksPlan{run: run}
}

// begins drops the run of a step that was gone back to, from which nothing goes on by itself, and of a Release that is complete or whose
// abort is not done with. Tests and Jobs run new Pods: none begin under a block.
func (p checksPlan) begins(s *scope, d progress.Decision, blocked string) checksPlan {
	is := d.Progress
	if p.run == nil || is == nil || is.MovedBack || strategy.Complete(s.history.Newest()) {
		p.run = nil
		return p
	}
	once := func(run shipper.CheckRun) bool { return check.Once(&run.Check) }
	if blocked != "" && slices.ContainsFunc(p.run.Checks, once) {
		p.run = nil
	}
	return p
}

// beginChecks writes the run into the CheckTarget.
func (r *pass) beginChecks(ctx context.Context, s *scope, run *shipper.CheckTargetSpec, d *releasesDone) error {
	newest := s.history.Newest()
	if was := s.checks.target; was != nil {
		is := was.DeepCopy()
		is.Spec = *run
		err := r.client.Patch(ctx, is, onlyIfUnchanged(was))
		if r.wrote(is); err != nil {
			return fmt.Errorf("beginning the checks of step %d in CheckTarget %s/%s: %w", run.Step, is.Namespace, is.Name, err)
		}
		return nil
	}
	is := &shipper.CheckTarget{ObjectMeta: targetMeta(newest), Spec: *run}
	err := r.client.Create(ctx, is)
	if r.wrote(is); err != nil {
		return fmt.Errorf("creating CheckTarget %s/%s: %w", is.Namespace, is.Name, err)
	}
	d.note(newest, targetCreated("CheckTarget", newest))
	return nil
}
