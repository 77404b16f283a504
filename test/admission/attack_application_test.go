// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
)

// Parts of patches.
const (
	boss     = `"shipper.booking.com/app.requested-by":"boss"`
	nobody   = `"shipper.booking.com/app.requested-by":null`
	observed = `"shipper.booking.com/app.highestObservedGeneration":"7"`
	override = `"shipper.booking.com/rollout-block.override":`
	report   = `"status":{"history":["x"]}`
	// brokenStatus has the wrong type: the API server drops the status only after it has called the webhooks.
	brokenStatus = `"status":{"conditions":"x"}`
)

// Values that exceed the size of annotations, and values that name no chart and no block.
var (
	digest = strings.Repeat("f", 64)
	huge   = `"huge":"` + strings.Repeat("x", 300<<10) + `"`
	many   = override + `"` + strings.Repeat("default/none,", 5000) + `"`
)

func TestControlStateOfApplicationsIsNotForged(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	r, m := rollOut(t, ns), newAttacker(t, ns)
	app := m.on(r.app)
	byJSON := func(op string) attempt {
		return app.patch(types.JSONPatchType, `[{"path":"/metadata/annotations/shipper.booking.com~1app.requested-by",`+op+`}]`)
	}
	forged := refused{422, "]: Forbidden: is written by Shipper; leave it out"}
	comesToNothing(t, map[string]attack{
		"another requester, by merge patch":           {app.merge(annotations(boss)), forged},
		"another requester, by JSON patch":            {byJSON(`"op":"replace","value":"boss"`), forged},
		"another requester, by apply":                 {app.apply("mallory", annotations(boss)), forged},
		"another requester, applied as if by Shipper": {app.apply(shipper.FieldOwner, annotations(boss)), forged},
		"another requester, by replace":               {app.replace(annotate(shipper.AppRequestedByAnnotation, "boss")), forged},
		"a generation where there was none":           {app.merge(annotations(observed)), forged},
		"another digest of the chart": {
			app.merge(annotations(`"shipper.booking.com/app.chart.digest":"` + digest + `"`)), forged,
		},
		"another constraint":           {app.merge(annotations(`"shipper.booking.com/app.chart.version.raw":"~9"`)), forged},
		"no requester, by merge patch": {app.merge(annotations(nobody)), refused{}},
		"no requester, by JSON patch":  {byJSON(`"op":"remove"`), refused{}},
		"no annotation at all":         {app.merge(`{"metadata":{"annotations":null}}`), refused{}},
		"no annotation at all, by replace": {app.replace(func(u *unstructured.Unstructured) {
			u.SetAnnotations(nil)
		}), refused{}},
		"no owner of the fields": {app.replace(func(u *unstructured.Unstructured) {
			u.SetManagedFields([]metav1.ManagedFieldsEntry{{}})
		}), refused{}},
		"a requester beside a broken status":  {app.merge(annotations(boss, brokenStatus)), forged},
		"a generation beside a broken status": {app.merge(annotations(observed, brokenStatus)), forged},
		"no requester beside a broken status": {app.merge(annotations(nobody, brokenStatus)), refused{}},
		"a requester with a report":           {app.merge(annotations(boss, report), "status"), refused{}},
		"a requester with a report, by apply": {app.apply(shipper.FieldOwner, annotations(boss, report), "status"), refused{}},
		"a spec with a report":                {app.merge(`{"spec":{"revisionHistoryLimit":1},`+report+`}`, "status"), refused{}},
		"a requester as a rehearsal": {func(ctx context.Context) error {
			return m.Patch(ctx, copyOf(r.app), client.RawPatch(types.MergePatchType, []byte(annotations(boss))), client.DryRunAll)
		}, forged},
	}, ns)
}

func annotate(key, value string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		all := u.GetAnnotations()
		if all == nil {
			all = map[string]string{}
		}
		all[key] = value
		u.SetAnnotations(all)
	}
}

func TestApplicationsAreNotBroken(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	r, m := rollOut(t, ns), newAttacker(t, ns)
	app := m.on(r.app)
	comesToNothing(t, map[string]attack{
		"nothing to roll out": {app.patch(types.JSONPatchType, `[{"op":"remove","path":"/spec"}]`), refused{422, "spec: Required value"}},
		"another identity": {app.replace(func(u *unstructured.Unstructured) {
			u.SetUID("forged")
			u.SetResourceVersion("")
		}), refused{409, "UID"}},
		"a generation of the object": {app.merge(`{"metadata":{"generation":99}}`), refused{}},
		"a time of deletion": {
			app.merge(`{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}`), refused{422, "metadata.deletionTimestamp"},
		},
		"a patch that merges lists":   {app.patch(types.StrategicMergePatchType, annotations(boss)), refused{415, ""}},
		"a number of replicas":        {app.merge(`{"spec":{"replicas":9}}`, "scale"), refused{404, ""}},
		"an annotation that is huge":  {app.merge(annotations(huge)), refused{422, "metadata.annotations: Too long"}},
		"thousands of overrides":      {app.merge(annotations(many)), refused{422, "there is no RolloutBlock"}},
		"an override of what is none": {app.merge(annotations(override + `"../../x"`)), refused{422, "cannot be the name"}},
		"a version of the API to come": {func(ctx context.Context) error {
			return m.raw.Patch(types.MergePatchType).AbsPath("/apis", shipper.GroupName, "v1", "namespaces", ns, "applications", r.app.Name).
				Body([]byte(annotations(boss))).Do(ctx).Error()
		}, refused{404, ""}},
	}, ns)
}

// Annotations about charts and generations in a new Application's manifest are ignored, however it is sent.
func TestControlStateIsNotBroughtAlong(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	m, repo := newAttacker(t, ns), startRepository(t, "0.0.1", "0.0.2")
	template := `"chart":{"name":"nginx","version":"~0.0","repoUrl":"` + repo.URL + `"},` +
		`"clusterRequirements":{"regions":[{"name":"local"}]},"strategy":{"steps":[` +
		`{"name":"x","capacity":{"incumbent":0,"contender":100},"traffic":{"incumbent":0,"contender":100}}]}`
	forged := `"annotations":{` + strings.Join([]string{
		boss, observed, `"shipper.booking.com/app.chart.version.resolved":"0.0.1"`, `"shipper.booking.com/app.chart.digest":"` + digest + `"`,
	}, ",") + `}`
	owners := `"managedFields":[{"manager":"shipper","operation":"Apply","apiVersion":"shipper.booking.com/v1alpha1",` +
		`"fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{}}}}}]`
	for sentence, tc := range map[string]struct{ meta, more string }{
		"by name":                  {`"name":"one"`, report},
		"by a part of a name":      {`"generateName":"two-"`, report},
		"beside a broken status":   {`"name":"three"`, brokenStatus},
		"with who owns the fields": {`"name":"four",` + owners, report},
	} {
		t.Run(sentence, func(t *testing.T) {
			raw, err := m.raw.Post().AbsPath("/apis", shipper.GroupName, "v1alpha1/namespaces", ns, "applications").
				Body([]byte(object(`"apiVersion":"shipper.booking.com/v1alpha1","kind":"Application"`,
					`"metadata":{`+tc.meta+","+forged+`}`, `"spec":{"template":{`+template+`}}`, tc.more))).Do(t.Context()).Raw()
			if err != nil {
				t.Fatal(err)
			}
			app := &shipper.Application{}
			if err := json.Unmarshal(raw, app); err != nil {
				t.Fatal(err)
			}
			cleanUp(t, app)
			want := map[string]string{
				shipper.AppChartVersionRawAnnotation: "~0.0", shipper.AppChartVersionResolvedAnnotation: "0.0.2",
				shipper.AppChartNameAnnotation: "nginx", shipper.AppChartRepoAnnotation: repo.URL,
				shipper.AppChartDigestAnnotation: strings.Repeat("0", 63) + "2", shipper.AppRequestedByAnnotation: m.name,
			}
			if err := differs(want, app.Annotations); err != nil {
				t.Errorf("annotations %v", err)
			}
		})
	}
}

// A user cannot restore earlier values of the annotations by sending an earlier object again.
func TestControlStateIsNotReplayed(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	r, m := rollOut(t, ns), newAttacker(t, ns)
	yesterday := copyOf(r.app)
	ask.Version("0.0.2")(r.app)
	if err := as(t, "dev").Update(t.Context(), r.app); err != nil {
		t.Fatal(err)
	}
	observes := client.RawPatch(types.MergePatchType, []byte(annotations(observed)))
	if err := as(t, reconcilerUser).Patch(t.Context(), r.app, observes); err != nil {
		t.Fatal(err)
	}
	again := sibling(r.rel)
	again.SetName(r.rel.Name)
	comesToNothing(t, map[string]attack{
		"the manifest of yesterday, whole": {func(ctx context.Context) error {
			o := copyOf(yesterday)
			o.SetResourceVersion("")
			return m.Update(ctx, o)
		}, refused{422, `app.chart.version.resolved]: Forbidden: is written by Shipper; leave it out, or at "0.0.2"`}},
		"a change of what was yesterday": {
			m.on(r.app).merge(`{"metadata":{"resourceVersion":"` + yesterday.GetResourceVersion() + `"},"spec":{"revisionHistoryLimit":3}}`),
			refused{409, "the object has been modified"},
		},
		"a Release that was made before": {
			func(ctx context.Context) error { return m.Create(ctx, copyOf(again)) },
			refused{403, "Releases are made by Shipper"},
		},
	}, ns)

	r.app.Annotations = nil // without annotations it is an edit, and noted as one
	ask.Version("0.0.1")(r.app)
	if err := m.Update(t.Context(), r.app); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{shipper.AppRequestedByAnnotation: m.name, shipper.AppHighestObservedGenerationAnnotation: "7"}
	got := map[string]string{}
	for key := range want {
		got[key] = r.app.Annotations[key]
	}
	if err := differs(want, got); err != nil {
		t.Errorf("after going back %v", err)
	}
}
