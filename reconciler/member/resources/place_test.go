// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/reconciler/retry"
)

const (
	first = `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: work, name: a}, data: {k: "1"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: work, name: b}, data: {k: "1"}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: work}}
`
	second = `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: work, name: b}, data: {k: "2"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: work, name: c}, data: {k: "2"}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: work}}
`
	theAnchor = "ConfigMap shipper-system/a5cb1ff62f8ed32c81ba8c077640d70f-anchor"
)

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: -want +got:\n%s", what, diff)
	}
}

func TestEachChangeIsWrittenOnceAndNothingIsWrittenAtRest(t *testing.T) {
	f := begin(t)
	f.snapshot("one", first)
	f.snapshot("two", second)
	it := f.release(0, "one")
	out, writes := f.place(it)
	same(t, "error", nil, out.Err)
	same(t, "the first writes", []string{
		"create " + theAnchor, "apply Namespace /work", "apply ConfigMap work/a", "apply ConfigMap work/b", "apply " + theAnchor,
	}, writes)
	same(t, "objects", &shipper.InstalledObjects{Total: 3, Healthy: 3, Kinds: []shipper.InstalledKind{
		{APIVersion: "v1", Kind: "ConfigMap", Total: 2, Healthy: 2}, {APIVersion: "v1", Kind: "Namespace", Total: 1, Healthy: 1},
	}}, out.Objects)
	f.member.lives.Store(0)
	delete(f.contents, "one")
	out, writes = f.place(it)
	same(t, "error, reads and writes at rest", []any{nil, int64(0), []string(nil)}, []any{out.Err, f.member.lives.Load(), writes})
	f.snapshot("one", first)

	again := f.release(1, "one")
	out, writes = f.place(it)
	const message = `Release "web-1" writes in this cluster`
	same(t, "the older target", Result{Superseded: true, Reason: shipper.SupersededByNewer, Message: message}, out)
	same(t, "writes of the older target", []string(nil), writes)
	_, writes = f.place(again)
	same(t, "writes of equal content", []string{"apply " + theAnchor}, writes)

	newer := f.release(2, "two")
	out, writes = f.place(newer)
	same(t, "error", "waiting until these are gone: ConfigMap work/a", fmt.Sprint(out.Err))
	same(t, "writes of other content", []string{
		"apply " + theAnchor, "apply ConfigMap work/b", "apply ConfigMap work/c", "delete ConfigMap work/a", "apply " + theAnchor,
	}, writes[:5])
	f.placed(newer)
	same(t, "state", []string{
		theAnchor + " Namespace work pending=false ConfigMap work/b pending=false ConfigMap work/c pending=false",
		"ConfigMap work/b ours map[k:2]", "ConfigMap work/c ours map[k:2]", "Namespace /work ours map[]",
	}, f.state())
}

func TestAKilledPassEndsInTheSameState(t *testing.T) {
	run := func(t *testing.T, kill int, hasty bool) (states [][]string, writes int) {
		f := begin(t)
		f.snapshot("one", first)
		f.snapshot("two", second)
		f.put("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: other, name: x}, data: {k: theirs}}")
		f.member.left = kill
		count := func() (killed bool) {
			writes += len(f.member.writes)
			if killed = kill >= 0 && writes >= kill; killed {
				f.restart()
				kill = -1
			}
			return killed
		}
		var it *shipper.InstallationTarget
		for generation, digest := range []string{"one", "two"} {
			it = f.release(generation, digest)
			for range 5 {
				if f.place(it); count() && hasty {
					break
				}
			}
			states = append(states, f.state())
		}
		f.drop(it)
		f.drop(ptr.To(*f.target("web-0")))
		for range 8 {
			f.member.writes = nil
			f.worker.Remove(t.Context(), f.task(it))
			count()
		}
		return append(states, f.state()), writes
	}
	want, writes := run(t, -1, false)
	same(t, "the end", []string{"ConfigMap other/x map[k:theirs]"}, want[len(want)-1])
	if writes < 12 {
		t.Fatalf("only %d writes", writes)
	}
	for kill := range writes {
		got, _ := run(t, kill, false)
		same(t, fmt.Sprintf("killed after %d of %d writes", kill, writes), want, got)
		got, _ = run(t, kill, true) // the next change comes before another pass
		same(t, fmt.Sprintf("killed after %d of %d writes, and changed then", kill, writes), want[len(want)-1], got[len(got)-1])
	}
}

// unreadable is content that cannot be read.
type unreadable struct{ error }

// Content is Content.
func (u unreadable) Content(context.Context, string, string) ([]unstructured.Unstructured, error) {
	return nil, u.error
}

func TestContentThatCannotBeReadBlamesNoCluster(t *testing.T) {
	for _, how := range []shipper.ApplyType{shipper.ApplyServerSide, shipper.ApplyReportDiff} {
		f := begin(t)
		f.worker.Content = unreadable{&chart.Error{Reason: shipper.ChartError, Message: "part 2 is missing"}}
		out, writes := f.place(f.applied(0, "one", shipper.Apply{Type: how}))
		reason, action := retry.ClassifyInCluster(out.General)
		same(t, "error of the cluster, writes, reason and action", []any{nil, []string(nil), shipper.ChartError, retry.Wait},
			[]any{out.Err, writes, reason, action})
	}
}

func (f *fixture) target(name string) *shipper.InstallationTarget {
	f.Helper()
	it := &shipper.InstallationTarget{}
	f.must(f.management.Get(f.Context(), client.ObjectKey{Namespace: "team", Name: name}, it))
	return it
}

func TestWhatWasThereIsTakenAsThePolicySays(t *testing.T) {
	const theirs = `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: work, name: a, labels: {tier: %s}}, data: {k: "1"}}`
	for _, tc := range []struct {
		sentence     string
		policy       shipper.TakeOverPolicy
		tier, reason string
		fields       int32
		writes       []string
	}{
		{"Never leaves it alone", shipper.TakeOverNever, "x", shipper.NotTakenOver, 1, []string{"create", "apply ConfigMap work/b", "apply"}},
		{"absent is Never", "", "x", shipper.NotTakenOver, 1, []string{"create", "apply ConfigMap work/b", "apply"}},
		{
			"IfNoDiff leaves one that differs alone", shipper.TakeOverIfNoDiff, "x", shipper.NotTakenOver, 1,
			[]string{"create", "apply ConfigMap work/b", "apply"},
		},
		{
			"IfNoDiff takes one that does not differ", shipper.TakeOverIfNoDiff, "gold", "<nil>", 0,
			[]string{"create", "apply ConfigMap work/a", "apply ConfigMap work/b", "apply"},
		},
		{
			"Always takes it", shipper.TakeOverAlways, "x", "<nil>", 0,
			[]string{"create", "apply ConfigMap work/a", "apply ConfigMap work/b", "apply"},
		},
	} {
		t.Run(tc.sentence, func(t *testing.T) {
			f := begin(t)
			f.snapshot("one", strings.Replace(first, "name: a", "name: a, labels: {tier: gold}", 1))
			f.put("{apiVersion: v1, kind: Namespace, metadata: {name: work}}")
			f.put(fmt.Sprintf(theirs, tc.tier))
			it := f.release(0, "one")
			it.Spec.Resources.Apply = &shipper.Apply{TakeOver: tc.policy}
			f.must(f.management.Update(t.Context(), it))
			if tc.policy != shipper.TakeOverNever && tc.policy != "" { // with Never a Namespace is used as it is
				f.contents["one"] = f.contents["one"][:2]
			}
			out, writes := f.place(it)
			same(t, "reason", tc.reason, reasonOf(out.Err))
			if advised := out.Err != nil && strings.Contains(out.Err.Error(), "set takeOver to IfNoDiff"); advised != (out.Err != nil &&
				tc.policy != shipper.TakeOverIfNoDiff) {
				t.Errorf("IfNoDiff is advised: %t: %v", advised, out.Err)
			}
			for i := range writes {
				writes[i] = strings.TrimSuffix(writes[i], " "+theAnchor)
			}
			same(t, "writes", tc.writes, writes)
			if got := out.Diff; tc.fields > 0 && (got == nil || len(got.Fields) != 1 || got.Fields[0].Field != "metadata.labels.tier") {
				t.Errorf("diff: %+v", got)
			}
			_, writes = f.place(it)
			same(t, "writes at rest", []string(nil), writes)
			if tc.policy == shipper.TakeOverIfNoDiff && tc.tier == "x" {
				f.edit(configMap, "work/a", func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"tier": "gold"}) })
				out, _ = f.place(it)
				same(t, "error when it was mended", nil, out.Err)
			}
			// An object that was not taken stays when the Application goes.
			f.drop(it)
			f.remove(it)
			if gone := f.get(configMap, "work/a") == nil; gone == (tc.reason != "<nil>" && tc.policy != shipper.TakeOverIfNoDiff) {
				t.Errorf("the object is gone: %t", gone)
			}
		})
	}
}

func TestAnObjectOfAnotherApplicationIsNeverTaken(t *testing.T) {
	f := begin(t)
	f.snapshot("one", first)
	it := f.release(0, "one")
	f.placed(it)
	other := it.DeepCopy()
	other.Namespace, other.Name, other.UID, other.ResourceVersion, other.OwnerReferences = "rival", "web-9", "rival", "", nil
	other.Spec.Resources.Apply = &shipper.Apply{TakeOver: shipper.TakeOverAlways}
	other.Spec.Resources.Snapshot = "rivals"
	f.snapshot("rivals", strings.Replace(first, "name: b", "name: z", 1))
	f.must(f.management.Create(t.Context(), other))
	out, writes := f.place(other)
	same(t, "reason", shipper.ObjectConflict, reasonOf(out.Err))
	if len(writes) != 3 || writes[1] != "apply ConfigMap work/z" {
		t.Errorf("other objects did not go on: %q", writes)
	}
	f.drop(other)
	f.remove(other)
	f.placed(it)
	_, writes = f.place(it)
	same(t, "writes of the first Application", []string(nil), writes)
}

func TestHaltLeavesEditedObjectsAloneUntilTheContentChanges(t *testing.T) {
	f := begin(t)
	f.policy = shipper.DriftHalt
	f.snapshot("one", first)
	it := f.release(0, "one")
	f.placed(it)
	f.edit(configMap, "work/a", func(u *unstructured.Unstructured) {
		u.Object["data"] = map[string]any{"k": "edited"}
		u.SetAnnotations(map[string]string{shipper.PlacedOwnerAnnotation: "team/web"})
	})
	out, writes := f.place(it)
	same(t, "writes", []string(nil), writes)
	same(t, "error and reason", []string{"<nil>", shipper.DriftFound}, []string{fmt.Sprint(out.Err), out.Reason})
	if out.Drift == nil || out.Drift.Objects != 1 || out.Drift.Fields[0].Field != "data.k" {
		t.Errorf("drift: %+v", out.Drift)
	}
	f.snapshot("two", strings.Replace(first, `"1"`, `"2"`, 1))
	newer := f.release(1, "two")
	f.placed(newer)
	same(t, "data", map[string]any{"k": "2"}, f.get(configMap, "work/a").Object["data"].(map[string]any))
	out, _ = f.place(newer)
	same(t, "reason", "", out.Reason)
}

func TestCorrectWritesEditedObjectsAgain(t *testing.T) {
	f := begin(t)
	f.policy = shipper.DriftCorrect
	f.snapshot("one", first)
	it := f.release(0, "one")
	f.placed(it)
	f.edit(configMap, "work/a", func(u *unstructured.Unstructured) { u.Object["data"] = map[string]any{"k": "edited"} })
	out, writes := f.place(it)
	same(t, "writes", []string{"apply ConfigMap work/a"}, writes)
	same(t, "events", 1, len(out.Events))
	same(t, "data", map[string]any{"k": "1"}, f.get(configMap, "work/a").Object["data"].(map[string]any))
}

func TestTheHealthOfTheVersionBeforeAWriteCountsForNothing(t *testing.T) {
	f := begin(t)
	f.snapshot("one", first)
	it := f.release(0, "one")
	f.placed(it)
	f.snapshot("two", strings.Replace(first, `"1"`, `"2"`, 1))
	newer := f.release(1, "two")
	f.member.late = true
	out, _ := f.place(newer)
	same(t, "objects awaited, and when to look again", []any{int32(0), maxDelivery}, []any{out.Objects.Healthy, out.Later})
	f.member.late = false
	out, _ = f.place(newer)
	same(t, "healthy objects after the watch has delivered the write", out.Objects.Total, out.Objects.Healthy)
	f.member.late = true // a user has taken the annotation away
	f.clock.SetTime(f.clock.Now().Add(maxDelivery))
	out, _ = f.place(newer)
	same(t, "healthy objects whose annotation is another, later", out.Objects.Total, out.Objects.Healthy)
}

func TestRemovalSparesWhatOthersHave(t *testing.T) {
	for _, tc := range []struct {
		sentence string
		removal  shipper.ResourcesRemoval
		others   string
		want     []string
	}{
		{"everything goes", "", "", nil},
		{
			"a Namespace stays while others have something in it", shipper.RemovalWhenEmpty,
			"{apiVersion: v1, kind: ConfigMap, metadata: {namespace: work, name: x}, data: {k: theirs}}",
			[]string{"ConfigMap work/x map[k:theirs]", "Namespace /work ours map[]"},
		},
		{
			"what each cluster makes does not count", shipper.RemovalWhenEmpty,
			"{apiVersion: v1, kind: ConfigMap, metadata: {namespace: work, name: kube-root-ca.crt}}",
			[]string{"ConfigMap work/kube-root-ca.crt map[]"},
		},
		{
			"All removes the Namespace all the same", shipper.RemovalAll,
			"{apiVersion: v1, kind: ConfigMap, metadata: {namespace: work, name: x}, data: {k: theirs}}",
			[]string{"ConfigMap work/x map[k:theirs]"},
		},
		{
			"None removes nothing", shipper.RemovalNone, "",
			[]string{"ConfigMap work/a ours map[k:1]", "ConfigMap work/b ours map[k:1]", "Namespace /work ours map[]"},
		},
	} {
		t.Run(tc.sentence, func(t *testing.T) {
			f := begin(t)
			f.snapshot("one", first)
			it := f.release(0, "one")
			it.Spec.Resources.Removal = tc.removal
			f.must(f.management.Update(t.Context(), it))
			f.placed(it)
			if tc.others != "" {
				f.put(tc.others)
			}
			f.drop(it)
			writes := f.remove(it)
			same(t, "state", tc.want, f.state())
			same(t, "the last write", "delete "+theAnchor, writes[len(writes)-1])
		})
	}
}

func TestAWebhookConfigurationIsDeletedBeforeItsServer(t *testing.T) {
	f := begin(t)
	f.member.mapper.Add(deployment, meta.RESTScopeNamespace)
	f.member.mapper.Add(admissionv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"), meta.RESTScopeRoot)
	f.snapshot("one", `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: work, name: guard}}
---
{apiVersion: v1, kind: Service, metadata: {namespace: work, name: guard}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: guard}}
`)
	it := f.release(0, "one")
	f.placed(it)
	f.drop(it)
	same(t, "writes", []string{
		"delete ValidatingWebhookConfiguration /guard", "delete Deployment work/guard", "delete Service work/guard", "delete " + theAnchor,
	}, f.remove(it))
}

func TestAnObjectThatAUserMadeAnewIsNotDeleted(t *testing.T) {
	f := begin(t)
	f.snapshot("one", first)
	it := f.release(0, "one")
	f.placed(it)
	restored := f.get(configMap, "work/a") // as from a backup, marks included
	f.must(f.member.admin.Delete(t.Context(), restored.DeepCopy()))
	restored.SetResourceVersion("")
	f.member.setUID(restored)
	f.must(f.member.admin.Create(t.Context(), restored))
	f.drop(it)
	f.remove(it)
	same(t, "state", []string{"ConfigMap work/a ours map[k:1]", "Namespace /work ours map[]"}, f.state())
}

func TestReportDiffWritesNothing(t *testing.T) {
	f := begin(t)
	f.snapshot("one", first)
	f.put("{apiVersion: v1, kind: Namespace, metadata: {name: work}}")
	f.put(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: work, name: a}, data: {k: "0", more: x}}`)
	for comparison, want := range map[shipper.ApplyComparison][]string{
		"":                     {"a data.k", "b ."},
		shipper.ComparisonFull: {"a data.k", "a data.more", "b ."},
	} {
		it := f.release(len(want), "one")
		it.Spec.Resources.Apply = &shipper.Apply{Type: shipper.ApplyReportDiff, Comparison: comparison, TakeOver: shipper.TakeOverAlways}
		f.must(f.management.Update(t.Context(), it))
		out, writes := f.place(it)
		same(t, "writes", []string(nil), writes)
		same(t, "error and reason", []string{"<nil>", shipper.DiffReported}, []string{fmt.Sprint(out.Err), out.Reason})
		var got []string
		for _, field := range out.Diff.Fields {
			got = append(got, field.Name+" "+field.Field)
		}
		same(t, "fields with comparison "+string(comparison), want, got)
		f.must(f.management.Delete(t.Context(), it))
	}
}

func TestNoCommandGrantsTheRightToGrantRights(t *testing.T) {
	f := begin(t)
	f.snapshot("one", first+"---\n{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: work, name: b}}\n")
	f.member.mapper.Add(rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), meta.RESTScopeNamespace)
	f.member.denied["RoleBinding"] = true
	out, _ := f.place(f.release(0, "one"))
	same(t, "reason", shipper.NotGranted, reasonOf(out.Err))
	same(t, "message", `RoleBinding work/b: Shipper's account lacks rights to rolebindings.rbac.authorization.k8s.io; such objects give `+
		`rights, and every chart and `+
		`Envelope of every tenant that may write Applications can do what Shipper's account may: have an administrator of the `+
		`cluster write them, and leave them out here`, fmt.Sprint(out.Err))
}

func TestAMissingRightNamesTheRoleAndOtherObjectsGoOn(t *testing.T) {
	f := begin(t)
	f.snapshot("one", first+"---\n{apiVersion: v1, kind: Secret, metadata: {namespace: work, name: s}}\n")
	f.member.denied["Secret"] = true
	it := f.release(0, "one")
	out, writes := f.place(it)
	same(t, "reason", shipper.NotGranted, reasonOf(out.Err))
	same(t, "message", `Secret work/s: Shipper's account lacks rights to secrets; in cluster eu-1: kubectl create clusterrole `+
		`shipper-secrets `+
		`--verb=get,list,watch,create,patch,delete --resource=secrets && kubectl label clusterrole shipper-secrets `+
		`shipper.booking.com/aggregate-to-application=true; every chart and Envelope of every tenant that may write Applications can do what `+
		`Shipper's account may`, fmt.Sprint(out.Err))
	same(t, "writes", 5, len(writes))
	f.member.denied["Secret"] = false
	out, writes = f.place(it)
	same(t, "error", nil, out.Err)
	same(t, "writes", []string{"apply Secret work/s", "apply " + theAnchor}, writes)
}

func TestANamespaceThatMayNotBeWrittenIsTheOnlyProblemOfItsContent(t *testing.T) {
	f := begin(t)
	f.snapshot("one", `{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {namespace: shop, name: q}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: c}}
`)
	f.member.mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ResourceQuota"}, meta.RESTScopeNamespace)
	f.member.denied["Namespace"], f.member.denied["ResourceQuota"], f.member.unmade = true, true, "shop"
	out, _ := f.place(f.release(0, "one"))
	same(t, "reason", shipper.NotGranted, reasonOf(out.Err))
	same(t, "message", `Namespace shop, ResourceQuota shop/q: Shipper's account lacks rights to namespaces, resourcequotas; in cluster eu-1: `+
		`kubectl create clusterrole shipper-namespaces-resourcequotas --verb=get,list,watch,create,patch,delete `+
		`--resource=namespaces,resourcequotas && kubectl label clusterrole shipper-namespaces-resourcequotas `+
		`shipper.booking.com/aggregate-to-application=true; every chart and Envelope of every tenant that may write Applications can do what `+
		`Shipper's account may`, fmt.Sprint(out.Err))
}

func TestAnObjectWaitsUntilTheClusterServesItsKind(t *testing.T) {
	f := begin(t)
	f.snapshot("one", `{apiVersion: shipper.test/v1, kind: Gizmo, metadata: {namespace: work, name: g}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gizmos.shipper.test}
spec: {group: shipper.test, names: {kind: Gizmo}, versions: [{name: v1, served: true}]}
`)
	it := f.release(0, "one")
	out, _ := f.place(it)
	same(t, "reason", shipper.InProgress, reasonOf(out.Err))
	f.member.mapper.Add(gizmo, meta.RESTScopeNamespace)
	f.placed(it)
	out, writes := f.place(it)
	same(t, "writes at rest", []string(nil), writes)
	same(t, "health while it is unknown", int32(0), out.Objects.Healthy-out.Objects.Total+int32(len(out.Objects.Unhealthy)))
	if bad := out.Objects.Unhealthy; len(bad) == 0 || bad[len(bad)-1].Kind != "Gizmo" || bad[len(bad)-1].Reason != justWritten {
		t.Errorf("unhealthy: %+v", bad)
	}
	f.clock.SetTime(f.clock.Now().Add(defaultUnavailablePeriod))
	out, _ = f.place(it)
	for _, bad := range out.Objects.Unhealthy {
		if bad.Kind == "Gizmo" {
			t.Errorf("unhealthy after a minute: %+v", bad)
		}
	}
}
