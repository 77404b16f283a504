// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
)

// statefulChart has a StatefulSet of four Pods alone, whose image and Service are values.
const statefulChart = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 4
  serviceName: {{ .Values.service }}
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: "nginx:{{ .Values.tag }}"}]}
`

// statefulRelease makes a Release of the chart, by Application, with its InstallationTarget, and waits until it is installed.
func (s *fixture) statefulRelease(generation int, tag, service string) {
	s.Helper()
	s.installed(s.askFor(generation, tag, service))
}

// askFor makes a Release of the chart with its InstallationTarget.
func (s *fixture) askFor(generation int, tag, service string) string {
	s.Helper()
	name := fmt.Sprintf("web-%d", generation)
	rel := &shipper.Release{ObjectMeta: s.meta(name)}
	rel.Annotations = map[string]string{shipper.ReleaseGenerationAnnotation: fmt.Sprint(generation)}
	step := shipper.RolloutStrategyStep{Name: "all"}
	step.Capacity.Contender, step.Traffic.Contender = 100, 100
	rel.Spec.Environment = shipper.ReleaseEnvironment{
		Chart:    shipper.Chart{Name: "stateful", Version: "0.0.1", RepoURL: world.charts.URL, Naming: shipper.NamingByApplication},
		Strategy: &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{step}},
	}
	rel.Spec.Environment.ClusterRequirements.Regions = []shipper.RegionRequirement{{Name: "eu"}}
	s.must(s.management.Create(s.ctx, rel))
	it := &shipper.InstallationTarget{ObjectMeta: s.meta(name), Spec: shipper.InstallationTargetSpec{
		Clusters: []string{west}, CanOverride: true, Values: &shipper.ChartValues{"tag": tag, "service": service},
		Chart: rel.Spec.Environment.Chart.DeepCopy(),
	}}
	s.must(s.management.Create(s.ctx, it))
	return name
}

// images waits until the Pods of the StatefulSet have these tags, in the order of their indices.
func (s *fixture) images(expected string) {
	s.Helper()
	s.soon("Pods of the StatefulSet", func() string {
		var list corev1.PodList
		s.must(world.clusters[west].List(s.ctx, &list, client.InNamespace(s.namespace), client.MatchingLabels{"app": "db"}))
		slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
		var tags []string
		for _, pod := range list.Items {
			tags = append(tags, strings.TrimPrefix(pod.Spec.Containers[0].Image, "nginx:"))
		}
		if got := strings.Join(tags, " "); got != expected {
			return got
		}
		return ""
	})
}

// TestAStatefulSetIsSharedByPartition is in the hands of the controller of Kubernetes itself.
func TestAStatefulSetIsSharedByPartition(t *testing.T) {
	t.Parallel()
	archive, err := charts.PackFiles("stateful", "0.0.1", map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: stateful\nversion: 0.0.1\n", "templates/db.yaml": statefulChart,
	})
	if err != nil {
		t.Fatal(err)
	}
	world.charts.Publish(archive)
	s := begin(t, west)
	// Between two numbers of Pods, both Releases say that they have theirs.
	shared := func(old, young int32, images string) {
		t.Helper()
		s.scale("web-0", old, 4, west)
		s.scale("web-1", young, 4, west)
		s.images(images)
		s.scaled("web-0")
		s.scaled("web-1")
	}
	s.statefulRelease(0, "old", "db")
	s.scale("web-0", 100, 4, west)
	s.scaled("web-0")
	s.statefulRelease(1, "new", "db")
	shared(100, 0, "old old old old")
	shared(100, 50, "old old new new")

	// A budget holds the way back, and a sentence says so: here no controller counts what it allows.
	budget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": map[string]any{"namespace": s.namespace, "name": "db"},
		"spec": map[string]any{"maxUnavailable": int64(0), "selector": map[string]any{"matchLabels": map[string]any{"app": "db"}}},
	}}
	s.must(world.clusters[west].Create(s.ctx, budget))
	s.scale("web-1", 25, 4, west)
	s.soon("nothing is said of the budget", func() string {
		message := s.notScaled("web-1", west, shipper.InProgress)
		if strings.Contains(message, `Pod "db-2"`) && strings.Contains(message, "a PodDisruptionBudget allows no eviction now") {
			return ""
		}
		return message
	})
	s.images("old old new new")
	s.must(world.clusters[west].Delete(s.ctx, budget))
	shared(100, 25, "old old old new")

	shared(0, 100, "new new new new")
	shared(50, 50, "new new old old")
	shared(100, 25, "new old old old")
	shared(50, 50, "new new old old")
	shared(100, 0, "old old old old")

	// What cannot change is said before its step, and disturbs no other.
	message := s.notInstalled(s.askFor(2, "new", "other"), west, shipper.ObjectConflict)
	for _, part := range []string{`StatefulSet "db" is there`, "is invalid: spec", "give it another name"} {
		if !strings.Contains(message, part) {
			t.Errorf("%q does not say %q", message, part)
		}
	}
	s.scaled("web-0")
	s.images("old old old old")
}
