// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
)

// meddle changes an object in a cluster, again after each conflict.
func (s *fixture) meddle(cluster string, object client.Object, change func()) {
	s.Helper()
	s.soon("meddling with "+object.GetName(), func() string {
		s.must(world.clusters[cluster].Get(s.ctx, client.ObjectKeyFromObject(object), object))
		change()
		if err := world.clusters[cluster].Update(s.ctx, object); err != nil {
			return err.Error()
		}
		return ""
	})
}

// unmark makes Shipper think that a Deployment was made from another manifest, and gives it another image.
func (s *fixture) unmark(d *appsv1.Deployment) {
	s.Helper()
	s.meddle(west, d, func() {
		d.Annotations[shipper.InstalledDigestAnnotation] = "another"
		d.Spec.Template.Spec.Containers[0].Image = "nginx:another"
	})
}

// repaired waits until the Deployment of web-1 is as the chart says, and returns it.
func (s *fixture) repaired() *appsv1.Deployment {
	s.Helper()
	var d *appsv1.Deployment
	s.soon("it is not written again", func() string {
		d = s.deployment(west, "web-1")
		if image := d.Spec.Template.Spec.Containers[0].Image; image != "nginx:stable" {
			return image
		}
		return ""
	})
	return d
}

func TestWritingADeploymentLeavesItsReplicas(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{"replicaCount": 5}, west)
	s.installed("web-1")
	s.unmark(s.deployment(west, "web-1"))
	if d := s.repaired(); *d.Spec.Replicas != 0 {
		t.Errorf("a Deployment without Pods has %d replicas now", *d.Spec.Replicas)
	}
	s.scale("web-1", 60, 5, west)
	s.scaled("web-1")
	s.unmark(s.deployment(west, "web-1"))
	if d := s.repaired(); *d.Spec.Replicas != 3 {
		t.Errorf("a Deployment with 3 Pods has %d replicas now", *d.Spec.Replicas)
	}
}

// TestWhatWasSaidStandsWhileAnotherWriterIsFaster lets another writer be faster every time: first no watch reports it, for most
// often it happens once.
func TestWhatWasSaidStandsWhileAnotherWriterIsFaster(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	const cluster = "contended"
	d := &door{}
	s.behind(d, cluster)
	s.clusterIs(cluster, "")
	s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{}, cluster)
	s.installed("web-1")
	asked, more := make(chan struct{}), make(chan struct{})
	d.setWrites(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/deployments/web-1-test-nginx") {
			d.next.ServeHTTP(w, r)
			return
		}
		select {
		case asked <- struct{}{}:
		case <-more:
		case <-r.Context().Done():
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusConflict)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"message":"modified"}`))
	})
	s.unmark(s.deployment(west, "web-1"))
	for range 3 {
		<-asked
	}
	it := &shipper.InstallationTarget{}
	s.must(s.management.Get(s.ctx, s.key("web-1"), it))
	if !shipper.ConditionTrue(it.Status.Conditions, shipper.TargetReady) {
		t.Errorf("the third time it says %+v", it.Status)
	}
	close(more)
	s.notInstalled("web-1", cluster, shipper.InProgress)
	d.setWrites(nil)
	s.repaired()
	s.installed("web-1")
}

func TestAVanishedRepositoryDisturbsNothingThatIsInstalled(t *testing.T) {
	t.Parallel()
	repository := charts.Serve(t)
	s := begin(t, west)
	it := &shipper.InstallationTarget{ObjectMeta: s.meta("web-1"), Spec: shipper.InstallationTargetSpec{
		Clusters: []string{west}, CanOverride: true,
		Chart: &shipper.Chart{Name: "test-nginx", Version: "0.0.1", RepoURL: repository.URL},
	}}
	s.must(s.management.Create(s.ctx, it))
	s.installed("web-1")
	repository.Break(charts.Gone)
	s.change(it, func(client.Object) {
		it.Spec.CanOverride = false
		it.Spec.Chart.RepoURL += "/moved" // which is not cached either
	})
	if it = s.installed("web-1"); it.Status.Clusters[0].Status != shipper.InstallationStatusInstalled {
		t.Errorf("status is %+v", it.Status)
	}
}

func TestInstallsAKindThatTheChartDefines(t *testing.T) {
	t.Parallel()
	archive, err := charts.PackFiles("own-kind", "0.0.1", ownKind)
	if err != nil {
		t.Fatal(err)
	}
	world.charts.Publish(archive)
	s := begin(t, west)
	it := s.install("web-1", "own-kind", "0.0.1", shipper.ChartValues{}, west)
	s.installed("web-1")
	gizmo := &unstructured.Unstructured{}
	gizmo.SetAPIVersion("shipper.test/v1")
	gizmo.SetKind("Gizmo")
	if !s.find(west, "gizmo", gizmo) {
		t.Fatal("there is no Gizmo")
	}
	s.must(world.clusters[west].Delete(s.ctx, gizmo))
	s.soon("a Gizmo that is deleted does not come back", func() string {
		if !s.find(west, "gizmo", gizmo) {
			return "there is none"
		}
		return ""
	})
	s.must(s.management.Delete(s.ctx, it))
	s.gone(it)
	if s.find(west, "gizmo", gizmo) {
		t.Error("the Gizmo is left behind")
	}
	definition := &unstructured.Unstructured{}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	err = world.clusters[west].Get(s.ctx, client.ObjectKey{Name: "gizmos.shipper.test"}, definition)
	if apierrors.IsNotFound(err) {
		t.Error("the definition went too, and with it every Gizmo there is")
	}
}

// ownKind is a chart that brings a kind and an object of it.
var ownKind = map[string]string{
	"Chart.yaml": "apiVersion: v2\nname: own-kind\nversion: 0.0.1\n",
	"crds/gizmo.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gizmos.shipper.test
spec:
  group: shipper.test
  scope: Namespaced
  names: {kind: Gizmo, listKind: GizmoList, plural: gizmos, singular: gizmo}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`,
	"templates/gizmo.yaml": `apiVersion: shipper.test/v1
kind: Gizmo
metadata:
  name: gizmo
spec:
  size: 1
`,
	"templates/service.yaml": `apiVersion: v1
kind: Service
metadata:
  name: gizmo
spec:
  selector: {app: gizmo}
  ports:
  - port: 80
`,
	"templates/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  selector:
    matchLabels: {app: gizmo}
  template:
    metadata:
      labels: {app: gizmo}
    spec:
      containers:
      - name: app
        image: nginx:stable
`,
}
