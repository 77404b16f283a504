// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

func at() *options {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	return &options{clock: testingclock.NewFakePassiveClock(now), unhealthyAfter: 5 * time.Minute}
}

func cluster(name, region string, taints ...shipper.ClusterTaint) shipper.Cluster {
	return shipper.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: shipper.ClusterSpec{Region: region, Taints: taints},
		Status: shipper.ClusterStatus{Conditions: []shipper.Condition{
			{Type: shipper.ClusterJoined, Status: "True"}, {Type: shipper.ClusterReady, Status: "True"},
		}},
	}
}

// web is an Application with these requirements, and its Release, if it has clusters.
func web(r shipper.ClusterRequirements, clusters string) (*shipper.Application, []*shipper.Release) {
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web"}}
	app.Spec.Template.ClusterRequirements = r
	if clusters == "" {
		return app, nil
	}
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-1", Labels: map[string]string{shipper.AppLabel: "web"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: shipper.GroupVersion.String(), Kind: "Application", Name: "web", UID: "web"}},
		Annotations: map[string]string{
			shipper.ReleaseClustersAnnotation: clusters, shipper.ReleaseGenerationAnnotation: "0", shipper.ReleaseTemplateIterationAnnotation: "0",
		},
	}}
	rel.Spec.Environment.ClusterRequirements = r
	return app, []*shipper.Release{rel}
}

func TestEachClusterIsExplained(t *testing.T) {
	fleet := []shipper.Cluster{
		cluster("us-1", "us"), cluster("eu-1", "eu"), cluster("ap-1", "ap", shipper.ClusterTaint{Key: "gpu", Value: "yes"}),
	}
	all := shipper.ClusterRequirements{Placement: &shipper.Placement{Type: shipper.PickAll}}
	regions := func(names ...string) (out shipper.ClusterRequirements) {
		for _, name := range names {
			out.Regions = append(out.Regions, shipper.RegionRequirement{Name: name})
		}
		return out
	}
	const tainted = "tainted gpu=yes:NoSchedule: tolerate it in placement.tolerations"
	for sentence, tc := range map[string]struct {
		requirements shipper.ClusterRequirements
		placed       string
		want         explained
		text         string
	}{
		"a placement that has no Release": {
			requirements: all,
			want: explained{Namespace: "shop", Application: "web", Wanted: 2, Chosen: 2, Clusters: []verdict{
				{Name: "ap-1", Region: "ap", Reason: shipper.PlacementTainted, Message: tainted},
				{Name: "eu-1", Region: "eu", Chosen: true, Reason: shipper.PlacementPicked},
				{Name: "us-1", Region: "us", Chosen: true, Reason: shipper.PlacementPicked},
			}},
			text: `application shop/web: 2 of 2 clusters wanted
CLUSTER   REGION   CHOSEN   REASON    WHY
eu-1      eu       yes      Picked
us-1      us       yes      Picked
ap-1      ap       no       Tainted   ` + tainted + "\n",
		},
		"a placement whose newest Release has clusters": {
			requirements: all, placed: "ap-1,eu-1",
			want: explained{Namespace: "shop", Application: "web", Release: "web-1", Current: []string{"ap-1", "eu-1"},
				Wanted: 3, Chosen: 3, Clusters: []verdict{
					{Name: "ap-1", Region: "ap", Chosen: true, Reason: shipper.PlacementKept},
					{Name: "eu-1", Region: "eu", Chosen: true, Reason: shipper.PlacementKept},
					{Name: "us-1", Region: "us", Chosen: true, Reason: shipper.PlacementPicked},
				}},
			text: `application shop/web: 3 of 3 clusters wanted; Release web-1 is on ap-1, eu-1
CLUSTER   REGION   CHOSEN   REASON
ap-1      ap       yes      Kept
eu-1      eu       yes      Kept
us-1      us       yes      Picked
`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			app, releases := web(tc.requirements, tc.placed)
			got := at().judge(app, releases, fleet)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.text, text([]explained{got}, 0)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	app, releases := web(regions("eu", "mars"), "")
	got := at().judge(app, releases, fleet)
	const few = `region "mars" has 0 of the 1 schedulable clusters wanted`
	if got.Problem != few || got.Chosen != 0 || len(got.Clusters) != 3 {
		t.Errorf("regions without clusters: got %+v", got)
	}
	app, releases = web(regions("eu"), "")
	if got := at().judge(app, releases, fleet); got.Problem != "" || got.Chosen != 1 || len(got.Clusters) != 3 {
		t.Errorf("regions: got %+v", got)
	}
}

func TestScoresAreShownWhereThereAreSome(t *testing.T) {
	e := explained{Namespace: "shop", Application: "web", Wanted: 2, Chosen: 1, Problem: "1 of 2 clusters: there are no others",
		Clusters: []verdict{
			{Name: "eu-1", Region: "eu", Reason: shipper.PlacementOutranked, Message: "others rank higher", AffinityScore: -3},
			{Name: "us-1", Region: "us", Chosen: true, Reason: shipper.PlacementPicked, AffinityScore: 20, SpreadScore: -1000},
			{Name: "us-9", Reason: shipper.PlacementNotJoined, Message: "there is no such Cluster"},
		}}
	const want = `application shop/web: 1 of 2 clusters wanted
  ! 1 of 2 clusters: there are no others
CLUSTER   REGION   CHOSEN   REASON      AFFINITY   SPREAD   WHY
us-1      us       yes      Picked      20         -1000
eu-1      eu       no       Outranked   -3                  others rank higher
us-9      -        no       NotJoined                       there is no such Cluster
`
	if diff := cmp.Diff(want, text([]explained{e}, 0)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A manifest is explained next to the Releases of the Application of its name, an Application by its own template.
func TestManifestsAreExplainedBesideTheNewestRelease(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := shipper.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	named := func(names ...string) shipper.ClusterRequirements {
		return shipper.ClusterRequirements{Placement: &shipper.Placement{Type: shipper.PickFixed, Clusters: names}}
	}
	eu, us := cluster("eu-1", "eu"), cluster("us-1", "us")
	app, releases := web(named("eu-1"), "eu-1")
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(app, releases[0], &eu, &us).Build()
	other, _ := web(named("us-1"), "")
	stranger, _ := web(named("us-1"), "")
	stranger.Name = "stranger"
	chosen := func(apps []*shipper.Application, given bool) (out []string) {
		found, err := at().explain(t.Context(), c, apps, given)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range found {
			line := e.Application + " " + e.Release + ":"
			for _, v := range e.Clusters {
				if v.Chosen {
					line += " " + v.Name + " " + string(v.Reason)
				}
			}
			out = append(out, line)
		}
		return out
	}
	got := append(chosen([]*shipper.Application{other}, false), chosen([]*shipper.Application{other, stranger}, true)...)
	want := []string{"web web-1: eu-1 Kept", "web web-1: us-1 Picked", "stranger : us-1 Picked"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := at().explain(t.Context(), c, []*shipper.Application{stranger}, false); err == nil {
		t.Error("an Application that is not there is explained")
	}
}

func TestManifestsThatWouldBeRefusedAreNotExplained(t *testing.T) {
	const head = "apiVersion: shipper.booking.com/v1alpha1\nkind: Application\nmetadata: {name: web}\nspec:\n  template:\n" +
		"    clusterRequirements: "
	for requirements, want := range map[string]string{
		"{regions: [{name: eu}]}": "",
		"{placement: {}}":         "",
		"{}": "clusterRequirements.regions: Required value: name at least one region to run in, " +
			"or give a placement",
		"{regions: [{name: eu}], placement: {}}": "give regions or a placement, not both",
		"{placement: {kind: PickAll}}":           `unknown field "spec.template.clusterRequirements.placement.kind"`,
	} {
		apps, err := readApplications(strings.NewReader(head+requirements), "-", "shop")
		switch {
		case want == "" && (err != nil || len(apps) != 1 || apps[0].Namespace != "shop"):
			t.Errorf("%s: got %v, %v", requirements, apps, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || cli.ExitCode(err) != int(cli.Refused)):
			t.Errorf("%s: got %v, want %s", requirements, err, want)
		}
	}
	if _, err := readApplications(strings.NewReader("a: b"), "-", "shop"); err == nil || errors.Unwrap(err) != nil {
		t.Errorf("a manifest of nothing: got %v", err)
	}
}
