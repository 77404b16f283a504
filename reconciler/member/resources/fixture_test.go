// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

var (
	configMap  = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	definition = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	gizmo      = schema.GroupVersionKind{Group: "shipper.test", Version: "v1", Kind: "Gizmo"}
)

// contents are what snapshots hold, by digest.
type contents map[string][]unstructured.Unstructured

// Content is Content.
func (c contents) Content(_ context.Context, _, digest string) ([]unstructured.Unstructured, error) {
	content, found := c[digest]
	if !found {
		return nil, fmt.Errorf("there is no snapshot %s", digest)
	}
	return content, nil
}

// fixture is an Application, web in namespace team, and a cluster.
type fixture struct {
	*testing.T
	member     *member
	management client.Client
	contents   contents
	clock      *testingclock.FakePassiveClock
	worker     *Worker
	policy     shipper.DriftPolicy
}

func begin(t *testing.T) *fixture {
	t.Helper()
	own := runtime.NewScheme()
	if err := shipper.AddToScheme(own); err != nil {
		t.Fatal(err)
	}
	f := &fixture{
		T: t, member: newMember(t), management: fake.NewClientBuilder().WithScheme(own).Build(), contents: contents{},
		clock: testingclock.NewFakePassiveClock(time.Unix(1000, 0)),
	}
	f.restart()
	return f
}

// restart makes the worker of a new process. Requests are made one after the other, so that each run makes the same.
func (f *fixture) restart() {
	f.worker = NewWorker(Options{Client: f.management, Live: f.management, Content: f.contents, Clock: f.clock, Parallel: 1})
	f.member.left = -1
}

// snapshot keeps objects, as YAML, for a digest.
func (f *fixture) snapshot(digest, text string) {
	f.Helper()
	f.contents[digest] = nil
	for doc := range strings.SplitSeq(text, "---\n") {
		f.contents[digest] = append(f.contents[digest], *f.parsed(doc))
	}
}

func (f *fixture) parsed(text string) *unstructured.Unstructured {
	f.Helper()
	u := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = u.UnmarshalJSON(raw)
	}
	f.must(err)
	return u
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// release makes a Release with a target that lists the cluster, with the content of a digest.
func (f *fixture) release(generation int, digest string) *shipper.InstallationTarget {
	f.Helper()
	at := metav1.ObjectMeta{
		Namespace: "team", Name: fmt.Sprint("web-", generation), Labels: map[string]string{shipper.AppLabel: "web"},
		UID:         types.UID(fmt.Sprint("release-", generation)),
		Annotations: map[string]string{shipper.ReleaseGenerationAnnotation: fmt.Sprint(generation)},
	}
	f.must(f.management.Create(f.Context(), &shipper.Release{ObjectMeta: at}))
	at.OwnerReferences = []metav1.OwnerReference{{APIVersion: shipper.GroupVersion.String(), Kind: "Release", Name: at.Name, UID: at.UID}}
	at.Annotations, at.UID = nil, types.UID(fmt.Sprint("target-", generation))
	it := &shipper.InstallationTarget{ObjectMeta: at, Spec: shipper.InstallationTargetSpec{
		Clusters: []string{"eu-1"}, Resources: &shipper.TargetResources{Snapshot: digest},
	}}
	f.must(f.management.Create(f.Context(), it))
	return it
}

func (f *fixture) task(it *shipper.InstallationTarget) Task {
	f.Helper()
	return Task{Target: it, Siblings: f.siblings(it.Namespace), Cluster: f.member, Name: "eu-1", Identity: "us", Policy: f.policy}
}

// siblings are those of the Application in a namespace, as a pass begins.
func (f *fixture) siblings(namespace string) *Siblings {
	f.Helper()
	all, err := f.worker.Siblings(f.Context(), types.NamespacedName{Namespace: namespace, Name: "web"}, "eu-1")
	f.must(err)
	return all
}

// place makes one pass, and returns its writes.
func (f *fixture) place(it *shipper.InstallationTarget) (Result, []string) {
	f.Helper()
	f.member.writes = nil
	out := f.worker.Place(f.Context(), f.task(it))
	return out, f.member.writes
}

// placed makes passes until all is well.
func (f *fixture) placed(it *shipper.InstallationTarget) {
	f.Helper()
	for range 5 {
		if out, _ := f.place(it); out.Err == nil && out.General == nil {
			return
		}
	}
	out, writes := f.place(it)
	f.Fatalf("not placed: %v, %v, writes %q", out.Err, out.General, writes)
}

// remove makes passes of a target that leaves until it is gone.
func (f *fixture) remove(it *shipper.InstallationTarget) []string {
	f.Helper()
	f.member.writes = nil
	var out Result
	for range 5 {
		if out = f.worker.Remove(f.Context(), f.task(it)); out.Err == nil && out.General == nil {
			return f.member.writes
		}
	}
	f.Fatalf("not removed: %v, %v", out.Err, out.General)
	return nil
}

// drop makes a target list no cluster any more.
func (f *fixture) drop(it *shipper.InstallationTarget) {
	f.Helper()
	it.Spec.Clusters = []string{}
	f.must(f.management.Update(f.Context(), it))
}

// put creates an object of others in the cluster.
func (f *fixture) put(text string) {
	f.Helper()
	u := f.parsed(text)
	f.member.setUID(u)
	f.must(f.member.admin.Create(f.Context(), u, client.FieldOwner("kubectl")))
}

// edit changes an object in the cluster.
func (f *fixture) edit(gvk schema.GroupVersionKind, key string, change func(u *unstructured.Unstructured)) {
	f.Helper()
	u := f.get(gvk, key)
	change(u)
	f.must(f.member.admin.Update(f.Context(), u, client.FieldOwner("kubectl-edit")))
}

// get reads an object of the cluster by namespace/name; nil if it is not there.
func (f *fixture) get(gvk schema.GroupVersionKind, key string) *unstructured.Unstructured {
	f.Helper()
	namespace, name, _ := strings.Cut(key, "/")
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	err := f.member.admin.Get(f.Context(), types.NamespacedName{Namespace: namespace, Name: name}, u)
	if apierrors.IsNotFound(err) {
		return nil
	}
	f.must(err)
	return u
}

// state is all that is in the cluster, as kind, name and data, and what the anchor says.
func (f *fixture) state() []string {
	f.Helper()
	var out []string
	for _, kind := range []string{"Namespace", "ConfigMap", "Secret"} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
		f.must(f.member.admin.List(f.Context(), list))
		for _, o := range list.Items {
			text := fmt.Sprintf("%s %s/%s", kind, o.GetNamespace(), o.GetName())
			if o.GetNamespace() == shipper.SystemNamespace {
				said, _, _ := unstructured.NestedString(o.Object, "data", inventoryKey)
				entries, err := decodeInventory(said)
				f.must(err)
				for _, e := range entries {
					text += fmt.Sprintf(" %s pending=%t", e.key(), e.Pending || e.UID == "")
				}
				out = append(out, text)
				continue
			}
			data, _, _ := unstructured.NestedStringMap(o.Object, "data")
			if o.GetAnnotations()[shipper.PlacedOwnerAnnotation] == "team/web" {
				text += " ours"
			}
			out = append(out, text+" "+fmt.Sprint(data))
		}
	}
	slices.Sort(out)
	return out
}

func reasonOf(err error) string {
	var known *problem
	if errors.As(err, &known) {
		return known.reason
	}
	return fmt.Sprint(err)
}
