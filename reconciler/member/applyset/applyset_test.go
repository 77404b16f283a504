// SPDX-License-Identifier: Apache-2.0

package applyset_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"shipper.dev/shipper/reconciler/member/applyset"
)

var key = types.NamespacedName{Namespace: "team", Name: "web-anchor"}

func TestAListIsCreatedWrittenOverAndDeletedAsItWas(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	list := applyset.List{NamespacedName: key, Labels: map[string]string{"app": "web"}, Data: map[string]string{"Inventory": "[]"}}
	if cm, err := applyset.Read(t.Context(), c, key); cm != nil || err != nil {
		t.Fatalf("before it is written: %v, %v", cm, err)
	}
	first, err := list.Write(t.Context(), c, applyset.Version{})
	if err != nil || first.ResourceVersion == "" {
		t.Fatalf("%+v, %v", first, err)
	}
	if _, err := list.Write(t.Context(), c, applyset.Version{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("created where there is one: %v", err)
	}
	list.Data["Inventory"] = `["a"]`
	second, err := list.Write(t.Context(), c, first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := list.Write(t.Context(), c, first); !apierrors.IsConflict(err) {
		t.Errorf("written as it was before: %v", err)
	}
	cm, err := applyset.Read(t.Context(), c, key)
	if err != nil || cm.Data["Inventory"] != `["a"]` || cm.Labels["app"] != "web" || applyset.VersionOf(cm) != second {
		t.Errorf("read: %+v, %v", cm, err)
	}
	if err := applyset.DeleteList(t.Context(), c, key, first); !apierrors.IsConflict(err) {
		t.Errorf("deleted as it was before: %v", err)
	}
	if err := applyset.DeleteList(t.Context(), c, key, second); err != nil {
		t.Error(err)
	}
	if err := applyset.DeleteList(t.Context(), c, key, second); !apierrors.IsNotFound(err) {
		t.Errorf("deleted twice: %v", err)
	}
}

// api is a field of cluster, which has a method Client.
type api interface{ client.Client }

// cluster has an object as its cache and its API server show it; nil for nothing.
type cluster struct {
	api
	cached, live        *metav1.PartialObjectMetadata
	cacheErr, deleteErr error
	asked, deleted      bool
}

func (c *cluster) Client() client.Client { return c }

func found(o *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, error) {
	if o == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, "x")
	}
	return o, nil
}

func (c *cluster) Metadata(
	context.Context, schema.GroupVersionKind, client.ObjectKey,
) (*metav1.PartialObjectMetadata, error) {
	if c.cacheErr != nil {
		return nil, c.cacheErr
	}
	return found(c.cached)
}

func (c *cluster) LiveMetadata(
	context.Context, schema.GroupVersionKind, client.ObjectKey,
) (*metav1.PartialObjectMetadata, error) {
	c.asked = true
	return found(c.live)
}

func (c *cluster) Delete(_ context.Context, o client.Object, opts ...client.DeleteOption) error {
	var all client.DeleteOptions
	all.ApplyOptions(opts)
	c.deleted = *all.Preconditions.UID == o.GetUID() && *all.Preconditions.ResourceVersion == o.GetResourceVersion() &&
		*all.PropagationPolicy == metav1.DeletePropagationForeground
	return c.deleteErr
}

func TestAnObjectIsRemovedAsTheAPIServerHasIt(t *testing.T) {
	object := func(name string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", ResourceVersion: "7"}}
	}
	ours, going, others := object("ours"), object("ours"), object("others")
	going.DeletionTimestamp = &metav1.Time{}
	refused := errors.New("refused")
	type outcome struct{ there, asked, deleted, failed bool }
	for sentence, tc := range map[string]struct {
		in     cluster
		always bool
		want   outcome
	}{
		"it is deleted, and there until it is gone": {cluster{cached: ours, live: ours}, false, outcome{there: true, asked: true, deleted: true}},
		"it is going already":                       {cluster{cached: ours, live: going}, false, outcome{there: true, asked: true}},
		"it is gone":                                {cluster{cached: ours}, false, outcome{asked: true}},
		"it has become another's":                   {cluster{cached: ours, live: others}, false, outcome{asked: true}},
		"the cache has another's":                   {cluster{cached: others, live: ours}, false, outcome{}},
		"the cache has nothing":                     {cluster{live: ours}, false, outcome{}},
		"the cache has nothing, and may lack it":    {cluster{live: ours}, true, outcome{there: true, asked: true, deleted: true}},
		"its kind is gone":                          {cluster{cacheErr: &meta.NoKindMatchError{}}, true, outcome{}},
		"the cache fails":                           {cluster{cacheErr: refused}, true, outcome{failed: true}},
		"it is refused": {
			cluster{cached: ours, live: ours, deleteErr: refused}, false, outcome{there: true, asked: true, deleted: true, failed: true},
		},
		"it goes meanwhile": {
			cluster{cached: ours, live: ours, deleteErr: apierrors.NewNotFound(schema.GroupResource{}, "x")}, false,
			outcome{asked: true, deleted: true},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			goes := func(o *metav1.PartialObjectMetadata) bool { return o != nil && o.Name == "ours" }
			there, err := applyset.Remove(t.Context(), &tc.in, corev1.SchemeGroupVersion.WithKind("Secret"), key,
				func(cached *metav1.PartialObjectMetadata) bool { return tc.always || goes(cached) },
				func(live *metav1.PartialObjectMetadata) (bool, error) { return goes(live), nil })
			if got := (outcome{there, tc.in.asked, tc.in.deleted, err != nil}); got != tc.want {
				t.Errorf("%+v, want %+v: %v", got, tc.want, err)
			}
		})
	}
}
