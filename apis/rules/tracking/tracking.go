// SPDX-License-Identifier: Apache-2.0

// Package tracking lists the labels by which tools of delivery and backup know the objects that they have written. Such a label is about
// one object: on a copy, the tool takes the copy for its own, reports it as a difference, or prunes it.
package tracking

import (
	"maps"
	"slices"
	"strings"
)

// keys are labels of such tools whose prefix has labels of users, too.
var keys = []string{
	"app.kubernetes.io/instance",   // Argo CD, trackingMethod label: https://argo-cd.readthedocs.io/en/stable/user-guide/resource_tracking/
	"app.kubernetes.io/managed-by", // https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/
	"velero.io/backup-name",        // Velero, on what it restores: https://velero.io/docs/main/restore-reference/
	"velero.io/restore-name",       // the same
}

// domains are the prefixes of labels that only one tool sets; subdomains are meant, too.
var domains = []string{
	"addonmanager.kubernetes.io", // kube-addon-manager prunes by mode: https://github.com/kubernetes/kubernetes/tree/master/cluster/addons
	"applyset.kubernetes.io",     // kubectl apply --prune --applyset: https://github.com/kubernetes/enhancements/issues/3659
	"argocd.argoproj.io",         // Argo CD, with a label key of its own as its documentation recommends: see above
	"cli-utils.sigs.k8s.io",      // kpt and cli-utils: https://github.com/kubernetes-sigs/cli-utils
	"config.k8s.io",              // the same, owning-inventory
	"configmanagement.gke.io",    // Config Sync: https://cloud.google.com/kubernetes-engine/config-sync/docs/reference
	"configsync.gke.io",          // the same
	"fleet.cattle.io",            // Rancher Fleet: https://fleet.rancher.io
	"fluxcd.controlplane.io",     // Flux Operator, of ResourceSets: https://fluxcd.control-plane.io/operator/resourceset/
	"fluxcd.io",                  // Flux: https://fluxcd.io/flux/components/kustomize/kustomizations/, and sync-gc-mark of version 1
	"kapp.k14s.io",               // kapp: https://carvel.dev/kapp/docs/latest/state-namespace/
	"karmada.io",                 // Karmada: https://karmada.io/docs/
	"kluctl.io",                  // Kluctl prunes by discriminator: https://kluctl.io/docs/kluctl/
	"objectset.rio.cattle.io",    // Rancher, k3s and RKE2 prune by hash: https://github.com/rancher/wrangler/tree/master/pkg/apply
	"projectsveltos.io",          // Sveltos: https://projectsveltos.github.io/sveltos/
	"skaffold.dev",               // Skaffold, run-id: https://skaffold.dev/docs/
	"tanka.dev",                  // Tanka prunes by environment: https://tanka.dev/garbage-collection
}

// Is reports whether a label is one of these.
func Is(key string) bool {
	prefix, _, prefixed := strings.Cut(key, "/")
	return slices.Contains(keys, key) || prefixed && slices.ContainsFunc(domains, func(domain string) bool {
		return prefix == domain || strings.HasSuffix(prefix, "."+domain)
	})
}

// Without returns a copy of labels without these; nil stays nil.
func Without(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	maps.DeleteFunc(out, func(key, _ string) bool { return Is(key) })
	return out
}
