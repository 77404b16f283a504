// SPDX-License-Identifier: Apache-2.0

package application_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/response"
)

// joined is a Cluster that is ready. The webhook of webhookOf has one more, here, which is not: it never joined.
func joined(name, region string, taints ...shipper.ClusterTaint) *shipper.Cluster {
	return &shipper.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"env": "prod"}},
		Spec:       shipper.ClusterSpec{Region: region, Taints: taints},
		Status: shipper.ClusterStatus{Conditions: []shipper.Condition{
			{Type: shipper.ClusterJoined, Status: "True"}, {Type: shipper.ClusterReady, Status: "True"},
		}},
	}
}

// placedBy is an Application with a placement, changed by edits.
func placedBy(p shipper.Placement, edits ...func(*shipper.Application)) *shipper.Application {
	return ask.Application(append([]func(*shipper.Application){func(app *shipper.Application) {
		app.Spec.Template.ClusterRequirements = shipper.ClusterRequirements{Placement: &p}
	}}, edits...)...)
}

// withoutHere leaves out of the warnings, and of their lists, the cluster here.
func withoutHere(warnings []string) []string {
	var out []string
	for _, w := range warnings {
		if !strings.HasPrefix(w, "plan: here: ") && !strings.HasPrefix(w, "this makes Release ") {
			out = append(out, w)
		}
	}
	return out
}

func TestPlacementsThatFewClustersFitAreWarnings(t *testing.T) {
	fleet := []client.Object{
		joined("eu-1", "eu"), joined("us-1", "us"), joined("ap-1", "ap", shipper.ClusterTaint{Key: "gpu", Value: "yes"}),
	}
	prod := &shipper.ClusterAffinity{Required: []shipper.ClusterTerm{{LabelSelector: &metav1.LabelSelector{
		MatchLabels: map[string]string{"env": "prod"},
	}}}}
	fixed := func(names ...string) shipper.Placement {
		return shipper.Placement{Type: shipper.PickFixed, Clusters: names}
	}
	perRegion := func(regions ...string) func(*shipper.Application) {
		return func(app *shipper.Application) {
			for _, region := range regions {
				app.Spec.Template.ValuesPerRegion = append(app.Spec.Template.ValuesPerRegion,
					shipper.ValuesFor{Name: region, Values: &shipper.ChartValues{"replicaCount": int64(1)}})
			}
		}
	}
	for sentence, tc := range map[string]struct {
		app    *shipper.Application
		warned []string
	}{
		"enough clusters": {app: placedBy(fixed("eu-1", "us-1"))},
		"a name that no Cluster has": {
			app:    placedBy(fixed("eu-1", "eu-9")),
			warned: []string{`there is no Cluster "eu-9" (did you mean "eu-1"?); it gets this when it joins (ap-1, eu-1, here, us-1 are there)`},
		},
		"only names that no Cluster has": {app: placedBy(fixed("eu-8", "eu-9")), warned: []string{
			`there are no Clusters "eu-8" (did you mean "eu-1"?), "eu-9" (did you mean "eu-1"?); ` +
				`they get this when they join (ap-1, eu-1, here, us-1 are there)`,
			`might not roll out: no clusters fit its placement as they are now`,
		}},
		"values for a region of no cluster that it is placed on": {app: placedBy(fixed("eu-1"), perRegion("eu", "us")), warned: []string{
			"valuesPerRegion has values for us, where it will not run as clusters are now: it is placed on eu-1"}},
		"a property that no Cluster has": {
			app: placedBy(shipper.Placement{Type: shipper.PickN, Count: ptrTo[int32](1), Affinity: &shipper.ClusterAffinity{
				Required: prod.Required, Preferred: []shipper.PreferredClusterTerm{{
					Weight: 1, Sort: &shipper.PropertySort{Property: "csot", Order: shipper.SortAscending},
				}},
			}}),
			warned: []string{"spec.template.clusterRequirements.placement.affinity.preferred[0].sort.property: no Cluster has the property " +
				`"csot": it changes nothing until one has`},
		},
		"all clusters that fit": {app: placedBy(shipper.Placement{Affinity: prod})},
	} {
		t.Run(sentence, func(t *testing.T) {
			hook, a := webhookOf(t, ask.Grant(), exact(), fleet...), &response.Response{}
			if err := hook.Validate(t.Context(), ask.Create(ask.Developer, tc.app), a); err != nil {
				t.Fatal(err)
			}
			got := withoutHere(a.Warnings())
			for i := range got { // why each does not fit is tested with the placement
				if strings.HasPrefix(got[i], shipper.MightNotRollOut) {
					got[i], _, _ = strings.Cut(got[i], " now: ")
					got[i] = strings.TrimSuffix(got[i], " now") + " now"
				}
			}
			if diff := cmp.Diff(tc.warned, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestADryRunSaysWhyClustersAreNotChosen(t *testing.T) {
	gpu := shipper.ClusterTaint{Key: "gpu", Value: "yes"}
	known := []client.Object{joined("eu-1", "eu"), joined("us-1", "us"), joined("ap-1", "ap", gpu), joined("ap-2", "ap", gpu)}
	hook, a, dry := webhookOf(t, ask.Grant(), exact(), known...), &response.Response{}, true
	prod := &shipper.ClusterAffinity{Required: []shipper.ClusterTerm{{Names: []string{"eu-1", "us-1", "ap-1", "ap-2"}}}}
	req := ask.Create(ask.Developer, placedBy(shipper.Placement{Type: shipper.PickN, Count: ptrTo[int32](2), Affinity: prod}))
	req.DryRun = &dry
	if err := hook.Validate(t.Context(), req, a); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"plan: 2 of 2 clusters wanted: eu-1, us-1",
		"plan: ap-1, ap-2 (Tainted): ap-1: tainted gpu=yes:NoSchedule: tolerate it in placement.tolerations",
	}
	got := withoutHere(a.Warnings())
	if len(got) < 3 {
		t.Fatalf("got %q", got)
	}
	if diff := cmp.Diff(want, got[1:3]); diff != "" {
		t.Errorf("the lines after the Release (-want +got):\n%s", diff)
	}
}

// An edit that leaves the placement as it is keeps the clusters of the newest Release, also those that would not be chosen afresh.
func TestAnEditIsPlacedWhereTheNewestReleaseIs(t *testing.T) {
	app := placedBy(shipper.Placement{})
	rel := ask.Release(app, nil, ask.ReleaseAnnotated(shipper.ReleaseClustersAnnotation, "eu-1"))
	hook, a, dry := webhookOf(t, ask.Grant(), exact(), rel, joined("eu-1", "eu", shipper.ClusterTaint{Key: "gpu"})), &response.Response{}, true
	edited := placedBy(shipper.Placement{}, func(app *shipper.Application) {
		app.Spec.Template.Values = &shipper.ChartValues{"replicaCount": int64(4)}
	})
	req := ask.Update(ask.Developer, edited, app)
	req.DryRun = &dry
	if err := hook.Validate(t.Context(), req, a); err != nil {
		t.Fatal(err)
	}
	got := withoutHere(a.Warnings())
	if len(got) < 2 || got[1] != "plan: 1 of 2 clusters: eu-1" {
		t.Errorf("got %q", got)
	}
}

func TestADryRunOfNamedClustersLeavesOutTheOthers(t *testing.T) {
	hook, a, dry := webhookOf(t, ask.Grant(), exact(), joined("eu-1", "eu"), joined("us-1", "us")), &response.Response{}, true
	req := ask.Create(ask.Developer, placedBy(shipper.Placement{Type: shipper.PickFixed, Clusters: []string{"eu-1"}}))
	req.DryRun = &dry
	if err := hook.Validate(t.Context(), req, a); err != nil {
		t.Fatal(err)
	}
	for _, warning := range a.Warnings() {
		if strings.Contains(warning, "us-1") {
			t.Errorf("the plan has %q", warning)
		}
	}
}
