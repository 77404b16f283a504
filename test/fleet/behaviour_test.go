// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/test/await"
)

// assertUser checks the user name that a configuration authenticates as, and that the user may not list Secrets.
func assertUser(t *testing.T, config *rest.Config, want string) {
	t.Helper()
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	review := &authenticationv1.SelfSubjectReview{}
	review, err = typed.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if review.Status.UserInfo.Username != want {
		t.Errorf("user is %q, want %q", review.Status.UserInfo.Username, want)
	}
	if _, err := typed.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing Secrets: %v, want it forbidden", err)
	}
}

// gone returns nil once an object no longer exists.
func gone(ctx context.Context, c client.Client, o client.Object) error {
	err := c.Get(ctx, client.ObjectKeyFromObject(o), o)
	if err == nil {
		return errors.New(o.GetName() + " is still there")
	}
	return client.IgnoreNotFound(err)
}

func TestAJobCompletes(t *testing.T) {
	t.Parallel()
	c := app(t)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace(t, c), Name: "it"}}
	job.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: "main", Image: "busybox:1"}},
	}
	create(t, c, job)
	await.Eventually(t, "the Job to complete", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
			return err
		}
		if job.Status.Succeeded != 1 {
			return errors.New("not yet")
		}
		return nil
	})
}

// TestAPodThatIsATestEnds creates the Pods of Helm's tests: without an end, a task test would wait for its time-out.
func TestAPodThatIsATestEnds(t *testing.T) {
	t.Parallel()
	c := app(t)
	ns := namespace(t, c)
	pod := func(name string, policy corev1.RestartPolicy, annotations map[string]string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Annotations: annotations}, Spec: corev1.PodSpec{
			RestartPolicy: policy, Containers: []corev1.Container{{Name: "main", Image: "busybox:1"}},
		}}
	}
	hook := map[string]string{"helm.sh/hook": "test"}
	want := map[string]corev1.PodPhase{
		"test": corev1.PodSucceeded, "test-again": corev1.PodSucceeded, "server": corev1.PodRunning, "no-test": corev1.PodRunning,
	}
	all := []*corev1.Pod{
		pod("test", corev1.RestartPolicyNever, hook), pod("test-again", corev1.RestartPolicyOnFailure, hook),
		pod("server", corev1.RestartPolicyAlways, hook), pod("no-test", corev1.RestartPolicyNever, nil),
	}
	await.Eventually(t, "Pods with the phases "+fmt.Sprint(want), func(ctx context.Context) error {
		got := map[string]corev1.PodPhase{}
		for _, one := range all { // the namespace may have no ServiceAccount yet
			if err := c.Create(ctx, one.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
			var now corev1.Pod
			if err := c.Get(ctx, client.ObjectKeyFromObject(one), &now); err != nil {
				return err
			}
			got[now.Name] = now.Status.Phase
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

func TestALoadBalancerGivesAServiceItsAddress(t *testing.T) {
	t.Parallel()
	c := app(t)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace(t, c), Name: "it"}}
	service.Spec.Type, service.Spec.Ports = corev1.ServiceTypeLoadBalancer, []corev1.ServicePort{{Port: 80}}
	create(t, c, service)
	await.Eventually(t, "the address", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(service), service); err != nil {
			return err
		}
		if at := service.Status.LoadBalancer.Ingress; len(at) != 1 || at[0].IP == "" {
			return errors.New("not yet")
		}
		return nil
	})
}

// widget returns an object of the kind in testdata, which the management cluster had before its controllers started.
func widget(namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "test.shipper.dev", Version: "v1", Kind: "Widget"})
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func TestWhatIsOwnedGoesWithItsOwner(t *testing.T) {
	t.Parallel()
	c := clientOf(t, shared.Management)
	ns := namespace(t, c)
	owner := widget(ns, "owner")
	create(t, c, owner)
	owned, other := widget(ns, "owned"), widget(ns, "other")
	owned.SetOwnerReferences([]metav1.OwnerReference{
		{APIVersion: "test.shipper.dev/v1", Kind: "Widget", Name: "owner", UID: owner.GetUID()},
	})
	create(t, c, owned, other)
	if err := c.Delete(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	await.Eventually(t, "the garbage collector", func(ctx context.Context) error { return gone(ctx, c, owned) })
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(other), other); err != nil {
		t.Errorf("an object without owner: %v", err)
	}
	t.Logf("collected after %s", time.Since(began))
}

func TestANamespaceCanBeDeleted(t *testing.T) {
	t.Parallel()
	c := app(t)
	ns := namespace(t, c)
	create(t, c, deployment(ns, "nginx:1.27", 2))
	await.Eventually(t, "Pods", func(ctx context.Context) error {
		items, err := pods(ctx, c, ns)
		if err == nil && len(items) != 2 {
			err = errors.New("not yet")
		}
		return err
	})
	o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	if err := c.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	await.Eventually(t, "the namespace to go", func(ctx context.Context) error { return gone(ctx, c, o) })
}

func TestAWebhookOnThisMachineIsAsked(t *testing.T) {
	t.Parallel()
	c := app(t)
	ns := namespace(t, c)
	server, ca := webhook(t, func(review *admissionv1.AdmissionReview) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{
			UID:    review.Request.UID,
			Result: &metav1.Status{Message: "no " + review.Request.Name + " for " + review.Request.UserInfo.Username},
		}
	})
	url := "https://localhost:" + server.URL[strings.LastIndex(server.URL, ":")+1:] + "/validate"
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    "refuse.test.shipper.dev",
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: ca},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"},
				},
			}},
		}},
	}
	create(t, c, configuration)
	t.Cleanup(func() { _ = c.Delete(context.Background(), configuration) })
	var err error
	await.Eventually(t, "the webhook to be known", func(ctx context.Context) error {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "mine"}}
		if err = c.Create(ctx, secret); err != nil {
			return nil
		}
		return errors.Join(errors.New("nothing refused the Secret"), c.Delete(ctx, secret))
	})
	want := `admission webhook "refuse.test.shipper.dev" denied the request: no mine for admin`
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Error("refusal (-want +got):\n" + diff)
	}
}

// webhook serves admission reviews on localhost, and returns the authority that signed its certificate.
func webhook(
	t *testing.T, answer func(*admissionv1.AdmissionReview) *admissionv1.AdmissionResponse,
) (*httptest.Server, []byte) {
	t.Helper()
	ca, err := newAuthority("webhook")
	if err != nil {
		t.Fatal(err)
	}
	certificate, key, err := ca.issue(pkix.Name{CommonName: "webhook"}, "localhost")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = answer(&review)
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, ca.bundle()
}

// TestAClusterCanBeAway does not run in parallel: it disturbs other tests of its cluster.
func TestAClusterCanBeAway(t *testing.T) {
	cluster := shared.Management
	c := clientOf(t, cluster)
	ns := namespace(t, c)
	create(t, c, deployment(ns, "nginx:1.27", 1))
	read := func(ctx context.Context) error {
		return c.Get(ctx, client.ObjectKey{Name: ns}, &corev1.Namespace{})
	}

	if err := cluster.Pause(); err != nil {
		t.Fatal(err)
	}
	brief, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := read(brief); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("asking a frozen API server: %v, want %v", err, context.DeadlineExceeded)
	}
	if err := cluster.Resume(); err != nil {
		t.Fatal(err)
	}
	await.Eventually(t, "an answer after the pause", read)

	if err := cluster.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	if err := read(t.Context()); !net.IsConnectionRefused(err) {
		t.Errorf("asking a stopped API server: %v, want the connection refused", err)
	}
	if err := cluster.Pause(); err == nil {
		t.Error("a stopped API server can be paused")
	}
	if err := cluster.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := cluster.StartAPIServer(t.Context()); err == nil {
		t.Error("an API server can be started twice")
	}
	if err := read(t.Context()); err != nil {
		t.Errorf("what there was before is lost: %v", err)
	}
	if err := cluster.RestartControllers(); err != nil {
		t.Fatal(err)
	}
	d := deployment(ns, "nginx:1.27", 1)
	if err := c.Patch(t.Context(), d, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":2}}`))); err != nil {
		t.Fatal(err)
	}
	await.Eventually(t, "controllers, scheduler and nodes to go on", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}
		if d.Status.ReadyReplicas != 2 {
			return errors.New("no second Pod is ready")
		}
		return nil
	})
}

func TestRequestsAboutShippersKindsAreNoted(t *testing.T) {
	t.Parallel()
	o := &unstructured.UnstructuredList{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "shipper.booking.com", Version: "v1alpha1", Kind: "BerthList"})
	if err := clientOf(t, shared.Management).List(t.Context(), o, client.InNamespace("harbour")); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(shared.Management.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(log), "/namespaces/harbour/berths") || strings.Contains(string(log), `"resource":"namespaces"`) {
		t.Errorf("the audit log is not about Shipper's kinds:\n%s", log)
	}
}
