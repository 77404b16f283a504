// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// releaseIn returns a Release of an Application, made in the order of generations.
func releaseIn(namespace, app string, generation int, clusters string, complete bool) shipper.Release {
	rel := shipper.Release{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: fmt.Sprintf("%s-%d", app, generation), Labels: map[string]string{shipper.AppLabel: app},
		CreationTimestamp: metav1.Time{Time: time.Unix(1e9+int64(generation), 0)},
		Annotations: map[string]string{
			shipper.ReleaseGenerationAnnotation: fmt.Sprint(generation), shipper.ReleaseClustersAnnotation: clusters,
		},
	}}
	if complete {
		rel.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseComplete, Status: "True"}}
	}
	return rel
}

func release(app string, generation int, clusters string, complete bool) shipper.Release {
	return releaseIn("shop", app, generation, clusters, complete)
}

func TestListed(t *testing.T) {
	all := func() []shipper.Release {
		strange := releaseIn("shop", "api", 0, "us-1", true)
		delete(strange.Annotations, shipper.ReleaseGenerationAnnotation)
		return []shipper.Release{
			releaseIn("shop", "web", 0, "eu-1", true), releaseIn("shop", "web", 1, "eu-1,us-1", false),
			releaseIn("bank", "web", 0, "", false), strange,
		}
	}
	var (
		bank  = listedRelease{"bank", "web-0", "web", strategy.Contender, []string{}}
		api   = listedRelease{"shop", "api-0", "api", "", []string{"us-1"}}
		newer = listedRelease{"shop", "web-1", "web", strategy.Contender, []string{"eu-1", "us-1"}}
		older = listedRelease{"shop", "web-0", "web", strategy.Incumbent, []string{"eu-1"}}
	)
	for sentence, tc := range map[string]struct {
		clusters []string
		want     []listedRelease
	}{
		"without clusters all are listed, which the original did not": {nil, []listedRelease{bank, api, newer, older}},
		"what is placed there and nowhere else":                       {[]string{"eu-1"}, []listedRelease{older}},
		"what is placed on several of them":                           {[]string{"us-1", " eu-1"}, []listedRelease{api, newer, older}},
		"a cluster where nothing is":                                  {[]string{"eu-10"}, []listedRelease{}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, placedOnlyOn(listReleases(all()), tc.clusters)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
