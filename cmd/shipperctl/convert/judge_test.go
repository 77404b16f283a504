// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"strings"
	"testing"
)

// TestWhatTheWebhookRefusesIsReviewed converts objects that an API server with Shipper would refuse.
func TestWhatTheWebhookRefusesIsReviewed(t *testing.T) {
	template := func(provider string) string {
		return "{apiVersion: argoproj.io/v1alpha1, kind: AnalysisTemplate, metadata: {name: a}, spec: {metrics: [{name: a, " +
			"successCondition: 'result[0] > 1', provider: " + provider + "}]}}"
	}
	for sentence, c := range map[string]struct{ in, want string }{
		"a query that is no PromQL": {template(`{prometheus: {query: "sum(rate(requests[5m])"}}`),
			"Check a: spec.prometheus.queries[result]: is refused: Invalid value: "},
		"a field that no Job has": {template("{job: {spec: {template: {spec: {container: []}}}}}"), "Check a: spec.job: is refused: "},
		"a Job without containers": {template("{job: {spec: {template: {spec: {restartPolicy: Never}}}}}"),
			"Check a: spec.job.template.spec.containers: is refused: Required value: say what the Job runs"},
	} {
		t.Run(sentence, func(t *testing.T) {
			out, err := convert(t.Context(), []byte(c.in), settings{})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(out.reviews(), "\n"); !strings.Contains(got, c.want) {
				t.Errorf("reviews are\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
