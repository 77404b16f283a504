// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// scopedStory has a chart with a ClusterRole. A cluster loses the namespace, and with it the anchors, while it cannot be reached, and the
// management cluster loses the statuses, as after a restore. The ClusterRole goes with the Application all the same.
func scopedStory() Story {
	return Story{
		Name: "scoped", Shared: true,
		Begin: func(*Fixture) {}, // with no bystander: the namespace is deleted
		Parts: []Part{{
			Name: "installed",
			Act: func(f *Fixture) {
				app := f.Application(appName, "0.0.1", 1, allIn())
				app.Spec.Template.Chart.Name = "cluster-scoped"
				f.Creates(app)
				f.Completes(f.Release(0))
			},
			Check: func(f *Fixture) { f.hasScoped(1) },
		}, {
			Name: "taken over",
			Act: func(f *Fixture) {
				f.Edits(func(app *shipper.Application) { (*app.Spec.Template.Values)["replicaCount"] = int64(2) })
				f.Completes(f.Release(1))
			},
			Check: func(f *Fixture) { f.hasScoped(1) },
		}, {
			Name: "list deleted",
			Act: func(f *Fixture) {
				lost := clusterName(1)
				key := client.ObjectKey{Namespace: shipper.SystemNamespace, Name: f.scopedList(lost)}
				uid := f.hosts[lost].get(configMaps, key.Namespace, key.Name).GetUID()
				f.must("deleting a list", f.userOf(lost).Delete(f.Ctx, &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
				}))
				f.Eventually("the list", "is there again", func() string {
					if o := f.hosts[lost].get(configMaps, key.Namespace, key.Name); o != nil && o.GetUID() != uid {
						return "is there again"
					}
					return "is gone"
				})
			},
			Check: func(f *Fixture) { f.hasScoped(1) },
		}, {
			Name: "deleted without namespace and status",
			Act: func(f *Fixture) {
				lost := clusterName(0)
				f.fail(Fault{Kind: Refuse, Host: lost, For: 20 * time.Minute})
				f.Eventually(lost, "False", func() string {
					var c shipper.Cluster
					f.hosts[management].read(kindOf("clusters"), "", lost, &c)
					if ready := shipper.FindCondition(c.Status.Conditions, shipper.ClusterReady); ready != nil {
						return string(ready.Status)
					}
					return "unknown"
				})
				f.Deletes(&shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: appName}})
				f.loseNamespace(lost)
				f.loseLists()
				f.IsGone("applications", appName)
			},
			Check: func(f *Fixture) { f.hasScoped(0) },
		}},
	}
}

// scopedList is the name of a list of objects without a namespace in an application cluster.
func (f *Fixture) scopedList(cluster string) string {
	f.T.Helper()
	for _, o := range f.hosts[cluster].all(configMaps) {
		if o.GetNamespace() == shipper.SystemNamespace && o.GetLabels()[shipper.AppLabel] == appName {
			return o.GetName()
		}
	}
	f.T.Fatalf("there is no list in %s", cluster)
	return ""
}

// userOf is the client of a user in an application cluster.
func (f *Fixture) userOf(cluster string) client.Client {
	f.T.Helper()
	user, err := client.New(&rest.Config{
		Host: "http://" + cluster, QPS: -1, UserAgent: "kubectl", Transport: f.Network.newClient(f.Ctx, userName),
	}, client.Options{})
	f.must("building a client", err)
	return user
}

// loseNamespace has a user delete the namespace in an application cluster.
func (f *Fixture) loseNamespace(cluster string) {
	f.T.Helper()
	f.must("deleting the namespace", f.userOf(cluster).Delete(f.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
}

// loseLists takes the lists of objects without a namespace from all statuses.
func (f *Fixture) loseLists() {
	f.T.Helper()
	for _, o := range f.hosts[management].all(kindOf("installationtargets")) {
		if o.GetLabels()[shipper.AppLabel] != appName {
			continue
		}
		err := f.Management.Edit(shipper.GroupName, "installationtargets", namespace, o.GetName(), func(u *unstructured.Unstructured) error {
			list, _, err := unstructured.NestedSlice(u.Object, "status", "clusters")
			for _, one := range list {
				delete(one.(map[string]any), "clusterScoped")
			}
			if err != nil || list == nil {
				return err
			}
			return unstructured.SetNestedSlice(u.Object, list, "status", "clusters")
		})
		f.must("editing a status", client.IgnoreNotFound(err))
	}
}

// hasScoped requires that there are so many ClusterRoles of the Application in each cluster, and no list that is not needed.
func (f *Fixture) hasScoped(want int) {
	for name := range f.Clusters {
		h, roles, lists := f.hosts[name], 0, 0
		for _, o := range h.all(clusterRoles) {
			if o.GetLabels()[shipper.AppLabel] == appName {
				roles++
			}
		}
		for _, o := range h.all(configMaps) {
			if o.GetLabels()[shipper.AppLabel] == appName {
				lists++
			}
		}
		if roles != want || want == 0 && lists > 0 {
			f.laws.broken(7, "%s has %d ClusterRoles, want %d, and %d ConfigMaps of the Application", name, roles, want, lists)
		}
	}
}
