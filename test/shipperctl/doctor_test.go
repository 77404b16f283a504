// SPDX-License-Identifier: Apache-2.0

package shipperctl

import (
	"encoding/json"
	"net"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/health"
	"shipper.dev/shipper/cmd/shipperctl/root"
)

// approversOf are the lines about a user of another test, who may do everything.
var approversOf = regexp.MustCompile(`warning  approvers: .*\n +User clumsy everywhere\n( .*\n)+`)

// examine makes a fleet that is well, and breaks one thing after the other.
func examine(t *testing.T) {
	c := management(t)
	succeeds(t, "setup", "management", "--webhook-ignore")
	lease, webhook := well(t)
	doctor := func() (string, error) {
		out, err := shipperctl(t, "", "", "doctor")
		return approversOf.ReplaceAllString(out, "ok       approvers\n"), err
	}
	const healthy = "ok       management cluster\nok       kinds\nok       rights\nok       approvers\nok       webhooks\n" +
		"ok       certificate\nok       path of reviews\nok       second line\nok       fairness\nok       pods\nok       reconciler\n" +
		"ok       cluster eu-west-1\n" +
		"ok       cluster us\nnothing is broken\n"
	eventually(t, func() string {
		if out, err := doctor(); out != healthy || err != nil {
			return out
		}
		return ""
	})
	var report health.Report
	if err := json.Unmarshal([]byte(works(t, "doctor", "-o", "json")), &report); err != nil || report.Broken != 0 || len(report.Checks) != 13 {
		t.Errorf("a report of %d checks, %d broken: %v", len(report.Checks), report.Broken, err)
	}
	holds(t, works(t, "version", "--server"), "shipperctl ", "\nmanagement cluster v1.", " at "+fleetOf(t).Management.Config.Host+"\n")
	var found root.Versions
	if err := json.Unmarshal([]byte(works(t, "version", "--server", "-o", "json")), &found); err != nil || found.Server == nil ||
		found.Server.Address != fleetOf(t).Management.Config.Host || found.Client.Go == "" {
		t.Errorf("the versions are %+v: %v", found, err)
	}
	prints := func(wanted ...string) func() {
		return func() {
			t.Helper()
			holds(t, refuses(t, "", "1 broken", "doctor"), wanted...)
		}
	}

	configuration := get(t, c, &admissionregistrationv1.ValidatingWebhookConfiguration{}, "", shipper.GroupName)
	other := certificate(t)["tls.crt"]
	differs(t, configuration, func() { configuration.Webhooks[0].ClientConfig.CABundle = other },
		prints("BROKEN   certificate: the caBundle of application.shipper.booking.com does not accept the certificate of the Secret"))
	secret := get(t, c, &corev1.Secret{}, "shipper-system", "shipper-webhook-cert")
	differs(t, secret, func() { secret.Data["tls.key"] = nil }, prints("BROKEN   certificate: the Secret has no certificate that works"))

	without(t, configuration, prints("BROKEN   webhooks: there is no ValidatingWebhookConfiguration shipper.booking.com"))
	ignore := admissionregistrationv1.Ignore
	configuration = get(t, c, configuration, "", shipper.GroupName)
	differs(t, configuration, func() { configuration.Webhooks[0].FailurePolicy = &ignore }, func() {
		holds(t, works(t, "doctor"), "warning  webhooks: failurePolicy is Ignore for application.shipper.booking.com", "nothing is broken")
	})
	binding := get(t, c, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}, "", "blocks."+shipper.GroupName)
	without(t, binding, prints("BROKEN   second line: there is no ValidatingAdmissionPolicyBinding blocks.shipper.booking.com"))

	schema := get(t, c, &flowcontrolv1.FlowSchema{}, "", "shipper")
	without(t, schema, func() {
		holds(t, works(t, "doctor"), "warning  fairness: there is no FlowSchema shipper", "nothing is broken")
	})

	kind := get(t, c, &apiextensionsv1.CustomResourceDefinition{}, "", "clusters."+shipper.GroupName)
	differs(t, kind, func() { kind.Spec.Versions[0].AdditionalPrinterColumns = nil },
		prints("BROKEN   kinds: the CustomResourceDefinition clusters.shipper.booking.com is not that of this shipperctl"))

	differs(t, lease, func() { lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Unix(1e9, 0)} },
		prints("BROKEN   reconciler: the reconciler pod-1 has not renewed its Lease shipper-reconciler since 2001-09-09T01:46:40Z"))

	credentials := get(t, c, &corev1.Secret{}, "shipper-system", "us")
	differs(t, credentials, func() { credentials.Data["token"] = []byte(" ") },
		prints(`BROKEN   cluster us: Secret "shipper-system/us" has an empty "token"`, "ok       cluster eu-west-1"))

	labels := map[string]string{"app.kubernetes.io/name": "shipper"}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shipper-system", Name: "shipper"}}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Template.Labels = labels
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "webhook", Image: "shipper:boom"}}
	creates(t, deployment)
	prints("BROKEN   pods: none of 1 Pods of the Deployment shipper-system/shipper is ready")()
	ended(t, deployment)

	everybody := get(t, c, &rbacv1.RoleBinding{}, "rollout-blocks-global", "shipper:global-blocks")
	differs(t, everybody, func() { everybody.Subjects[0].Name = "developers" }, func() {
		eventually(t, func() string {
			all := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "somebody", Groups: []string{"system:authenticated"}, ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: "rollout-blocks-global", Verb: "list", Group: shipper.GroupName, Resource: "rolloutblocks",
				},
			}}
			creates(t, all)
			out, err := doctor()
			if err != nil || all.Status.Allowed || out != healthy {
				return out
			}
			return ""
		})
	})
	without(t, everybody, func() {
		eventually(t, func() string {
			out, err := shipperctl(t, "", "", "doctor")
			const lacks = "warning  rights: the group system:authenticated may not:\n" +
				"                get,list,watch rolloutblocks.shipper.booking.com in rollout-blocks-global\n"
			if err != nil || strings.Count(out, lacks) != 1 {
				return out
			}
			return ""
		})
	})
	role := get(t, c, &rbacv1.Role{}, "shipper-system", "shipper:management-cluster")
	differs(t, role, func() { role.Rules = role.Rules[:len(role.Rules)-1] }, func() {
		eventually(t, func() string {
			out, err := shipperctl(t, "", "", "doctor")
			const lacks = "the account shipper-system/shipper-mgmt-cluster may not:\n                create events in shipper-system\n"
			if err == nil || !strings.Contains(out, lacks) {
				return out
			}
			return ""
		})
	})
	eventually(t, func() string {
		if out, err := doctor(); out != healthy || err != nil {
			return out
		}
		return ""
	})
	noWebhook(t, webhook)
	succeeds(t, "setup", "management", "--webhook-ignore", "--webhook-url", "")
}

// noWebhook ends the webhook while failurePolicy is Fail, and then Ignore: doctor reports either.
func noWebhook(t *testing.T, webhook *httptest.Server) {
	t.Helper()
	holds(t, refuses(t, "reader", "1 broken", "doctor"), "BROKEN   your rights: you may not:\n",
		"get validatingwebhookconfigurations.admissionregistration.k8s.io\n", "why: what needs these rights could not be looked at\n")
	webhook.Close()
	found := func(wanted ...string) {
		t.Helper()
		eventually(t, func() string {
			out, err := shipperctl(t, "", "", "doctor")
			for _, want := range wanted {
				if err == nil || !strings.Contains(out, want) {
					return out
				}
			}
			return ""
		})
	}
	const kinds = "Application, Release, InstallationTarget, CapacityTarget, TrafficTarget, Cluster, RolloutBlock"
	found("BROKEN   webhooks: the API server cannot call the webhook for "+kinds+": \"mutate.application.shipper.booking.com\"",
		"connection refused", "why: the API server refuses every write to these kinds: failurePolicy is Fail",
		"do:  start the webhook: kubectl get pods -n shipper-system",
		"shipperctl clusters setup management --webhook-url "+webhook.URL+" --webhook-ignore\n")
	works(t, "clusters", "setup", "management", "--webhook-ignore")
	found("BROKEN   webhooks: the API server admits, without an answer of the webhook: "+kinds+"\n",
		"why: writes to these kinds are stored unjudged")
}

// well makes a fleet as it is when Shipper runs elsewhere, and returns the Lease of the reconciler.
func well(t *testing.T) (*coordinationv1.Lease, *httptest.Server) {
	t.Helper()
	c := management(t)
	webhook := certificate(t)
	server := startWebhook(t, webhook)
	address(t, server.URL, webhook["tls.crt"])
	judged(t)
	succeeds(t, "join", "-f", file(t, both(t)))
	for _, name := range []string{west, "us"} {
		seen(t, get(t, c, &shipper.Cluster{}, "", name))
	}
	secret := get(t, c, &corev1.Secret{}, "shipper-system", "shipper-webhook-cert")
	secret.Data = webhook
	if err := c.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	holder, hour := "pod-1", int32(3600)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "shipper-system", Name: "shipper-reconciler"}}
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &metav1.MicroTime{Time: time.Now()}, LeaseDurationSeconds: &hour}
	ended(t, lease)
	creates(t, lease)
	return lease, server
}

// certificate is one for the webhook's Service, with the authority that has signed it, and its key.
func certificate(t *testing.T) map[string][]byte {
	t.Helper()
	cert, key, err := certutil.GenerateSelfSignedCertKey("shipper-webhook.shipper-system.svc", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"tls.crt": cert, "tls.key": key}
}

// without deletes an object while something is done, and makes it again.
func without(t *testing.T, o client.Object, while func()) {
	t.Helper()
	again := o.DeepCopyObject().(client.Object)
	ended(t, o)
	while()
	again.SetResourceVersion("")
	again.SetUID("")
	creates(t, again)
}
