// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
)

// publish makes a chart of the fewest files that can be installed, and more.
func (s *fixture) publish(name string, more map[string]string) {
	s.Helper()
	files := map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: " + name + "\nversion: 0.0.1\n",
		"templates/deployment.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}", labels: {app: web}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "nginx:stable", ports: [{containerPort: 80}]}
`,
		"templates/service.yaml": `
apiVersion: v1
kind: Service
metadata: {name: web, labels: {shipper-lb: production}}
spec: {selector: {app: web}, ports: [{port: 80}]}
`,
	}
	for file, text := range more {
		files[file] = text
	}
	archive, err := charts.PackFiles(name, "0.0.1", files)
	s.must(err)
	world.charts.Publish(archive)
}

// objects waits until a target says of its objects in a cluster what is expected: how many are healthy, and which are not.
func (s *fixture) objects(name, cluster, expected string) *shipper.InstalledObjects {
	s.Helper()
	var found *shipper.InstalledObjects
	s.soon("what is said of objects in "+cluster, func() string {
		it := &shipper.InstallationTarget{}
		s.must(s.management.Get(s.ctx, s.key(name), it))
		for _, c := range it.Status.Clusters {
			if c.Name != cluster || c.Objects == nil {
				continue
			}
			found = c.Objects
			text := fmt.Sprintf("%d/%d", c.Objects.Healthy, c.Objects.Total)
			for _, u := range c.Objects.Unhealthy {
				text += strings.TrimRight(fmt.Sprintf(", %s %s %s %s", u.Kind, u.Name, u.Status, u.Reason), " ")
			}
			if text == expected {
				return ""
			}
			return text + ", want " + expected
		}
		return fmt.Sprintf("%+v", it.Status)
	})
	return found
}

const claim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, storageClassName: none}
`

// TestTellsHowObjectsAre has a claim that nothing binds, in two clusters, and binds it in one.
func TestTellsHowObjectsAre(t *testing.T) {
	t.Parallel()
	s := begin(t, west, east)
	s.publish("with-claim", map[string]string{"templates/claim.yaml": claim})
	s.install("web-1", "with-claim", "0.0.1", shipper.ChartValues{}, west, east)
	s.installed("web-1")
	for _, c := range []string{west, east} {
		s.objects("web-1", c, "2/3, PersistentVolumeClaim data InProgress NotBound")
	}
	pvc := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "data"}}
	s.rewriteStatus(west, pvc, func() { pvc.Status.Phase = corev1.ClaimBound })
	got := s.objects("web-1", west, "3/3")
	want := &shipper.InstalledObjects{Total: 3, Healthy: 3, Kinds: []shipper.InstalledKind{
		{APIVersion: "apps/v1", Kind: "Deployment", Total: 1, Healthy: 1},
		{APIVersion: "v1", Kind: "PersistentVolumeClaim", Total: 1, Healthy: 1},
		{APIVersion: "v1", Kind: "Service", Total: 1, Healthy: 1},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	s.objects("web-1", east, "2/3, PersistentVolumeClaim data InProgress NotBound")
}

// rewriteStatus writes the status of an object in a cluster, again after each conflict.
func (s *fixture) rewriteStatus(cluster string, object client.Object, change func()) {
	s.Helper()
	s.soon("writing the status of "+object.GetName(), func() string {
		s.must(world.clusters[cluster].Get(s.ctx, client.ObjectKeyFromObject(object), object))
		change()
		if err := world.clusters[cluster].Status().Update(s.ctx, object); err != nil {
			return err.Error()
		}
		return ""
	})
}

// TestManyObjectsAreToldOfInFewWords has a chart of 150 objects, 90 of them never ready. At rest nothing is written, and
// nothing is when what is not health changes in them.
func TestManyObjectsAreToldOfInFewWords(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	s.publish("many", map[string]string{"templates/many.yaml": `
{{- range $i := until 58 }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: "settings-{{ $i }}"}
{{- end }}
{{- range $i := until 90 }}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: "data-{{ $i }}"}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, storageClassName: none}
{{- end }}
`})
	s.install("web-1", "many", "0.0.1", shipper.ChartValues{}, west)
	s.installed("web-1")
	it := &shipper.InstallationTarget{}
	s.soon("the counts are not right", func() string {
		s.must(s.management.Get(s.ctx, s.key("web-1"), it))
		o := it.Status.Clusters[0].Objects
		if o == nil || o.Total != 150 || o.Healthy != 60 || len(o.Unhealthy) != 10 {
			return fmt.Sprintf("%+v", o)
		}
		for _, u := range o.Unhealthy { // not of one that its cache does not have yet
			if text := fmt.Sprintln(u.Kind, u.Status, u.Reason); text != "PersistentVolumeClaim InProgress NotBound\n" {
				return text
			}
		}
		return ""
	})
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "settings-7"}}
	s.meddle(west, cm, func() { cm.Data = map[string]string{"edited": "yes"} })
	const quiet = 5 * time.Second // more than a status may lag
	before, since := it.ResourceVersion, time.Now()
	s.soon("the status is written again and again", func() string {
		s.must(s.management.Get(s.ctx, s.key("web-1"), it))
		if it.ResourceVersion != before {
			before, since = it.ResourceVersion, time.Now()
		}
		if time.Since(since) >= quiet {
			return ""
		}
		return "it was written " + time.Since(since).String() + " ago"
	})
}
