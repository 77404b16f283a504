// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// databaseChart has a StatefulSet, which changes in place.
var databaseChart = map[string]string{
	"templates/db.yaml": `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: db}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: "{{ .Values.size }}"}}}
`,
	"templates/secret.yaml": `
apiVersion: v1
kind: Secret
metadata: {name: password}
type: "shipper.test/{{ .Values.type }}"
`,
}

// TestWhatCannotBeChangedInPlaceIsSaidBeforeItsStep installs a chart whose StatefulSet has other claims than the one that is there, and one
// whose Secret has another type.
func TestWhatCannotBeChangedInPlaceIsSaidBeforeItsStep(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	chart := s.namespace + "-database"
	s.publish(chart, databaseChart)
	labels := map[string]string{"app": "db"}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "db", Labels: map[string]string{
			shipper.AppLabel: s.app, shipper.OwnedByLabel: "web-0",
		}},
		Spec: appsv1.StatefulSetSpec{
			ServiceName: "db", Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "db", Image: "db"}}},
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
					},
				},
			}},
		},
	}
	s.must(world.clusters[west].Create(s.ctx, set))
	install := func(name string, values shipper.ChartValues) {
		s.must(s.management.Create(s.ctx, &shipper.InstallationTarget{ObjectMeta: s.meta(name), Spec: shipper.InstallationTargetSpec{
			Clusters: []string{west}, CanOverride: true, Values: &values, Chart: &shipper.Chart{
				Name: chart, Version: "0.0.1", RepoURL: world.charts.URL, Naming: shipper.NamingByApplication,
			},
		}}))
	}
	install("web-1", shipper.ChartValues{"size": "1Gi", "type": "a"})
	install("web-2", shipper.ChartValues{"size": "2Gi", "type": "a"})
	s.installed("web-1")
	install("web-3", shipper.ChartValues{"size": "1Gi", "type": "b"})
	for name, all := range map[string][]string{
		"web-2": {`StatefulSet "db" is there and cannot become what the chart says`, "volumeClaimTemplates"},
		"web-3": {`Secret "password" is there and cannot become what the chart says`, "type: ",
			"delete it in the cluster: Shipper creates it again"},
	} {
		message := s.notInstalled(name, west, shipper.ObjectConflict)
		for _, words := range append(all, "Keep the fields that cannot change by values of the chart, or give it another name") {
			if !strings.Contains(message, words) {
				t.Errorf("%q does not say %q", message, words)
			}
		}
	}
	if s.find(west, shipper.AnchorName("web-2"), &corev1.ConfigMap{}) {
		t.Error("something of the refused target was written")
	}
	after := &appsv1.StatefulSet{}
	if s.find(west, "db", after); after.Generation != set.Generation {
		t.Error("the StatefulSet was changed by an installation")
	}
}
