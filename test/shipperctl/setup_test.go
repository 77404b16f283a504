// SPDX-License-Identifier: Apache-2.0

package shipperctl

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/root"
)

const url = "https://localhost:9443"

// beforeSetup runs first: nothing is set up.
func beforeSetup(t *testing.T) {
	before := versions(t)
	path := file(t, "applicationClusters:\n- {name: eu-west-1, region: eu-west}\n")
	fails(t, "run `shipperctl clusters setup management` first", "join", "-f", path)
	if diff := cmp.Diff(before, versions(t)); diff != "" {
		t.Errorf("a join that cannot work has written\n%s", diff)
	}
	fails(t, `there is no context "elsewhere" in the kubeconfig, only: `, "setup", "management",
		"--management-cluster-context", "elsewhere")
	fails(t, "API servers need one like https://host:port", "setup", "management", "--webhook-url", "localhost:9443")
}

func setupManagement(t *testing.T) {
	prints(t, `
Setting up management cluster:
Registering or updating custom resource definitions... done
Creating a namespace called shipper-system... done
Creating a namespace called rollout-blocks-global... done
Creating a service account called shipper-mgmt-cluster... done
Creating a ClusterRole called shipper:management-cluster... done
Creating a ClusterRoleBinding called shipper:management-cluster... done
Creating a Role called shipper:management-cluster... done
Creating a RoleBinding called shipper:management-cluster... done
Creating a ClusterRole called shipper:view... done
Creating a ClusterRole called shipper:view-clusters... done
Creating a ClusterRole called shipper:edit... done
Creating a ClusterRole called shipper:shipyard-admin... done
Creating a ClusterRole called shipper-namespace-reader... done
Creating a ClusterRole called shipper-values-keeper... done
Creating a ClusterRole called shipper-selector... done
Creating a ClusterRole called shipper-runner-impersonator... done
Creating a ClusterRole called shipper:runner... done
Creating a ClusterRole called shipper:promoter... done
Creating a ClusterRole called shipper:sre... done
Creating a ClusterRole called shipper:approver... done
Creating a Role called shipper:global-blocks... done
Creating a RoleBinding called shipper:global-blocks... done
Checking if a secret already exists for the validating webhook in the shipper-system namespace... no. Creating... done
Creating a ValidatingAdmissionPolicy called approvals.shipper.booking.com... done
Creating a ValidatingAdmissionPolicyBinding called approvals.shipper.booking.com... done
Creating a ValidatingAdmissionPolicy called blocks.shipper.booking.com... done
Creating a ValidatingAdmissionPolicyBinding called blocks.shipper.booking.com... done
Creating a ValidatingAdmissionPolicyBinding called global-blocks.shipper.booking.com... done
Creating a ValidatingAdmissionPolicy called clusters.shipper.booking.com... done
Creating a ValidatingAdmissionPolicyBinding called clusters.shipper.booking.com... done
Creating a ValidatingAdmissionPolicy called control.shipper.booking.com... done
Creating a ValidatingAdmissionPolicyBinding called control.shipper.booking.com... done
Creating a ValidatingAdmissionPolicy called credentials.shipper.booking.com... done
Creating a ValidatingAdmissionPolicyBinding called credentials.shipper.booking.com... done
Creating a ValidatingAdmissionPolicy called definitions.shipper.booking.com... done
Creating a ValidatingAdmissionPolicyBinding called definitions.shipper.booking.com... done
Creating a ValidatingAdmissionPolicy called envelopes.shipper.booking.com... done
Creating a ValidatingAdmissionPolicyBinding called envelopes.shipper.booking.com... done
Creating a ValidatingAdmissionPolicy called overrides.shipper.booking.com... done
Creating a ValidatingAdmissionPolicyBinding called overrides.shipper.booking.com... done
Creating a ValidatingAdmissionPolicy called owners.shipper.booking.com... done
Creating a ValidatingAdmissionPolicyBinding called owners.shipper.booking.com... done
Creating a ValidatingAdmissionPolicy called resources.shipper.booking.com... done
Creating a ValidatingAdmissionPolicyBinding called resources.shipper.booking.com... done
Creating a ValidatingAdmissionPolicy called secrets.shipper.booking.com... done
Creating a ValidatingAdmissionPolicyBinding called secrets.shipper.booking.com... done
Creating a ValidatingAdmissionPolicy called sequenceruns.shipper.booking.com... done
Creating a ValidatingAdmissionPolicyBinding called sequenceruns.shipper.booking.com... done
Creating a PriorityLevelConfiguration called shipper... done
Creating a FlowSchema called shipper... done
Creating a FlowSchema called shipper-access-reviews... done
Creating a FlowSchema called shipper-leader-election... done
Creating the ValidatingWebhookConfiguration in shipper-system namespace... done
Creating the MutatingWebhookConfiguration in shipper-system namespace... done
Creating a Service object for the validating webhook... done
Finished setting up management cluster
`, "setup", "management", "-n", "shipper-system")
	if got := policies(t); got != "[Ignore:true]" {
		t.Errorf("the failurePolicies are %s", got)
	}
	deployments := &appsv1.DeploymentList{}
	if err := management(t).List(t.Context(), deployments); err != nil || len(deployments.Items) > 0 {
		t.Errorf("who deploys Shipper is another: %v, %v", deployments.Items, err)
	}
	kinds := &shipper.ApplicationList{}
	if err := management(t).List(t.Context(), kinds); err != nil {
		t.Errorf("the kinds are not served: %v", err)
	}
}

func setupManagementAgainWritesNothing(t *testing.T) {
	settle(t, management(t))
	before := versions(t)
	prints(t, `
Setting up management cluster:
Registering or updating custom resource definitions... already exist. Skipping
Creating a namespace called shipper-system... already exists. Skipping
Creating a namespace called rollout-blocks-global... already exists. Skipping
Creating a service account called shipper-mgmt-cluster... already exists. Skipping
Creating a ClusterRole called shipper:management-cluster... already exists. Skipping
Creating a ClusterRoleBinding called shipper:management-cluster... already exists. Skipping
Creating a Role called shipper:management-cluster... already exists. Skipping
Creating a RoleBinding called shipper:management-cluster... already exists. Skipping
Creating a ClusterRole called shipper:view... already exists. Skipping
Creating a ClusterRole called shipper:view-clusters... already exists. Skipping
Creating a ClusterRole called shipper:edit... already exists. Skipping
Creating a ClusterRole called shipper:shipyard-admin... already exists. Skipping
Creating a ClusterRole called shipper-namespace-reader... already exists. Skipping
Creating a ClusterRole called shipper-values-keeper... already exists. Skipping
Creating a ClusterRole called shipper-selector... already exists. Skipping
Creating a ClusterRole called shipper-runner-impersonator... already exists. Skipping
Creating a ClusterRole called shipper:runner... already exists. Skipping
Creating a ClusterRole called shipper:promoter... already exists. Skipping
Creating a ClusterRole called shipper:sre... already exists. Skipping
Creating a ClusterRole called shipper:approver... already exists. Skipping
Creating a Role called shipper:global-blocks... already exists. Skipping
Creating a RoleBinding called shipper:global-blocks... already exists. Skipping
Checking if a secret already exists for the validating webhook in the shipper-system namespace... yes. Skipping
Creating a ValidatingAdmissionPolicy called approvals.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicyBinding called approvals.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicy called blocks.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicyBinding called blocks.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicyBinding called global-blocks.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicy called clusters.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicyBinding called clusters.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicy called control.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicyBinding called control.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicy called credentials.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicyBinding called credentials.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicy called definitions.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicyBinding called definitions.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicy called envelopes.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicyBinding called envelopes.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicy called overrides.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicyBinding called overrides.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicy called owners.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicyBinding called owners.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicy called resources.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicyBinding called resources.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicy called secrets.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicyBinding called secrets.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicy called sequenceruns.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicyBinding called sequenceruns.shipper.booking.com... already exists. Skipping
Creating a PriorityLevelConfiguration called shipper... already exists. Skipping
Creating a FlowSchema called shipper... already exists. Skipping
Creating a FlowSchema called shipper-access-reviews... already exists. Skipping
Creating a FlowSchema called shipper-leader-election... already exists. Skipping
Creating the ValidatingWebhookConfiguration in shipper-system namespace... already exists. Skipping
Creating the MutatingWebhookConfiguration in shipper-system namespace... already exists. Skipping
Creating a Service object for the validating webhook... already exists. Skipping
Finished setting up management cluster
`, "setup", "management")
	if diff := cmp.Diff(before, versions(t)); diff != "" {
		t.Errorf("the second run has written\n%s", diff)
	}
}

// setupManagementOfAnotherContext uses a kubeconfig whose current context is an application cluster.
func setupManagementOfAnotherContext(t *testing.T) {
	config, err := clientcmd.LoadFromFile(fleetOf(t).Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.CurrentContext = west
	path := filepath.Join(t.TempDir(), "config")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	before := versions(t)
	var out bytes.Buffer
	cmd := root.NewCommand(&out)
	cmd.SetArgs([]string{"clusters", "setup", "management", "--kube-config", path, "--management-cluster-context", "mgmt"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if !strings.Contains(out.String(), "Creating a service account called shipper-mgmt-cluster... already exists. Skipping\n") {
		t.Errorf("it was not the management cluster that was set up:\n%s", out.String())
	}
	if diff := cmp.Diff(before, versions(t)); diff != "" {
		t.Errorf("it has written\n%s", diff)
	}
}

func setupManagementBringsRightsUpToDate(t *testing.T) {
	c := management(t)
	role := get(t, c, &rbacv1.ClusterRole{}, "", "shipper:management-cluster")
	want := role.DeepCopy().Rules
	role.Rules = append(role.Rules[1:], rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}})
	if err := c.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	// Before 0.10 the original bound its accounts to cluster-admin under this name.
	binding := get(t, c, &rbacv1.ClusterRoleBinding{}, "", "shipper:management-cluster")
	if err := c.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	binding.ObjectMeta = metav1.ObjectMeta{Name: binding.Name}
	binding.RoleRef.Name = "cluster-admin"
	if err := c.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	prints(t, `
Setting up management cluster:
Registering or updating custom resource definitions... already exist. Skipping
Creating a namespace called shipper-system... already exists. Skipping
Creating a namespace called rollout-blocks-global... already exists. Skipping
Creating a service account called shipper-mgmt-cluster... already exists. Skipping
Creating a ClusterRole called shipper:management-cluster... already exists. Updating... done
Creating a ClusterRoleBinding called shipper:management-cluster... already exists. Updating... done
Creating a Role called shipper:management-cluster... already exists. Skipping
Creating a RoleBinding called shipper:management-cluster... already exists. Skipping
Creating a ClusterRole called shipper:view... already exists. Skipping
Creating a ClusterRole called shipper:view-clusters... already exists. Skipping
Creating a ClusterRole called shipper:edit... already exists. Skipping
Creating a ClusterRole called shipper:shipyard-admin... already exists. Skipping
Creating a ClusterRole called shipper-namespace-reader... already exists. Skipping
Creating a ClusterRole called shipper-values-keeper... already exists. Skipping
Creating a ClusterRole called shipper-selector... already exists. Skipping
Creating a ClusterRole called shipper-runner-impersonator... already exists. Skipping
Creating a ClusterRole called shipper:runner... already exists. Skipping
Creating a ClusterRole called shipper:promoter... already exists. Skipping
Creating a ClusterRole called shipper:sre... already exists. Skipping
Creating a ClusterRole called shipper:approver... already exists. Skipping
Creating a Role called shipper:global-blocks... already exists. Skipping
Creating a RoleBinding called shipper:global-blocks... already exists. Skipping
Checking if a secret already exists for the validating webhook in the shipper-system namespace... yes. Skipping
Creating a ValidatingAdmissionPolicy called approvals.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicyBinding called approvals.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicy called blocks.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicyBinding called blocks.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicyBinding called global-blocks.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicy called clusters.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicyBinding called clusters.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicy called control.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicyBinding called control.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicy called credentials.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicyBinding called credentials.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicy called definitions.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicyBinding called definitions.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicy called envelopes.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicyBinding called envelopes.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicy called overrides.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicyBinding called overrides.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicy called owners.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicyBinding called owners.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicy called resources.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicyBinding called resources.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicy called secrets.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicyBinding called secrets.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicy called sequenceruns.shipper.booking.com... already exists. Skipping
Creating a ValidatingAdmissionPolicyBinding called sequenceruns.shipper.booking.com... already exists. Skipping
Creating a PriorityLevelConfiguration called shipper... already exists. Skipping
Creating a FlowSchema called shipper... already exists. Skipping
Creating a FlowSchema called shipper-access-reviews... already exists. Skipping
Creating a FlowSchema called shipper-leader-election... already exists. Skipping
Creating the ValidatingWebhookConfiguration in shipper-system namespace... already exists. Skipping
Creating the MutatingWebhookConfiguration in shipper-system namespace... already exists. Skipping
Creating a Service object for the validating webhook... already exists. Skipping
Finished setting up management cluster
`, "setup", "management")
	role = get(t, c, &rbacv1.ClusterRole{}, "", "shipper:management-cluster")
	if diff := cmp.Diff(want, role.Rules); diff != "" {
		t.Errorf("the rules (-want +got)\n%s", diff)
	}
	binding = get(t, c, &rbacv1.ClusterRoleBinding{}, "", "shipper:management-cluster")
	if binding.RoleRef.Name != "shipper:management-cluster" {
		t.Errorf("the account is bound to %s", binding.RoleRef.Name)
	}
}

func setupManagementKeepsTheAuthorityOfTheWebhooks(t *testing.T) {
	c := management(t)
	ca := bundle(t)
	hooks := get(t, c, &admissionregistrationv1.ValidatingWebhookConfiguration{}, "", shipper.GroupName)
	for i := range hooks.Webhooks {
		hooks.Webhooks[i].ClientConfig.CABundle = ca
	}
	if err := c.Update(t.Context(), hooks); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		args []string
		url  bool
	}{
		{[]string{"setup", "management", "--webhook-url", url}, true},
		{[]string{"setup", "management"}, true},
		{[]string{"setup", "management", "--webhook-ignore"}, true},
		{[]string{"setup", "management", "--webhook-url", ""}, false},
	} {
		succeeds(t, step.args...)
		hooks = get(t, c, &admissionregistrationv1.ValidatingWebhookConfiguration{}, "", shipper.GroupName)
		for _, w := range hooks.Webhooks {
			if diff := cmp.Diff(string(ca), string(w.ClientConfig.CABundle)); diff != "" {
				t.Errorf("%v: the CA bundle of %s (-want +got)\n%s", step.args, w.Name, diff)
			}
			byURL, byService := w.ClientConfig.URL != nil, w.ClientConfig.Service != nil
			if byURL != step.url || byService == step.url {
				t.Errorf("%v: %s has %+v", step.args, w.Name, w.ClientConfig)
			}
		}
	}
}

func setupManagementElsewhere(t *testing.T) {
	c := management(t)
	out := succeeds(t, "setup", "management", "--shipper-system-namespace", "elsewhere", "-g", "no-rollouts",
		"--management-cluster-service-account", "shippy", "--webhook-url", url)
	t.Log(out)
	get(t, c, &corev1.Namespace{}, "", "no-rollouts")
	get(t, c, &corev1.ServiceAccount{}, "elsewhere", "shippy")
	binding := get(t, c, &rbacv1.ClusterRoleBinding{}, "", "shipper:management-cluster")
	want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "shippy", Namespace: "elsewhere"}}
	if diff := cmp.Diff(want, binding.Subjects); diff != "" {
		t.Errorf("the account with the rights (-want +got)\n%s", diff)
	}
	err := c.Get(t.Context(), client.ObjectKey{Namespace: "elsewhere", Name: "shipper-webhook"}, &corev1.Service{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("a Service for a webhook outside of the cluster: %v", err)
	}
	doctorElsewhere(t)
	setupKeepsTheInstallation(t)
	succeeds(t, "setup", "management", "--namespace", "shipper-system", "--management-cluster-service-account", "shipper-mgmt-cluster",
		"-g", "rollout-blocks-global", "--webhook-url", "")
}

// setupKeepsTheInstallation runs setup without flags over an installation that was made with all of them.
func setupKeepsTheInstallation(t *testing.T) {
	t.Helper()
	settle(t, management(t))
	before := versions(t)
	out := succeeds(t, "setup", "management")
	holds(t, out, "Keeping the settings of the installation: -n elsewhere --management-cluster-service-account shippy -g no-rollouts "+
		"--webhook-url "+url+"\n")
	if diff := cmp.Diff(before, versions(t)); diff != "" {
		t.Errorf("setup without flags has changed the installation\n%s", diff)
	}
	c := management(t)
	ignore := admissionregistrationv1.Ignore
	hooks := get(t, c, &admissionregistrationv1.ValidatingWebhookConfiguration{}, "", shipper.GroupName)
	fail := admissionregistrationv1.Fail
	for i := range hooks.Webhooks[:2] {
		hooks.Webhooks[i].FailurePolicy = []*admissionregistrationv1.FailurePolicyType{&ignore, &fail}[i]
	}
	if err := c.Update(t.Context(), hooks); err != nil {
		t.Fatal(err)
	}
	succeeds(t, "setup", "management")
	hooks = get(t, c, hooks, "", shipper.GroupName)
	if *hooks.Webhooks[0].FailurePolicy != ignore || *hooks.Webhooks[1].FailurePolicy != fail {
		t.Errorf("the failurePolicies are %s and %s", *hooks.Webhooks[0].FailurePolicy, *hooks.Webhooks[1].FailurePolicy)
	}
	succeeds(t, "setup", "management", "--webhook-ignore")
	if got := policies(t); got != "[Ignore:true]" {
		t.Errorf("the failurePolicies are %s", got)
	}
}

// doctorElsewhere checks that doctor finds Shipper in another namespace, and suggests the flags that it was set up with.
func doctorElsewhere(t *testing.T) {
	holds(t, refuses(t, "", "1 broken", "doctor"),
		"BROKEN   place: Shipper is not set up as shipper-system/shipper-mgmt-cluster, but as elsewhere/shippy\n",
		"do:  shipperctl doctor -n elsewhere --management-cluster-service-account shippy\n")
	doctor := strings.Fields("doctor -n elsewhere --management-cluster-service-account shippy")
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	policy.Name = "blocks." + shipper.GroupName
	ended(t, policy)
	advice := "shipperctl clusters setup management -n elsewhere --management-cluster-service-account shippy" +
		" --webhook-url " + url + " -g no-rollouts"
	holds(t, refuses(t, "", " broken", doctor...), "there is no ValidatingAdmissionPolicy blocks.shipper.booking.com\n", "do:  "+advice+"\n")
	works(t, strings.Fields(advice)[1:]...)
	out, _ := shipperctl(t, "", "", doctor...) // no reconciler runs there
	holds(t, out, "ok       second line\n", "ok       rights\n", "ok       kinds\n", "BROKEN   reconciler: ")
}

// bundle is a certificate authority that API servers take.
func bundle(t *testing.T) []byte {
	t.Helper()
	return []byte(get(t, management(t), &corev1.ConfigMap{}, "kube-system", "kube-root-ca.crt").Data["ca.crt"])
}
