// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"errors"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/apis/rules/rights"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/response"
)

// manifestsPath is where manifests are in an Envelope.
var manifestsPath = field.NewPath("spec", "manifests")

// JudgeEnvelope refuses manifests that may not be placed, or that the user may not place: those of kinds without a namespace, in another
// namespace than the Envelope's, and rights; and to remove such manifests. Their content is not judged again when Shipper takes it, so
// nothing is admitted untried. A manifest that old has was judged when it was written.
func (j *Judge) JudgeEnvelope(ctx context.Context, who authenticationv1.UserInfo, now, old *shipper.Envelope) error {
	if j == nil || j.Kinds == nil {
		return response.Unable("kinds are not looked up here: Envelopes cannot be judged")
	}
	manifests := manifestsOf(now)
	kinds, err := j.kindsOf(ctx, manifests)
	if err != nil {
		return err
	}
	scope := func(gk schema.GroupKind) (namespaced, known bool) {
		k, known := kinds[gk]
		return k.Namespaced, known
	}
	_, errs := j.Policy.Unpack(manifests, now.Namespace, scope)
	if err := response.Invalidate("Envelope", now.Name, errs); err != nil {
		return err
	}
	for i := range manifests {
		if key := objects.KeyOf(&manifests[i]); !served(kinds, key.GroupKind()) && !chart.IsEmptyList(&manifests[i]) {
			errs = append(errs, field.Invalid(manifestsPath.Index(i).Child("kind"), key.Kind, "this API server does not serve "+
				key.GroupKind().String()+", so it is not known whether such objects have a namespace: create its CustomResourceDefinition here"))
		}
	}
	if err := response.Invalidate("Envelope", now.Name, errs); err != nil {
		return err
	}
	needs := envelopeNeeds(now, old, kinds)
	if old != nil {
		removed, err := j.removalNeeds(ctx, old, now)
		if err != nil {
			return err
		}
		for _, n := range removed { // a manifest that is changed needs its right once
			if !slices.ContainsFunc(needs, func(other need) bool { return other.Action == n.Action }) {
				needs = append(needs, n)
			}
		}
	}
	return j.permitEnvelope(ctx, who, now.Name, needs)
}

// JudgeWithoutEnvelope refuses, for a user who may not place them, what takes the manifests of an Envelope out of content: its deletion, a
// new owner, and other labels, by which Applications select. Shipper removes from clusters what is no longer selected.
func (j *Judge) JudgeWithoutEnvelope(ctx context.Context, who authenticationv1.UserInfo, old *shipper.Envelope) error {
	if j == nil || j.Kinds == nil {
		return response.Unable("kinds are not looked up here: Envelopes cannot be judged")
	}
	needs, err := j.removalNeeds(ctx, old, &shipper.Envelope{})
	if err != nil {
		return err
	}
	return j.permitEnvelope(ctx, who, old.Name, needs)
}

// removalNeeds is what a user needs to remove the manifests that old has and now lacks.
func (j *Judge) removalNeeds(ctx context.Context, old, now *shipper.Envelope) ([]need, error) {
	kinds, err := j.kindsOf(ctx, manifestsOf(old))
	if err != nil {
		return nil, err
	}
	return envelopeNeeds(old, now, kinds), nil
}

func (j *Judge) permitEnvelope(ctx context.Context, who authenticationv1.UserInfo, name string, needs []need) error {
	missing, err := j.missing(ctx, who, needs)
	if err != nil || len(missing) == 0 {
		return err
	}
	return Use{Who: who, Resource: "envelopes", Name: name}.forbid(missing)
}

// envelopeNeeds is what a user needs for the manifests that an Envelope has and another lacks.
func envelopeNeeds(of, other *shipper.Envelope, kinds map[schema.GroupKind]Kind) []need {
	var out []need
	for i, manifest := range manifestsOf(of) {
		path, key := manifestsPath.Index(i), objects.KeyOf(&manifest)
		k, known := kinds[key.GroupKind()]
		if wasThere(other, of.Spec.Manifests[i]) || chart.IsEmptyList(&manifest) {
			continue
		}
		if !known { // what is removed is judged by the usual plural
			k = unserved(key.GroupKind().WithVersion(""), key.Namespace)
		}
		switch {
		case !k.Namespaced:
			out = append(out, need{
				authz.Action{Verb: authz.Place, Group: k.Group, Resource: k.Resource, Name: key.Name}, path,
			})
		case key.Namespace != "" && key.Namespace != of.Namespace:
			out = append(out, need{rights.PlaceNamespace(key.Namespace), path})
		case key.Group == rbacv1.GroupName:
			// Shipper's account may be able to grant more than the author has, in the own namespace, too.
			out = append(out, need{rights.PlaceNamespace(of.Namespace), path})
		}
	}
	return out
}

// manifestsOf are copies of the manifests of an Envelope.
func manifestsOf(of *shipper.Envelope) []unstructured.Unstructured {
	out := make([]unstructured.Unstructured, len(of.Spec.Manifests))
	for i, m := range of.Spec.Manifests {
		out[i] = unstructured.Unstructured{Object: map[string]any(m.DeepCopy())}
	}
	return out
}

func served(kinds map[schema.GroupKind]Kind, gk schema.GroupKind) bool {
	_, known := kinds[gk]
	return known
}

// wasThere reports whether an Envelope has a manifest.
func wasThere(old *shipper.Envelope, manifest shipper.Manifest) bool {
	return old != nil && slices.ContainsFunc(old.Spec.Manifests, func(m shipper.Manifest) bool {
		return equality.Semantic.DeepEqual(m, manifest)
	})
}

// kindsOf finds the kinds of manifests. Those that are not served are left out.
func (j *Judge) kindsOf(ctx context.Context, manifests []unstructured.Unstructured) (map[schema.GroupKind]Kind, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var distinct []schema.GroupKind
	for i := range manifests {
		if gk := objects.KeyOf(&manifests[i]).GroupKind(); gk.Kind != "" && !slices.Contains(distinct, gk) {
			distinct = append(distinct, gk)
		}
	}
	found, errs := make([]Kind, len(distinct)), make([]error, len(distinct))
	each(len(distinct), func(i int) { found[i], errs[i] = j.Kinds.Find(ctx, distinct[i], "") })
	out := map[schema.GroupKind]Kind{}
	for i, err := range errs {
		switch {
		case err == nil:
			out[distinct[i]] = found[i]
		case !errors.Is(err, ErrNotServed):
			return nil, response.Later(err.Error(), time.Second)
		}
	}
	return out, nil
}
