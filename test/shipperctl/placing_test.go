// SPDX-License-Identifier: Apache-2.0

package shipperctl

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// mayNow waits for the answers to questions of `may`: an API server learns of roles a moment after they are written.
func mayNow(t *testing.T, config *rest.Config, want string, questions ...string) {
	t.Helper()
	eventually(t, func() string {
		for _, question := range questions {
			if got := may(t, config, question); got != want {
				return fmt.Sprintf("may it %s? %s, want %s", question, got, want)
			}
		}
		return ""
	})
}

func setupManagementLetsShipperReadWhatIsPlaced(t *testing.T) {
	path, err := fleetOf(t).Management.ServiceAccountKubeconfig(t.Context(), "shipper-system", "shipper-mgmt-cluster")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	creates(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "placed"}})
	questions := []string{"list configmaps in placed", "list secrets in placed", "create secrets in placed"}
	mayNow(t, config, "no", questions...)
	succeeds(t, "setup", "management", "--placements", "placed")
	mayNow(t, config, "yes", questions...)
	mayNow(t, config, "no", "list configmaps in default", "list clusterroles.rbac.authorization.k8s.io", "delete configmaps in placed")
	settle(t, management(t))
	before := versions(t)
	succeeds(t, "setup", "management", "--placements=placed")
	succeeds(t, "setup", "management")
	if got := versions(t); fmt.Sprint(before) != fmt.Sprint(got) {
		t.Error("setting up again has written")
	}
	mayNow(t, config, "yes", questions...)
	fails(t, "objects of namespace kube-system are never placed", "setup", "management", "--placements=kube-system")
	succeeds(t, "setup", "management", "--placements=*")
	mayNow(t, config, "yes", "list configmaps in default", "list clusterroles.rbac.authorization.k8s.io")
	mayNow(t, config, "no", "create secrets in default", "create clusterroles.rbac.authorization.k8s.io")
}

func joinLetsShipperPlaceNamespaces(t *testing.T) {
	config, clusters := as(t, west), file(t, both(t))
	given := []string{"create namespaces", "delete namespaces", "patch resourcequotas in default", "create limitranges in default"}
	never := []string{"create clusterroles.rbac.authorization.k8s.io", "create clusterrolebindings.rbac.authorization.k8s.io",
		"create validatingwebhookconfigurations.admissionregistration.k8s.io", "bind clusterroles.rbac.authorization.k8s.io",
		"update namespaces/finalize"}
	mayNow(t, config, "no", given...)
	out := succeeds(t, "join", "-f", clusters, "--webhook-ignore", "--placements")
	if !strings.Contains(out, "Note: every chart and Envelope of every tenant that may write Applications can now write Namespaces") {
		t.Errorf("it does not say who else has the right:\n%s", out)
	}
	mayNow(t, config, "yes", given...)
	mayNow(t, config, "no", never...)
	succeeds(t, "join", "-f", clusters, "--webhook-ignore")
	mayNow(t, config, "yes", given...)
	succeeds(t, "join", "-f", clusters, "--webhook-ignore", "--placements=false")
	mayNow(t, config, "no", given...)
}
