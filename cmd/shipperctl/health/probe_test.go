// SPDX-License-Identifier: Apache-2.0

package health

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestOnlyARefusalByShippersWebhookProvesThatItAnswers(t *testing.T) {
	cluster := probeObject("Cluster", map[string]any{"region": " "}, "cluster")
	resource := schema.GroupResource{Group: "shipper.booking.com", Resource: "clusters"}
	for sentence, tc := range map[string]struct {
		err  error
		want *ProbeFailure
	}{
		"the webhook refuses": {
			errors.New(`admission webhook "cluster.shipper.booking.com" denied the request: spec.region: Required value`), nil,
		},
		"no refusal": {nil, &ProbeFailure{Kind: "Cluster", Reason: unasked}},
		"another webhook refuses": {
			errors.New(`admission webhook "policy.example.com" denied the request: no`),
			&ProbeFailure{"Cluster", unknownAnswer, `admission webhook "policy.example.com" denied the request: no`},
		},
		"the schema refuses": {errors.New("spec.region: Required value"), &ProbeFailure{"Cluster", unknownAnswer, "spec.region: Required value"}},
		"a policy refuses": {
			errors.New(`ValidatingAdmissionPolicy 'blocks.shipper.booking.com' denied request: blocked`), &ProbeFailure{"Cluster", unasked, ""},
		},
		"no webhook answers": {
			apierrors.NewInternalError(errors.New(`failed calling webhook "cluster.shipper.booking.com": connection refused`)),
			&ProbeFailure{"Cluster", unreachable, `"cluster.shipper.booking.com": connection refused`},
		},
		"the user lacks the right": {
			apierrors.NewForbidden(resource, "x", errors.New(`User "ann" cannot create resource "clusters"`)),
			&ProbeFailure{"Cluster", unauthorized, `clusters.shipper.booking.com "x" is forbidden: User "ann" cannot create resource "clusters"`},
		},
	} {
		if diff := cmp.Diff(tc.want, classify(cluster, tc.err)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", sentence, diff)
		}
	}
}

func TestFailuresAreSummedUpInOneError(t *testing.T) {
	if err := ProbeError(nil); err != nil {
		t.Error(err)
	}
	const want = `the API server cannot call the webhook for Cluster: refused; and 1 more kinds`
	failures := []ProbeFailure{{"Cluster", unreachable, "refused"}, {"Release", unreachable, "refused"}}
	if err := ProbeError(failures); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
