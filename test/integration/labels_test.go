// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// labelled makes an InstallationTarget of test-nginx whose Application has a label that the chart sets, too, and one of a tool.
func (s *fixture) labelled(name string, annotations map[string]string) {
	s.Helper()
	it := &shipper.InstallationTarget{ObjectMeta: s.meta(name), Spec: shipper.InstallationTargetSpec{
		Clusters: []string{west}, CanOverride: true, Values: &shipper.ChartValues{},
		Chart: &shipper.Chart{Name: "test-nginx", Version: "0.0.1", RepoURL: world.charts.URL},
	}}
	it.Annotations = annotations
	it.Labels["app"], it.Labels["team"], it.Labels["app.kubernetes.io/instance"] = "common", "web", "argo"
	s.must(s.management.Create(s.ctx, it))
	s.installed(name)
}

// selects are the labels in the selector of a Release's Deployment that are not Shipper's.
func (s *fixture) selects(release string) map[string]string {
	s.Helper()
	out := map[string]string{}
	for key, value := range s.deployment(west, release).Spec.Selector.MatchLabels {
		if !shipper.ReservedLabel(key) {
			out[key] = value
		}
	}
	return out
}

// byShipper is a Deployment without what the Deployment controller writes, which it may do at any time after it is installed.
func byShipper(d *appsv1.Deployment) *appsv1.Deployment {
	out := d.DeepCopy()
	out.ResourceVersion, out.Status = "", appsv1.DeploymentStatus{}
	delete(out.Annotations, "deployment.kubernetes.io/revision")
	out.ManagedFields = slices.DeleteFunc(out.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == "kube-controller-manager"
	})
	return out
}

// TestAReleaseOfAnEarlierVersionIsNotWrittenAgain although nothing is stored of it: the API server would refuse another selector.
func TestAReleaseOfAnEarlierVersionIsNotWrittenAgain(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	s.labelled("web-1", nil)
	want := map[string]string{"app": "common", "team": "web", "app.kubernetes.io/instance": "argo"}
	if diff := cmp.Diff(want, s.selects("web-1")); diff != "" {
		t.Errorf("of an earlier version (-want +got):\n%s", diff)
	}
	before := s.deployment(west, "web-1")

	for _, name := range s.storedOf("web-1") {
		s.must(world.clusters[west].Delete(s.ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: shipper.SystemNamespace, Name: name},
		}))
	}
	s.rewrite("web-1", map[string]string{"InventoryDigest": ""})
	s.takeOver("web-1", false) // a change that makes it look again
	s.soon("it is not rendered again", func() string {
		if len(s.storedOf("web-1")) == 0 || s.anchor("web-1").Data["InventoryDigest"] == "" {
			return "nothing is stored"
		}
		return ""
	})
	s.installed("web-1")
	if diff := cmp.Diff(byShipper(before), byShipper(s.deployment(west, "web-1"))); diff != "" {
		t.Errorf("its Deployment was written (-before +after):\n%s", diff)
	}

	s.labelled("web-2", map[string]string{shipper.ReleaseLabelPrecedenceAnnotation: shipper.LabelsOfChart})
	if diff := cmp.Diff(map[string]string{"app": "test-nginx", "team": "web"}, s.selects("web-2")); diff != "" {
		t.Errorf("of this version (-want +got):\n%s", diff)
	}
}
