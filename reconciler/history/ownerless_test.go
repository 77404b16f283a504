// SPDX-License-Identifier: Apache-2.0

package history

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestOwnersThatAreMissingAreThoseOfNameAndLabels(t *testing.T) {
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "app"}}
	release := func(name string, owners ...metav1.OwnerReference) *shipper.Release {
		return &shipper.Release{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "new", OwnerReferences: owners}}
	}
	bare, owned := release("bare"), release("owned", stamp.OwnerReference(app))
	target := func(name string, owners ...metav1.OwnerReference) client.Object {
		return &shipper.CapacityTarget{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners}}
	}
	going := target("owned")
	going.SetDeletionTimestamp(&metav1.Time{Time: metav1.Now().Time})
	former := stamp.ReleaseReference(owned)
	former.UID = "old"
	h := History{
		Live: []strategy.Release{{Release: bare}, {Release: owned}},
		targets: map[string][]client.Object{
			"InstallationTarget": {target("bare"), target("other")},
			"CapacityTarget":     {target("owned"), target("owned", former), target("owned", stamp.ReleaseReference(owned)), going},
		},
	}
	var got []string
	for _, o := range h.Ownerless(app) {
		got = append(got, o.GetName()+" "+o.Owner.Kind+" "+o.Owner.Name+" "+string(o.Owner.UID))
	}
	want := []string{"bare Application web app", "bare Release bare new", "owned Release owned new"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
