// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// owners is a patch of owner references.
func owners(refs ...string) string {
	return `{"metadata":{"ownerReferences":[` + strings.Join(refs, ",") + `]}}`
}

func owner(apiVersion, kind, name string, uid types.UID) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q}`, apiVersion, kind, name, uid)
}

func TestControlStateOfReleasesIsNotForged(t *testing.T) {
	t.Parallel()
	ns, other := namespace(t), namespace(t)
	r, b, m := rollOut(t, ns), rollOut(t, other), newAttacker(t, ns)
	const (
		v1alpha1 = "shipper.booking.com/v1alpha1"
		theirs   = `"shipper.booking.com/release.clusters":"theirs"`
		ninth    = `"shipper.booking.com/release.generation":"9"`
		moved    = `"status":{"achievedStep":{"step":0,"name":"x"}}`
		values   = `"spec":{"environment":{"values":{"replicaCount":99}}}`
	)
	rel, own := m.on(r.rel), owner(v1alpha1, "Application", r.app.Name, r.app.UID)
	forged := refused{422, "]: Forbidden: is written by Shipper; leave it out"}
	wrongOwner := refused{422, "metadata.ownerReferences: Forbidden: the reference to Application is written by Shipper"}
	comesToNothing(t, map[string]attack{
		"of another Application":                         {rel.merge(labels(`"shipper-app":"other"`)), forged},
		"of another Application, beside a broken status": {rel.merge(labels(`"shipper-app":"other"`, brokenStatus)), forged},
		"of no Application":                              {rel.merge(labels(`"shipper-app":null`)), refused{}},
		"of another tier, to leave a scope":              {rel.merge(labels(`"tier":"none"`)), forged},
		"of another hash":                                {rel.merge(labels(`"shipper-release-hash":"0"`)), forged},
		"placed elsewhere":                               {rel.merge(annotations(theirs)), forged},
		"placed elsewhere, applied as if by Shipper":     {rel.apply(shipper.FieldOwner, annotations(theirs)), forged},
		"placed elsewhere, beside a broken status":       {rel.merge(annotations(theirs, brokenStatus)), forged},
		"placed elsewhere, with a report":                {rel.merge(annotations(theirs, moved), "status"), refused{}},
		"newer than it is":                               {rel.merge(annotations(ninth)), forged},
		"newer than it is, by replace":                   {rel.replace(annotate(shipper.ReleaseGenerationAnnotation, "9")), forged},
		"of no generation, beside a broken status": {
			rel.merge(annotations(`"shipper.booking.com/release.generation":null`, brokenStatus)), refused{},
		},
		"of another iteration": {rel.merge(annotations(`"shipper.booking.com/release.template.iteration":"3"`)), forged},
		"of another chart, by its digest": {
			rel.merge(annotations(`"shipper.booking.com/release.chart.digest":"` + digest + `"`)), forged,
		},
		"asked for by another":                  {rel.merge(annotations(`"shipper.booking.com/release.requested-by":"boss"`)), forged},
		"of another environment":                {rel.merge("{" + values + "}"), refused{422, "spec.environment: Forbidden"}},
		"of another environment, with a report": {rel.merge(`{`+values+`,"status":{}}`, "status"), refused{}},
		"owned by the same in another version": {
			rel.merge(owners(own, owner("shipper.booking.com/v2", "Application", r.app.Name, "x"))), wrongOwner,
		},
		"owned by the same in no other version": {
			rel.merge(owners(owner("shipper.booking.com/v2", "Application", r.app.Name, r.app.UID))), wrongOwner,
		},
		"owned by an Application of another namespace": {
			rel.merge(owners(own, owner(v1alpha1, "Application", b.app.Name, b.app.UID))), wrongOwner,
		},
		"without an owner":                         {rel.merge(`{"metadata":{"ownerReferences":null}}`), refused{}},
		"without an owner, beside a broken status": {rel.merge(`{"metadata":{"ownerReferences":null},` + brokenStatus + `}`), refused{}},
	}, ns, other)
}

func TestReleasesAreNotMadeByUsers(t *testing.T) {
	t.Parallel()
	ns, other := namespace(t), namespace(t)
	r, b, m := rollOut(t, ns), rollOut(t, other), newAttacker(t, ns)
	rel, notYours := m.on(r.rel), refused{403, "Releases are made by Shipper when an Application changes"}
	named := func(name string) func(client.Object) {
		return func(o client.Object) {
			o.SetName(name)
			labels := o.GetLabels()
			labels[shipper.ReleaseLabel] = name
			o.SetLabels(labels)
		}
	}
	stem := strings.TrimSuffix(r.rel.Name, "0")
	comesToNothing(t, map[string]attack{
		"the next of its Application":    {rel.create(named(stem + "1")), notYours},
		"named like that of another":     {rel.create(named("other-" + r.rel.Labels[shipper.ReleaseHashLabel] + "-0")), notYours},
		"named by a part of a name":      {rel.create(named(""), func(o client.Object) { o.SetGenerateName(stem) }), notYours},
		"for what is elsewhere":          {rel.create(func(o client.Object) { o.SetOwnerReferences(b.rel.OwnerReferences) }), notYours},
		"of no Application, by anything": {rel.create(func(o client.Object) { o.SetLabels(nil) }), notYours},
		"applied as if by Shipper": {
			m.on(sibling(r.rel)).apply(shipper.FieldOwner, object(`"metadata":{"name":"another"}`, `"spec":`+specOf(t, r.rel))), notYours,
		},
	}, ns, other)
}

// specOf is the spec of o as JSON.
func specOf(t *testing.T, o client.Object) string {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(shipper.GroupVersion.WithKind(kindOf(o)))
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(o), u); err != nil {
		t.Fatal(err)
	}
	spec, err := json.Marshal(u.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	return string(spec)
}
