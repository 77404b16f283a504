// SPDX-License-Identifier: Apache-2.0

package repository_test

import (
	"context"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/outward"
	"shipper.dev/shipper/test/charts"
)

// secrets are the data of Secrets, by namespace/name. The entry forURL is not data, but the URL that the Secret is marked for.
type secrets map[string]map[string]string

const forURL = "marked for"

func (s secrets) read(_ context.Context, namespace, name string) (*corev1.Secret, error) {
	resource := schema.GroupResource{Resource: "secrets"}
	held, ok := s[namespace+"/"+name]
	switch {
	case namespace == "closed":
		return nil, apierrors.NewForbidden(resource, name, errors.New("no binding"))
	case namespace == "away":
		return nil, errors.New("no answer")
	case !ok:
		return nil, apierrors.NewNotFound(resource, name)
	}
	out := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{}}
	for key, value := range held {
		if key != forURL {
			out.Data[key] = []byte(value)
			continue
		}
		out.Labels = map[string]string{shipper.RepositoryCredentialsLabel: "true"}
		out.Annotations = map[string]string{shipper.RepositoryURLAnnotation: value}
	}
	return out, nil
}

// protected serves the index of nginx 0.0.1 over TLS to requests with this authorization.
type protected struct {
	*httptest.Server
	archive charts.Archive
}

func protect(t *testing.T, header string) *protected {
	t.Helper()
	archive, err := charts.Get("nginx", "0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	p := &protected{archive: archive}
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != header {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte("apiVersion: v1\nentries:\n  nginx:\n  - name: nginx\n    version: 0.0.1\n    urls: [nginx.tgz]\n    digest: " +
			archive.Digest + "\n"))
	}))
	t.Cleanup(p.Close)
	return p
}

// ca is the authority that vouches for the server.
func (p *protected) ca() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw}))
}

func (p *protected) chart(secret string) shipper.Chart {
	return shipper.Chart{Name: "nginx", Version: "0.0.1", RepoURL: p.URL, Credentials: shipper.ChartCredentials{SecretName: secret}}
}

const basic = "Basic YW5uOnMzY3JldA==" // ann:s3cret

func TestCredentialsOpenARepository(t *testing.T) {
	for sentence, tc := range map[string]struct {
		header  string
		secret  map[string]string
		failure string
	}{
		"a name and a password":   {basic, map[string]string{"username": "ann", "password": "s3cret"}, ""},
		"a token":                 {"Bearer t0ken", map[string]string{"token": "t0ken"}, ""},
		"an authority alone":      {"", map[string]string{}, ""},
		"another password":        {basic, map[string]string{"username": "ann", "password": "other"}, "credentials of Secret team/opener"},
		"a token and a name":      {basic, map[string]string{"username": "ann", "token": "t0ken"}, "has both token and username"},
		"a password and no name":  {basic, map[string]string{"password": "s3cret"}, "Secret team/opener has password without username"},
		"an authority of no form": {basic, map[string]string{"username": "ann", "ca.crt": "s3cret"}, "has no certificate in PEM under ca.crt"},
		"a certificate, no key":   {basic, map[string]string{"username": "ann", "tls.crt": "s3cret"}, "under tls.crt and tls.key"},
	} {
		t.Run(sentence, func(t *testing.T) {
			p := protect(t, tc.header)
			if tc.secret["ca.crt"] == "" {
				tc.secret["ca.crt"] = p.ca()
			}
			tc.secret[forURL] = p.URL
			s := newEnv(t, func(o *repository.Options) {
				o.Secrets, o.Repositories = secrets{"team/opener": tc.secret}.read, anywhereHere(t)
			})
			got, err := s.Resolve(t.Context(), "team", p.chart("opener"))
			if tc.failure == "" {
				if diff := cmp.Diff(repository.Resolution{Version: "0.0.1", Digest: p.archive.Digest}, got); diff != "" || err != nil {
					t.Errorf("%v (-want +got)\n%s", err, diff)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.failure) {
				t.Errorf("got %v, want %s", err, tc.failure)
			}
			for _, secret := range []string{"s3cret", "t0ken", basic} {
				if err != nil && strings.Contains(err.Error(), secret) {
					t.Errorf("%s got: %v", secret, err)
				}
			}
		})
	}
}

// anywhereHere allows this machine, over TLS too.
func anywhereHere(t *testing.T) outward.Policy {
	t.Helper()
	policy, err := outward.ParsePolicy(charts.URLs + ",https://127.0.0.1:*")
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

func TestCredentialsThatCannotBeRead(t *testing.T) {
	s := newEnv(t, func(o *repository.Options) { o.Secrets = secrets{}.read })
	of := s.chart("nginx", "0.0.1")
	of.Credentials.SecretName = "opener"
	for namespace, want := range map[string]failure{
		"closed": {"ChartFetchFailure", "Shipper may not read Secret closed/opener; who owns the namespace may let it read the Secrets there: " +
			"kubectl create rolebinding shipper-namespace-reader -n closed --clusterrole=shipper-namespace-reader " +
			"--serviceaccount=shipper-system:shipper-mgmt-cluster", true, chart.ErrCredentials},
		"empty": {"ChartFetchFailure", "there is no Secret empty/opener", true, chart.ErrCredentials},
		"away":  {"ChartFetchFailure", "reading Secret away/opener: no answer", true, nil},
	} {
		_, err := s.Resolve(t.Context(), namespace, of)
		if diff := cmp.Diff(want, read(t, err), same); diff != "" {
			t.Errorf("%s (-want +got)\n%s", namespace, diff)
		}
	}
	if n := s.repo.Requests(""); n > 0 {
		t.Errorf("the repository was asked %d times", n)
	}
}

// What one Secret opens is closed to all others, also while it is in memory.
func TestContentBehindCredentialsIsNotServedToOthers(t *testing.T) {
	repo := charts.Serve(t)
	guarded := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != basic {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		repo.ServeHTTP(w, r)
	}))
	t.Cleanup(guarded.Close)
	right := map[string]string{"username": "ann", "password": "s3cret", forURL: guarded.URL}
	wrong := map[string]string{"username": "ann", "password": "guess", forURL: guarded.URL}
	held := secrets{"team/opener": right, "team/second": right, "team/wrong": wrong, "others/opener": wrong}
	s := newEnv(t, func(o *repository.Options) { o.Secrets, o.CacheDir = held.read, t.TempDir() })
	named := func(secret string) shipper.Chart {
		return shipper.Chart{
			Name: "nginx", Version: "0.0.1", RepoURL: guarded.URL + "/charts", Credentials: shipper.ChartCredentials{SecretName: secret},
		}
	}
	resolved, err := s.Resolve(t.Context(), "team", named("opener"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context(), "team", named("opener"), resolved.Digest); err != nil {
		t.Fatal(err)
	}
	for who, of := range map[string]struct{ namespace, secret string }{
		"nobody": {"team", ""}, "a guess": {"team", "wrong"}, "another namespace": {"others", "opener"},
	} {
		if got, err := s.Resolve(t.Context(), of.namespace, named(of.secret)); err == nil {
			t.Errorf("%s got %+v", who, got)
		}
		if _, err := s.Load(t.Context(), of.namespace, named(of.secret), resolved.Digest); err == nil {
			t.Errorf("%s was given the archive", who)
		}
	}
	if _, err := s.Load(t.Context(), "team", named("second"), resolved.Digest); err != nil {
		t.Errorf("another Secret that opens it: %v", err)
	}
	// With another password the cache is another, too.
	held["team/opener"] = wrong
	if got, err := s.Resolve(t.Context(), "team", named("opener")); err == nil {
		t.Errorf("with the password of before, %+v", got)
	}
}

func TestCredentialsGoToNoOtherServer(t *testing.T) {
	var elsewhere []string
	archive, err := charts.Get("nginx", "0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		elsewhere = append(elsewhere, r.Header.Get("Authorization"))
		_, _ = w.Write(archive.Bytes)
	}))
	t.Cleanup(other.Close)
	for how, entry := range map[string]string{"by a redirect": "nginx.tgz", "by the index": other.URL + "/nginx.tgz"} {
		t.Run(how, func(t *testing.T) {
			elsewhere = nil
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Header.Get("Authorization") != basic:
					w.WriteHeader(http.StatusUnauthorized)
				case r.URL.Path == "/index.yaml":
					_, _ = w.Write([]byte("apiVersion: v1\nentries:\n  nginx:\n  - {name: nginx, version: 0.0.1, urls: ['" + entry + "']}\n"))
				default:
					http.Redirect(w, r, other.URL+"/nginx.tgz", http.StatusFound)
				}
			}))
			t.Cleanup(server.Close)
			s := newEnv(t, func(o *repository.Options) {
				o.Secrets = secrets{"team/opener": {"username": "ann", "password": "s3cret", forURL: server.URL}}.read
			})
			_, err := s.Load(t.Context(), "team", shipper.Chart{
				Name: "nginx", Version: "0.0.1", RepoURL: server.URL, Credentials: shipper.ChartCredentials{SecretName: "opener"},
			}, "")
			if diff := cmp.Diff([]string{""}, elsewhere); diff != "" || err != nil {
				t.Errorf("%v; what the other server was given (-want +got)\n%s", err, diff)
			}
		})
	}
}

// Where a registry has tokens given out is for the registry to say; that it is given credentials, for their Secret.
func TestATokenServerElsewhereIsGivenCredentialsOnlyWhenTheirSecretSaysSo(t *testing.T) {
	for sentence, named := range map[string]bool{"it says nothing": false, "it names that host": true} {
		t.Run(sentence, func(t *testing.T) {
			var given []string
			tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				given = append(given, r.Header.Get("Authorization"))
				_, _ = w.Write([]byte(`{"token":"for-tags"}`))
			}))
			t.Cleanup(tokens.Close)
			s, of := registryOf(t, map[string]http.HandlerFunc{"tags/list": func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer for-tags" {
					w.Header().Set("WWW-Authenticate", `Bearer realm="`+tokens.URL+`/token",service="x"`)
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				_, _ = w.Write([]byte(`{"tags":["0.0.1"]}`))
			}})
			held, want := map[string]string{"username": "ann", "password": "s3cret", forURL: of.RepoURL}, ""
			if named {
				held["tokenHost"], want = strings.TrimPrefix(tokens.URL, "http://"), basic
			}
			s.restart(func(o *repository.Options) { o.Secrets = secrets{"team/opener": held}.read })
			of.Credentials.SecretName = "opener"
			_, err := s.Resolve(t.Context(), "team", of)
			if len(given) == 0 || err != nil {
				t.Fatalf("tokens were asked for %d times: %v", len(given), err)
			}
			for _, got := range given {
				if got != want {
					t.Errorf("the server of tokens was given %q, want %q", got, want)
				}
			}
		})
	}
}
