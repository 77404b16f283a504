// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
				Namespace: namespace, Name: name, Annotations: map[string]string{
					shipper.OverrideRequestedByAnnotation: "ann", shipper.OverrideEarlierWritersAnnotation: "bob\neve",
				},
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
				if o.RequestedBy != "ann" || o.Name != old.Namespace+"/then" && !slices.Equal(o.EarlierWriters, []string{"bob", "eve"}) {
					t.Errorf("%s: requested by %q after %q", o.Name, o.RequestedBy, o.EarlierWriters)
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

// overridePages answers lists of ResourceOverrides by pages of the size that is asked for.
type overridePages struct {
	client.Reader
	of    map[string]int
	edit  func(*shipper.ResourceOverride)
	sizes []int64
}

func (p *overridePages) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	p.sizes = append(p.sizes, o.Limit)
	from, _ := strconv.Atoi(o.Continue)
	to := min(from+int(o.Limit), p.of[o.Namespace])
	out := list.(*shipper.ResourceOverrideList)
	for i := from; i < to; i++ {
		one := shipper.ResourceOverride{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: strconv.Itoa(i)}}
		p.edit(&one)
		out.Items = append(out.Items, one)
	}
	if to < p.of[o.Namespace] {
		out.Continue = strconv.Itoa(to)
	}
	return nil
}

// TestOverridesAreReadAFewAtATime: a user may write any number of 64 KiB that bear on no Application.
func TestOverridesAreReadAFewAtATime(t *testing.T) {
	old := complete(0, 1)
	namespace := old.Namespace
	rule := shipper.OverrideRule{Patch: slices.Repeat([]shipper.PatchOperation{{"op": "remove", "path": "/a"}}, 50)}
	old.Spec.Overrides = slices.Repeat([]shipper.ReleaseOverride{{Name: "then", Rules: []shipper.OverrideRule{rule}}}, 15)
	for sentence, tc := range map[string]struct {
		of       map[string]int
		edit     func(*shipper.ResourceOverride)
		rollback bool
		want     []any // names of copies, sizes of the pages, the error
	}{
		"and those that bear on the Application are kept": {
			map[string]int{namespace: 500, "global": 3}, func(o *shipper.ResourceOverride) {
				if o.Name != "77" {
					o.Spec.ApplicationNames = []string{"none"}
				}
			}, false, []any{[]string{namespace + "/77"}, slices.Repeat([]int64{50}, 11), ""},
		},
		"until they are too many": {
			map[string]int{namespace: 1000}, func(*shipper.ResourceOverride) {}, false, []any{
				[]string(nil), slices.Repeat([]int64{50}, 9),
				"450 ResourceOverrides bear on the Application, more than the 400 that a Release may keep: delete some, or let them name " +
					"fewer Applications",
			},
		},
		"of which a rollback has the mandatory ones, beside as many as there may be": {
			map[string]int{namespace: 500, "global": 5}, func(o *shipper.ResourceOverride) {
				o.Spec.Mandatory, o.Spec.Rules = true, []shipper.OverrideRule{rule}
			}, true, []any{
				append(slices.Repeat([]string{"then"}, 15), "global/0", "global/1", "global/2", "global/3", "global/4"),
				slices.Repeat([]int64{50}, 11), "",
			},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := &scope{app: web(1, "0", 1), history: history.History{All: []*shipper.Release{old}}}
			rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "new"}}
			if tc.rollback {
				rel.Annotations = map[string]string{shipper.ReleaseRollbackOfAnnotation: old.Name}
				rel.Spec.Environment = *old.Spec.Environment.DeepCopy()
			}
			server := &overridePages{of: tc.of, edit: tc.edit}
			r := &pass{Reconciler: &Reconciler{live: server, global: "global"}}
			message := ""
			if err := r.copyOverrides(t.Context(), s, rel); err != nil {
				message = err.Error()
			}
			var names []string
			for _, o := range rel.Spec.Overrides {
				names = append(names, o.Name)
			}
			if diff := cmp.Diff(tc.want, []any{names, server.sizes, message}); diff != "" {
				t.Error(diff)
			}
		})
	}
}
