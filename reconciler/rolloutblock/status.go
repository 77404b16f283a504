// SPDX-License-Identifier: Apache-2.0

package rolloutblock

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rules "shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// status names the objects that override a block: those that name it and that it bears on.
func status(b *shipper.RolloutBlock, by namers, globalNamespace string) shipper.RolloutBlockStatus {
	var applications, releases []types.NamespacedName
	for i := range by.applications {
		if app := &by.applications[i]; rules.Bears(b, app.Namespace, globalNamespace) {
			applications = append(applications, client.ObjectKeyFromObject(app))
		}
	}
	for i := range by.releases {
		if rel := &by.releases[i]; rules.Bears(b, rel.Namespace, globalNamespace) {
			releases = append(releases, client.ObjectKeyFromObject(rel))
		}
	}
	return shipper.RolloutBlockStatus{
		ObservedGeneration: b.Generation,
		Overrides: shipper.RolloutBlockOverrides{
			Application: rules.FormatOverrides(applications),
			Release:     rules.FormatOverrides(releases),
		},
	}
}

// changes are the events that tell who overrides a block now.
func changes(was, is *shipper.RolloutBlock) []report.Event {
	var out []report.Event
	before, after := was.Status.Overrides, is.Status.Overrides
	for _, c := range []struct{ kind, from, to string }{
		{"Applications", before.Application, after.Application},
		{"Releases", before.Release, after.Release},
	} {
		if c.from != c.to {
			out = append(out, report.Event{
				Type: corev1.EventTypeNormal, Reason: "RolloutBlockOverridesChanged", Action: "UpdateStatus",
				Note: fmt.Sprintf("Overriding %s: [%s] -> [%s]", c.kind, c.from, c.to),
			})
		}
	}
	return out
}
