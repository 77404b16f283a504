// SPDX-License-Identifier: Apache-2.0

package sequencerun

import (
	"context"
	"math"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/shipyard"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/response"
)

// validateUpdate refuses changes of the labels and the owner that Shipper wrote.
func (w *Webhook) validateUpdate(ctx context.Context, req *admission.Request, a *response.Response, run, old *shipper.SequenceRun) error {
	if err := w.Guard.Check(ctx, req, protected.SequenceRun, &old.ObjectMeta, &run.ObjectMeta); err != nil {
		return err
	}
	errs, err := w.ownerOf(old).Check(ctx, &old.ObjectMeta, &run.ObjectMeta)
	if err != nil {
		return response.Later(err.Error(), authz.RetryAfter)
	}
	if !w.isFollowUp(req) && !protected.IsController(req.UserInfo.Username) {
		errs = append(errs, protected.ForeignOwners(&old.ObjectMeta, &run.ObjectMeta, "Shipyard")...)
	}
	if err := response.Invalidate(kind, run.Name, errs); err != nil {
		return err
	}
	if shipyard.IsFinished(old) && (run.Spec.Hold != old.Spec.Hold || run.Spec.Abort != old.Spec.Abort) {
		a.Warn("run %s has finished: hold and abort change nothing; to repeat it, create a run with retryOf", run.Name)
	}
	return nil
}

// warn says what a new run will wait for.
func (w *Webhook) warn(ctx context.Context, a *response.Response, run *shipper.SequenceRun) error {
	if err := w.warnOfBlocks(ctx, a, run); err != nil {
		return err
	}
	known, err := w.State.Runs(shipyardKey(run))
	if err != nil {
		return err
	}
	queue := slices.DeleteFunc(slices.Clone(known), func(other *shipper.SequenceRun) bool {
		return other.Spec.Stage != run.Spec.Stage || other.Spec.Service != run.Spec.Service || other.Name == run.Name
	})
	newest := run.DeepCopy()
	newest.Status.Order = math.MaxInt64
	queue = shipyard.Queue(append(queue, newest))
	if at := slices.Index(queue, newest); at > 0 {
		var names []string
		for _, other := range queue[:at] {
			names = append(names, other.Name)
		}
		a.Warn("this run is behind %d of service %s in stage %s: %s", at, run.Spec.Service, run.Spec.Stage, listed(names))
	}
	return nil
}

// listed are the last of names.
func listed(names []string) string {
	const most = 3
	if len(names) > most {
		names = append([]string{"…"}, names[len(names)-most:]...)
	}
	return strings.Join(names, ", ")
}

// warnOfBlocks names the RolloutBlocks that stop the deployment of a run now. It waits for their end.
func (w *Webhook) warnOfBlocks(ctx context.Context, a *response.Response, run *shipper.SequenceRun) error {
	if !shipyard.Deploys(run) {
		return nil
	}
	key := shipyard.ApplicationOfRun(run)
	if bearing, err := w.BlockCheck.Blocks.BlocksFor(key.Namespace); err != nil || len(bearing) == 0 {
		return err
	}
	app, err := w.State.WholeApplicationNow(ctx, key)
	if err != nil || app == nil {
		return nil // it was there; a warning is not worth a refusal
	}
	rels, err := w.State.Releases(key)
	if err != nil {
		return err
	}
	ordered, _ := stamp.SortByGeneration(stamp.Own(app, rels))
	around := w.State.Around(app.Name, ordered)
	around.Labels = []map[string]string{app.Labels}
	next := app.Spec.Template.DeepCopy()
	next.Chart.Version = shipyard.VersionOf(run).Version
	verdict, err := w.BlockCheck.Verdict(key.Namespace, block.Overrides(app.Annotations), around.Edit(&app.Spec.Template, next))
	if err != nil || len(verdict.Effective) == 0 {
		return err
	}
	a.Warn("%s: the deployment to Application %s waits until they end, or are overridden there", verdict.Message(), key)
	return nil
}
