// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/shipyard"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/response"
)

var claimPath = field.NewPath("metadata", "annotations").Key(shipper.AppRunAnnotation)

// claimant is the run that a write claims, if the ServiceAccount that writes for this run sends it; nil if another user does. A run that
// may not write the Application now is refused.
func (w *Webhook) claimant(ctx context.Context, req *admission.Request, app *shipper.Application) (*shipper.SequenceRun, error) {
	text := app.Annotations[shipper.AppRunAnnotation]
	var claim shipper.RunClaim
	if text == "" || json.Unmarshal([]byte(text), &claim) != nil {
		return nil, nil
	}
	account, isAccount := strings.CutPrefix(req.UserInfo.Username, "system:serviceaccount:"+claim.Namespace+":")
	if raw, err := json.Marshal(claim); !isAccount || err != nil || string(raw) != text { // the policy compares the text
		return nil, nil
	}
	run, err := w.State.SequenceRunNow(ctx, types.NamespacedName{Namespace: claim.Namespace, Name: claim.Run})
	if err != nil {
		return nil, response.Later(err.Error(), authz.RetryAfter)
	}
	why := ""
	switch name := claim.Namespace + "/" + claim.Run; {
	case run == nil || string(run.UID) != claim.UID || run.Status.Resolved == nil:
		why = fmt.Sprintf("there is no run %s with uid %s", name, claim.UID)
	case run.Status.Resolved.ServiceAccountName != account:
		return nil, nil
	case shipyard.IsFinished(run):
		why = fmt.Sprintf("run %s has finished", name)
	case !deploysNow(run):
		why = fmt.Sprintf("task deployment of run %s is not under way", name)
	case shipyard.ApplicationOfRun(run) != key(app):
		why = fmt.Sprintf("run %s deploys to Application %s", name, shipyard.ApplicationOfRun(run))
	case stamp.Claim(shipyard.Claim(run)) != text:
		why = "the claim of run " + name + " is " + stamp.Claim(shipyard.Claim(run))
	}
	if why != "" {
		return nil, response.Invalidate(kind, app.Name, field.ErrorList{field.Invalid(claimPath, text, why)})
	}
	return run, nil
}

// deploysNow reports whether the task under way of a run is its deployment.
func deploysNow(run *shipper.SequenceRun) bool {
	task := shipyard.UnderWay(run)
	return task != nil && task.Name == shipyard.TaskDeployment && task.State == shipper.TaskTriggered
}

// claims reports whether a write has another claim than old, which is nil on creation.
func claims(app, old *shipper.Application) bool {
	text := app.Annotations[shipper.AppRunAnnotation]
	return text != "" && text != metaOf(old).Annotations[shipper.AppRunAnnotation]
}

// guarded is the metadata that a write may not change: without the claim if the runner of the claimed run sends it.
func (w *Webhook) guarded(ctx context.Context, req *admission.Request, app, old *shipper.Application) (protected.Metadata, error) {
	out := protected.Application
	if !claims(app, old) || req.UserInfo.Username == w.Guard.Reconciler {
		return out, nil
	}
	run, err := w.claimant(ctx, req, app)
	if err == nil && run != nil {
		out.Annotations = slices.DeleteFunc(slices.Clone(out.Annotations), func(name string) bool { return name == shipper.AppRunAnnotation })
	}
	return out, err
}

// dropClaim removes the claim of a template that is replaced, unless its run replaces it: the next Release is not that of the run.
func (w *Webhook) dropClaim(ctx context.Context, req *admission.Request, app, old *shipper.Application) error {
	if old == nil || app.Annotations[shipper.AppRunAnnotation] == "" || claims(app, old) {
		return nil
	}
	if run, err := w.claimant(ctx, req, app); err == nil && run != nil {
		return nil
	}
	delete(app.Annotations, shipper.AppRunAnnotation)
	return nil
}

// validateClaim refuses a claim by another user than the runner of the run, and a template that differs from the one before in more than
// the run delivers, which is what was approved.
func (w *Webhook) validateClaim(
	ctx context.Context, req *admission.Request, app, old *shipper.Application, specChanged bool,
) error {
	text := app.Annotations[shipper.AppRunAnnotation]
	if text == "" || !claims(app, old) && !specChanged || req.UserInfo.Username == w.Guard.Reconciler {
		return nil
	}
	run, err := w.claimant(ctx, req, app)
	switch {
	case err != nil && claims(app, old):
		return err
	case err != nil || run == nil:
		return w.Guard.Check(ctx, req, protected.Claim, metaOf(old), &app.ObjectMeta)
	}
	refuse := func(path *field.Path, value any, why string) error {
		return response.Invalidate(kind, app.Name, field.ErrorList{field.Invalid(path, value, why)})
	}
	has, version, name := app.Spec.Template.Chart, shipyard.VersionOf(run), run.Namespace+"/"+run.Name
	digest := app.Annotations[shipper.AppChartDigestAnnotation]
	if has.Name != version.Name || has.Version != version.Version || version.Digest != "" && digest != version.Digest {
		return refuse(chartPath, strings.TrimSpace(has.Name+" "+has.Version+" "+digest),
			fmt.Sprintf("run %s delivers %s", name, strings.TrimSpace(version.Name+" "+version.Version+" "+version.Digest)))
	}
	if old == nil {
		return refuse(claimPath, text, "run "+name+" delivers to an Application that is there")
	}
	want := shipyard.Template(run, &old.Spec.Template)
	want.ValuesDigests = app.Spec.Template.ValuesDigests // Shipper writes these
	if stamp.SameFrom(want, &app.Spec.Template) {
		want.Strategy.From.Digest = app.Spec.Template.Strategy.From.Digest
	}
	if !stamp.SameEnvironment(want, &app.Spec.Template) {
		return refuse(claimPath, text, "the template has other changes than what run "+name+" delivers")
	}
	return nil
}
