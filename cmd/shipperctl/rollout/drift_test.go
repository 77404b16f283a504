// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestDriftIsShownFieldByField(t *testing.T) {
	at := metav1.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	all := []clusterDrift{{Release: "web-1", Cluster: "eu-1", InstalledDrift: shipper.InstalledDrift{
		Objects: 3, Omitted: 7, Message: `Job "x" cannot be compared: no`,
		Fields: []shipper.DriftedField{
			{Kind: "Service", Name: "web", Field: "spec.ports[0].port", Want: "80", Have: "81", Manager: "kubectl-edit", Since: &at},
			{Kind: "ConfigMap", Name: "web", Field: "data.color", Want: `"blue"`},
			{Kind: "Secret", Name: "web", Field: "data.password", Hidden: true},
		},
	}}}
	want := `eu-1: Service web (release web-1): spec.ports[0].port, written by kubectl-edit at 2026-02-03T04:05:06Z
- 80
+ 81
eu-1: ConfigMap web (release web-1): data.color
- "blue"
+ (not there)
eu-1: Secret web (release web-1): data.password
  (values of Secrets are not shown)
eu-1: 7 more fields of release web-1
eu-1: Job "x" cannot be compared: no
`
	for sentence, tc := range map[string]struct {
		all    []clusterDrift
		policy shipper.DriftPolicy
		want   string
	}{
		"fields, with who wrote them": {all, shipper.DriftReport, want},
		"nothing differs":             {nil, shipper.DriftCorrect, "objects in clusters are as released\n"},
		"drift is ignored":            {nil, shipper.DriftIgnore, "Shipper does not compare objects in clusters: driftPolicy is Ignore\n"},
		"no policy":                   {nil, "", "objects in clusters are as released\n"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, driftText(tc.all, tc.policy)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
