// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"shipper.dev/shipper/apis/rules/preview"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/chart/values"
)

// namer answers how objects are named, and notes for which clusters it is asked.
type namer struct {
	Charts
	naming shipper.ChartNaming
	err    error
	asked  []string
}

func (n *namer) Naming(_ context.Context, _ *shipper.Release, clusters []render.Cluster) (shipper.ChartNaming, error) {
	n.asked = append(n.asked, "asked")
	for _, c := range clusters {
		n.asked = append(n.asked, c.Place.Cluster+" "+c.KubeVersion)
	}
	return n.naming, n.err
}

func TestTheFirstReleaseIsNamedByItsChart(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := shipper.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cluster := func(name, region string) *shipper.Cluster {
		return &shipper.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: shipper.ClusterSpec{Region: region},
			Status: shipper.ClusterStatus{InService: true, KubernetesVersion: "v1.30.0"},
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster("here", "eu"), cluster("there", "us")).Build()
	broken := &chart.Error{Reason: shipper.ChartFetchFailure, Message: "no answer", Retry: true}
	for sentence, tc := range map[string]struct {
		charts   namer
		asked    shipper.ChartNaming
		region   string
		existing []*shipper.Release
		unjudged bool // as the original's webhook left it
		want     shipper.ChartNaming
		clusters []string
	}{
		"by Application": {
			charts: namer{naming: "Application"}, region: "eu", want: "Application", clusters: []string{"asked", "here v1.30.0"},
		},
		"by Release": {charts: namer{naming: "Release"}, region: "us", clusters: []string{"asked", "there v1.30.0"}},
		"without clusters": {
			charts: namer{naming: "Application"}, region: "nowhere", want: "Application", clusters: []string{"asked"},
		},
		"not if the template says it":        {charts: namer{naming: "Release"}, asked: "Application", want: "Application"},
		"not if another Release has decided": {charts: namer{naming: "Application"}, existing: []*shipper.Release{complete(0, 1)}},
		"of the original, with a chart": {
			charts: namer{naming: "Application"}, existing: []*shipper.Release{complete(0, 1)}, unjudged: true, clusters: []string{"asked"},
		},
		"of the original, without the chart": {
			charts: namer{err: broken}, existing: []*shipper.Release{complete(0, 1)}, unjudged: true, clusters: []string{"asked"},
		},
		"not without the chart": {charts: namer{err: broken}, region: "eu", clusters: []string{"asked", "here v1.30.0"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			app := web(2, "", 2)
			app.Spec.Template.Chart.Naming = tc.asked
			if !tc.unjudged {
				metav1.SetMetaDataAnnotation(&app.ObjectMeta, shipper.AppRequestedByAnnotation, "ann")
			}
			app.Spec.Template.ClusterRequirements.Regions = []shipper.RegionRequirement{{Name: tc.region}}
			s := seen(app, tc.existing...)
			rel := rel(1, 2)
			rel.Spec.Environment = *app.Spec.Template.DeepCopy()
			r := &pass{Reconciler: &Reconciler{client: c, charts: &tc.charts}, now: metav1.NewTime(time.Unix(1, 0))}
			err := r.decideNaming(t.Context(), s, rel)
			if !errors.Is(err, tc.charts.err) || err == nil && rel.Spec.Environment.Chart.Naming != tc.want {
				t.Errorf("%q, %v", rel.Spec.Environment.Chart.Naming, err)
			}
			if !slices.Equal(tc.charts.asked, tc.clusters) {
				t.Errorf("asked for %q", tc.charts.asked)
			}
			status := applicationStatus(s, templatePlan{create: rel}, applied{create: err}, r.now)
			synced := shipper.FindCondition(status.Conditions, shipper.ApplicationReleaseSynced)
			if err != nil && (synced.Reason != shipper.ChartFetchFailure || synced.Message != "no answer") {
				t.Errorf("%+v", synced)
			}
		})
	}
}

func (*namer) Workloads(_ context.Context, _ *shipper.Release, in render.Cluster) ([]preview.Workload, error) {
	return []preview.Workload{{Kind: "StatefulSet", Name: "db-of-" + in.Place.Cluster, InPlace: true, Replicas: 3}}, nil
}

func TestWorkloadsAreWrittenDown(t *testing.T) {
	for naming, want := range map[shipper.ChartNaming]string{
		"": "", "Application": `[{"kind":"StatefulSet","name":"db-of-a","inPlace":true,"replicas":3}]`,
	} {
		rel := rel(0, 1)
		rel.Spec.Environment.Chart.Naming = naming
		ct := capacityTarget(rel, []string{"a", "b"}, map[string]int32{"a": 3, "b": 3})
		r := &pass{Reconciler: &Reconciler{charts: &namer{}}}
		clusters := []render.Cluster{{Place: values.Place{Cluster: "a"}}, {Place: values.Place{Cluster: "b"}}}
		if err := r.describeWorkloads(t.Context(), rel, ct, clusters); err != nil || ct.Annotations[shipper.WorkloadsAnnotation] != want {
			t.Errorf("%q: %v, %v", naming, ct.Annotations, err)
		}
	}
}

// TestAbortsLeaveTheNamingToTheUser: what the Release records is not written into the template.
func TestAbortsLeaveTheNamingToTheUser(t *testing.T) {
	for _, asked := range []shipper.ChartNaming{"", "Application"} {
		app, rel := web(2, "", 2), complete(0, 1)
		app.Spec.Template.Chart.Naming, rel.Spec.Environment.Chart.Naming = asked, "Application"
		restore(app, rel)
		if got := app.Spec.Template.Chart.Naming; got != asked {
			t.Errorf("%q became %q", asked, got)
		}
	}
}
