// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"context"
	"errors"
	"testing"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/chart/values"
	"shipper.dev/shipper/reconciler/rollout"
	"shipper.dev/shipper/test/charts"
)

func TestReplicasAreThoseOfTheChart(t *testing.T) {
	repo := charts.Serve(t)
	catalog := repository.NewCatalog(t.Context(), repository.Options{Repositories: charts.Policy(t), CacheDir: t.TempDir()})
	count := rollout.NewCharts(catalog, nil)
	rel := &shipper.Release{}
	rel.Namespace, rel.Name = "default", "web-0"
	rel.Labels = map[string]string{shipper.AppLabel: "web", shipper.ReleaseLabel: "web-0"}
	rel.Spec.Environment.Values = &shipper.ChartValues{"replicaCount": int64(7)}
	cases := map[string]struct {
		name, version, digest string
		want                  int32
		reason                string
		retry                 bool
	}{
		"a chart":                    {name: "test-nginx", version: "0.0.1", want: 7},
		"a chart without Deployment": {name: "no-deployment", version: "0.0.1", reason: shipper.WrongChartDeployments},
		"a chart that does not exist": {
			name: "nothing", version: "0.0.1", reason: shipper.BrokenChartSpec, retry: true,
		},
		"a chart that was exchanged": {
			name: "test-nginx", version: "0.0.2", reason: shipper.BrokenChartSpec, retry: true,
			digest: "0000000000000000000000000000000000000000000000000000000000000000",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rel.Spec.Environment.Chart = shipper.Chart{Name: tc.name, Version: tc.version, RepoURL: repo.URL}
			rel.Annotations = map[string]string{shipper.ReleaseChartDigestAnnotation: tc.digest}
			got, err := count.Replicas(t.Context(), rel, render.Cluster{})
			var broken *chart.Error
			if errors.As(err, &broken); (broken == nil) != (tc.reason == "") || got != tc.want {
				t.Fatalf("got %d, %v", got, err)
			}
			if broken != nil && (broken.Reason != tc.reason || broken.Retry != tc.retry) {
				t.Errorf("got %s, retry %t: %v", broken.Reason, broken.Retry, err)
			}
		})
	}
}

// ahead has the values of Releases that are not there yet.
type ahead map[string]any

func (ahead) Of(context.Context, values.Pinned) (map[string]any, error) {
	return nil, errors.New("the Release is not there")
}

func (a ahead) Ahead(context.Context, values.Pinned) (map[string]any, error) { return a, nil }

// TestNamingIsDecidedAheadOfTheRelease: with the values of ConfigMaps and Secrets, which are kept for Releases that are there.
func TestNamingIsDecidedAheadOfTheRelease(t *testing.T) {
	repo := charts.Serve(t)
	catalog := repository.NewCatalog(t.Context(), repository.Options{Repositories: charts.Policy(t), CacheDir: t.TempDir()})
	for name, want := range map[string]shipper.ChartNaming{
		"test-nginx": shipper.NamingByRelease, "two-deployments": shipper.NamingByApplication,
	} {
		rel := &shipper.Release{}
		rel.Namespace, rel.Name, rel.Labels = "default", "web-0", map[string]string{shipper.AppLabel: "web"}
		rel.Spec.Environment.Chart = shipper.Chart{Name: name, Version: "0.0.1", RepoURL: repo.URL}
		rel.Spec.Environment.ValuesFrom = []shipper.ValuesSource{{SecretKeyRef: &shipper.ValuesKeyRef{Name: "hidden"}}}
		got, err := rollout.NewCharts(catalog, ahead{"replicaCount": int64(3)}).Naming(t.Context(), rel, nil)
		if got != want || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
