// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/history"
)

func TestAReleaseCopiesTheOverridesOfItsTime(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := shipper.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	made := func(namespace, name string, priority int32, rules ...shipper.OverrideRule) *shipper.ResourceOverride {
		return &shipper.ResourceOverride{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: name, Annotations: map[string]string{shipper.OverrideRequestedByAnnotation: "ann"},
			},
			Spec: shipper.ResourceOverrideSpec{
				Resources: []shipper.OverriddenResource{{Kind: "ConfigMap"}}, Rules: rules, Priority: priority,
			},
		}
	}
	deletes := shipper.OverrideRule{Delete: true}
	old := complete(0, 1)
	old.Spec.Overrides = []shipper.ReleaseOverride{
		{Name: old.Namespace + "/then", RequestedBy: "ann"}, {Name: "global/must"}, {Name: "global/gone", Mandatory: true},
	}
	must := made("global", "must", 0, deletes)
	must.Spec.Mandatory = true
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		made(old.Namespace, "b", 0, deletes), made(old.Namespace, "c", -1, deletes), made("global", "a", 0, deletes),
		made("elsewhere", "d", 0), must,
	).Build()
	rolledBack := func(edit func(*shipper.Release)) func(*shipper.Release) {
		return func(rel *shipper.Release) {
			rel.Annotations = map[string]string{shipper.ReleaseRollbackOfAnnotation: old.Name}
			rel.Spec.Environment = *old.Spec.Environment.DeepCopy()
			edit(rel)
		}
	}
	now := []string{"global/a", old.Namespace + "/c", old.Namespace + "/b", "global/must"}
	for sentence, tc := range map[string]struct {
		edit func(*shipper.Release)
		want []string
	}{
		"those that bear on its Application": {func(*shipper.Release) {}, now},
		"a rollback has those of the Release that it restores, and the mandatory ones of now": {
			rolledBack(func(*shipper.Release) {}), []string{old.Namespace + "/then", "global/must"},
		},
		"one that claims to be a rollback has not": {
			rolledBack(func(rel *shipper.Release) { rel.Spec.Environment.Chart.Version = "9.9.9" }), now,
		},
		"nor has one of a Release that is gone": {
			rolledBack(func(rel *shipper.Release) { rel.Annotations[shipper.ReleaseRollbackOfAnnotation] = "gone" }), now,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := &scope{app: web(1, "0", 1), history: history.History{All: []*shipper.Release{old}}}
			rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: old.Namespace, Name: "new"}}
			tc.edit(rel)
			r := &pass{Reconciler: &Reconciler{live: c, global: "global"}}
			if err := r.copyOverrides(t.Context(), s, rel); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range rel.Spec.Overrides {
				got = append(got, o.Name)
				if o.RequestedBy != "ann" {
					t.Errorf("%s: requested by %q", o.Name, o.RequestedBy)
				}
				if o.Mandatory != (o.Name == "global/must") {
					t.Errorf("%s: mandatory is %t", o.Name, o.Mandatory)
				}
				if o.Global != strings.HasPrefix(o.Name, "global/") {
					t.Errorf("%s: global is %t", o.Name, o.Global)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
