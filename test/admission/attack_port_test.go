// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/certs/reviewpath"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/pod"
)

// secretPath is the path at which the webhook answers for hook. An attacker has it only from an error, a log or an administrator.
func secretPath(t *testing.T, hook string) string {
	t.Helper()
	path, err := pod.ReviewPath(t.Context(), admin, hook)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// forge sends a review straight to the webhook's port, without a client certificate, and returns the response. It knows the path.
func forge(t *testing.T, hook string, req *admission.Request) *admissionv1.AdmissionResponse {
	t.Helper()
	response, err := forgeAt(t.Context(), secretPath(t, hook), req)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(response.Body).Decode(&review); err != nil || review.Response == nil {
		t.Fatalf("the answer is %s: %v", response.Status, err)
	}
	return review.Response
}

// forgeAt sends a review to a path of the webhook's port.
func forgeAt(ctx context.Context, path string, req *admission.Request) (*http.Response, error) {
	req.Kind = metav1.GroupVersionKind{Group: shipper.GroupName, Version: shipper.GroupVersion.Version, Kind: "Application"}
	req.UserInfo.Groups = []string{"system:masters", "system:serviceaccounts", "system:authenticated"}
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: &req.AdmissionRequest,
	})
	if err != nil {
		return nil, err
	}
	at := fmt.Sprintf("https://127.0.0.1:%d%s?timeout=10s", gate.port, path)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	//nolint:gosec // an attacker does not verify the server
	sender := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	return sender.Do(request)
}

// Otherwise a caller that reaches the port reads what Releases, Shipyards and runs contain, from the patches for forged reviews.
func TestReviewsAreAnsweredAtTheSecretPathOnly(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	// The path of the manifests is answered for some minutes after the webhook has started: end that.
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: shipper.SystemNamespace, Name: "shipper-webhook-cert"}}
	ended := client.RawPatch(types.MergePatchType, []byte(`{"data":{"review-paths-before":null}}`))
	if err := admin.Patch(t.Context(), secret, ended); err != nil {
		t.Fatal(err)
	}
	answer := func(path string) int {
		req := ask.Create("admin", ask.Application(func(app *shipper.Application) { app.Namespace = ns }))
		response, err := forgeAt(t.Context(), path, req)
		if err != nil {
			t.Error(err)
			return 0
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	env.Eventually(t, "the path of the manifests to be unknown", func(context.Context) error {
		if code := answer("/mutate-application"); code != http.StatusNotFound {
			return fmt.Errorf("it gives %d", code)
		}
		return nil
	})
	want := map[string]int{
		"/": http.StatusNotFound, secretPath(t, "/mutate"): http.StatusNotFound, secretPath(t, ""): http.StatusNotFound,
		"/" + strings.Repeat("a", 26) + "/mutate-application": http.StatusNotFound,
	}
	for _, path := range configuredPaths(t) {
		_, token, hook := reviewpath.Split(path)
		if token == "" {
			t.Errorf("the path %s has no token", path)
		}
		want[path], want[hook] = http.StatusOK, http.StatusNotFound
	}
	var all sync.WaitGroup
	for path, code := range want { // at once, because each unknown path may wait for a second
		all.Go(func() {
			if got := answer(path); got != code {
				t.Errorf("%s gives %d, want %d", path, got, code)
			}
		})
	}
	all.Wait()
}

// configuredPaths are those that the API server requests.
func configuredPaths(t *testing.T) []string {
	t.Helper()
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	key := client.ObjectKey{Name: shipper.GroupName}
	if err := errors.Join(admin.Get(t.Context(), key, mutating), admin.Get(t.Context(), key, validating)); err != nil {
		t.Fatal(err)
	}
	var out []string
	add := func(c admissionregistrationv1.WebhookClientConfig) {
		at, err := url.Parse(*c.URL)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, at.Path)
	}
	for _, w := range mutating.Webhooks {
		add(w.ClientConfig)
	}
	for _, w := range validating.Webhooks {
		add(w.ClientConfig)
	}
	return out
}

// trap is an attacker's chart repository. It serves an index, so that nothing but the webhook keeps it from being used.
type trap struct {
	*httptest.Server
	mu   sync.Mutex
	sent []string
}

func setTrap(t *testing.T) *trap {
	t.Helper()
	out := &trap{}
	out.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out.mu.Lock()
		defer out.mu.Unlock()
		out.sent = append(out.sent, strings.TrimSpace(r.URL.Path+" "+r.Header.Get("Authorization")))
		fmt.Fprint(w, "apiVersion: v1\nentries:\n  nginx:\n  - {name: nginx, version: 0.0.1, urls: [nginx-0.0.1.tgz]}\n")
	}))
	t.Cleanup(out.Close)
	return out
}

func (t *trap) requests() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sent
}

// readsOf lists the requests for one Secret that the webhook's account made.
func readsOf(t *testing.T, namespace, name string) []string {
	t.Helper()
	var out []string
	for event := range audits(t, namespace) {
		if event.ObjectRef.Resource == "secrets" && event.ObjectRef.Name == name && event.User.Username == ask.Reconciler {
			out = append(out, event.Verb)
		}
	}
	return out
}

// marked returns a Secret with a token, marked as credentials for forURL unless that is empty.
func marked(namespace, name, forURL string) *corev1.Secret {
	out := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: map[string]string{"token": "s3cret"},
	}
	if forURL != "" {
		out.Labels = map[string]string{shipper.RepositoryCredentialsLabel: "true"}
		out.Annotations = map[string]string{shipper.RepositoryURLAnnotation: forURL}
	}
	return out
}

// opening returns an Application that names a Secret for its chart's credentials, its values and its keys.
func opening(namespace, repoURL, secret string) *shipper.Application {
	return ask.Application(func(app *shipper.Application) {
		app.Namespace = namespace
		app.Spec.Template.Chart.Version = "~0.0"
		app.Spec.Template.Chart.RepoURL = repoURL
		app.Spec.Template.Chart.Credentials.SecretName = secret
	})
}

// Shipper may read a Cluster's Secret in its own namespace. The Secret is marked as credentials, so that only the namespace
// check keeps it from being sent.
func TestAForgedReviewReadsNoSecretOfACluster(t *testing.T) {
	t.Parallel()
	out := setTrap(t)
	secret := marked(shipper.SystemNamespace, "forged-eu-west", out.URL)
	create(t, admin, secret)
	ns := namespace(t)
	valuesFrom := func(app *shipper.Application) {
		app.Spec.Template.Chart.Credentials.SecretName, app.Spec.Template.Chart.Version = "", "0.0.1"
		app.Spec.Template.ValuesFrom = []shipper.ValuesSource{{SecretKeyRef: &shipper.ValuesKeyRef{Name: secret.Name, Key: "token"}}}
	}
	verify := func(app *shipper.Application) {
		app.Spec.Template.Chart.Credentials.SecretName = ""
		app.Spec.Template.Chart.Verify.SecretName = secret.Name
	}
	for sentence, tc := range map[string]struct {
		namespace string
		edit      func(*shipper.Application)
		want      string
	}{
		"of Shipper's own namespace": {shipper.SystemNamespace, nil, "reviews of namespace shipper-system are refused"},
		"with values from it":        {shipper.SystemNamespace, valuesFrom, "reviews of namespace shipper-system are refused"},
		"with keys from it":          {shipper.SystemNamespace, verify, "reviews of namespace shipper-system are refused"},
		"whose object is elsewhere":  {ns, nil, "the object is in another namespace than the request"},
		"whose values are elsewhere": {ns, valuesFrom, "the object is in another namespace than the request"},
	} {
		for _, user := range []string{ask.Reconciler, "admin"} {
			for _, path := range []string{"/mutate-application", "/validate-application"} {
				t.Run(sentence+" by "+user+" to "+path, func(t *testing.T) {
					app := opening(shipper.SystemNamespace, out.URL, secret.Name)
					if tc.edit != nil {
						tc.edit(app)
					}
					req := ask.Create(user, app)
					req.Namespace = tc.namespace
					answer := forge(t, path, req)
					// The mutating webhook does not change an object that it cannot read: the API server refuses it later.
					passed := answer.Allowed && path == "/mutate-application" && tc.namespace == ns && answer.Patch == nil
					if !passed && (answer.Allowed || !strings.Contains(answer.Result.Message, tc.want)) {
						t.Errorf("got %+v", answer)
					}
				})
			}
		}
	}
	if reads, sent := readsOf(t, shipper.SystemNamespace, secret.Name), out.requests(); len(reads)+len(sent) > 0 {
		t.Errorf("the Secret was read: %q; the attacker's repository was asked: %q", reads, sent)
	}
}

// In a namespace where Shipper may read Secrets, their owners decide which Secrets are sent, and to which URLs.
func TestAForgedReviewHasCredentialsSentNowhereElse(t *testing.T) {
	t.Parallel()
	ns, out, home := namespace(t), setTrap(t), setTrap(t)
	create(t, admin, marked(ns, "unmarked", ""), marked(ns, "of-home", home.URL+"/team"), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: shipper.NamespaceReader},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: shipper.NamespaceReader},
		Subjects: []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Namespace: shipper.SystemNamespace, Name: shipper.ManagementServiceAccount,
		}},
	})
	try := func(repoURL, secret string) *admissionv1.AdmissionResponse {
		return forge(t, "/mutate-application", ask.Create(ask.Reconciler, opening(ns, repoURL, secret)))
	}
	env.Eventually(t, "RBAC to let Shipper read", func(context.Context) error {
		if answer := try(home.URL+"/team", "of-home"); !answer.Allowed {
			return fmt.Errorf("it was refused: %s", answer.Result.Message)
		}
		return nil
	})
	for sentence, tc := range map[string]struct{ repoURL, secret, want string }{
		"unmarked, to an attacker": {out.URL, "unmarked", "does not say that it is for chart repositories"},
		"of home, to an attacker":  {out.URL, "of-home", "is for another URL than " + out.URL},
		"of home, to another team": {home.URL + "/others", "of-home", "is for another URL than " + home.URL + "/others"},
		"of home, by dots": {
			home.URL + "/team/%2e%2e/others", "of-home", "its path has a segment",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if answer := try(tc.repoURL, tc.secret); answer.Allowed || !strings.Contains(answer.Result.Message, tc.want) {
				t.Errorf("got %+v", answer)
			}
		})
	}
	if sent := out.requests(); len(sent) > 0 {
		t.Errorf("the attacker's repository was asked: %q", sent)
	}
	for _, sent := range home.requests() {
		if diff := cmp.Diff("/team/index.yaml Bearer s3cret", sent); diff != "" {
			t.Errorf("home was asked (-want +got)\n%s", diff)
		}
	}
}

// Otherwise a caller that reaches the port could have an event record that another user deleted a block.
func TestAForgedDeletionWritesNoEvent(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	b := block(t, ns)
	lifting := ask.Delete("jdoe", b)
	if answer := forge(t, "/validate-rolloutblock", lifting); !answer.Allowed {
		t.Errorf("got %+v", answer.Result)
	}
	going := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	of := ask.Delete("jdoe", going)
	of.UserInfo = authenticationv1.UserInfo{Username: "jdoe"}
	if answer := forge(t, "/validate-namespace", of); !answer.Allowed {
		t.Errorf("got %+v", answer.Result)
	}
	// The webhook writes events after its response, within milliseconds.
	wait, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	<-wait.Done()
	events := &corev1.EventList{}
	for _, where := range []string{ns, metav1.NamespaceDefault} {
		if err := admin.List(t.Context(), events, client.InNamespace(where)); err != nil {
			t.Fatal(err)
		}
		for _, event := range events.Items {
			if event.InvolvedObject.Name == b.Name || event.InvolvedObject.Name == ns {
				t.Errorf("%s: %s", event.Reason, event.Message)
			}
		}
	}
}
