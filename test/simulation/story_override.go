// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Overrides writes a ResourceOverride of all ConfigMaps of the Application, or deletes it if there are no rules.
func (f *Fixture) Overrides(rules ...shipper.OverrideRule) {
	f.T.Helper()
	o := &shipper.ResourceOverride{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "by-cluster"}}
	o.Spec = shipper.ResourceOverrideSpec{
		ApplicationNames: []string{appName}, Resources: []shipper.OverriddenResource{{Kind: "ConfigMap", Name: "a"}}, Rules: rules,
	}
	if len(rules) == 0 {
		f.Deletes(o)
		return
	}
	f.persist("writing a ResourceOverride", func() error {
		var now shipper.ResourceOverride
		switch err := f.User.Get(f.Ctx, f.Key(o.Name), &now); {
		case apierrors.IsNotFound(err):
			return f.User.Create(f.Ctx, o.DeepCopy())
		case err != nil:
			return err
		}
		now.Spec = o.Spec
		return f.User.Update(f.Ctx, &now)
	})
}

// where is a term with one cluster.
func where(cluster int) []shipper.OverrideClusterTerm {
	return []shipper.OverrideClusterTerm{{Names: []string{clusterName(cluster)}}}
}

// overrideStory patches an object in all clusters and leaves it out of one, goes back to the Release before, and deletes the
// ResourceOverride. Each change takes effect with the next Release alone.
func overrideStory() Story {
	first, second := "", ""
	name := shipper.OverrideRule{Patch: []shipper.PatchOperation{{"op": "add", "path": "/data/at", "value": "${cluster.name}"}}}
	return Story{
		Name: "override",
		Begin: func(f *Fixture) {
			f.Bystand()
			f.Keeps("a", "1")
			f.Keeps("b", "1")
			f.Overrides(name)
			f.Creates(f.Placing())
			first = f.Release(0)
			f.Completes(first)
		},
		Parts: []Part{
			{
				Name:  "with the next Release",
				Check: func(f *Fixture) { f.overridden("a=1 at=%[1]s b=2", "b=2") },
				Act: func(f *Fixture) {
					f.Overrides(name, shipper.OverrideRule{ClusterTerms: where(1), Delete: true})
					f.rests()
					f.overridden("a=1 at=%[1]s b=1", "a=1 at=%[1]s b=1")
					f.Keeps("b", "2")
					second = f.Release(1)
					f.Completes(second)
				},
			},
			{
				Name:  "back",
				Check: func(f *Fixture) { f.overridden("a=1 at=%[1]s b=1", "a=1 at=%[1]s b=1") },
				Act: func(f *Fixture) {
					f.Overrides()
					f.Edits(func(app *shipper.Application) { app.Spec.RollbackTo = &shipper.RollbackTo{Release: first} })
					f.Completes(f.Release(2))
				},
			},
			{
				Name:  "without it",
				Check: func(f *Fixture) { f.overridden("a=1 b=3", "a=1 b=3") },
				Act: func(f *Fixture) {
					f.Keeps("b", "3")
					f.Completes(f.Release(3))
				},
			},
		},
	}
}

// overridden requires what the ConfigMaps contain in the first cluster, and in the second.
func (f *Fixture) overridden(first, second string) {
	f.T.Helper()
	for n, want := range []string{first, second} {
		cluster := clusterName(n)
		if strings.Contains(want, "%") {
			want = fmt.Sprintf(want, cluster)
		}
		var there []string
		for _, o := range f.hosts[cluster].all(configMaps) {
			if o.GetLabels()[shipper.AppLabel] != appName || o.GetNamespace() != namespace {
				continue
			}
			data, _ := o.Object["data"].(map[string]any)
			there = append(there, fmt.Sprint(o.GetName(), "=", data["k"]))
			if at := data["at"]; at != nil {
				there = append(there, fmt.Sprint("at=", at))
			}
		}
		if got := strings.Join(there, " "); got != want {
			f.laws.broken(7, "%s has %s, want %s", cluster, got, want)
		}
	}
}
