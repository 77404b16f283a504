// SPDX-License-Identifier: Apache-2.0

// Package protected guards the annotations and labels that decide what runs in production: the webhook restores them when a
// write leaves them out, and only users with the verb stamp may change them.
package protected

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/response"
)

// Guard checks writes of protected metadata.
type Guard struct {
	Authz authz.Authorizer
	// Reconciler is the user name of Shipper's reconciler, which may write all protected metadata.
	Reconciler string
}

// Metadata lists the protected metadata of one kind.
type Metadata struct {
	Kind, Resource      string
	Annotations, Labels []string
}

// AllLabels is s plus every label of either of two objects.
func (s Metadata) AllLabels(old, now map[string]string) Metadata {
	all := maps.Clone(old)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, now)
	s.Labels = slices.Sorted(maps.Keys(all))
	return s
}

// The protected metadata.
var (
	Application = Metadata{
		Kind: "Application", Resource: "applications",
		Annotations: []string{
			shipper.AppHighestObservedGenerationAnnotation, shipper.AppObservedTemplateAnnotation,
			shipper.AppChartNameAnnotation, shipper.AppChartRepoAnnotation, shipper.AppChartVersionResolvedAnnotation,
			shipper.AppChartVersionRawAnnotation, shipper.AppChartDigestAnnotation, shipper.AppRequestedByAnnotation,
			shipper.AppRolledBackToAnnotation, shipper.AppRollbackStrategyAnnotation, shipper.AppFailedAnnotation,
			shipper.AppSelectedByAnnotation, shipper.AppRunAnnotation, shipper.ContentRightsAnnotation,
		},
	}
	Release = Metadata{
		Kind: "Release", Resource: "releases",
		Annotations: []string{
			shipper.ReleaseGenerationAnnotation, shipper.ReleaseTemplateIterationAnnotation, shipper.ReleaseClustersAnnotation,
			shipper.ReleaseChartDigestAnnotation, shipper.ReleaseRequestedByAnnotation, shipper.ReleaseReturnedAnnotation,
			shipper.ReleaseRollbackOfAnnotation, shipper.ReleaseChartSignatureAnnotation, shipper.ReleaseMovedAnnotation,
			shipper.ReleaseHeldByAnnotation, shipper.ReleaseRunAnnotation, shipper.ReleaseLabelPrecedenceAnnotation,
			shipper.ContentRightsAnnotation, shipper.ReleaseWavesAnnotation,
		},
		Labels: []string{shipper.AppLabel, shipper.ReleaseLabel, shipper.ReleaseHashLabel},
	}
	// Override is what says whose a ResourceOverride is.
	Override = Metadata{
		Kind: "ResourceOverride", Resource: "resourceoverrides",
		Annotations: []string{shipper.OverrideRequestedByAnnotation, shipper.OverrideEarlierWritersAnnotation},
	}
	// Claim is the part of Application that only the runner of a run writes, and no user without the verb stamp.
	Claim = Metadata{Kind: Application.Kind, Resource: Application.Resource, Annotations: []string{shipper.AppRunAnnotation}}
	// SequenceRun is what runs are found by. Their spec has the same, and decides.
	SequenceRun = Metadata{
		Kind: "SequenceRun", Resource: "sequenceruns",
		Labels: []string{shipper.ShipyardLabel, shipper.StageLabel, shipper.SequenceLabel, shipper.ServiceLabel, shipper.TriggeredByLabel},
	}
	// Stamped is Release without what the mutating webhook writes: validation compares that with the request.
	Stamped = Metadata{
		Kind: Release.Kind, Resource: Release.Resource, Labels: Release.Labels,
		Annotations: slices.DeleteFunc(slices.Clone(Release.Annotations), func(key string) bool {
			return key == shipper.ReleaseMovedAnnotation || key == shipper.ReleaseHeldByAnnotation
		}),
	}
	// Observed is the part of Application that only the reconciler writes. The mutating webhook writes the rest, so validation
	// cannot detect a forgery there.
	Observed = Metadata{
		Kind: Application.Kind, Resource: Application.Resource,
		Annotations: []string{
			shipper.AppHighestObservedGenerationAnnotation, shipper.AppObservedTemplateAnnotation, shipper.AppFailedAnnotation,
			shipper.ContentRightsAnnotation,
		},
	}
)

// Keep restores protected metadata that old has and meta lacks, and refuses changes unless the user may stamp. The reconciler
// may write and remove all of it.
func (g *Guard) Keep(
	ctx context.Context, req *admission.Request, a *response.Response, s Metadata, old, meta *metav1.ObjectMeta,
) error {
	if req.UserInfo.Username == g.Reconciler {
		return nil
	}
	if lostFinalizer(old, meta) {
		may, err := g.MayStamp(ctx, req, s)
		if err != nil {
			return err
		}
		if !may {
			meta.Finalizers = append(meta.Finalizers, shipper.RolloutFinalizer)
			a.Warn("the finalizer %s stays: Shipper removes it when no RolloutBlock holds the deletion and others serve", shipper.RolloutFinalizer)
		}
	}
	for _, key := range missing(s.Annotations, old.Annotations, meta.Annotations) {
		response.Annotate(meta, key, old.Annotations[key])
	}
	for _, key := range missing(s.Labels, old.Labels, meta.Labels) {
		response.Label(meta, key, old.Labels[key])
	}
	return g.refuse(ctx, req, s, meta.Name, s.forged(old, meta))
}

// Check refuses the same as Keep, and missing protected metadata, unless the user may stamp. It is for validation, which must
// not rely on an earlier Keep. old is nil on creation.
func (g *Guard) Check(ctx context.Context, req *admission.Request, s Metadata, old, meta *metav1.ObjectMeta) error {
	if req.UserInfo.Username == g.Reconciler {
		return nil
	}
	if old == nil {
		old = &metav1.ObjectMeta{}
	}
	errs := append(s.forged(old, meta), s.lost(old, meta)...)
	if lostFinalizer(old, meta) {
		errs = append(errs, field.Forbidden(field.NewPath("metadata", "finalizers"), shipper.RolloutFinalizer+
			" is removed by Shipper when no RolloutBlock holds the deletion and others serve; leave it in"))
	}
	return g.refuse(ctx, req, s, meta.Name, errs)
}

// lostFinalizer reports whether meta lacks the finalizer that delays the deletion of old.
func lostFinalizer(old, meta *metav1.ObjectMeta) bool {
	return slices.Contains(old.Finalizers, shipper.RolloutFinalizer) && !slices.Contains(meta.Finalizers, shipper.RolloutFinalizer)
}

// OwnerAdded reports whether an object gets a new owner: the deletion of that owner would delete it.
func OwnerAdded(old, meta *metav1.ObjectMeta) bool {
	return slices.ContainsFunc(meta.OwnerReferences, func(ref metav1.OwnerReference) bool {
		return !slices.ContainsFunc(old.OwnerReferences, func(was metav1.OwnerReference) bool { return sameOwner(was, ref) })
	})
}

// refuse refuses errs unless the user may stamp.
func (g *Guard) refuse(ctx context.Context, req *admission.Request, s Metadata, name string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	allowed, err := g.MayStamp(ctx, req, s)
	if err != nil || allowed {
		return err
	}
	return response.Invalidate(s.Kind, name, errs)
}

var (
	annotationsPath = field.NewPath("metadata", "annotations")
	labelsPath      = field.NewPath("metadata", "labels")
)

// forged has an error for each key whose value differs between old and meta.
func (s Metadata) forged(old, meta *metav1.ObjectMeta) field.ErrorList {
	return append(forgedAt(annotationsPath, s.Annotations, old.Annotations, meta.Annotations),
		forgedAt(labelsPath, s.Labels, old.Labels, meta.Labels)...)
}

// lost has an error for each key that old has and meta lacks.
func (s Metadata) lost(old, meta *metav1.ObjectMeta) field.ErrorList {
	return append(lostAt(annotationsPath, s.Annotations, old.Annotations, meta.Annotations),
		lostAt(labelsPath, s.Labels, old.Labels, meta.Labels)...)
}

// Ignore removes protected metadata from an object that is being created, unless the user may stamp: a manifest exported from
// another cluster has the charts and generations of that cluster.
func (g *Guard) Ignore(
	ctx context.Context, req *admission.Request, a *response.Response, s Metadata, meta *metav1.ObjectMeta,
) error {
	there := missing(s.Annotations, meta.Annotations, nil)
	if len(there) == 0 || req.UserInfo.Username == g.Reconciler {
		return nil
	}
	allowed, err := g.MayStamp(ctx, req, s)
	if err != nil || allowed {
		return err
	}
	for _, key := range there {
		delete(meta.Annotations, key)
		a.Warn("annotation %s is written by Shipper; what the manifest says was ignored", key)
	}
	return nil
}

// MayStamp reports whether the user of req may write the object's protected metadata.
func (g *Guard) MayStamp(ctx context.Context, req *admission.Request, s Metadata) (bool, error) {
	if req.UserInfo.Username == g.Reconciler {
		return true, nil
	}
	key := types.NamespacedName{Namespace: req.Namespace, Name: req.Name}
	allowed, err := g.Authz.May(ctx, req.UserInfo, authz.On(authz.Stamp, s.Resource, key))
	if err != nil {
		return false, response.Later(err.Error(), authz.RetryAfter)
	}
	return allowed, nil
}

// missing are the keys that old has and now lacks.
func missing(keys []string, old, now map[string]string) []string {
	var out []string
	for _, key := range keys {
		_, before := old[key]
		if _, after := now[key]; before && !after {
			out = append(out, key)
		}
	}
	return out
}

// lostAt has an error for each key that old has and now lacks.
func lostAt(path *field.Path, keys []string, old, now map[string]string) field.ErrorList {
	var errs field.ErrorList
	for _, key := range missing(keys, old, now) {
		errs = append(errs, field.Required(path.Key(key), fmt.Sprintf("is written by Shipper; leave it at %q", old[key])))
	}
	return errs
}

// forgedAt has an error for each key whose value in now is not that in old.
func forgedAt(path *field.Path, keys []string, old, now map[string]string) field.ErrorList {
	var errs field.ErrorList
	for _, key := range keys {
		before, had := old[key]
		after, has := now[key]
		switch {
		case !has, had && before == after:
		case had:
			errs = append(errs, field.Forbidden(path.Key(key),
				fmt.Sprintf("is written by Shipper; leave it out, or at %q", before)))
		default:
			errs = append(errs, field.Forbidden(path.Key(key), "is written by Shipper; leave it out"))
		}
	}
	return errs
}
