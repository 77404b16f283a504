// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"maps"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
)

// TestAChartTakesNothingThatAControllerMade has a chart with the objects that Kubernetes has made of a StatefulSet: they have the labels of
// the Application, as those of a workload in place do.
func TestAChartTakesNothingThatAControllerMade(t *testing.T) {
	t.Parallel()
	files := maps.Clone(ownKind)
	delete(files, "crds/gizmo.yaml")
	delete(files, "templates/gizmo.yaml")
	files["Chart.yaml"] = strings.Replace(files["Chart.yaml"], "own-kind", "made", 1)
	files["templates/claim.yaml"] = `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-db-0},
  spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}}}`
	files["templates/pod.yaml"] = `{apiVersion: v1, kind: Pod, metadata: {name: db-0}, spec: {containers: [{name: db, image: "db:2"}]}}`
	archive, err := charts.PackFiles("made", "0.0.1", files)
	if err != nil {
		t.Fatal(err)
	}
	world.charts.Publish(archive)
	s := begin(t, west)
	labels := map[string]string{shipper.AppLabel: s.app, shipper.OwnedByLabel: "web-0"}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "db"}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	set.Spec.Template.Labels = labels
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "db", Image: "db:1"}}
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim}
	s.must(world.clusters[west].Create(s.ctx, set))
	s.soon("Kubernetes makes nothing of the StatefulSet", func() string {
		if !s.find(west, "data-db-0", &claim) || !s.find(west, "db-0", &corev1.Pod{}) {
			return "something is missing"
		}
		return ""
	})
	s.install("web-1", "made", "0.0.1", shipper.ChartValues{}, west)
	message := s.notInstalled("web-1", west, shipper.ObjectConflict)
	for _, want := range []string{
		`PersistentVolumeClaim "data-db-0" cannot be installed: it was made for a StatefulSet`,
		`Pod "db-0" cannot be installed: it was made for a StatefulSet`,
	} {
		if !strings.Contains(message, want) {
			t.Errorf("%q is not in %q", want, message)
		}
	}
	if s.find(west, "data-db-0", &claim); claim.Annotations[shipper.InstalledDigestAnnotation] != "" {
		t.Errorf("the claim was written: %+v", claim)
	}
}
