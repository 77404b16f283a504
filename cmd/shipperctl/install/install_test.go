// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/manifests"
)

func TestReport(t *testing.T) {
	var out bytes.Buffer
	r := NewReport(&out)
	r.Printf("Setting up %s:", "it")
	first := r.Step("Creating a thing", func() (string, error) { return created, nil })
	second := r.Step("Creating a thing", func() (string, error) { return "", errors.New("no luck") })
	if diff := cmp.Diff("Setting up it:\nCreating a thing... done\nCreating a thing... failed\n", out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := fmt.Sprint(first, "; ", second); got != "<nil>; creating a thing: no luck" {
		t.Errorf("the errors are %s", got)
	}
}

func TestOutcomeAnswersAQuestion(t *testing.T) {
	got := []string{found(created), found(updated), found(unchanged)}
	if diff := cmp.Diff([]string{"no. Creating... done", "yes. Updating... done", "yes. Skipping"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestErrorsTellWhatToDo(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"the webhook is down": {
			err: apierrors.NewInternalError(errors.New(`failed calling webhook "validate.cluster.shipper.booking.com": connection refused`)),
			want: "The webhook does not answer, and its failurePolicy is Fail. Start Shipper and run this again, or add " +
				"--webhook-ignore to let writes pass while it is down.",
		},
		"no right": {
			err: apierrors.NewForbidden(secrets, "a", errors.New("no")),
			want: "Setting up a cluster needs the rights of its administrator. Ask for cluster-admin, for example: " +
				"kubectl create clusterrolebinding me --clusterrole cluster-admin --user YOU",
		},
		"anything else": {err: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			want := "doing it: " + c.err.Error()
			if c.want != "" {
				want += "\n" + c.want
			}
			got := explain("Doing it", c.err)
			if diff := cmp.Diff(want, got.Error()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if !errors.Is(got, c.err) {
				t.Error("the cause is not wrapped")
			}
		})
	}
}

func TestParseWebhookURL(t *testing.T) {
	for text, ok := range map[string]bool{
		"":                       true,
		"https://localhost:9443": true,
		"https://proxy/shipper/": true,
		"http://localhost:9443":  false,
		"localhost:9443":         false,
		"https://":               false,
		"https://a@localhost":    false,
		"https://localhost?a=b":  false,
		"https://localhost#a":    false,
		"https://local host":     false,
	} {
		if _, err := ParseWebhookURL(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAccountIsWholeAndForItsNames(t *testing.T) {
	for _, c := range []struct {
		domain string
		want   []string
	}{
		{shipper.RBACManagement, []string{
			"ServiceAccount there/account",
			"ClusterRole /shipper:management-cluster",
			"ClusterRoleBinding /shipper:management-cluster for there/account",
			"Role there/shipper:management-cluster",
			"RoleBinding there/shipper:management-cluster for there/account",
			"ClusterRole /shipper:view", "ClusterRole /shipper:view-clusters", "ClusterRole /shipper:edit", "ClusterRole /shipper:shipyard-admin",
			"ClusterRole /shipper-namespace-reader", "ClusterRole /shipper-values-keeper", "ClusterRole /shipper-selector",
			"ClusterRole /shipper-runner-impersonator", "ClusterRole /shipper:runner", "ClusterRole /shipper:promoter",
			"ClusterRole /shipper:sre",
			"ClusterRole /shipper:approver",
			"Role blocks/shipper:global-blocks", "RoleBinding blocks/shipper:global-blocks for /system:authenticated",
		}},
		{shipper.RBACApplication, []string{
			"ServiceAccount there/account",
			"ClusterRole /shipper:application-cluster",
			"ClusterRoleBinding /shipper:application-cluster for there/account",
			"ClusterRole /shipper:application-cluster-additions",
			"ClusterRoleBinding /shipper:application-cluster-additions for there/account",
			"Role there/shipper:application-cluster",
			"RoleBinding there/shipper:application-cluster for there/account",
		}},
	} {
		objects, err := account{domain: c.domain, namespace: "there", name: "account", globalBlocks: "blocks"}.objects()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range objects {
			line := fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())
			var b rbacv1.ClusterRoleBinding
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &b); err != nil {
				t.Fatal(err)
			}
			for _, s := range b.Subjects {
				line += fmt.Sprintf(" for %s/%s", s.Namespace, s.Name)
			}
			got = append(got, line)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.domain, diff)
		}
	}
}

// configuration is a webhook configuration as it is in the manifests: one webhook has a policy that can be set, one
// always lets pass, and one always refuses.
func configuration() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"webhooks": []any{map[string]any{
		"name":          "application.shipper.booking.com",
		"failurePolicy": "Fail",
		"clientConfig": map[string]any{"service": map[string]any{
			"name": "shipper-webhook", "namespace": "shipper-system"}},
		"namespaceSelector": map[string]any{"matchExpressions": []any{map[string]any{
			"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": []any{"kube-system", "shipper-system"}}}},
	}, map[string]any{
		"name":          "namespace.shipper.booking.com",
		"failurePolicy": "Ignore",
		"clientConfig": map[string]any{"service": map[string]any{
			"name": "shipper-webhook", "namespace": "shipper-system"}},
	}, map[string]any{
		"name":          "envelope.shipper.booking.com",
		"failurePolicy": "Fail",
		"clientConfig": map[string]any{"service": map[string]any{
			"name": "shipper-webhook", "namespace": "shipper-system"}},
	}}}}
}

func TestWebhooksPointToShipper(t *testing.T) {
	outside, err := ParseWebhookURL("https://localhost:9443/base")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		m           Management
		policy      string
		application map[string]any
		namespace   map[string]any
		envelope    map[string]any
	}{
		"in a namespace of its own": {
			m: Management{Namespace: "elsewhere"}, policy: policyIgnore,
			application: map[string]any{"service": map[string]any{
				"name": "shipper-webhook", "namespace": "elsewhere"}},
			namespace: map[string]any{"service": map[string]any{
				"name": "shipper-webhook", "namespace": "elsewhere"}},
			envelope: map[string]any{"service": map[string]any{
				"name": "shipper-webhook", "namespace": "elsewhere"}},
		},
		"outside the cluster": {
			m: Management{Namespace: "elsewhere", WebhookURL: outside}, policy: policyFail,
			application: map[string]any{"url": "https://localhost:9443/base/validate-application"},
			namespace:   map[string]any{"url": "https://localhost:9443/base/validate-namespace"},
			envelope:    map[string]any{"url": "https://localhost:9443/base/validate-envelope"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := configuration()
			if err := c.m.address(got, c.policy); err != nil {
				t.Fatal(err)
			}
			want := map[string]any{"webhooks": []any{map[string]any{
				"name":          "application.shipper.booking.com",
				"failurePolicy": c.policy,
				"clientConfig":  c.application,
				"namespaceSelector": map[string]any{"matchExpressions": []any{map[string]any{
					"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": []any{"kube-system", "elsewhere"}}}},
			}, map[string]any{
				"name":          "namespace.shipper.booking.com",
				"failurePolicy": "Ignore",
				"clientConfig":  c.namespace,
			}, map[string]any{
				"name":          "envelope.shipper.booking.com",
				"failurePolicy": "Fail",
				"clientConfig":  c.envelope,
			}}}
			if diff := cmp.Diff(want, got.Object); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	if broken := (&unstructured.Unstructured{Object: map[string]any{"webhooks": []any{"x"}}}); failsClosed(broken) {
		t.Error("a malformed configuration is said to fail closed")
	}
	if !failsClosed(configuration()) {
		t.Error("a configuration with Fail is not said to fail closed")
	}
}

// The webhook writes the token, and its path must not be another one for a moment.
func TestSettingUpAgainKeepsTheTokenInThePath(t *testing.T) {
	const token = "abcdefghijklmnopqrstuvwxyz"
	outside, err := ParseWebhookURL("https://localhost:9443/base")
	if err != nil {
		t.Fatal(err)
	}
	for sentence, c := range map[string]struct {
		was, is *url.URL
		want    string
	}{
		"behind a Service":        {nil, nil, "/" + token + "/validate-application"},
		"outside the cluster":     {outside, outside, "https://localhost:9443/base/" + token + "/validate-application"},
		"from a Service to a URL": {nil, outside, "https://localhost:9443/base/" + token + "/validate-application"},
		"from a URL to a Service": {outside, nil, "/" + token + "/validate-application"},
	} {
		t.Run(sentence, func(t *testing.T) {
			live, want := configuration(), configuration()
			was, is := &Management{WebhookURL: c.was}, &Management{WebhookURL: c.is}
			if err := errors.Join(was.address(live, policyFail), is.address(want, policyFail)); err != nil {
				t.Fatal(err)
			}
			for name, webhook := range webhooksOf(live) {
				if err := setToken(webhook, name.(string), token); err != nil {
					t.Fatal(err)
				}
			}
			if err := is.keepLiveSettings(live, want); err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, at := range pathFields {
				path, _, _ := unstructured.NestedString(webhooksOf(want)["application.shipper.booking.com"], at...)
				got += path
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestSecretIsFilled(t *testing.T) {
	owner := &shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-1", UID: "new"}}
	ours := metav1.OwnerReference{APIVersion: "shipper.booking.com/v1alpha1", Kind: "Cluster", Name: "eu-1", UID: "new"}
	another := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "eu-1", UID: "x"}
	for name, c := range map[string]struct {
		credentials Credentials
		have, want  corev1.Secret
	}{
		"an empty one": {
			credentials: Credentials{Token: []byte("t"), CA: []byte("ca")},
			want: corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{ours}},
				Data:       map[string][]byte{"token": []byte("t"), "ca.crt": []byte("ca")},
			},
		},
		"one without an authority": {
			credentials: Credentials{Token: []byte("t")},
			want: corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{ours}},
				Data:       map[string][]byte{"token": []byte("t")},
			},
		},
		"one of the original, with a reference that is wrong, and what others put there": {
			credentials: Credentials{Token: []byte("t"), CA: []byte("ca")},
			have: corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{
					Annotations: map[string]string{"a": "b"},
					OwnerReferences: []metav1.OwnerReference{another,
						{APIVersion: "shipper.booking.com/v1", Kind: "Cluster", Name: "eu-1", UID: "new"}},
				},
				Data: map[string][]byte{"token": []byte("old"), "ca.crt": []byte("ca"), "namespace": []byte("n")},
			},
			want: corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{
					Annotations: map[string]string{"a": "b"}, OwnerReferences: []metav1.OwnerReference{another, ours},
				},
				Data: map[string][]byte{"token": []byte("t"), "ca.crt": []byte("ca"), "namespace": []byte("n")},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.have
			fill(&got, owner, c.credentials)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// A policy with the usual name would let an account of that name write as Shipper, and refuse Shipper's own writes.
func TestEveryPolicyNamesTheInstalledAccount(t *testing.T) {
	objects, err := manifests.Objects(manifests.Policy)
	if err != nil {
		t.Fatal(err)
	}
	m := Management{Namespace: "elsewhere", ServiceAccount: "shippy", GlobalBlocksNamespace: "no-rollouts"}
	for _, o := range objects {
		if err := m.setNames(o); err != nil {
			t.Fatal(err)
		}
		text, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		for _, usual := range []string{shipper.SystemNamespace, shipper.ManagementServiceAccount, shipper.GlobalBlocksNamespace} {
			if strings.Contains(string(text), `"`+usual+`"`) || strings.Contains(string(text), ":"+usual) {
				t.Errorf("%s %s names %s", o.GetKind(), o.GetName(), usual)
			}
		}
	}
}
