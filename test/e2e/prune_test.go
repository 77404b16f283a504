// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/env"
)

// furnished is a chart whose values name its ConfigMaps, beside a claim and a ConfigMap that are kept. Disabled, it renders
// nothing. It is published before any test fetches the index: a version published during a fetch is not found at first.
func furnished(t *testing.T) {
	t.Helper()
	archive, err := charts.PackFiles("furnished", "0.0.1", map[string]string{
		"Chart.yaml":  "apiVersion: v2\nname: furnished\nversion: 0.0.1\n",
		"values.yaml": "enabled: true\nplain: []\n",
		"templates/all.yaml": `{{ if .Values.enabled }}
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}, labels: {app: furnished}}
spec:
  replicas: {{ .Values.replicaCount }}
  selector: {matchLabels: {app: furnished, release: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: furnished, release: {{ .Release.Name }}}}
    spec: {containers: [{name: app, image: "nginx:stable"}]}
---
apiVersion: v1
kind: Service
metadata: {name: test-nginx-prod, labels: {shipper-lb: production}}
spec: {selector: {app: furnished}, ports: [{port: 80}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, storageClassName: none}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, annotations: {helm.sh/resource-policy: keep}}
{{ range .Values.plain }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ . }}}
{{ end }}
{{ end }}
`,
	})
	if err != nil {
		t.Fatal(err)
	}
	world.Charts.Publish(archive)
}

// furnish returns an Application of that chart, with a history of two Releases.
func (s *fixture) furnish(replicas int, steps strategy, plain ...any) *shipper.Application {
	app := s.application("0.0.1", replicas, steps)
	app.Spec.RevisionHistoryLimit = ptr.To[int32](1)
	app.Spec.Template.Chart.Name = "furnished"
	(*app.Spec.Template.Values)["plain"] = plain
	return app
}

// has waits until each cluster has exactly these objects of the Application beside Pods and anchors: counts by kind, and
// ConfigMaps by name.
func (s *fixture) has(want string) {
	s.Helper()
	for _, cluster := range s.clusters {
		s.Eventually("objects in "+cluster, want, func() (string, error) { return s.inventory(cluster) })
	}
}

func (s *fixture) inventory(cluster string) (string, error) {
	var out []string
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &corev1.ServiceList{}, &corev1.PersistentVolumeClaimList{}, &corev1.ConfigMapList{},
	} {
		err := world.Clusters[cluster].List(s.Ctx, list, client.InNamespace(s.Namespace), client.MatchingLabels{shipper.AppLabel: s.App})
		if err != nil {
			return "", err
		}
		switch list := list.(type) {
		case *appsv1.DeploymentList:
			out = append(out, fmt.Sprint(len(list.Items), " Deployments"))
		case *corev1.ServiceList:
			out = append(out, fmt.Sprint(len(list.Items), " Services"))
		case *corev1.PersistentVolumeClaimList:
			out = append(out, fmt.Sprint(len(list.Items), " claims"))
		case *corev1.ConfigMapList:
			var names []string
			for _, cm := range list.Items {
				if !strings.HasSuffix(cm.Name, "-anchor") {
					names = append(names, cm.Name)
				}
			}
			slices.Sort(names)
			out = append(out, names...)
		}
	}
	return strings.Join(out, ", "), nil
}

// TestWhatIsRenderedNoMoreGoesFromAllClustersWithItsLastRelease drops the claim, the kept ConfigMap and three others from the
// chart, one of which has got another owner.
func TestWhatIsRenderedNoMoreGoesFromAllClustersWithItsLastRelease(t *testing.T) {
	furnished(t)
	onTwoClusters(t, func(s *fixture) {
		s.applies(s.furnish(1, allIn, "dropped", "owned", "stays"))
		first := s.Release(0)
		s.Completes(first)
		s.has("1 Deployments, 1 Services, 1 claims, dropped, owned, settings, stays")
		for _, cluster := range s.clusters {
			s.owns(cluster, "owned")
		}
		s.Edits(func(app *shipper.Application) { (*app.Spec.Template.Values)["plain"] = []any{"stays"} })
		second := s.Release(1)
		s.Completes(second)
		s.has("2 Deployments, 1 Services, 1 claims, dropped, owned, settings, stays") // a rollback to the first is still possible

		s.Edits(func(app *shipper.Application) { (*app.Spec.Template.Values)["plain"] = []any{"stays", "new"} })
		third := s.releaseAfter(second)
		s.Completes(third)
		s.has("2 Deployments, 1 Services, 1 claims, new, owned, settings, stays")
		s.readyPods(third, 1)
		s.endpoints(1)
	})
}

// owns gives a ConfigMap another owner in a cluster.
func (s *fixture) owns(cluster, name string) {
	s.Helper()
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "owner"}}
	s.Must("creating an owner", world.Clusters[cluster].Create(s.Ctx, owner))
	cm := &corev1.ConfigMap{}
	s.Must("reading what it is to own", world.Clusters[cluster].Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: name}, cm))
	before := cm.DeepCopy()
	cm.OwnerReferences = append(cm.OwnerReferences, metav1.OwnerReference{
		APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID,
	})
	s.Must("giving it an owner", world.Clusters[cluster].Patch(s.Ctx, cm, client.MergeFrom(before)))
}

// TestAChartOfManyObjects rolls out 100 objects, 500 in `make nightly`, and then has all but a few pruned.
func TestAChartOfManyObjects(t *testing.T) {
	furnished(t)
	objects := 100
	if env.IsNightly() {
		objects = 500
	}
	onTwoClusters(t, func(s *fixture) {
		var many []any
		for i := range objects - 4 { // plus the Deployment, the Service and the kept objects
			many = append(many, fmt.Sprintf("settings-%03d", i))
		}
		s.applies(s.furnish(1, allIn, many...))
		newest := s.Release(0)
		s.Completes(newest)
		s.counts(objects - 3) // and the kept one
		healthy := fmt.Sprintf("%d of %d", objects-1, objects)
		s.Eventually("the summary of the objects", healthy+", "+healthy, s.surveyed(newest))
		for _, left := range []any{"one", "two"} { // the history has room for two: the first Release is trimmed
			s.Edits(func(app *shipper.Application) { (*app.Spec.Template.Values)["plain"] = []any{left} })
			newest = s.releaseAfter(newest)
			s.Completes(newest)
		}
		s.counts(3) // of the last two Releases, and the kept one
	})
}

// counts waits until each cluster has that many ConfigMaps of the Application beside anchors.
func (s *fixture) counts(want int) {
	s.Helper()
	for _, cluster := range s.clusters {
		s.Eventually("ConfigMaps in "+cluster, fmt.Sprint(want), func() (string, error) {
			list := &corev1.ConfigMapList{}
			err := world.Clusters[cluster].List(s.Ctx, list, client.InNamespace(s.Namespace), client.MatchingLabels{shipper.AppLabel: s.App})
			list.Items = slices.DeleteFunc(list.Items, func(cm corev1.ConfigMap) bool { return strings.HasSuffix(cm.Name, "-anchor") })
			return fmt.Sprint(len(list.Items)), err
		})
	}
}

// surveyed returns, for each cluster, how many objects of a Release are healthy, of how many.
func (s *fixture) surveyed(release string) func() (string, error) {
	return func() (string, error) {
		it := &shipper.InstallationTarget{}
		err := world.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: release}, it)
		var out []string
		for _, c := range it.Status.Clusters {
			if c.Objects != nil {
				out = append(out, fmt.Sprintf("%d of %d", c.Objects.Healthy, c.Objects.Total))
			}
		}
		return strings.Join(out, ", "), err
	}
}
