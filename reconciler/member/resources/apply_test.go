// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/retry"
)

// applied makes a Release whose content is written in a way.
func (f *fixture) applied(generation int, digest string, how shipper.Apply) *shipper.InstallationTarget {
	f.Helper()
	it := f.release(generation, digest)
	it.Spec.Resources.Apply = &how
	f.must(f.management.Update(f.Context(), it))
	return it
}

func TestWithoutForceAConflictNamesTheFieldAndItsManager(t *testing.T) {
	f := begin(t)
	f.snapshot("one", first)
	f.snapshot("two", strings.ReplaceAll(first, `"1"`, `"2"`))
	how := shipper.Apply{ForceConflicts: ptr.To(false)}
	f.placed(f.applied(0, "one", how))
	f.edit(configMap, "work/a", func(u *unstructured.Unstructured) { u.Object["data"] = map[string]any{"k": "edited"} })
	it := f.applied(1, "two", how)
	out, _ := f.place(it)
	same(t, "reason", shipper.ApplyConflict, reasonOf(out.Err))
	const want = `ConfigMap work/a: apply.forceConflicts is false, and data.k has a conflict with "kubectl-edit" using v1`
	if got := fmt.Sprint(out.Err); !strings.HasPrefix(got, want) { // the time follows
		t.Errorf("message %q, want %q", got, want)
	}
	same(t, "the other object", map[string]any{"k": "2"}, f.get(configMap, "work/b").Object["data"].(map[string]any))
	it.Spec.Resources.Apply = nil
	f.must(f.management.Update(t.Context(), it))
	f.placed(it)
	same(t, "with force", map[string]any{"k": "2"}, f.get(configMap, "work/a").Object["data"].(map[string]any))
}

func TestClientSideMergesThreeWays(t *testing.T) {
	f := begin(t)
	f.snapshot("one", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: work, name: a}, data: {k: "1", gone: "1"}}`)
	f.snapshot("two", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: work, name: a}, data: {k: "2"}}`)
	how := shipper.Apply{Type: shipper.ApplyClientSide}
	it := f.applied(0, "one", how)
	_, writes := f.place(it)
	same(t, "writes", []string{"create " + theAnchor, "create ConfigMap work/a", "apply " + theAnchor}, writes)
	f.edit(configMap, "work/a", func(u *unstructured.Unstructured) {
		u.Object["data"].(map[string]any)["theirs"] = "x"
	})
	it = f.applied(1, "two", how)
	_, writes = f.place(it)
	same(t, "writes", []string{"apply " + theAnchor, "patch ConfigMap work/a", "apply " + theAnchor}, writes)
	same(t, "data", map[string]any{"k": "2", "theirs": "x"}, f.get(configMap, "work/a").Object["data"].(map[string]any))

	f.snapshot("large", fmt.Sprintf(
		`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: work, name: l}, data: {k: %q}}`, strings.Repeat("x", maxLastApplied)))
	_, writes = f.place(f.applied(2, "large", how))
	same(t, "a large object", "apply ConfigMap work/l", writes[1])
}

func TestDuplicatesInListsArePlacedOnce(t *testing.T) {
	f := begin(t)
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	f.snapshot("one", `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: work, name: d}, spec: {template: {spec: {containers: [
  {name: c, env: [{name: A, value: x}, {name: A, value: z}]}]}}}}`)
	f.snapshot("two", `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: work, name: e}, spec: {template: {spec: {volumes: [
  {name: v}, {name: v, emptyDir: {}}]}}}}`)
	for n, how := range []shipper.ApplyType{shipper.ApplyServerSide, shipper.ApplyClientSide} {
		f.placed(f.applied(n, "one", shipper.Apply{Type: how}))
		containers, _, _ := unstructured.NestedSlice(f.get(deployment, "work/d").Object, "spec", "template", "spec", "containers")
		same(t, "variables", any([]any{map[string]any{"name": "A", "value": "z"}}), containers[0].(map[string]any)["env"])
	}
	out, _ := f.place(f.applied(2, "two", shipper.Apply{}))
	if !strings.Contains(fmt.Sprint(out.Err), "Deployment work/e: failed to merge config") {
		t.Errorf("two different volumes of one name are not left to the API server: %v", out.Err)
	}
}

func TestReadyRulesJudgeObjects(t *testing.T) {
	f := begin(t)
	f.member.mapper.Add(gizmo, meta.RESTScopeNamespace)
	f.snapshot("one", `{apiVersion: shipper.test/v1, kind: Gizmo, metadata: {namespace: work, name: g}, spec: {phase: Idle}}`)
	it := f.release(0, "one")
	it.Spec.Resources.Ready = []shipper.ReadyRule{{Group: "shipper.test", Kind: "Gizmo", Expression: `object.spec.phase == "On"`}}
	f.must(f.management.Update(t.Context(), it))
	out, _ := f.place(it)
	same(t, "unhealthy", []shipper.UnhealthyObject{{
		APIVersion: "shipper.test/v1", Kind: "Gizmo", Namespace: "work", Name: "g", Status: "InProgress", Reason: notReady,
	}}, out.Objects.Unhealthy)
	f.edit(gizmo, "work/g", func(u *unstructured.Unstructured) { u.Object["spec"] = map[string]any{"phase": "On"} })
	out, _ = f.place(it)
	same(t, "healthy", int32(1), out.Objects.Healthy)
}

func TestAPlacedServiceIsHealthyWithoutTheAddressThatItAwaitsNoMore(t *testing.T) {
	f := begin(t)
	service := schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	f.member.mapper.Add(service, meta.RESTScopeNamespace)
	f.snapshot("one", `{apiVersion: v1, kind: Service, metadata: {namespace: work, name: web},
  spec: {type: LoadBalancer, clusterIP: 10.0.0.1}}`)
	it := f.release(0, "one")
	out, _ := f.place(it)
	same(t, "unhealthy", []shipper.UnhealthyObject{{
		APIVersion: "v1", Kind: "Service", Namespace: "work", Name: "web", Status: "InProgress", Reason: shipper.AddressAwaited,
		Message: "is of type LoadBalancer and has no address yet; where no controller gives one, use type ClusterIP or NodePort, " +
			`or annotate it with shipper.booking.com/await-address: "false"`,
	}}, out.Objects.Unhealthy)
	f.edit(service, "work/web", func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{shipper.AwaitAddressAnnotation: "false"})
	})
	out, _ = f.place(it)
	same(t, "healthy", int32(1), out.Objects.Healthy)
}

func TestPodTemplatesHaveNoMarks(t *testing.T) {
	f := begin(t)
	it := f.release(0, "one")
	p := f.worker.pass(f.task(it))
	content := f.parsed(`{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: work, name: d, uid: x, ownerReferences: [{kind: X}]},
  spec: {template: {metadata: {labels: {app: d}}}}, status: {replicas: 1}}`)
	want := f.parsed(`{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: work, name: d, labels: {shipper-app: web}, annotations: {
  shipper.booking.com/owner: team/web, shipper.booking.com/installed-digest: x}}, spec: {template: {metadata: {labels: {app: d}}}}}`)
	same(t, "manifest", want.Object, p.marks(&item{object: content, want: entry{Digest: "x"}}).Object)
}

func TestAnAnchorOfAnotherManagementClusterStopsAll(t *testing.T) {
	f := begin(t)
	f.snapshot("one", first)
	it := f.release(0, "one")
	f.placed(it)
	f.edit(corev1.SchemeGroupVersion.WithKind("ConfigMap"), strings.TrimPrefix(theAnchor, "ConfigMap "), func(u *unstructured.Unstructured) {
		u.Object["data"].(map[string]any)[shipper.AnchorIdentityKey] = "them"
	})
	f.member.claim = &problem{shipper.ObjectConflict, 0, "theirs"}
	out, writes := f.place(it)
	same(t, "reason and writes", []any{shipper.ObjectConflict, []string(nil)}, []any{reasonOf(out.Err), writes})
	f.drop(it)
	same(t, "writes of the removal", []string(nil), f.remove(it))
}

func TestProblemsKeepTheirReasons(t *testing.T) {
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "work")
	changed := apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("changed"))
	f := begin(t)
	p := f.worker.pass(f.task(f.release(0, "one")))
	s := func(name string, a action, failed error) *item {
		want := entry{APIVersion: "v1", Kind: "ConfigMap", Namespace: "work", Name: name}
		return &item{want: want, action: a, failed: failed, whose: "others"}
	}
	for sentence, tc := range map[string]struct {
		all      []*item
		reason   string
		action   retry.Action
		conflict bool
	}{
		"a namespace that is not there": {[]*item{s("a", create, gone)}, shipper.NamespaceMissing, retry.Retry, false},
		"a concurrent write":            {[]*item{s("a", write, changed)}, shipper.InProgress, retry.Requeue, true},
		"a concurrent write, and one not taken": {
			[]*item{s("a", write, changed), s("b", leave, nil)}, shipper.NotTakenOver, retry.Requeue, false,
		},
		"many of another Application": {
			[]*item{s("a", refuse, nil), s("b", refuse, nil)}, shipper.ObjectConflict, retry.Wait, false,
		},
		"one that goes, and one that is skipped": {
			[]*item{s("a", wait, nil), s("b", "", errSkipped)}, shipper.InProgress, retry.Recheck, false,
		},
	} {
		err := p.problems(tc.all)
		reason, action := retry.ClassifyInCluster(err)
		same(t, sentence, []any{tc.reason, tc.action, tc.conflict}, []any{reason, action, retry.Conflict(err)})
	}
	var many []*item
	for i := range 100 {
		many = append(many, s(fmt.Sprint("c", i), refuse, nil))
	}
	const five = "ConfigMap work/c0 belongs to others; ConfigMap work/c1 belongs to others; ConfigMap work/c2 belongs to others; " +
		"ConfigMap work/c3 belongs to others; ConfigMap work/c4 belongs to others; "
	same(t, "the message about many", five+"and 95 more; one of the two has to leave it out", fmt.Sprint(p.problems(many)))
}

// TestReadyRulesHaveABudgetForEachPass has rules that cost more than a pass may spend on 60 objects.
func TestReadyRulesHaveABudgetForEachPass(t *testing.T) {
	f := begin(t)
	f.worker.maxCost = 100_000
	f.member.mapper.Add(gizmo, meta.RESTScopeNamespace)
	var manifests []string
	for i := range 60 {
		const text = "{apiVersion: shipper.test/v1, kind: Gizmo, metadata: {namespace: work, name: g%02d}, spec: {list: [%s0]}}\n"
		manifests = append(manifests, fmt.Sprintf(text, i, strings.Repeat("0, ", 20)))
	}
	f.snapshot("one", strings.Join(manifests, "---\n"))
	release := func(generation int, digest string) *shipper.InstallationTarget {
		it := f.release(generation, digest)
		for range 2 {
			it.Spec.Resources.Ready = append(it.Spec.Resources.Ready, shipper.ReadyRule{
				Group: "shipper.test", Kind: "Gizmo", Expression: "object.spec.list.all(a, object.spec.list.all(b, a <= b || a > b))",
			})
		}
		f.must(f.management.Update(t.Context(), it))
		return it
	}
	it := release(0, "one")
	out, _ := f.place(it)
	if n := out.Objects.Healthy; n == 0 || n == 60 || out.Later != judgeNext || out.Objects.Unhealthy[0].Reason != postponed {
		t.Fatalf("%d of 60 are ready after a pass, the next is in %s, %+v", n, out.Later, out.Objects.Unhealthy)
	}
	for out.Later != 0 {
		was := out.Objects.Healthy
		if out, _ = f.place(it); out.Objects.Healthy <= was {
			t.Fatalf("a pass judged no object, %d are ready", was)
		}
	}
	same(t, "ready in the end", int32(60), out.Objects.Healthy)
	// The next Release judges only what has changed. Unlisted objects are forgotten.
	f.snapshot("two", strings.Join(manifests[:50], "---\n"))
	newer := release(1, "two")
	out, _ = f.place(newer)
	f.place(newer)
	same(t, "ready after one pass, and judgements", []any{int32(50), 50},
		[]any{out.Objects.Healthy, len(f.worker.judgements.sites[site{"eu-1", "team/web"}].known)})
	f.worker.Forget(client.ObjectKeyFromObject(newer))
	same(t, "sites of a target that is gone", 0, len(f.worker.judgements.sites))
}
