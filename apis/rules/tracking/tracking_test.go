// SPDX-License-Identifier: Apache-2.0

package tracking_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/apis/rules/tracking"
)

func TestLabelsOfToolsAreRemoved(t *testing.T) {
	given := map[string]string{
		// Labels that users set, also of domains that end like those of tools.
		"team": "web", "app": "web", "app.kubernetes.io/name": "web", "app.kubernetes.io/part-of": "shop", "app.kubernetes.io/version": "1",
		"instance": "web", "managed-by": "me", "notfluxcd.io/name": "x", "fluxcd.io": "x", "example.com/argocd.argoproj.io": "x",
		"velero.io/exclude-from-backup": "true",
	}
	want := map[string]string{}
	for key, value := range given {
		want[key] = value
	}
	for _, key := range []string{
		"app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "argocd.argoproj.io/instance", "argocd.argoproj.io/secret-type",
		"kustomize.toolkit.fluxcd.io/name", "kustomize.toolkit.fluxcd.io/namespace", "helm.toolkit.fluxcd.io/name", "fluxcd.io/sync-gc-mark",
		"resourceset.fluxcd.controlplane.io/name", "objectset.rio.cattle.io/hash", "fleet.cattle.io/bundle-name",
		"applyset.kubernetes.io/part-of", "kapp.k14s.io/app", "kapp.k14s.io/association", "config.k8s.io/owning-inventory",
		"cli-utils.sigs.k8s.io/inventory-id", "configsync.gke.io/declared-version", "configmanagement.gke.io/system",
		"addonmanager.kubernetes.io/mode", "propagationpolicy.karmada.io/permanent-id", "kluctl.io/discriminator",
		"projectsveltos.io/reference-name", "skaffold.dev/run-id", "tanka.dev/environment", "velero.io/restore-name",
	} {
		given[key] = "it"
	}
	size := len(given)
	if diff := cmp.Diff(want, tracking.Without(given)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(given) != size {
		t.Error("the labels that were given have changed")
	}
	if got := tracking.Without(nil); got != nil {
		t.Errorf("of none: %v", got)
	}
}
