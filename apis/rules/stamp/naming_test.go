// SPDX-License-Identifier: Apache-2.0

package stamp_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestLaterReleasesTakeOverTheNaming(t *testing.T) {
	const byRelease, byApplication = shipper.NamingByRelease, shipper.NamingByApplication
	of := func(naming shipper.ChartNaming, generation int, edits ...func(*shipper.Release)) *shipper.Release {
		rel := release(quickStart(), "super-server-1-"+string(rune('0'+generation)), generation, 0)
		rel.Spec.Environment.Chart.Naming = naming
		for _, edit := range edits {
			edit(rel)
		}
		return rel
	}
	deleted := func(rel *shipper.Release) { rel.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
	anothers := func(rel *shipper.Release) { rel.OwnerReferences = owner("another") }
	resources := func(rel *shipper.Release) { rel.Spec.Environment.Resources = &shipper.Resources{} }
	for sentence, tc := range map[string]struct {
		asked     shipper.ChartNaming
		existing  []*shipper.Release
		want      shipper.ChartNaming
		undecided bool
		refused   bool
	}{
		"the first Release needs its chart":         {undecided: true},
		"the first Release follows the template":    {asked: byApplication, want: byApplication},
		"by Release is recorded as in the original": {asked: byRelease, want: ""},
		"Releases of the original are by Release":   {existing: []*shipper.Release{of("", 0)}, want: ""},
		"the newest Release decides": {
			existing: []*shipper.Release{of(byApplication, 1), of("", 0)}, want: byApplication,
		},
		"a Release that is being deleted still has its objects": {
			existing: []*shipper.Release{of(byApplication, 0, deleted)}, want: byApplication,
		},
		"a Release without a generation still has its objects": {existing: []*shipper.Release{of(byApplication, -1)}, want: byApplication},
		"the Release of an earlier Application does not count": {existing: []*shipper.Release{of(byApplication, 0, anothers)}, undecided: true},
		"a Release of resources does not count":                {existing: []*shipper.Release{of("", 0, resources)}, undecided: true},
		"the template may repeat what is recorded":             {asked: byRelease, existing: []*shipper.Release{of("", 0)}, want: ""},
		"the template cannot change it to by Application":      {asked: byApplication, existing: []*shipper.Release{of("", 0)}, refused: true},
		"the template cannot change it from by Application back": {
			asked: byRelease, existing: []*shipper.Release{of(byApplication, 0)}, refused: true,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			app := quickStart()
			app.Spec.Template.Chart.Naming = tc.asked
			app.Spec.Template.Chart.Version = "9.9.9" // another environment than that of the Releases
			if got := stamp.Undecided(app, tc.existing); got != tc.undecided {
				t.Errorf("undecided: %t", got)
			}
			rel, isNew, err := stamp.Next(app, tc.existing)
			if err != nil || tc.refused {
				if (err != nil) != tc.refused {
					t.Fatal(err)
				}
				return
			}
			if got := rel.Spec.Environment.Chart.Naming; got != tc.want || !isNew {
				t.Errorf("%q, new: %t", got, isNew)
			}
		})
	}
}

// TestNamingIsNoChange: what a Release records is no difference from its template, and never part of one.
func TestNamingIsNoChange(t *testing.T) {
	app := quickStart()
	rel := release(app, "super-server-1-0", 0, 0)
	rel.Spec.Environment.Chart.Naming = shipper.NamingByApplication
	for _, asked := range []shipper.ChartNaming{"", shipper.NamingByApplication} {
		app.Spec.Template.Chart.Naming = asked
		if _, isNew, err := stamp.Next(app, []*shipper.Release{rel}); isNew || err != nil {
			t.Errorf("%q: another Release, %v", asked, err)
		}
	}
	if got := stamp.Template(rel.Spec.Environment).Chart.Naming; got != "" {
		t.Errorf("%q is in the template", got)
	}
	was := rel.Spec.Environment.Chart
	if other := was; !was.Same(other.Reference()) || other == (shipper.Chart{}) {
		t.Error("it is another chart")
	}
}
