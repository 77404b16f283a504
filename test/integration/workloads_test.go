// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
)

// TestOnlyTheDeploymentIsScaled installs a chart that has other kinds with replicas beside its Deployment.
func TestOnlyTheDeploymentIsScaled(t *testing.T) {
	t.Parallel()
	files := maps.Clone(ownKind)
	delete(files, "crds/gizmo.yaml")
	delete(files, "templates/gizmo.yaml")
	files["Chart.yaml"] = "apiVersion: v2\nname: workloads\nversion: 0.0.1\n"
	const pods = `
spec:
  replicas: 2
  serviceName: gizmo
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: app, image: "nginx:stable"}]}
`
	files["templates/statefulset.yaml"] = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: stateful}" +
		strings.ReplaceAll(pods, "NAME", "stateful")
	files["templates/replicaset.yaml"] = "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: bare}" +
		strings.ReplaceAll(strings.ReplaceAll(pods, "NAME", "bare"), "  serviceName: gizmo\n", "")
	files["templates/hpa.yaml"] = `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: auto}
spec:
  maxReplicas: 3
  scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: stateful}
`
	archive, err := charts.PackFiles("workloads", "0.0.1", files)
	if err != nil {
		t.Fatal(err)
	}
	world.charts.Publish(archive)
	s := begin(t, west)
	s.install("web-1", "workloads", "0.0.1", shipper.ChartValues{}, west)
	s.installed("web-1")
	s.scale("web-1", 100, 3, west)
	s.scaled("web-1")
	var deployment appsv1.Deployment
	var stateful appsv1.StatefulSet
	var bare appsv1.ReplicaSet
	autoscaler := &unstructured.Unstructured{}
	autoscaler.SetAPIVersion("autoscaling/v2")
	autoscaler.SetKind("HorizontalPodAutoscaler")
	if !s.find(west, "web-1", &deployment) || !s.find(west, "stateful", &stateful) || !s.find(west, "bare", &bare) ||
		!s.find(west, "auto", autoscaler) {
		t.Fatal("something of the chart is missing")
	}
	got := []int32{*deployment.Spec.Replicas, *stateful.Spec.Replicas, *bare.Spec.Replicas}
	if diff := cmp.Diff([]int32{3, 2, 2}, got); diff != "" {
		t.Errorf("replicas of Deployment, StatefulSet and ReplicaSet: -want +got:\n%s", diff)
	}
}
