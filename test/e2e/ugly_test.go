// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"compress/gzip"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
)

// TestBrokenChartsSayWhatIsWrong gives each broken chart an Application of its own. A chart that no cluster can run is
// refused; other faults show in a condition of the Application, Release or InstallationTarget. An Application beside them rolls out. The
// rules for charts that are named by Release are judged where the template says so.
func TestBrokenChartsSayWhatIsWrong(t *testing.T) {
	(&fixture{Rollout: *world.In(t, "", "")}).publishesArchivesOfIllWill() // before any test fetches the index
	t.Parallel()
	s := begin(t, []string{west}, []string{westRegion})
	for name, words := range map[string][]string{
		"not-gzip":     {shipper.BrokenChartSpec, "not-gzip"},
		"leads-out":    {shipper.BrokenChartSpec, "chart illegally references parent directory"},
		"bomb":         {shipper.BrokenChartSpec, "it unpacks to more than 100 MiB"},
		"unknown-kind": {"Gadget"},
	} {
		app := s.application("0.0.1", 1, allIn)
		app.Name, app.Spec.Template.Chart.Name = name, name
		s.applies(app)
		t.Run(name, func(t *testing.T) {
			s.on(t).complains(name, words...)
		})
	}
	for name, want := range map[string]string{
		"no-deployment":           "it must have exactly one Deployment, but 0 are found",
		"two-deployments":         "it must have exactly one Deployment, but 2 are found",
		"broken-template":         "template",
		"release-selector":        shipper.HelmWorkaroundLabel,
		"invalid-deployment-name": "{{ .Release.Name }}",
		"no-template-labels":      "label",
		"hook":                    "hook",
	} {
		app := s.application("0.0.1", 1, allIn)
		app.Name, app.Spec.Template.Chart.Name, app.Spec.Template.Chart.Naming = name, name, shipper.NamingByRelease
		s.Eventually("the answer for the chart "+name, "refused", func() (string, error) {
			err := world.Management.Create(s.Ctx, app.DeepCopy(), client.DryRunAll)
			if !apierrors.IsInvalid(err) {
				return "admitted", err
			}
			if said := err.Error(); !strings.Contains(said, "spec.template.chart: Invalid value") || !strings.Contains(said, want) {
				return said, nil
			}
			return "refused", nil
		})
	}
	s.applies(s.application("0.0.1", 2, allIn))
	rel := s.Release(0)
	s.Completes(rel)
	s.readyPods(rel, 2)
	s.nobodyDied()
}

// publishesArchivesOfIllWill publishes an archive with a path that leads out of it, and one whose unpacked size exceeds the
// limit.
func (s *fixture) publishesArchivesOfIllWill() {
	s.Helper()
	large := map[string]string{"Chart.yaml": "apiVersion: v2\nname: bomb\nversion: 0.0.1\n"}
	for i := range 26 {
		large[fmt.Sprintf("files/%d", i)] = strings.Repeat("0", 4<<20)
	}
	bomb, err := charts.PackFiles("bomb", "0.0.1", large)
	s.Must("packing a bomb", err)
	world.Charts.Publish(s.compressed(bomb, gzip.BestSpeed, ""))
	leadsOut, err := charts.PackFiles("leads-out", "0.0.1", map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: leads-out\nversion: 0.0.1\n", "../../etc/cron.d/shipper": "* * * * * root true\n",
	})
	s.Must("packing a path", err)
	world.Charts.Publish(leadsOut)
}

func TestRegionWithoutClusterIsSaidAndRevived(t *testing.T) {
	t.Parallel()
	s := begin(t, nil, []string{"atlantis"})
	s.applies(s.application("0.0.1", 1, allIn))
	s.complains(appName, shipper.NotEnoughClustersInRegion, "atlantis")

	// A new cluster of the region triggers the Release's reconciliation, which then reports the fault of the cluster.
	cluster := s.cluster("atlantis-1", "atlantis")
	s.complains(appName, cluster, "Secret")
	s.nobodyDied()
}

func TestClusterWithWrongCredentialsIsNamed(t *testing.T) {
	t.Parallel()
	s := begin(t, nil, []string{"lemuria"})
	cluster := s.cluster("lemuria-1", "lemuria")
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: shipper.SystemNamespace, Name: cluster},
		Data:       map[string][]byte{"token": []byte("forged"), "ca.crt": world.Fleet.Applications[0].Config.CAData},
	}
	s.Must("creating a secret", world.Management.Create(s.Ctx, secret))
	t.Cleanup(func() { _ = world.Management.Delete(context.Background(), secret) })
	s.applies(s.application("0.0.1", 1, allIn))
	s.complains(appName, cluster, "credentials")
	s.nobodyDied()
}

func TestMissingNamespaceIsSaidAndAwaited(t *testing.T) {
	t.Parallel()
	s := begin(t, []string{west, east}, []string{westRegion, eastRegion})
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}
	s.Must("deleting the namespace in "+east, world.Clusters[east].Delete(s.Ctx, ns))
	s.Eventually("the namespace in "+east, "gone", func() (string, error) {
		err := world.Clusters[east].Get(s.Ctx, client.ObjectKeyFromObject(ns), ns)
		if client.IgnoreNotFound(err) == nil && err != nil {
			return "gone", nil
		}
		return string(ns.Status.Phase), err
	})
	s.applies(s.application("0.0.1", 1, allIn))
	s.complains(appName, east, s.Namespace, shipper.NamespaceMissing)

	ns = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}
	s.Must("creating the namespace in "+east, world.Clusters[east].Create(s.Ctx, ns))
	rel := s.Release(0)
	s.Completes(rel)
	s.readyPods(rel, 1)
}

// TestClusterThatIsDownStopsOnlyWhatNeedsIt is not parallel: no other test runs while a cluster is down.
func TestClusterThatIsDownStopsOnlyWhatNeedsIt(t *testing.T) {
	s := begin(t, []string{west, east}, []string{westRegion, eastRegion})
	down := world.Fleet.Applications[1]
	s.stopsAPIServer(down)
	stopped := time.Now()
	s.applies(s.application("0.0.1", 1, allIn))
	s.clusterIs(east, corev1.ConditionFalse)
	s.complains(appName, east, shipper.ClusterUnreachable)
	t.Logf("the cluster that is down was named after %s, 30 s at most where the machine is not busy", time.Since(stopped))

	healthy := s.application("0.0.1", 2, allIn)
	healthy.Name = "healthy"
	healthy.Spec.Template.ClusterRequirements.Regions = []shipper.RegionRequirement{{Name: westRegion}}
	values := shipper.ChartValues{"replicaCount": int64(2), "nameOverride": "healthy"}
	healthy.Spec.Template.Values = &values
	s.applies(healthy)
	s.Eventually("the application that does not need the cluster", "False", func() (string, error) {
		app := &shipper.Application{}
		err := world.Management.Get(s.Ctx, client.ObjectKeyFromObject(healthy), app)
		if c := shipper.FindCondition(app.Status.Conditions, shipper.ApplicationRollingOut); c != nil {
			return string(c.Status), err
		}
		return "absent", err
	})

	s.Must("starting the API server", down.StartAPIServer(s.Ctx))
	rel := s.Release(0)
	s.Completes(rel)
	s.readyPods(rel, 1)
	s.nobodyDied()
}

// clusterIs waits until the condition Ready of a Cluster has a status.
func (s *fixture) clusterIs(name string, ready corev1.ConditionStatus) {
	s.Helper()
	s.Eventually("Ready of Cluster "+name, string(ready), func() (string, error) {
		cluster := &shipper.Cluster{}
		err := world.Management.Get(s.Ctx, client.ObjectKey{Name: name}, cluster)
		if c := shipper.FindCondition(cluster.Status.Conditions, shipper.ClusterReady); c != nil {
			return string(c.Status), err
		}
		return "absent", err
	})
}

// cluster creates a Cluster without credentials, and deletes it when the test ends.
func (s *fixture) cluster(name, region string) string {
	s.Helper()
	c := &shipper.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       shipper.ClusterSpec{Region: region, APIMaster: world.Fleet.Applications[0].Config.Host},
	}
	s.Must("creating a cluster", world.Management.Create(s.Ctx, c))
	s.Cleanup(func() { _ = world.Management.Delete(context.Background(), c) })
	return name
}

// on is the same fixture in a subtest.
func (s *fixture) on(t *testing.T) *fixture {
	sub := *s
	sub.T = t
	return &sub
}

// complains waits until the conditions that are False of an Application, its Releases and their targets contain all words.
func (s *fixture) complains(app string, words ...string) {
	s.Helper()
	s.Eventually("complaints about "+app, "all of "+strings.Join(words, ", "), func() (string, error) {
		seen, err := s.complaints(app)
		for _, word := range words {
			if !strings.Contains(seen, word) {
				return seen, err
			}
		}
		return "all of " + strings.Join(words, ", "), err
	})
}

// complaints lists the conditions that are False, with reasons and messages.
func (s *fixture) complaints(app string) (string, error) {
	var said []string
	collect := func(of string, conditions []shipper.Condition) {
		for _, c := range conditions {
			if c.Status != corev1.ConditionTrue && c.Message != "" {
				said = append(said, fmt.Sprintf("%s %s %s %s: %s", of, c.Type, c.Status, c.Reason, c.Message))
			}
		}
	}
	of := &shipper.Application{}
	if err := world.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: app}, of); err != nil {
		return "", err
	}
	collect("app", of.Status.Conditions)
	rels, its := &shipper.ReleaseList{}, &shipper.InstallationTargetList{}
	for _, list := range []client.ObjectList{rels, its} {
		err := world.Management.List(s.Ctx, list, client.InNamespace(s.Namespace), client.MatchingLabels{shipper.AppLabel: app})
		if err != nil {
			return "", err
		}
	}
	for _, rel := range rels.Items {
		collect("rel", rel.Status.Conditions)
	}
	for _, it := range its.Items {
		collect("it", it.Status.Conditions)
		for _, c := range it.Status.Clusters {
			collect("it "+c.Name, c.Conditions)
		}
	}
	return strings.Join(said, "\n"), nil
}

// nobodyDied fails if one of the two binaries has exited.
func (s *fixture) nobodyDied() {
	s.Helper()
	for _, err := range []error{world.Pod.Webhook.Ended(), world.Pod.Reconciler.Ended()} {
		if err != nil {
			s.Fatal(err)
		}
	}
}
