// SPDX-License-Identifier: Apache-2.0

package shipperctl

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// two is a clusters.yaml with both application clusters.
const two = `
applicationClusters:
- name: eu-west-1
  region: eu-west
  apiMaster: API_MASTER
  capabilities: [gpu]
  scheduler:
    weight: 50
- name: us
  context: us-east-1
  region: us-east
  apiMaster: API_MASTER
`

// server returns the address of an application cluster.
func server(t *testing.T, name string) string {
	t.Helper()
	for _, c := range fleetOf(t).Applications {
		if c.Name == name {
			return c.Config.Host
		}
	}
	return ""
}

// both returns the clusters.yaml with the addresses of the clusters.
func both(t *testing.T) string {
	t.Helper()
	text := strings.Replace(two, "API_MASTER", server(t, west), 1)
	return strings.Replace(text, "API_MASTER", server(t, east), 1)
}

func join(t *testing.T) {
	prints(t, `
Creating application cluster accounts in cluster eu-west-1:
Creating a namespace called shipper-system... done
Creating a service account called shipper-app-cluster... done
Creating a ClusterRole called shipper:application-cluster... done
Creating a ClusterRoleBinding called shipper:application-cluster... done
Creating a ClusterRole called shipper:application-cluster-additions... done
Creating a ClusterRoleBinding called shipper:application-cluster-additions... done
Creating a Role called shipper:application-cluster... done
Creating a RoleBinding called shipper:application-cluster... done
Creating a token for the service account shipper-app-cluster... done
Finished creating application cluster accounts in cluster eu-west-1

Joining management cluster to application cluster eu-west-1:
Creating or updating the cluster object for cluster eu-west-1 on the management cluster... done
Checking whether a secret for the eu-west-1 cluster exists in the shipper-system namespace... no. Creating... done
Finished joining management cluster to application cluster eu-west-1

Creating application cluster accounts in cluster us:
Creating a namespace called shipper-system... done
Creating a service account called shipper-app-cluster... done
Creating a ClusterRole called shipper:application-cluster... done
Creating a ClusterRoleBinding called shipper:application-cluster... done
Creating a ClusterRole called shipper:application-cluster-additions... done
Creating a ClusterRoleBinding called shipper:application-cluster-additions... done
Creating a Role called shipper:application-cluster... done
Creating a RoleBinding called shipper:application-cluster... done
Creating a token for the service account shipper-app-cluster... done
Finished creating application cluster accounts in cluster us

Joining management cluster to application cluster us:
Creating or updating the cluster object for cluster us on the management cluster... done
Checking whether a secret for the us cluster exists in the shipper-system namespace... no. Creating... done
Finished joining management cluster to application cluster us

Setting the failurePolicy of the webhooks to Fail... not done: `+
		`the API server admits, without an answer of the webhook: Application; and 6 more kinds
Note: the failurePolicy stays Ignore: writes to Shipper's objects are not judged while the webhook does not answer.
Start Shipper, see what `+"`shipperctl doctor`"+` reports, then run `+"`shipperctl clusters join`"+` again.
`, "join", "-f", file(t, both(t)), "-n", "shipper-system")
	if got := policies(t); got != "[Ignore:true]" {
		t.Errorf("the failurePolicies are %s", got)
	}
	c := management(t)
	list := &shipper.ClusterList{}
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	weight := int32(50)
	want := map[string]shipper.ClusterSpec{
		"eu-west-1": {
			Region: "eu-west", APIMaster: server(t, west), Capabilities: []string{"gpu"},
			Scheduler: shipper.ClusterSchedulerSettings{Weight: &weight},
		},
		"us": {Region: "us-east", APIMaster: server(t, east), Capabilities: []string{}},
	}
	got := map[string]shipper.ClusterSpec{}
	for _, cluster := range list.Items {
		got[cluster.Name] = cluster.Spec
		secret := get(t, c, &corev1.Secret{}, "shipper-system", cluster.Name)
		owner := []metav1.OwnerReference{{
			APIVersion: "shipper.booking.com/v1alpha1", Kind: "Cluster", Name: cluster.Name, UID: cluster.UID}}
		if diff := cmp.Diff(owner, secret.OwnerReferences); diff != "" {
			t.Errorf("the owner of Secret %s (-want +got)\n%s", cluster.Name, diff)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the Clusters (-want +got)\n%s", diff)
	}
}

// joinFailsClosed joins while a webhook answers, which then goes.
func joinFailsClosed(t *testing.T) {
	webhook := certificate(t)
	server := startWebhook(t, webhook)
	defer server.Close()
	address(t, server.URL, webhook["tls.crt"])
	judged(t)
	out := succeeds(t, "join", "-f", file(t, both(t)))
	holds(t, out, "Setting the failurePolicy of the webhooks to Fail... done\n")
	if got := policies(t); got != "[Fail:true]" {
		t.Errorf("the failurePolicies are %s", got)
	}
	address(t, "", nil)
}

// joinAgainWritesNothing shows as well that this works while no webhook answers and the failurePolicy is Fail.
func joinAgainWritesNothing(t *testing.T) {
	before := versions(t)
	out := succeeds(t, "join", "-f", file(t, both(t)))
	if diff := cmp.Diff(before, versions(t)); diff != "" {
		t.Errorf("the second run has written\n%s", diff)
	}
	for _, line := range []string{
		"Creating a service account called shipper-app-cluster... already exists. Skipping",
		"Creating a token for the service account shipper-app-cluster... already exists. Skipping",
		"Creating or updating the cluster object for cluster us on the management cluster... already exists. Skipping",
		"Checking whether a secret for the us cluster exists in the shipper-system namespace... yes. Skipping",
		"Setting the failurePolicy of the webhooks to Fail... already so. Skipping",
	} {
		if !strings.Contains(out, line+"\n") {
			t.Errorf("the output has no line\n%s\nbut\n%s", line, out)
		}
	}
}

func setupAfterJoinKeepsThePolicy(t *testing.T) {
	succeeds(t, "setup", "management")
	if got := policies(t); got != "[Fail:true]" {
		t.Errorf("the failurePolicies are %s", got)
	}
}

func joinWithChangedFields(t *testing.T) {
	changed := file(t, `
managementClusters:
- name: mgmt
applicationClusters:
- name: eu-west-1
  region: eu-central
  scheduler:
    unschedulable: true
`)
	fails(t, "The webhook does not answer, and its failurePolicy is Fail.", "join", "-f", changed)
	out := succeeds(t, "join", "-f", changed, "--webhook-ignore")
	note := "Note: " + server(t, west) + " is an address of this machine only; set apiMaster to one that Shipper can reach\n"
	if !strings.Contains(out, note) {
		t.Errorf("nothing is said about the address in\n%s", out)
	}
	cluster := get(t, management(t), &shipper.Cluster{}, "", west)
	want := shipper.ClusterSpec{
		Region: "eu-central", APIMaster: server(t, west), Capabilities: []string{},
		Scheduler: shipper.ClusterSchedulerSettings{Unschedulable: true},
	}
	if diff := cmp.Diff(want, cluster.Spec); diff != "" {
		t.Errorf("the Cluster (-want +got)\n%s", diff)
	}
	if got := policies(t); got != "[Ignore:true]" {
		t.Errorf("the failurePolicies are %s", got)
	}
}

func joinOneAndTheSame(t *testing.T) {
	path := file(t, "applicationClusters:\n- {name: mgmt, region: local}\n")
	succeeds(t, "join", "-f", path, "--webhook-ignore")
	c := connect(t, as(t, "mgmt"))
	pods := &corev1.PodList{}
	if err := c.List(t.Context(), pods); err != nil {
		t.Errorf("the account cannot list pods: %v", err)
	}
	before := versions(t)
	succeeds(t, "join", "-f", path, "--webhook-ignore")
	succeeds(t, "setup", "management")
	if diff := cmp.Diff(before, versions(t)); diff != "" {
		t.Errorf("the second run has written\n%s", diff)
	}
}

func joinRenewsTheTokenOfANewAccount(t *testing.T) {
	c, app := management(t), application(t, west)
	path := file(t, both(t))
	before := get(t, c, &corev1.Secret{}, "shipper-system", west).Data["token"]
	account := get(t, app, &corev1.ServiceAccount{}, "shipper-system", "shipper-app-cluster")
	if err := app.Delete(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	out := succeeds(t, "join", "-f", path, "--webhook-ignore")
	after := get(t, c, &corev1.Secret{}, "shipper-system", west).Data["token"]
	if bytes.Equal(before, after) {
		t.Errorf("the token is still the one of the account that is gone:\n%s", out)
	}
	if err := connect(t, as(t, west)).List(t.Context(), &corev1.PodList{}); err != nil {
		t.Errorf("the new token: %v", err)
	}
}

func joinKeepsAClientCertificate(t *testing.T) {
	c := management(t)
	secret := get(t, c, &corev1.Secret{}, "shipper-system", "us")
	secret.Data = map[string][]byte{"tls.crt": []byte("c"), "tls.key": []byte("k"), "tls.ca": []byte("a")}
	if err := c.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	before := versions(t)
	out := succeeds(t, "join", "-f", file(t, both(t)), "--webhook-ignore")
	if !strings.Contains(out, "yes, with a client certificate. Skipping\n") {
		t.Errorf("the output is\n%s", out)
	}
	if diff := cmp.Diff(before, versions(t)); diff != "" {
		t.Errorf("it has written\n%s", diff)
	}
}

func joinReportsWhatIsWrong(t *testing.T) {
	fails(t, "no such file", "join", "-f", "nowhere.yaml")
	fails(t, "clusters.yaml:2: application cluster \"a\" needs a region", "join", "-f",
		file(t, "applicationClusters:\n- {name: a}\n"))
	fails(t, `cluster a: there is no context "a" in the kubeconfig, only: eu-west-1, mgmt, us-east-1`, "join", "-f",
		file(t, "applicationClusters:\n- {name: a, region: r}\n- {name: eu-west-1, region: r}\n"))
	fails(t, "cluster shipper-webhook-cert cannot have this name", "join", "-f",
		file(t, "applicationClusters:\n- {name: shipper-webhook-cert, context: mgmt, region: r}\n"))
	fails(t, "the cluster put no token into the Secret elsewhere/shipper-app-cluster-token within 1ms", "join", "-n", "elsewhere",
		"--token-lifetime", "0", "--timeout", "1ms", "-f", file(t, "applicationClusters:\n- {name: eu-west-1, region: r}\n"))
	fails(t, "API servers let tokens live for 10m0s at least", "join", "--token-lifetime", "9m", "-f", file(t, both(t)))
	fails(t, "there is no namespace nowhere for the credentials", "join", "-n", "nowhere", "-f",
		file(t, "applicationClusters:\n- {name: eu-west-1, region: r}\n"))
}

// joinFromTwoPlaces joins a cluster a second time under another name, as another management cluster may do.
func joinFromTwoPlaces(t *testing.T) {
	succeeds(t, "join", "-n", "elsewhere", "--application-cluster-service-account", "second", "--webhook-ignore", "-f",
		file(t, "applicationClusters:\n- {name: west-again, context: eu-west-1, region: eu-west}\n"))
	binding := get(t, application(t, west), &rbacv1.ClusterRoleBinding{}, "", "shipper:application-cluster")
	want := []rbacv1.Subject{
		{Kind: "ServiceAccount", Name: "shipper-app-cluster", Namespace: "shipper-system"},
		{Kind: "ServiceAccount", Name: "shipper-app-cluster", Namespace: "elsewhere"},
		{Kind: "ServiceAccount", Name: "second", Namespace: "elsewhere"},
	}
	if diff := cmp.Diff(want, binding.Subjects); diff != "" {
		t.Errorf("the accounts (-want +got)\n%s", diff)
	}
}
