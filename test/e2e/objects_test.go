// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
)

// storing publishes a chart with a PersistentVolumeClaim that no provisioner binds here.
func (s *fixture) storing() {
	s.Helper()
	archive, err := charts.PackFiles("storing", "0.0.1", map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: storing\nversion: 0.0.1\n",
		"templates/all.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}, labels: {app: storing}}
spec:
  replicas: {{ .Values.replicaCount }}
  selector: {matchLabels: {app: storing, release: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: storing, release: {{ .Release.Name }}}}
    spec: {containers: [{name: app, image: "nginx:stable"}]}
---
apiVersion: v1
kind: Service
metadata: {name: storing, labels: {shipper-lb: production}}
spec: {selector: {app: storing}, ports: [{port: 80}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, storageClassName: none}
`,
	})
	s.Must("packing a chart", err)
	world.Charts.Publish(archive)
}

// healthy returns what a Release reports of the health of its objects.
func (s *fixture) healthy(release string) func() (string, error) {
	return func() (string, error) {
		rel, err := s.Get(release)
		if c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseHealthy); c != nil {
			return fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message), err
		}
		return "nothing", err
	}
}

// TestReleaseTellsHowItsObjectsAre binds a volume in one cluster after the other.
func TestReleaseTellsHowItsObjectsAre(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		s.storing()
		app := s.application("0.0.1", 2, allIn)
		app.Spec.Template.Chart.Name = "storing"
		s.applies(app)
		rel := s.Release(0)
		s.Completes(rel) // completion depends on Pods, not on volumes
		const lacks = `PersistentVolumeClaim "data" is InProgress (NotBound)`
		s.Eventually("no volume is there", fmt.Sprintf("False ObjectsInProgress 2 of 6 objects are not healthy: %s: %s; %s: %s",
			west, lacks, east, lacks), s.healthy(rel))
		s.Eventually("the Deployments are healthy", "2 2", s.healthyObjects(rel)) // the Release goes by the CapacityTarget, which is earlier
		s.says("cluster "+west+": 2 of 3 objects healthy", "rollout", "status", s.App)
		s.says("cluster "+east+": 1 of 3 objects not healthy: PersistentVolumeClaim data InProgress (NotBound)", "rollout", "status", s.App)
		s.binds(west)
		s.Eventually("one volume is there", "False ObjectsInProgress 1 of 6 objects are not healthy: "+east+": "+lacks, s.healthy(rel))
		s.binds(east)
		s.Eventually("both volumes are there", "True  ", s.healthy(rel))
		s.says("cluster "+east+": 3 of 3 objects healthy", "rollout", "status", s.App)
	})
}

// healthyObjects are the numbers of healthy objects in the clusters of a Release's InstallationTarget.
func (s *fixture) healthyObjects(rel string) func() (string, error) {
	return func() (string, error) {
		var counts []string
		it := &shipper.InstallationTarget{}
		err := world.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: rel}, it)
		for _, c := range it.Status.Clusters {
			if c.Objects != nil {
				counts = append(counts, strconv.Itoa(int(c.Objects.Healthy)))
			}
		}
		return strings.Join(counts, " "), err
	}
}

// binds marks the claim in a cluster as bound.
func (s *fixture) binds(cluster string) {
	s.Helper()
	s.Eventually("the claim is bound", "Bound", func() (string, error) {
		claim := &corev1.PersistentVolumeClaim{}
		if err := world.Clusters[cluster].Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: "data"}, claim); err != nil {
			return "", err
		}
		claim.Status.Phase = corev1.ClaimBound
		return string(claim.Status.Phase), world.Clusters[cluster].Status().Update(s.Ctx, claim)
	})
}
