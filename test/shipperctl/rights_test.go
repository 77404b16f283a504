// SPDX-License-Identifier: Apache-2.0

package shipperctl

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
)

// as returns the connection that Shipper makes to a cluster: from its Cluster object and its Secret alone.
func as(t *testing.T, name string) *rest.Config {
	t.Helper()
	c := management(t)
	cluster := get(t, c, &shipper.Cluster{}, "", name)
	secret := get(t, c, &corev1.Secret{}, "shipper-system", name)
	return &rest.Config{
		Host:            cluster.Spec.APIMaster,
		BearerToken:     string(secret.Data["token"]),
		TLSClientConfig: rest.TLSClientConfig{CAData: secret.Data["ca.crt"]},
	}
}

// may answers `auth can-i` for lines like "get secrets in default" and "patch deployments.apps/scale": yes or no.
func may(t *testing.T, config *rest.Config, question string) string {
	t.Helper()
	words := strings.Fields(question)
	attributes := &authorizationv1.ResourceAttributes{Verb: words[0]}
	resource, sub, _ := strings.Cut(words[1], "/")
	attributes.Resource, attributes.Group, _ = strings.Cut(resource, ".")
	attributes.Subresource = sub
	for i := 2; i+1 < len(words); i += 2 {
		switch words[i] {
		case "in":
			attributes.Namespace = words[i+1]
		case "named":
			attributes.Name = words[i+1]
		}
	}
	review := &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes}}
	if err := connect(t, config).Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	if review.Status.Allowed {
		return "yes"
	}
	return "no"
}

func whatShipperMayInTheManagementCluster(t *testing.T) {
	path, err := fleetOf(t).Management.ServiceAccountKubeconfig(t.Context(), "shipper-system", "shipper-mgmt-cluster")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	const (
		webhooks = "validatingwebhookconfigurations.admissionregistration.k8s.io"
		leases   = "leases.coordination.k8s.io in shipper-system"
	)
	for question, want := range map[string]string{
		"watch applications.shipper.booking.com":                      "yes",
		"patch applications.shipper.booking.com in default":           "yes",
		"create applications.shipper.booking.com in default":          "no",
		"delete applications.shipper.booking.com in default":          "no",
		"create releases.shipper.booking.com in default":              "yes",
		"update releases.shipper.booking.com in default":              "no",
		"delete releases.shipper.booking.com in default":              "yes",
		"patch installationtargets.shipper.booking.com in default":    "yes",
		"delete installationtargets.shipper.booking.com in default":   "no",
		"patch traffictargets.shipper.booking.com/status in default":  "yes",
		"update traffictargets.shipper.booking.com/status in default": "no",
		"update releases.shipper.booking.com/finalizers in default":   "no",
		"patch chartsnapshots.shipper.booking.com in default":         "yes",
		"create sequenceruns.shipper.booking.com in default":          "yes",
		"create controllerrevisions.apps in default":                  "yes",
		"patch controllerrevisions.apps in default":                   "no",
		"list controllerrevisions.apps in default":                    "yes",
		"watch controllerrevisions.apps in default":                   "no",
		"patch sequenceruns.shipper.booking.com in default":           "no",
		"patch sequenceruns.shipper.booking.com/status in default":    "yes",
		"promote shipyards.shipper.booking.com in default":            "no",
		"impersonate serviceaccounts in default":                      "no",
		"update chartsnapshots.shipper.booking.com in default":        "no",
		"patch rolloutblocks.shipper.booking.com/status in default":   "yes",
		"patch rolloutblocks.shipper.booking.com in default":          "no",
		"override rolloutblocks.shipper.booking.com in default":       "no",
		"update clusters.shipper.booking.com":                         "no",
		"patch clusters.shipper.booking.com":                          "yes",
		"delete clusters.shipper.booking.com":                         "no",
		"patch clusters.shipper.booking.com/status":                   "yes",
		"get secrets in shipper-system":                               "yes",
		"watch secrets in shipper-system":                             "yes",
		"patch secrets in shipper-system named shipper-webhook-cert":  "yes",
		"create secrets in shipper-system named shipper-webhook-cert": "yes",
		"patch secrets in shipper-system named eu-west-1":             "yes",
		"patch secrets in default named eu-west-1":                    "no",
		"update secrets in shipper-system named eu-west-1":            "no",
		"create secrets in shipper-system named eu-west-1":            "no",
		"create secrets in shipper-system":                            "no",
		"get secrets in default":                                      "no",
		"list secrets":                                                "no",
		"watch configmaps in shipper-system named shipper-identity":   "yes",
		"update configmaps in shipper-system named shipper-identity":  "no",
		"get configmaps in shipper-system named another-ones":         "no",
		"create configmaps in shipper-system":                         "yes",
		"get configmaps in default":                                   "no",
		"list pods":                                                   "no",
		"create deployments.apps in default":                          "no",
		"watch namespaces":                                            "yes",
		"delete namespaces":                                           "no",
		"create subjectaccessreviews.authorization.k8s.io":            "yes",
		"create tokenreviews.authentication.k8s.io":                   "no",
		"create events.events.k8s.io in default":                      "yes",
		"create events in shipper-system":                             "yes",
		"create events in default":                                    "no",
		"create leases.coordination.k8s.io in shipper-system":         "yes",
		"create leases.coordination.k8s.io in kube-system":            "no",
		"update " + leases + " named shipper-reconciler":              "yes",
		"update " + leases + " named another-ones":                    "no",
		"patch " + webhooks + " named shipper.booking.com":            "yes",
		"patch " + webhooks + " named another-ones":                   "no",
		"create " + webhooks:                                          "no",
		"list " + webhooks:                                            "no",
		"watch " + webhooks + " named shipper.booking.com":            "yes",
		"escalate clusterroles.rbac.authorization.k8s.io":             "no",
		"impersonate users":                                           "no",
		"update customresourcedefinitions.apiextensions.k8s.io":       "no",
	} {
		if got := may(t, config, question); got != want {
			t.Errorf("may it %s? %s; it should be %s", question, got, want)
		}
	}
}

func whatShipperMayInAnApplicationCluster(t *testing.T) {
	config := as(t, west)
	const rbac, lease = ".rbac.authorization.k8s.io", "leases.coordination.k8s.io in "
	for question, want := range map[string]string{
		"create deployments.apps in default":                      "yes",
		"patch deployments.apps in default":                       "yes",
		"patch deployments.apps/scale in default":                 "no",
		"update configmaps/finalizers in default":                 "yes",
		"create daemonsets.apps in default":                       "yes",
		"delete services in default":                              "yes",
		"patch pods in default":                                   "yes",
		"create configmaps in default":                            "yes",
		"create secrets in default":                               "yes",
		"create serviceaccounts in default":                       "yes",
		"create persistentvolumeclaims in default":                "yes",
		"create cronjobs.batch in default":                        "yes",
		"create ingresses.networking.k8s.io in default":           "yes",
		"create horizontalpodautoscalers.autoscaling in default":  "yes",
		"create poddisruptionbudgets.policy in default":           "yes",
		"create roles" + rbac + " in default":                     "yes",
		"create rolebindings" + rbac + " in default":              "yes",
		"watch endpointslices.discovery.k8s.io":                   "yes",
		"update endpointslices.discovery.k8s.io in default":       "no",
		"get " + lease + "shipper-system named shipper-heartbeat": "yes",
		"get " + lease + "shipper-system named another-ones":      "no",
		"get " + lease + "kube-system named shipper-heartbeat":    "no",
		"watch events":                                                 "yes",
		"list namespaces":                                              "yes",
		"create namespaces":                                            "no",
		"create pods/exec in default":                                  "no",
		"create serviceaccounts/token in default":                      "no",
		"create serviceaccounts/token in shipper-system":               "no",
		"create serviceaccounts/token in shipper-system named another": "no",
		"create serviceaccounts/token in shipper-system named shipper-app-cluster": "yes",
		"create clusterroles" + rbac:                            "no",
		"create clusterrolebindings" + rbac:                     "no",
		"escalate roles" + rbac + " in default":                 "no",
		"bind roles" + rbac + " in default":                     "no",
		"list nodes":                                            "yes",
		"watch nodes":                                           "yes",
		"patch nodes":                                           "no",
		"get nodes/proxy":                                       "no",
		"impersonate serviceaccounts":                           "no",
		"create customresourcedefinitions.apiextensions.k8s.io": "no",
		"update validatingwebhookconfigurations.admissionregistration.k8s": "no",
	} {
		if got := may(t, config, question); got != want {
			t.Errorf("may it %s? %s; it should be %s", question, got, want)
		}
	}
}

func aChartGrantsOnlyWhatShipperHolds(t *testing.T) {
	c := connect(t, as(t, west))
	role := func(name string, rule rbacv1.PolicyRule) *rbacv1.Role {
		return &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Rules: []rbacv1.PolicyRule{rule}}
	}
	held := role("held", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "events"},
		Verbs: []string{"get", "list", "watch", "create"}})
	if err := c.Create(t.Context(), held); err != nil {
		t.Errorf("a Role with rights that Shipper holds: %v", err)
	}
	more := role("more", rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{"create"}})
	if err := c.Create(t.Context(), more); !apierrors.IsForbidden(err) {
		t.Errorf("a Role with rights that Shipper does not hold: %v", err)
	}
}

func administratorsGrantMoreByALabel(t *testing.T) {
	const question = "create servicemonitors.monitoring.coreos.com in default"
	config := as(t, west)
	if got := may(t, config, question); got != "no" {
		t.Fatalf("may it %s before that was granted? %s", question, got)
	}
	more := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{
			Name: "shipper-monitors", Labels: map[string]string{"shipper.booking.com/aggregate-to-application": "true"}},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"monitoring.coreos.com"}, Resources: []string{"servicemonitors"},
			Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"}}},
	}
	app := application(t, west)
	if err := app.Create(t.Context(), more); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		if got := may(t, config, question); got != "yes" {
			return fmt.Sprintf("may it %s? %s", question, got)
		}
		return ""
	})
	before := get(t, app, &rbacv1.ClusterRole{}, "", "shipper:application-cluster-additions").Rules
	succeeds(t, "join", "-f", file(t, both(t)), "--webhook-ignore")
	after := get(t, app, &rbacv1.ClusterRole{}, "", "shipper:application-cluster-additions").Rules
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("joining again changes what was added (-before +after)\n%s", diff)
	}
}

// eventually asks until what is wrong is nothing.
func eventually(t *testing.T, wrong func() string) {
	t.Helper()
	env.Becomes(t, "what is wrong", "", func() (string, error) { return wrong(), nil })
}

// whatShipperMayWriteIntoSecrets tries, as Shipper's account in the management cluster, what RBAC allows it and the policy does not.
func whatShipperMayWriteIntoSecrets(t *testing.T) {
	path, err := fleetOf(t).Management.ServiceAccountKubeconfig(t.Context(), "shipper-system", "shipper-mgmt-cluster")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	const (
		ofAnother = "writes into no Secret but its webhook's"
		ofMore    = "changes nothing in the Secret of a cluster but the token"
	)
	annotated := func(name, value string) string {
		return fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, name, value)
	}
	c, admin := connect(t, config), management(t)
	secret := func(name string, annotations map[string]string) *corev1.Secret {
		o := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shipper-system", Name: name, Annotations: annotations},
			Data:       map[string][]byte{"token": []byte("old"), "ca.crt": []byte("ca")},
		}
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := admin.Delete(context.Background(), o); err != nil {
				t.Error(err)
			}
		})
		return o
	}
	renewed := secret("renewed", map[string]string{shipper.SecretRenewAnnotation: "24h"})
	plain, helms := secret("plain", nil), secret("sh.helm.release.v1.shipper.v1", nil)
	certificate := get(t, admin, &corev1.Secret{}, "shipper-system", "shipper-webhook-cert")
	for sentence, tc := range map[string]struct {
		of    *corev1.Secret
		patch string
		want  string
	}{
		"a token that it renews":                       {renewed, `{"data":{"token":"bmV3"}}`, ""},
		"the certificate of the webhook":               {certificate, `{"data":{"tls.key":"bmV3"}}`, ""},
		"a token that it may not renew":                {plain, `{"data":{"token":"bmV3"}}`, ofAnother},
		"leave to renew that it gives itself":          {plain, annotated(shipper.SecretRenewAnnotation, "24h"), ofAnother},
		"what Helm applies in a rollback":              {helms, `{"data":{"release":"bmV3"}}`, ofAnother},
		"another authority to trust":                   {renewed, `{"data":{"ca.crt":"bmV3"}}`, ofMore},
		"no authority to trust":                        {renewed, `{"data":{"ca.crt":null}}`, ofMore},
		"a client certificate beside the token":        {renewed, `{"data":{"tls.crt":"bmV3"}}`, ofMore},
		"an API server that is not verified":           {renewed, annotated(shipper.SecretSkipTLSVerifyAnnotation, "true"), ofMore},
		"a token and a label":                          {renewed, `{"metadata":{"labels":{"a":"b"}},"data":{"token":"bmV3"}}`, ofMore},
		"a finalizer, so that it cannot be taken away": {renewed, `{"metadata":{"finalizers":["shipper.booking.com/x"]}}`, ofMore},
		"that it becomes immutable":                    {renewed, `{"immutable":true}`, ofMore},
	} {
		err := c.Patch(t.Context(), tc.of.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(tc.patch)), client.DryRunAll)
		if tc.want == "" && err != nil || tc.want != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("it writes %s: %v; want %q", sentence, err, tc.want)
		}
	}
	whatShipperMayKeep(t, c, admin)
	metav1.SetMetaDataAnnotation(&plain.ObjectMeta, shipper.SecretSkipTLSVerifyAnnotation, "true")
	if err := admin.Update(t.Context(), plain, client.DryRunAll); err != nil {
		t.Errorf("an administrator may not: %v", err)
	}
}

// whatShipperMayKeep makes Secrets in a namespace whose owner lets Shipper keep values there.
func whatShipperMayKeep(t *testing.T, shipperOwn, admin client.Client) {
	t.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: shipper.ValuesKeeper},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: shipper.ValuesKeeper},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "shipper-system", Name: "shipper-mgmt-cluster"}},
	}
	if err := admin.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.Delete(context.Background(), binding); err != nil {
			t.Error(err)
		}
	})
	always := true
	makes := func(kind corev1.SecretType, fixed *bool) error {
		o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0-values"}, Type: kind, Immutable: fixed}
		if kind == corev1.SecretTypeServiceAccountToken {
			o.Annotations = map[string]string{corev1.ServiceAccountNameKey: "default"}
		}
		return shipperOwn.Create(t.Context(), o, client.DryRunAll)
	}
	eventually(t, func() string {
		if err := makes(shipper.ValuesSecretType, &always); err != nil {
			return "it keeps no values: " + err.Error()
		}
		return ""
	})
	for sentence, err := range map[string]error{
		"a token of another account": makes(corev1.SecretTypeServiceAccountToken, &always),
		"what others may believe":    makes(corev1.SecretTypeOpaque, &always),
		"values that may be changed": makes(shipper.ValuesSecretType, nil),
	} {
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "makes no Secrets in other namespaces but those that keep") {
			t.Errorf("it makes %s: %v", sentence, err)
		}
	}
}
