// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// selected is the label of the ConfigMaps that the story places.
var selected = map[string]string{"place": "it"}

// Placing is an Application that places the ConfigMaps of Keeps in all clusters.
func (f *Fixture) Placing() *shipper.Application {
	app := f.Application(appName, "", 1, nil)
	app.Spec.RevisionHistoryLimit = ptr.To[int32](10)
	app.Spec.Template.Chart, app.Spec.Template.Values = shipper.Chart{}, nil
	app.Spec.Template.Resources = &shipper.Resources{
		Select:  []shipper.ResourceSelector{{Kind: "ConfigMap", LabelSelector: &metav1.LabelSelector{MatchLabels: selected}}},
		Removal: shipper.RemovalAll,
	}
	return app
}

// Keeps writes a ConfigMap that Placing selects.
func (f *Fixture) Keeps(name, value string) {
	f.T.Helper()
	content := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: selected}, Data: map[string]string{"k": value},
	}
	f.persist("writing "+name, func() error {
		err := f.User.Create(f.Ctx, content.DeepCopy())
		if apierrors.IsAlreadyExists(err) {
			err = f.User.Update(f.Ctx, content.DeepCopy())
		}
		return err
	})
}

// placementStory adds an object to what is selected, goes back to the content before, and deletes the Application.
func placementStory() Story {
	first := ""
	return Story{
		Name: "placement",
		Begin: func(f *Fixture) {
			f.Bystand()
			f.Keeps("a", "1")
			f.Creates(f.Placing())
			first = f.Release(0)
			f.Completes(first)
		},
		Parts: []Part{
			{
				Name: "grown",
				Act: func(f *Fixture) {
					f.Keeps("b", "1")
					f.Completes(f.Release(1))
				},
				Check: func(f *Fixture) { f.has("a b", 2) },
			},
			{
				Name: "back",
				Act: func(f *Fixture) {
					f.Edits(func(app *shipper.Application) { app.Spec.RollbackTo = &shipper.RollbackTo{Release: first} })
					f.Completes(f.Release(2))
				},
				Check: func(f *Fixture) { f.has("a", 2) },
			},
			{
				Name: "deleted",
				Act: func(f *Fixture) {
					f.Deletes(&shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: appName}})
					f.IsGone("applications", appName)
				},
				Check: func(f *Fixture) { f.has("", 0) },
			},
		},
	}
}

// has requires that the anchor of each cluster lists these ConfigMaps, none of them pending, that they are all that is there, and that so
// many ResourceSnapshots are kept.
func (f *Fixture) has(names string, snapshots int) {
	f.T.Helper()
	for cluster := range f.Clusters {
		var there []string
		for _, o := range f.hosts[cluster].all(configMaps) {
			if o.GetLabels()[shipper.AppLabel] == appName && o.GetNamespace() == namespace {
				there = append(there, o.GetName())
			}
		}
		if got := strings.Join(there, " ") + ", listed: " + f.listed(cluster); got != names+", listed: "+names {
			f.laws.broken(7, "%s has %s, want %s", cluster, got, names)
		}
	}
	if got := len(f.hosts[management].all(kindOf("resourcesnapshots"))); got != snapshots {
		f.laws.broken(7, "there are %d ResourceSnapshots, want %d", got, snapshots)
	}
}

// listed is what the anchor of a cluster lists.
func (f *Fixture) listed(cluster string) string {
	anchor := &corev1.ConfigMap{}
	if !f.hosts[cluster].read(configMaps, shipper.SystemNamespace, shipper.PlacedAnchorName(namespace, appName), anchor) {
		return ""
	}
	var entries []struct {
		Name    string
		Pending bool
	}
	if err := json.Unmarshal([]byte(anchor.Data["Inventory"]), &entries); err != nil {
		return err.Error()
	}
	var out []string
	for _, e := range entries {
		if e.Pending {
			e.Name = fmt.Sprint(e.Name, " (pending)")
		}
		out = append(out, e.Name)
	}
	return strings.Join(out, " ")
}
