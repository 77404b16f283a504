// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/response"
)

func TestReleasesOfResources(t *testing.T) {
	placing := ask.Placing(shipper.ResourceSelector{Kind: "ConfigMap", Name: "web"})
	app, without := ask.Application(placing, ask.PinnedTo("a")), ask.Application(placing)
	now, bare := ask.Release(app, nil), ask.Release(without, nil)
	refused := func(rel *shipper.Release, why string) string {
		return `Release.shipper.booking.com "` + rel.Name + `" is invalid: ` + why
	}
	moved := now.DeepCopy()
	moved.Spec.TargetStep = 1
	for sentence, tc := range map[string]row{
		"the reconciler makes one of content": {req: ask.Create(ask.Reconciler, now), known: []client.Object{app}},
		"none is made without content": {
			req: ask.Create(ask.Reconciler, bare), known: []client.Object{without}, decision: response.Invalid,
			message: refused(bare, "spec.environment.pins.resources: Required value: a Release has the digest of its content"),
		},
		"there is no step to go to": {
			req: ask.Update("dev", moved, now), known: []client.Object{app}, decision: response.Invalid,
			message: refused(now, "spec.targetStep: Invalid value: 1: resources have no steps: leave it at 0"),
		},
	} {
		t.Run(sentence, tc.check)
	}
}
