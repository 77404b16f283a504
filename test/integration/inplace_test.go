// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
)

// statefulChart has a StatefulSet of four Pods, whose image and Service are values, and what it makes anew each time.
const statefulChart = `
apiVersion: v1
kind: Secret
metadata: {name: password}
stringData: {password: "{{ randAlphaNum 12 }}", ca: "{{ (genCA "it" 30).Cert | b64enc }}"}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 4
  revisionHistoryLimit: 5
  serviceName: {{ .Values.service }}
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: "nginx:{{ .Values.tag }}", envFrom: [{secretRef: {name: password}}]}]}
`

// statefulRelease makes a Release of the chart, by Application, with its InstallationTarget, and waits until it is installed.
func (s *fixture) statefulRelease(generation int, tag, service string) {
	s.Helper()
	s.installed(s.askFor(generation, tag, service, ""))
}

// askFor makes a Release of the chart with its InstallationTarget, which goes back to another if goal names one.
func (s *fixture) askFor(generation int, tag, service, goal string) string {
	s.Helper()
	name := fmt.Sprintf("web-%d", generation)
	rel := &shipper.Release{ObjectMeta: s.meta(name)}
	rel.Annotations = map[string]string{shipper.ReleaseGenerationAnnotation: fmt.Sprint(generation)}
	if goal != "" {
		rel.Annotations[shipper.ReleaseRollbackOfAnnotation] = goal
	}
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
	password := s.password("password")
	s.takeOver("web-0", false)
	s.statefulRelease(1, "new", "db")
	if now := s.password("password"); cmp.Equal(password, now) {
		t.Errorf("the password is not another: %s", now)
	}
	if diff := cmp.Diff(password, s.password(s.usedPassword())); diff != "" {
		t.Errorf("what the Pods use, before their step (-before +after):\n%s", diff)
	}
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

	// An edit is noticed, and corrected.
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "db"}}
	s.policy(shipper.DriftReport)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"revisionHistoryLimit": 7}}`))
	s.must(world.clusters[west].Patch(s.ctx, set, patch, client.FieldOwner("kubectl")))
	s.drifts("web-0", west, "db spec.revisionHistoryLimit: 5 -> 7")
	s.policy(shipper.DriftCorrect)
	s.drifts("web-0", west)
	s.images("old old old old")

	// A rollback has the password and the certificate again, and changes no Pod.
	used := s.usedPassword()
	s.takeOver("web-1", false)
	s.installed(s.askFor(2, "old", "db", "web-0"))
	if diff := cmp.Diff(password, s.password("password")); diff != "" {
		t.Errorf("what was generated (-of the goal +of the rollback):\n%s", diff)
	}
	s.scale("web-2", 100, 4, west)
	s.scaled("web-2")
	if now := s.usedPassword(); now != used {
		t.Errorf("the Pods use %s, and used %s", now, used)
	}

	// What cannot change is said before its step, and disturbs no other.
	message := s.notInstalled(s.askFor(3, "new", "other", ""), west, shipper.ObjectConflict)
	for _, part := range []string{`StatefulSet "db" is there`, "is invalid: spec", "give it another name"} {
		if !strings.Contains(message, part) {
			t.Errorf("%q does not say %q", message, part)
		}
	}
	s.scaled("web-2")
	s.images("old old old old")
}

// usedPassword is the name of the Secret that the StatefulSet uses.
func (s *fixture) usedPassword() string {
	s.Helper()
	var set appsv1.StatefulSet
	s.must(world.clusters[west].Get(s.ctx, s.key("db"), &set))
	return set.Spec.Template.Spec.Containers[0].EnvFrom[0].SecretRef.Name
}

// password is what a Secret holds.
func (s *fixture) password(name string) map[string][]byte {
	s.Helper()
	var secret corev1.Secret
	s.must(world.clusters[west].Get(s.ctx, s.key(name), &secret))
	return secret.Data
}
