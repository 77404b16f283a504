// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func name(app string, generation int) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: fmt.Sprintf("%s-%d", app, generation)}
}

func TestMakePlan(t *testing.T) {
	going := release("web", 0, "eu-1", false)
	going.DeletionTimestamp = &metav1.Time{}
	going.DeletionTimestamp.Time = going.DeletionTimestamp.AddDate(2026, 0, 0)
	broken := release("web", 0, "eu-1", false)
	delete(broken.Annotations, shipper.ReleaseGenerationAnnotation)
	for sentence, tc := range map[string]struct {
		releases []shipper.Release
		gone     []string
		want     cleanPlan
	}{
		"only what is gone is taken, and only where it is": {
			releases: []shipper.Release{
				release("web", 1, "eu-1,eu-2,us-1", false), release("web", 0, "eu-2", true), release("api", 0, "us-1,eu-1", true),
			},
			gone: []string{"eu-1", "us-1"},
			want: cleanPlan{
				changes: []change{{name("web", 1), "eu-1,eu-2,us-1", "eu-2"}},
				kept:    []kept{{name("api", 0), strategy.Contender}},
			},
		},
		"a name that is the beginning of another's is not that other's": {
			releases: []shipper.Release{release("web", 0, "eu-10,eu-1", true)}, gone: []string{"eu-1"},
			want: cleanPlan{changes: []change{{name("web", 0), "eu-10,eu-1", "eu-10"}}},
		},
		"no Release loses its last cluster, whatever its role": {
			releases: []shipper.Release{
				release("web", 3, "eu-1", false), release("web", 2, "eu-1", false), release("web", 1, "eu-1", true), release("web", 0, "eu-1", true),
			},
			gone: []string{"eu-1"},
			want: cleanPlan{kept: []kept{
				{name("web", 0), strategy.Retired}, {name("web", 1), strategy.Incumbent}, {name("web", 2), strategy.Superseded},
				{name("web", 3), strategy.Contender},
			}},
		},
		"an Application without an incumbent, which the original fell over": {
			releases: []shipper.Release{release("new", 0, "eu-1", false), release("web", 0, "eu-1,eu-2", true)}, gone: []string{"eu-1"},
			want: cleanPlan{
				changes: []change{{name("web", 0), "eu-1,eu-2", "eu-2"}}, kept: []kept{{name("new", 0), strategy.Contender}},
			},
		},
		"a Release whose place in history is not known": {
			releases: []shipper.Release{broken}, gone: []string{"eu-1"}, want: cleanPlan{kept: []kept{{release: name("web", 0)}}},
		},
		"one that goes, and one for which no clusters were chosen, are left alone": {
			releases: []shipper.Release{going, release("api", 0, "", false)}, gone: []string{"eu-1"},
		},
		"a name without a cluster": {
			releases: []shipper.Release{release("web", 0, "eu-1", true)}, gone: []string{"ue-1"}, want: cleanPlan{nowhere: []string{"ue-1"}},
		},
		"blanks between names": {
			releases: []shipper.Release{release("web", 0, "eu-2 , eu-1", true)}, gone: []string{"eu-1"},
			want: cleanPlan{changes: []change{{name("web", 0), "eu-2 , eu-1", "eu-2"}}},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := makePlan(tc.releases, tc.gone)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(cleanPlan{}, change{}, kept{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestOnlyARetiredReleaseHasNoPods(t *testing.T) {
	for part, want := range map[strategy.Role]bool{
		strategy.Contender: true, strategy.Incumbent: true, strategy.Superseded: true, strategy.Retired: false, "": true,
	} {
		if got := (kept{part: part}).live(); got != want {
			t.Errorf("%q: %t", part, got)
		}
	}
}

func TestNamesOf(t *testing.T) {
	got, err := namesOf([]string{" eu-2", "eu-1 ", "", "eu-2"})
	if diff := cmp.Diff([]string{"eu-1", "eu-2"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if got, err := namesOf([]string{" ", ""}); err == nil {
		t.Errorf("no names are %v", got)
	}
}
