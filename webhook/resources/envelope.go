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
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/response"
)

// manifestsPath is where manifests are in an Envelope.
var manifestsPath = field.NewPath("spec", "manifests")

// JudgeEnvelope refuses manifests that may not be placed, or that the user may not place: those of kinds without a namespace, in another
// namespace than the Envelope's, and rights. Their content is not judged again when Shipper takes it, so nothing is admitted untried. A
// manifest that old has was judged when it was written.
func (j *Judge) JudgeEnvelope(ctx context.Context, who authenticationv1.UserInfo, now, old *shipper.Envelope) error {
	if j == nil || j.Kinds == nil {
		return response.Unable("kinds are not looked up here: Envelopes cannot be judged")
	}
	manifests := make([]unstructured.Unstructured, len(now.Spec.Manifests))
	for i, m := range now.Spec.Manifests {
		manifests[i] = unstructured.Unstructured{Object: map[string]any(m.DeepCopy())}
	}
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
	var needs []need
	for i := range manifests {
		path := manifestsPath.Index(i)
		key := objects.KeyOf(&manifests[i])
		k, known := kinds[key.GroupKind()]
		if !known {
			errs = append(errs, field.Invalid(path.Child("kind"), key.Kind, "this API server does not serve "+key.GroupKind().String()+
				", so it is not known whether such objects have a namespace: create its CustomResourceDefinition here"))
			continue
		}
		if wasThere(old, now.Spec.Manifests[i]) {
			continue
		}
		switch {
		case !k.Namespaced:
			needs = append(needs, need{
				authz.Action{Verb: authz.Place, Group: k.Group, Resource: k.Resource, Name: key.Name}, path,
			})
		case key.Namespace != "" && key.Namespace != now.Namespace:
			needs = append(needs, need{rights.PlaceNamespace(key.Namespace), path})
		case key.Group == rbacv1.GroupName:
			// Shipper's account may be able to grant more than the author has, in the own namespace, too.
			needs = append(needs, need{rights.PlaceNamespace(now.Namespace), path})
		}
	}
	if err := response.Invalidate("Envelope", now.Name, errs); err != nil {
		return err
	}
	missing, err := j.missing(ctx, who, needs)
	if err != nil || len(missing) == 0 {
		return err
	}
	return Use{Who: who, Resource: "envelopes", Name: now.Name}.forbid(missing)
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
