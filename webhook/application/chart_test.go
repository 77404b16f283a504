// SPDX-License-Identifier: Apache-2.0

package application_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/chart/values"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/response"
)

func TestAReleaseThatNoClusterCanRunIsRefused(t *testing.T) {
	certain := &chart.Error{Reason: shipper.WrongChartDeployments, Message: "it must have exactly one Deployment, but 0 are found"}
	differing := func(app *shipper.Application) {
		app.Spec.Template.ClusterRequirements.Regions[0].Replicas = new(int32(2))
		app.Spec.Template.ValuesPerCluster = []shipper.ValuesFor{{Name: "there", Values: &shipper.ChartValues{"replicaCount": int64(7)}}}
	}
	there := &shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "there"}, Spec: shipper.ClusterSpec{Region: "local"}}
	const invalid = `Application.shipper.booking.com "super-server" is invalid: spec.template.chart: Invalid value: "nginx 0.0.1": `
	const others = "; change the chart or its values, give these clusters others by valuesPerCluster, " +
		"or choose other clusters by clusterRequirements"
	for sentence, tc := range map[string]struct {
		charts  catalog
		user    string
		edit    func(*shipper.Application)
		want    string
		warned  []string
		said    []string
		refused bool
		asked   int
	}{
		"a certain failure": {
			charts: catalog{judgeErr: certain}, user: ask.Developer, asked: 1, refused: true,
			want: invalid + certain.Message,
		},
		"a failure to retry": {charts: catalog{judgeErr: &chart.Error{Retry: true}}, user: ask.Developer, asked: 1},
		"a late result":      {charts: catalog{judgeErr: context.DeadlineExceeded}, user: ask.Developer, asked: 1},
		"a doubt": {
			charts: catalog{doubts: []string{"hm"}}, user: ask.Developer, asked: 1, warned: []string{"hm"},
		},
		"a doubt about a chart that is named by Application is no reason to stop": {
			charts: catalog{doubts: []string{"hm"}, naming: "Application"}, user: ask.Developer, asked: 1, warned: []string{"hm"},
		},
		"a failure of naming that no retry ends": {
			charts: catalog{namingErr: certain}, user: ask.Developer, refused: true, want: invalid + certain.Message,
		},
		"an unknown naming is decided later": {
			charts: catalog{judgeErr: certain, namingErr: context.DeadlineExceeded}, user: ask.Developer,
		},
		"a doubt everywhere is reported once": {
			charts: catalog{doubts: []string{"hm"}}, user: ask.Developer, edit: differing, asked: 2, warned: []string{"hm"},
		},
		"a certain failure everywhere": {
			charts: catalog{judgeErr: certain}, user: ask.Developer, edit: differing, asked: 2, refused: true,
			want: invalid + certain.Message,
		},
		"a Release that a cluster cannot run": {
			charts: catalog{judgeErrIn: map[values.Place]error{{Cluster: "there"}: certain}}, user: ask.Developer, edit: differing, asked: 2,
			refused: true, want: invalid + "in there: " + certain.Message + others,
		},
		"a Release that the other clusters cannot run": {
			charts: catalog{judgeErrIn: map[values.Place]error{{}: certain}}, user: ask.Developer, edit: differing, asked: 2,
			refused: true, want: invalid + "in here: " + certain.Message + others,
		},
		"a Release without clusters, whose values are unknown": {
			charts: catalog{judgeErr: certain}, user: ask.Developer, asked: 1, edit: func(app *shipper.Application) {
				differing(app)
				app.Spec.Template.ClusterRequirements.Regions[0].Name = "mars"
			},
			warned: []string{
				"might not roll out: " + certain.Message,
				`might not roll out: no clusters can be chosen for it as they are now: region "mars" has 0 of the 2 schedulable clusters wanted`,
			},
		},
		"a write of the reconciler": {
			charts: catalog{judgeErr: certain}, user: ask.Reconciler,
		},
		"an Application that is being deleted": {
			charts: catalog{}, user: ask.Developer, asked: 0,
			edit: func(app *shipper.Application) {
				app.DeletionTimestamp, app.Finalizers = &metav1.Time{Time: ask.Clock().Now()}, []string{"x/y"}
			},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			charts := &tc.charts
			charts.found = repository.Resolution{Version: "0.0.1"}
			w := webhookOf(t, ask.Grant(), charts, there)
			app := ask.Application()
			if tc.edit != nil {
				tc.edit(app)
			}
			a := &response.Response{}
			err := w.Validate(t.Context(), ask.Create(tc.user, app), a)
			if (err != nil) != tc.refused || tc.refused && err.Error() != tc.want {
				t.Errorf("it says %v, want %q", err, tc.want)
			}
			if len(charts.judged) != tc.asked {
				t.Errorf("judged %d times, want %d", len(charts.judged), tc.asked)
			}
			for _, text := range tc.said {
				if !slices.Contains(a.Warnings(), text) {
					t.Errorf("warnings %q, want %q", a.Warnings(), text)
				}
			}
			var warned []string
			for _, warning := range a.Warnings() {
				if strings.HasPrefix(warning, shipper.MightNotRollOut) || warning == "hm" {
					warned = append(warned, warning)
				}
			}
			if !slices.Equal(warned, tc.warned) {
				t.Errorf("warnings %q, want %q", warned, tc.warned)
			}
		})
	}
}

// TestAChartIsJudgedForItsClusters: with the version and the APIs of each cluster that the Release would get, once for equal ones, and
// named as its Releases are.
func TestAChartIsJudgedForItsClusters(t *testing.T) {
	cluster := func(name, version string, apis ...string) *shipper.Cluster {
		return &shipper.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: shipper.ClusterSpec{Region: "local"},
			Status: shipper.ClusterStatus{KubernetesVersion: version, APIVersions: apis},
		}
	}
	known := []client.Object{
		cluster("a", "v1.30.0", "x/v1"), cluster("b", "v1.30.0", "x/v1"), cluster("c", "v1.31.0"),
		&shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: shipper.ClusterSpec{Region: "mars"}},
	}
	app := ask.Application()
	app.Spec.Template.ClusterRequirements.Regions[0].Replicas = new(int32(4)) // beside the cluster that package ask has
	byApplication := ask.Release(ask.Application(ask.Version("0.0.2")), nil)
	byApplication.Spec.Environment.Chart.Naming = "Application"
	for sentence, tc := range map[string]struct {
		known []client.Object
		named int
		want  shipper.ChartNaming
	}{
		"the first Release":    {known, 4, "Application"},
		"one of later Release": {append(known, byApplication), 0, "Application"},
	} {
		charts := &catalog{found: repository.Resolution{Version: "0.0.1"}, naming: "Application"}
		err := webhookOf(t, ask.Grant(), charts, tc.known...).Validate(t.Context(), ask.Create(ask.Developer, app), &response.Response{})
		if err != nil {
			t.Fatal(err)
		}
		want := []render.Cluster{
			{KubeVersion: "v1.30.0", APIVersions: []string{"x/v1"}, Object: cluster("a", "v1.30.0", "x/v1")},
			{KubeVersion: "v1.31.0", Object: cluster("c", "v1.31.0")}, {Object: cluster("here", "")},
		}
		if diff := cmp.Diff(want, charts.judged); diff != "" {
			t.Errorf("%s: judged (-want +got):\n%s", sentence, diff)
		}
		if len(charts.namedIn) != tc.named || slices.Compact(charts.namings)[0] != tc.want {
			t.Errorf("%s: named in %v, judged as %q", sentence, charts.namedIn, charts.namings)
		}
	}
}
