// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/member/applyset"
)

// aTarget is an InstallationTarget of the Application web.
func aTarget(name string, canOverride bool) *shipper.InstallationTarget {
	return &shipper.InstallationTarget{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: "uid-of-" + types.UID(name), Labels: map[string]string{shipper.AppLabel: "web"},
		},
		Spec: shipper.InstallationTargetSpec{CanOverride: canOverride},
	}
}

// owner is a reference to the anchor of a target.
func owner(target string) metav1.OwnerReference {
	return metav1.OwnerReference{Kind: "ConfigMap", Name: target + "-anchor", UID: types.UID(target)}
}

// live is an object in a cluster.
func live(app, ownedBy, digest string, owners ...metav1.OwnerReference) *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{}, Annotations: map[string]string{}, OwnerReferences: owners,
	}}
	for _, m := range []struct {
		into       map[string]string
		key, value string
	}{
		{out.Labels, shipper.AppLabel, app}, {out.Labels, shipper.OwnedByLabel, ownedBy},
		{out.Annotations, shipper.InstalledDigestAnnotation, digest},
	} {
		if m.value != "" {
			m.into[m.key] = m.value
		}
	}
	return out
}

func TestDecide(t *testing.T) {
	service := item{APIVersion: "v1", Kind: "Service", Namespace: "ns", Name: "web", Digest: "new"}
	role := item{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "web", Digest: "new"}
	crd := item{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "web", Digest: "new"}
	namespace := item{APIVersion: "v1", Kind: "Namespace", Name: "ns", Digest: "new"}
	going := live("web", "web-2", "new", owner("web-2"))
	going.DeletionTimestamp = &metav1.Time{}
	yes := true
	controller := metav1.OwnerReference{Kind: "Deployment", Name: "web", UID: "of web", Controller: &yes}
	tests := map[string]struct {
		item     item
		override bool
		live     *metav1.PartialObjectMetadata
		want     action
	}{
		"what is not there is made":             {service, false, nil, create},
		"what is as it should is kept":          {service, true, live("web", "web-2", "new", owner("web-2")), keep},
		"what was made of something else":       {service, false, live("web", "web-2", "old", owner("web-2")), write},
		"what the original made is adopted":     {service, false, live("web", "web-2", "", owner("web-2")), mark},
		"what lost its owner gets it back":      {service, false, live("web", "web-2", "new", owner("other")), mark},
		"what has no namespace needs no owner":  {role, false, live("web", "web-2", "new"), keep},
		"another release's is taken over":       {service, true, live("web", "web-1", "old", owner("web-1")), write},
		"another release's from the original":   {service, true, live("web", "web-1", "", owner("web-1")), write},
		"another release's is left alone":       {service, false, live("web", "web-1", "old", owner("web-1")), keep},
		"another application's":                 {service, true, live("db", "db-1", "new"), refuse},
		"a foreign one without labels":          {service, true, live("", "", ""), refuse},
		"a foreign one that uses our label":     {service, true, live("web", "", ""), refuse},
		"ours without labels is known by owner": {service, true, live("", "", "new", owner("web-2")), write},
		"what a controller made of ours":        {service, true, live("web", "web-2", "old", controller), refuse},
		"what a controller made of what we did": {service, true, live("web", "web-2", "new", controller), refuse},
		"ours that a controller has adopted":    {service, true, live("web", "web-1", "old", owner("web-1"), controller), write},
		"what is being deleted is waited for":   {service, true, going, wait},
		"a definition that is there is used":    {crd, true, live("", "", ""), keep},
		"a namespace that is there is used":     {namespace, true, live("", "", ""), keep},
		"a definition of ours is written":       {crd, true, live("web", "web-2", "old"), write},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := decide(aTarget("web-2", tc.override), tc.item, &anchor{Version: applyset.Version{UID: "web-2"}}, tc.live)
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestDecideWithoutAnAnchor(t *testing.T) {
	service := item{APIVersion: "v1", Kind: "Service", Namespace: "ns", Name: "web", Digest: "new"}
	if got := decide(aTarget("web-2", true), service, nil, live("web", "web-2", "new", owner("web-2"))); got != mark {
		t.Errorf("an object whose anchor is gone: got %q, want %q", got, mark)
	}
	nameless := aTarget("web-2", true)
	nameless.Labels = nil
	if got := decide(nameless, service, nil, live("", "web-1", "new")); got != refuse {
		t.Errorf("an object without an Application is not that of a target without one: got %q", got)
	}
}

func TestWhose(t *testing.T) {
	tests := map[string]struct {
		live *metav1.PartialObjectMetadata
		want string
	}{
		"another application's": {live("db", "db-1", ""), `it belongs to the Application "db"`},
		"somebody's":            {live("", "", ""), "it was not installed by Shipper"},
		"a foreign one with our label": {
			live("web", "", ""), "it has the label shipper-app and was not installed by Shipper",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := whose(tc.live); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestOwners(t *testing.T) {
	own := owner("web-2")
	former := owner("web-2")
	former.UID = "former"
	foreign := metav1.OwnerReference{Kind: "Widget", Name: "w", UID: "w"}
	tests := map[string]struct {
		live           *metav1.PartialObjectMetadata
		applied, whole []metav1.OwnerReference
	}{
		"a new object has this anchor": {nil, []metav1.OwnerReference{own}, []metav1.OwnerReference{own}},
		"other anchors stay": {
			live("", "", "", owner("web-1"), own), []metav1.OwnerReference{owner("web-1"), own},
			[]metav1.OwnerReference{owner("web-1"), own},
		},
		"an anchor that was replaced goes": {
			live("", "", "", former), []metav1.OwnerReference{own}, []metav1.OwnerReference{own},
		},
		"what others own beside us is theirs to say": {
			live("", "", "", foreign), []metav1.OwnerReference{own}, []metav1.OwnerReference{foreign, own},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.applied, owners(aTarget("web-2", true), tc.live, own)); diff != "" {
				t.Errorf("applied: -want +got:\n%s", diff)
			}
			var refs []metav1.OwnerReference
			if tc.live != nil {
				refs = tc.live.OwnerReferences
			}
			if diff := cmp.Diff(tc.whole, withOwner(refs, own)); diff != "" {
				t.Errorf("patched: -want +got:\n%s", diff)
			}
		})
	}
}

func TestItems(t *testing.T) {
	a := item{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: "a"}
	newer := item{APIVersion: "apps/v2", Kind: "Deployment", Namespace: "ns", Name: "a", Digest: "x"}
	b := item{APIVersion: "v1", Kind: "Service", Namespace: "ns", Name: "a"}
	role := item{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "a"}
	if diff := cmp.Diff([]item{newer, b, role}, merge([]item{newer, b}, []item{a, role})); diff != "" {
		t.Errorf("merge: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]item{b}, without([]item{a, b}, []item{newer})); diff != "" {
		t.Errorf("without: -want +got:\n%s", diff)
	}
	if got := b.String(); got != `Service "a"` {
		t.Errorf("String is %s", got)
	}
}
