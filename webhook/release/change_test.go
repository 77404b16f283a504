// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/response"
)

func TestWhatBeginsPodsIsJudgedAsAStep(t *testing.T) {
	dns, retreats := ask.Block("global/dns"), ask.Block("global/dns")
	retreats.Spec.Allow = []shipper.RolloutBlockChange{shipper.RolloutBlockRetreat}
	const end = "kubectl annotate rel " + name + " shipper.booking.com/rollout-block.override=global/dns -n default" + needed
	for _, key := range []string{
		shipper.ReleaseHooksRetryAnnotation, shipper.ReleaseTestAnnotation, shipper.ReleaseChecksRetryAnnotation,
	} {
		asks := ask.ReleaseAnnotated(key, "2")
		for sentence, tc := range map[string]row{
			"when nothing blocks": {req: ask.Update("dev", rel(asks), rel())},
			"not under a block": {
				req: ask.Update("dev", rel(asks), rel()), known: []client.Object{dns},
				decision: response.Blocked, message: story + end,
			},
			"not beside a hold": {
				req:   ask.Update("dev", rel(asks, ask.ReleaseAnnotated(shipper.ReleaseHeldByAnnotation, "dev"), held), rel()),
				known: []client.Object{dns}, decision: response.Blocked, message: story + end,
				warned: []string{"nothing moves this Release by itself: hold has no effect"},
			},
			"not beside a retreat that is allowed": {
				req: ask.Update("dev", rel(asks), rel(ask.TargetStep(1))), known: []client.Object{retreats},
				decision: response.Blocked,
				message:  strings.Replace(story, "12m ago", "12m ago; lets pass: Retreat", 1) + end,
			},
			"under a block that is overridden": {
				req:   ask.Update("dev", rel(asks, overriding("global/dns")), rel(overriding("global/dns"))),
				known: []client.Object{dns},
			},
			"under a block, with the value it has": {
				req: ask.Update("dev", rel(asks, ask.ReleaseAnnotated("a", "b")), rel(asks)), known: []client.Object{dns},
			},
		} {
			t.Run(key+" "+sentence, tc.check)
		}
	}
}

func held(r *shipper.Release) { r.Spec.Hold = "lunch" }
