// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/test/env"
)

// forge sends a review straight to the webhook's port, without a client certificate, and returns the response.
func forge(t *testing.T, path string, req *admission.Request) *admissionv1.AdmissionResponse {
	t.Helper()
	req.Kind = metav1.GroupVersionKind{Group: shipper.GroupName, Version: shipper.GroupVersion.Version, Kind: "Application"}
	req.UserInfo.Groups = []string{"system:masters", "system:serviceaccounts", "system:authenticated"}
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: &req.AdmissionRequest,
	})
	if err != nil {
		t.Fatal(err)
	}
	url := fmt.Sprintf("https://127.0.0.1:%d%s?timeout=10s", gate.port, path)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	//nolint:gosec // an attacker does not verify the server
	sender := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := sender.Do(request)
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
