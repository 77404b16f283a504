// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/objects"
)

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func app() *shipper.Application {
	out := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: "web", UID: "app"}}
	out.Spec.Template.Resources = &shipper.Resources{}
	return out
}

func release(name, digest string) *shipper.Release {
	out := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: name, UID: types.UID(name)}}
	out.Spec.Environment.Resources, out.Spec.Environment.ResourcesDigest = &shipper.Resources{}, digest
	return out
}

func TestOwnersOfContent(t *testing.T) {
	other := strings.Repeat("f", 64)
	going := release("a", digest)
	going.DeletionTimestamp = &metav1.Time{}
	foreign := metav1.OwnerReference{Kind: "Release", Name: "other", UID: "other"}
	type result struct {
		Owners  []string
		Changed bool
	}
	for sentence, tc := range map[string]struct {
		next   string
		rels   []*shipper.Release
		owners []metav1.OwnerReference
		want   result
	}{
		"content without a Release stays the Application's": {
			digest, nil, []metav1.OwnerReference{ownedBy("Application", app())}, result{[]string{"web"}, false},
		},
		"a Release takes the place of the Application": {
			digest, []*shipper.Release{release("a", digest)}, []metav1.OwnerReference{ownedBy("Application", app())},
			result{[]string{"a"}, true},
		},
		"a second Release is added": {
			other, []*shipper.Release{release("a", digest), release("b", digest)},
			[]metav1.OwnerReference{ownedBy("Release", release("a", digest))}, result{[]string{"a", "b"}, true},
		},
		"content that no Release got has no owner": {
			other, nil, []metav1.OwnerReference{ownedBy("Application", app())}, result{nil, true},
		},
		"another Application's Release stays its owner": {
			other, nil, []metav1.OwnerReference{ownedBy("Application", app()), foreign}, result{[]string{"other"}, true},
		},
		"content of others is left alone": {
			other, []*shipper.Release{release("a", other)}, []metav1.OwnerReference{foreign}, result{[]string{"other"}, false},
		},
		"while its Release is deleted, content becomes the Application's": {
			digest, []*shipper.Release{going}, []metav1.OwnerReference{ownedBy("Release", going)}, result{[]string{"a", "web"}, true},
		},
	} {
		head := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: "work", Name: shipper.ResourceSnapshotName(digest, 1), OwnerReferences: tc.owners,
		}}
		part := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: "work", Name: shipper.ResourceSnapshotName(digest, 2), OwnerReferences: []metav1.OwnerReference{{UID: "head"}},
		}}
		changes := planOwners(app(), tc.rels, tc.next, []metav1.PartialObjectMetadata{head, part})
		got, owners := result{Changed: len(changes) == 1}, tc.owners
		if len(changes) > 0 {
			owners = changes[0].owners
		}
		for _, owner := range owners {
			got.Owners = append(got.Owners, owner.Name)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", sentence, diff)
		}
	}
}

// many are objects of several parts, with Secrets of two.
func many(t *testing.T) []objects.Part {
	t.Helper()
	var list []unstructured.Unstructured
	for i := range 3 {
		for _, kind := range []string{"ConfigMap", "Secret"} {
			list = append(list, unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": fmt.Sprint("o", i), "namespace": "work"},
				"data": map[string]any{"x": strings.Repeat("x", 400<<10)},
			}})
		}
	}
	parts, err := objects.Split(list)
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

func newClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(shipper.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func TestKeptContentIsReadAgain(t *testing.T) {
	parts := many(t)
	want, err := objects.Join(parts)
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t)
	s := NewResources(c, c)
	for range 2 { // the second time it is there
		if err := s.Keep(t.Context(), app(), nil, parts); err != nil {
			t.Fatal(err)
		}
	}
	got, err := NewResources(c, c).Content(t.Context(), "work", parts[0].Digest)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Fatalf("%v; -want +got:\n%s", err, diff)
	}
	// What a caller changes is not in memory.
	if _, err := s.Content(t.Context(), "work", parts[0].Digest); err != nil {
		t.Fatal(err)
	}
	first, _ := s.Content(t.Context(), "work", parts[0].Digest)
	first[0].SetName("changed")
	if again, _ := s.Content(t.Context(), "work", parts[0].Digest); again[0].GetName() == "changed" {
		t.Error("the memory has what a caller changed")
	}
	if _, err := s.Content(t.Context(), "other", parts[0].Digest); !errors.Is(err, chart.ErrNotKept) {
		t.Errorf("another namespace has it: %v", err)
	}
}

func TestContentThatManyClustersNeedIsReadOnce(t *testing.T) {
	parts := many(t)
	c := newClient(t)
	if err := NewResources(c, c).Keep(t.Context(), app(), nil, parts); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		slow := &slowReader{Reader: c}
		s := NewResources(c, slow)
		var wait sync.WaitGroup
		for range 5 {
			wait.Go(func() {
				if _, err := s.Content(t.Context(), "work", parts[0].Digest); err != nil {
					t.Error(err)
				}
			})
		}
		if wait.Wait(); int(slow.gets.Load()) != len(parts) {
			t.Errorf("%d requests for %d parts", slow.gets.Load(), len(parts))
		}
	})
}

// slowReader counts requests, which take a while.
type slowReader struct {
	client.Reader
	gets atomic.Int32
}

func (r *slowReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	r.gets.Add(1)
	time.Sleep(time.Second)
	return r.Reader.Get(ctx, key, o, options...)
}

func TestContentThatIsNotWhatItsDigestSaysIsRefused(t *testing.T) {
	parts := many(t)
	name := shipper.ResourceSnapshotName(parts[0].Digest, 1)
	for sentence, spoil := range map[string]func(client.Client) error{
		"a part is gone": func(c client.Client) error {
			return c.Delete(t.Context(), &shipper.ResourceSnapshot{ObjectMeta: metav1.ObjectMeta{
				Namespace: "work", Name: shipper.ResourceSnapshotName(parts[0].Digest, 2),
			}})
		},
		"a Secret has other content": func(c client.Client) error {
			secret := &corev1.Secret{}
			err := c.Get(t.Context(), client.ObjectKey{Namespace: "work", Name: name}, secret)
			secret.Data[secretData] = []byte(strings.Replace(string(secret.Data[secretData]), "xx", "yy", 1))
			return errors.Join(err, c.Delete(t.Context(), secret), c.Create(t.Context(), &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: name}, Data: secret.Data,
			}))
		},
	} {
		c := newClient(t)
		s := NewResources(c, c)
		if err := s.Keep(t.Context(), app(), nil, parts); err != nil {
			t.Fatal(err)
		}
		if err := spoil(c); err != nil {
			t.Fatal(err)
		}
		if list, err := s.Content(t.Context(), "work", parts[0].Digest); err == nil {
			t.Errorf("%s: it has %d objects", sentence, len(list))
		}
	}
}

func TestForeignObjectsOfTheNamesAreNotUsed(t *testing.T) {
	parts := many(t)
	at := metav1.ObjectMeta{Namespace: "work", Name: shipper.ResourceSnapshotName(parts[0].Digest, 1)}
	c := newClient(t, &corev1.Secret{ObjectMeta: at})
	err := NewResources(c, c).Keep(t.Context(), app(), nil, parts)
	if err == nil || Transient(err) || !strings.Contains(err.Error(), "delete it") {
		t.Errorf("a Secret of the name is answered with %v", err)
	}
}
