// SPDX-License-Identifier: Apache-2.0

package sequencerun

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/rights"
	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/index"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/response"
)

// request reads what a new run is judged by.
func (w *Webhook) request(ctx context.Context, run *shipper.SequenceRun) (*shipyard.Request, error) {
	out := &shipyard.Request{Run: run}
	var err error
	if out.Yard, err = w.State.ShipyardNow(ctx, shipyardKey(run)); err != nil {
		return nil, response.Later(err.Error(), authz.RetryAfter)
	}
	if out.Yard == nil {
		for _, other := range w.State.Shipyards() {
			if other.Namespace == run.Namespace {
				out.Others = append(out.Others, other.Name)
			}
		}
	}
	if of := run.Spec.RetryOf; of != nil {
		out.RetryOf, err = w.State.SequenceRunNow(ctx, types.NamespacedName{Namespace: run.Namespace, Name: of.Run})
		if err != nil {
			return nil, response.Later(err.Error(), authz.RetryAfter)
		}
	}
	out.Known, err = w.State.Runs(shipyardKey(run))
	return out, err
}

// judge refuses a new run as the reconciler would, and resolves it. It returns what the run skips of what its stage requires.
func (w *Webhook) judge(ctx context.Context, a *response.Response, run *shipper.SequenceRun) (skipped []string, err error) {
	r, err := w.request(ctx, run)
	if err != nil {
		return nil, err
	}
	resolved, refusal := shipyard.Resolve(r)
	if refusal != nil {
		return nil, refused(run, refusal)
	}
	run.Status.Resolved = resolved
	beside, err := w.State.RunsIn(run.Namespace)
	if err != nil {
		return nil, err
	}
	if why := shipyard.TooLarge(run, beside); why != "" {
		return nil, response.Forbid(resource, run.Name, why)
	}
	if err := w.permitRunner(ctx, run); err != nil {
		return nil, err
	}
	if shipyard.Deploys(run) && run.Spec.RetryOf == nil {
		if err := w.resolveVersion(ctx, a, run); err != nil {
			return nil, err
		}
	}
	known, err := w.refreshed(ctx, run, r.Known)
	if err != nil {
		return nil, err
	}
	skipped, refusal = shipyard.Admit(run, nil, known, w.Clock.Now())
	return skipped, refused(run, refusal)
}

// refreshed are known runs, read again in the stages that the stage of a run requires if the run lacks something: the cache may be behind.
func (w *Webhook) refreshed(ctx context.Context, run *shipper.SequenceRun, known []*shipper.SequenceRun) ([]*shipper.SequenceRun, error) {
	if unmet, _ := shipyard.Unmet(run, known, w.Clock.Now()); len(unmet) == 0 || run.Spec.SkipRequires != nil {
		return known, nil
	}
	var stages []string
	for _, one := range shipyard.StageOf(run).Requires {
		stages = append(stages, one.Stage)
	}
	slices.Sort(stages)
	out := slices.DeleteFunc(slices.Clone(known), func(other *shipper.SequenceRun) bool {
		return other.Spec.Service == run.Spec.Service && slices.Contains(stages, other.Spec.Stage)
	})
	for _, stage := range slices.Compact(stages) {
		found, err := w.State.RunsNow(ctx, shipyardKey(run), stage, run.Spec.Service)
		if err != nil {
			return nil, response.Later(err.Error(), authz.RetryAfter)
		}
		out = append(out, found...)
	}
	return out, nil
}

// refused is a refusal as the API server sends it; nil for none.
func refused(run *shipper.SequenceRun, why *shipyard.Refusal) error {
	switch {
	case why == nil:
		return nil
	case len(why.Invalid) > 0:
		return response.Invalidate(kind, run.Name, why.Invalid)
	}
	return response.Forbid(resource, run.Name, why.Forbidden)
}

// resolveVersion writes the version that a run deploys now.
func (w *Webhook) resolveVersion(ctx context.Context, a *response.Response, run *shipper.SequenceRun) error {
	app, err := w.State.WholeApplicationNow(ctx, shipyard.ApplicationOfRun(run))
	if err != nil {
		return response.Later(err.Error(), authz.RetryAfter)
	}
	want, refusal := shipyard.WantedChart(run, app)
	if refusal != nil {
		return refused(run, refusal)
	}
	version := &run.Status.Resolved.Version
	version.Name, version.Version = want.Name, want.Version
	found, err := w.Charts.Resolve(ctx, app.Namespace, want)
	what := fmt.Sprintf("chart %s %q", want.Name, want.Version)
	switch {
	case chart.Final(err):
		return refused(run, shipyard.NoSuchVersion(&want, err))
	case err != nil && index.IsExact(want.Version):
		a.Warn("%s was admitted unseen: %v", what, err)
		return nil
	case err != nil:
		return response.Unable(what + " cannot be resolved to a version now: " + err.Error() +
			"; try again in a minute, or name an exact version")
	}
	version.Version, version.Digest = found.Version, found.Digest
	if found.Stale {
		a.Warn("repository %s could not be asked since %s; %s was resolved to %s by what was known then", want.RepoURL,
			found.StaleSince.UTC().Format(time.RFC3339), what, found.Version)
	} else if found.Version != want.Version {
		a.Warn("%s was resolved to %s", what, found.Version)
	}
	return nil
}

// permitRunner refuses a run with tasks about an Application that the runner may not write. It also keeps a user from learning, by the name
// of a namespace in a Shipyard, what Applications others have.
func (w *Webhook) permitRunner(ctx context.Context, run *shipper.SequenceRun) error {
	if !shipyard.IsAboutApplication(shipyard.OwnSequence(run)) {
		return nil
	}
	account, key := run.Status.Resolved.ServiceAccountName, shipyard.ApplicationOfRun(run)
	allowed, err := w.Authz.May(ctx, rights.ServiceAccount(run.Namespace, account), authz.On("patch", "applications", key))
	switch {
	case err != nil:
		return response.Later(err.Error(), authz.RetryAfter)
	case !allowed:
		return refused(run, shipyard.RunnerMayNot(run))
	}
	return nil
}

// audit records a run that was started, and what it skips.
func audit(a *response.Response, run *shipper.SequenceRun, skipped []string) {
	a.Audit(response.AuditRunStarted, strings.TrimSpace(fmt.Sprintf("%s/%s of %s for %s %s", run.Spec.Stage, run.Spec.Sequence,
		run.Spec.Shipyard, run.Spec.Service, shipyard.VersionOf(run).Version)))
	if run.Spec.SkipRequires != nil {
		a.Audit(response.AuditRunOverridden, strings.Join(append([]string{run.Spec.SkipRequires.Reason}, skipped...), "; "))
	}
}

// dryRun says what would be done, as the status of the run would have it.
func dryRun(req *admission.Request, a *response.Response, run *shipper.SequenceRun) {
	if req.DryRun == nil || !*req.DryRun {
		return
	}
	r := run.Status.Resolved
	var tasks []string
	for i := range r.Sequence.Tasks {
		tasks = append(tasks, r.Sequence.Tasks[i].Name)
	}
	text := fmt.Sprintf("sequence %s of stage %s: %s", r.Sequence.Name, r.Stage.Name, strings.Join(tasks, ", "))
	if r.Version.Version != "" {
		text += fmt.Sprintf("; version %s of chart %s for Application %s", r.Version.Version, r.Version.Name, shipyard.ApplicationOfRun(run))
	}
	a.Warn("would run %s; by generation %d of Shipyard %s, as ServiceAccount %s", text, r.Revision.Generation, run.Spec.Shipyard,
		r.ServiceAccountName)
}
