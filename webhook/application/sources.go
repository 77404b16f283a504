// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/rights"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/keyedsemaphore"
	"shipper.dev/shipper/chart/values"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/response"
	"shipper.dev/shipper/webhook/templatecheck"
)

// Sources reads the content of a namespace's ConfigMaps and Secrets. Errors are those of values.ReadSources.
type Sources func(ctx context.Context, namespace string, from []shipper.ValuesSource) (values.Held, error)

// readTimeout bounds the time for a write to read its sources.
const readTimeout = 2 * time.Second

var sourcesPath = field.NewPath("spec", "template", "valuesFrom")

// carryDigests restores the digests of valuesFrom, which manifests do not contain.
func carryDigests(app, old *shipper.Application) {
	now := &app.Spec.Template
	if old == nil || len(now.ValuesDigests) > 0 || len(old.Spec.Template.ValuesDigests) == 0 {
		return
	}
	before := &old.Spec.Template
	if stamp.SameSources(&shipper.ReleaseEnvironment{ValuesFrom: now.ValuesFrom, ValuesDigests: before.ValuesDigests}, before) {
		setDigests(app, maps.Clone(before.ValuesDigests))
	}
}

// pinValues sets the digests of valuesFrom in the template: of the present content, when the template is new or the user
// requests a refresh; otherwise it keeps them. It does not change a template that is restored by Shipper or by a user who may.
func (w *Webhook) pinValues(
	ctx context.Context, req *admission.Request, app, old *shipper.Application, wentBack bool,
) error {
	now := &app.Spec.Template
	if len(now.ValuesFrom) == 0 {
		setDigests(app, nil)
		return nil
	}
	if wentBack || w.restored(app, old) {
		return nil
	}
	if errs := templatecheck.ValidateSources(now.ValuesFrom, sourcesPath); len(errs) > 0 {
		return response.Invalidate(kind, app.Name, errs)
	}
	kept, err := w.keepsValues(ctx, req, app, old)
	if err != nil || kept {
		return err
	}
	if err := w.permitSources(ctx, req, app, old); err != nil {
		return err
	}
	if w.Sources == nil {
		return response.Unable("ConfigMaps and Secrets are not read here")
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	held, err := w.Sources(ctx, app.Namespace, now.ValuesFrom)
	if err != nil {
		return unread(app, err)
	}
	digests, err := digestsOf(ctx, values.Pinned{Namespace: app.Namespace, App: app.Name, From: now.ValuesFrom}, held)
	if err != nil {
		return err
	}
	setDigests(app, digests)
	return nil
}

// digesting admits one write at a time, and namespaces in turns: the digests of Secrets take up to half a second for one write, and a user
// with many writes must not occupy the webhook.
var digesting = keyedsemaphore.New(1, 1)

// digestsOf are the digests of the content. A request that waits too long for a slot gets a retry hint.
func digestsOf(ctx context.Context, pinned values.Pinned, held values.Held) (map[string]string, error) {
	if pinned.Secret() {
		if digesting.Enter(ctx, pinned.Namespace) != nil {
			return nil, response.Later("other writes have Secrets digested; try again", time.Second)
		}
		defer digesting.Leave(pinned.Namespace)
	}
	return pinned.DigestsOf(held)
}

// keepsValues reports whether app keeps the digests of its valuesFrom.
func (w *Webhook) keepsValues(ctx context.Context, req *admission.Request, app, old *shipper.Application) (bool, error) {
	now := &app.Spec.Template
	switch {
	case len(now.ValuesDigests) == 0:
		return false, nil
	case old == nil: // restored by a user who may; digests from another cluster do not count here
		return w.Guard.MayStamp(ctx, req, protected.Application)
	case valuesRefreshWanted(app, old):
		return false, nil
	}
	return w.known(app, old, func(string) bool { return true })
}

// known reports whether app's installation was installed before, or is that of its previous template, ignoring steps, with a
// chart whose digest satisfies of.
func (w *Webhook) known(app, old *shipper.Application, of func(digest string) bool) (bool, error) {
	if sameInstallation(&app.Spec.Template, &old.Spec.Template) && of(old.Annotations[shipper.AppChartDigestAnnotation]) {
		return true, nil
	}
	rels, err := w.releases(app)
	return slices.ContainsFunc(rels, func(rel *shipper.Release) bool {
		return sameInstallation(&app.Spec.Template, &rel.Spec.Environment) && of(rel.Annotations[shipper.ReleaseChartDigestAnnotation])
	}), err
}

// otherChart reports whether the digest of the chart's archive changed.
func otherChart(app, old *shipper.Application) bool {
	return app.Annotations[shipper.AppChartDigestAnnotation] != metaOf(old).Annotations[shipper.AppChartDigestAnnotation]
}

// permitSources refuses ConfigMaps and Secrets that the user may not read: the user could render their content with an own
// chart. It checks again for every new installation, including a chart with the same version and another digest, but not for
// other steps of an installed one.
func (w *Webhook) permitSources(ctx context.Context, req *admission.Request, app, old *shipper.Application) error {
	now := &app.Spec.Template
	if len(now.ValuesFrom) == 0 || w.restored(app, old) {
		return nil
	}
	if exempt, err := w.exempt(ctx, req, app, old); exempt || err != nil {
		return err
	}
	var errs field.ErrorList
	for i, source := range now.ValuesFrom {
		resource, noun := "configmaps", "ConfigMap"
		if source.Secret() {
			resource, noun = "secrets", "Secret"
		}
		key := types.NamespacedName{Namespace: app.Namespace, Name: source.Ref().Name}
		allowed, err := w.Guard.Authz.May(ctx, req.UserInfo, authz.Get(resource, key))
		if err != nil {
			return response.Later(err.Error(), time.Second)
		}
		if !allowed {
			errs = append(errs, field.Forbidden(refPath(i, source).Child("name"), fmt.Sprintf(
				"%s may not get %s %s, and a chart is rendered only with what its requester may read; %s", req.UserInfo.Username, noun, key,
				rights.Remedy(authz.Get(resource, key), req.UserInfo.Username))))
		}
	}
	return response.Invalidate(kind, app.Name, errs)
}

// exempt reports whether app's sources need no check: it installs nothing new, or a user who may restores it.
func (w *Webhook) exempt(ctx context.Context, req *admission.Request, app, old *shipper.Application) (bool, error) {
	switch {
	case old == nil && len(app.Spec.Template.ValuesDigests) > 0:
		return w.Guard.MayStamp(ctx, req, protected.Application)
	case old == nil || valuesRefreshWanted(app, old):
		return false, nil
	}
	now := app.Annotations[shipper.AppChartDigestAnnotation]
	return w.known(app, old, func(digest string) bool { return digest == now })
}

// sameInstallation reports whether two environments install the same, ignoring steps.
func sameInstallation(a, b *shipper.ReleaseEnvironment) bool {
	other := *a
	other.Strategy = b.Strategy
	return stamp.SameEnvironment(&other, b)
}

// valuesRefreshWanted reports whether the user requests a new read of valuesFrom.
func valuesRefreshWanted(app, old *shipper.Application) bool {
	now := app.Annotations[shipper.AppValuesRefreshAnnotation]
	return now != "" && now != old.Annotations[shipper.AppValuesRefreshAnnotation] && len(app.Spec.Template.ValuesFrom) > 0
}

// unread is the error for a source that could not be read.
func unread(app *shipper.Application, err error) error {
	broken, ok := errors.AsType[*values.SourceError](err)
	if !ok {
		return response.Unable(err.Error() + "; try again in a moment")
	}
	source := app.Spec.Template.ValuesFrom[broken.Index]
	path, value := refPath(broken.Index, source).Child("name"), source.Ref().Name
	if broken.Key {
		path, value = refPath(broken.Index, source).Child("key"), source.Ref().Key
	}
	return response.Invalidate(kind, app.Name, field.ErrorList{field.Invalid(path, value, broken.Message)})
}

func refPath(i int, source shipper.ValuesSource) *field.Path {
	if source.Secret() {
		return sourcesPath.Index(i).Child("secretKeyRef")
	}
	return sourcesPath.Index(i).Child("configMapKeyRef")
}

// setDigests sets the digests of valuesFrom, unless they are equal.
func setDigests(app *shipper.Application, digests map[string]string) {
	if !maps.Equal(app.Spec.Template.ValuesDigests, digests) {
		app.Spec.Template.ValuesDigests = digests
	}
}
