// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// sharedService is the Service of the chart test-nginx.
const sharedService = "test-nginx-prod"

// editsPort changes the port of the chart's Service in a cluster by hand, as a user with write access does.
func (s *fixture) editsPort(cluster string, port int32) {
	s.Helper()
	service := &corev1.Service{}
	s.Must("reading the service", world.Clusters[cluster].Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: sharedService}, service))
	before := service.DeepCopy()
	service.Spec.Ports[0].Port = port
	s.Must("editing the service", world.Clusters[cluster].Patch(s.Ctx, service, client.MergeFrom(before), client.FieldOwner("by-hand")))
}

// port returns the port of the chart's Service in a cluster.
func (s *fixture) port(cluster string) func() (string, error) {
	return func() (string, error) {
		service := &corev1.Service{}
		err := world.Clusters[cluster].Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: sharedService}, service)
		if err != nil {
			return "", err
		}
		return fmt.Sprint(service.Spec.Ports[0].Port), nil
	}
}

// drift returns what the InstallationTarget of a Release reports as drift in a cluster.
func (s *fixture) drift(release, cluster string) func() (string, error) {
	return func() (string, error) {
		it := &shipper.InstallationTarget{}
		if err := world.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: release}, it); err != nil {
			return "", err
		}
		out := ""
		for _, c := range it.Status.Clusters {
			if c.Name == cluster && c.Drift != nil {
				for _, f := range c.Drift.Fields {
					out += fmt.Sprintf("%s %s %s: %s -> %s by %s\n", f.Kind, f.Name, f.Field, f.Want, f.Have, f.Manager)
				}
				out += c.Drift.Message
			}
		}
		return out, nil
	}
}

// driftedSince is since when the first field that differs in a cluster does, by the InstallationTarget of a Release.
func (s *fixture) driftedSince(release, cluster string) string {
	s.Helper()
	it := &shipper.InstallationTarget{}
	s.Must("reading the target", world.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: release}, it))
	for _, c := range it.Status.Clusters {
		if c.Name == cluster && c.Drift != nil && len(c.Drift.Fields) > 0 && c.Drift.Fields[0].Since != nil {
			return c.Drift.Fields[0].Since.UTC().Format(time.RFC3339)
		}
	}
	s.Fatalf("%s does not say since when it differs in %s", release, cluster)
	return ""
}

// TestDriftIsReportedAndCorrected edits a Service by hand, in one of two clusters and then in both. A block refuses a change
// of driftPolicy but does not stop the correction, which restores admitted content.
func TestDriftIsReportedAndCorrected(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		app := s.application("0.0.1", 2, allIn)
		app.Spec.DriftPolicy = shipper.DriftReport
		s.applies(app)
		rel := s.Release(0)
		s.Completes(rel)
		port, err := s.port(west)()
		s.Must("reading the port", err)
		s.editsPort(west, 8099)
		found := fmt.Sprintf("Service %s spec.ports[name=http].port: %s -> 8099 by by-hand\n", sharedService, port)
		s.Eventually("drift in "+west, found, s.drift(rel, west))
		s.Eventually("drift in "+east, "", s.drift(rel, east))
		s.says(fmt.Sprintf("%s: Service %s (release %s): spec.ports[name=http].port, written by by-hand at %s\n- %s\n+ 8099\n",
			west, sharedService, rel, s.driftedSince(rel, west), port), "rollout", "diff", s.App, "--drift")
		s.says("1 objects are not as released", "rollout", "status", s.App)

		s.Edits(func(app *shipper.Application) { app.Spec.DriftPolicy = shipper.DriftCorrect })
		s.Eventually("the port in "+west, port, s.port(west))
		s.Eventually("drift in "+west, "", s.drift(rel, west))
		s.toldOf("InstallationTarget", rel, "DriftCorrected", fmt.Sprintf(
			"Service %q in cluster %q was changed, spec.ports[name=http].port by \"by-hand\"; it is as it was released again", sharedService, west))
		block := s.blocks()
		ignore := func(app *shipper.Application) { app.Spec.DriftPolicy = "" }
		s.refused("changing the policy", s.TryEdit(ignore), "rollouts blocked by: "+block)
		s.editsPort(east, 8099)
		s.Eventually("the port in "+east, port, s.port(east))
		s.readyPods(rel, 2)
		if n := len(s.historyOf()); n != 1 {
			t.Errorf("driftPolicy made releases: %d", n)
		}

		s.lifts(block)
		s.Edits(ignore)
		s.Eventually("the edit of the policy", "seen", func() (string, error) {
			app := &shipper.Application{}
			err := world.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.App}, app)
			if app.Status.ObservedGeneration == app.Generation {
				return "seen", err
			}
			return "not seen by the reconciler", err
		})
		s.editsPort(east, 8099)
		d := &appsv1.DeploymentList{} // makes Shipper reconcile this cluster again
		s.Must("listing", world.Clusters[east].List(s.Ctx, d, client.InNamespace(s.Namespace)))
		s.Must("deleting", world.Clusters[east].Delete(s.Ctx, &d.Items[0]))
		s.readyPods(rel, 2)
		if got, err := s.port(east)(); err != nil || got != "8099" {
			t.Errorf("the port is %s (%v), want 8099: the policy corrects nothing", got, err)
		}
	})
}

// historyOf lists the Releases in the Application's history.
func (s *fixture) historyOf() []string {
	s.Helper()
	app := &shipper.Application{}
	s.Must("reading the application", world.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.App}, app))
	return app.Status.History
}

// TestAnImageEditedInAClusterShowsInTheStatusByDefault edits as `kubectl set image` does, without a driftPolicy.
func TestAnImageEditedInAClusterShowsInTheStatusByDefault(t *testing.T) {
	s := begin(t, []string{west, east}, []string{westRegion, eastRegion})
	s.applies(s.application("0.0.1", 2, allIn))
	rel := s.Release(0)
	s.Completes(rel)
	s.Eventually("drift in "+west, "", s.drift(rel, west))
	deployment := &appsv1.Deployment{}
	name := rel + "-test-nginx"
	s.Must("reading the deployment", world.Clusters[west].Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: name}, deployment))
	before := deployment.DeepCopy()
	container := &deployment.Spec.Template.Spec.Containers[0]
	field := fmt.Sprintf("spec.template.spec.containers[name=%s].image", container.Name)
	found := fmt.Sprintf("Deployment %s %s: %q -> %q by kubectl-set\n", name, field, container.Image, "nginx:by-hand")
	container.Image = "nginx:by-hand"
	s.Must("editing the image", world.Clusters[west].Patch(s.Ctx, deployment, client.MergeFrom(before), client.FieldOwner("kubectl-set")))
	s.Eventually("drift in "+west, found, s.drift(rel, west))
	s.says(fmt.Sprintf("1 objects are not as released (Deployment %s %s)", name, field), "rollout", "status", s.App)
}
