// SPDX-License-Identifier: Apache-2.0

package shipperctl

import (
	"os"
	"path/filepath"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
)

// grantsAreOfNamesForAnotherAccount: Shipper's own account, which every chart uses, gets no right to write.
func grantsAreOfNamesForAnotherAccount(t *testing.T) {
	own, clusters := as(t, west), file(t, both(t))
	granted := rest.CopyConfig(own)
	granted.Impersonate.UserName = "system:serviceaccount:shipper-system:shipper-granted"
	const role, roles = "clusterroles.rbac.authorization.k8s.io/monitoring", "clusterroles.rbac.authorization.k8s.io"
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	text := "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}, rules: [{apiGroups: [''], " +
		"resources: [nodes/metrics], verbs: [get]}]}"
	if err := os.WriteFile(rules, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	grant := []string{"grant", role, "-f", clusters, "--clusters", west, "--rules", rules, "--reason", "a test"}
	succeeds(t, grant...)
	mayNow(t, own, "yes", "impersonate serviceaccounts in shipper-system named shipper-granted")
	mayNow(t, granted, "yes", "patch "+roles+" named monitoring", "create "+roles+" named monitoring", "get nodes/metrics")
	mayNow(t, granted, "no", "patch "+roles+" named other", "create "+roles, "escalate "+roles+" named monitoring",
		"bind "+roles+" named monitoring")
	mayNow(t, own, "yes", "list "+roles)
	mayNow(t, own, "no", "patch "+roles+" named monitoring", "create "+roles+" named monitoring", "get nodes/metrics")
	written := get(t, application(t, west), &rbacv1.ClusterRole{}, "", "shipper:grant:"+roles+":monitoring")
	if written.Annotations["shipper.booking.com/granted-by"] == "" {
		t.Errorf("it does not record who granted: %v", written.Annotations)
	}
	fails(t, "secrets/a: objects of this kind have a namespace",
		"grant", "secrets/a", "-f", clusters, "--clusters", west, "--reason", "a test")
	succeeds(t, "grant", role, "-f", clusters, "--clusters", west, "--remove")
	mayNow(t, granted, "no", "patch "+roles+" named monitoring", "get nodes/metrics")
	mayNow(t, own, "no", "list "+roles)
}
