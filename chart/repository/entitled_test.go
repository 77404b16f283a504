// SPDX-License-Identifier: Apache-2.0

package repository_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/outward"
)

// resolvedWith resolves the chart of an Application of namespace team at repoURL with a Secret of this metadata, and returns
// the error and whatever the transport was given.
func resolvedWith(t *testing.T, repoURL string, meta metav1.ObjectMeta) (sent []*http.Request, err error) {
	t.Helper()
	policy, err := outward.ParsePolicy("https://*:*, http://*:*")
	if err != nil {
		t.Fatal(err)
	}
	meta.Namespace, meta.Name = "team", "opener"
	c := repository.NewCatalog(t.Context(), repository.Options{
		Repositories: policy,
		Transport: transport(func(r *http.Request) (*http.Response, error) {
			sent = append(sent, r)
			return nil, errors.New("nothing is here")
		}),
		Secrets: func(context.Context, string, string) (*corev1.Secret, error) {
			return &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"username": []byte("ann"), "password": []byte("s3cret")}}, nil
		},
	})
	_, err = c.Resolve(t.Context(), "team", shipper.Chart{
		Name: "nginx", Version: "0.0.1", RepoURL: repoURL, Credentials: shipper.ChartCredentials{SecretName: "opener"},
	})
	return sent, err
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func marked(to string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Labels:      map[string]string{shipper.RepositoryCredentialsLabel: "true"},
		Annotations: map[string]string{shipper.RepositoryURLAnnotation: to},
	}
}

func TestCredentialsAreSentOnlyBelowTheURLThatTheirSecretNames(t *testing.T) {
	const team = "https://charts.example.com/team/"
	for sentence, tc := range map[string]struct {
		to, repoURL string
		sent        bool
	}{
		"the URL itself":                        {team, "https://charts.example.com/team", true},
		"a folder below":                        {team, "https://charts.example.com/team/stable/", true},
		"the host in capital letters, its port": {team, "https://CHARTS.example.com.:443/team", true},
		"a space, encoded alike":                {"https://charts.example.com/my%20team", "https://charts.example.com/my%20team/a", true},
		"a whole host":                          {"https://charts.example.com", "https://charts.example.com/any/folder", true},
		"another host":                          {team, "https://attacker.example.com/team", false},
		"a host that begins alike":              {"https://charts.example.com", "https://charts.example.com.attacker.net", false},
		"the host as a user name":               {"https://charts.example.com", "https://charts.example.com@attacker.net", false},
		"a user name":                           {team, "https://ann@charts.example.com/team", false},
		"another port":                          {team, "https://charts.example.com:8443/team", false},
		"another scheme":                        {team, "http://charts.example.com/team", false},
		"a registry":                            {team, "oci://charts.example.com/team", false},
		"the folder above":                      {team, "https://charts.example.com/", false},
		"a folder that begins alike":            {team, "https://charts.example.com/team-of-others", false},
		"a folder in capital letters":           {team, "https://charts.example.com/TEAM", false},
		"dots that lead out":                    {team, "https://charts.example.com/team/../others", false},
		"encoded dots":                          {team, "https://charts.example.com/team/%2e%2E/others", false},
		"dots, encoded twice":                   {team, "https://charts.example.com/team/%252e%252e/others", false},
		"dots with a parameter":                 {team, "https://charts.example.com/team/..;x/others", false},
		"an encoded slash":                      {team, "https://charts.example.com/team/..%2fothers", false},
		"an encoded backslash":                  {team, "https://charts.example.com/team/..%5Cothers", false},
		"a backslash":                           {team, `https://charts.example.com/team/..\others`, false},
		"a slash in place of a name":            {team, "https://charts.example.com/%2fteam", false},
		"the folder as a query":                 {team, "https://charts.example.com/?/team/", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			sent, err := resolvedWith(t, tc.repoURL, marked(tc.to))
			if tc.sent != (len(sent) > 0) || err == nil || tc.sent && errors.Is(err, chart.ErrCredentials) {
				t.Errorf("%d requests were sent: %v", len(sent), err)
			}
			for _, request := range sent {
				if request.Header.Get("Authorization") != basic {
					t.Errorf("%s was asked without credentials", request.URL)
				}
			}
		})
	}
}

func TestASecretThatIsNotMarkedForRepositoriesIsNotUsed(t *testing.T) {
	const repoURL = "https://charts.example.com/team"
	const command = "kubectl label secret opener -n team --overwrite shipper.booking.com/repository-credentials=true && " +
		"kubectl annotate secret opener -n team --overwrite shipper.booking.com/repository-url=" + repoURL
	unmarked := "Secret team/opener does not say that it is for chart repositories, and for which URL: its owner allows that by: " + command
	wrong := func(how string) string {
		return "Secret team/opener has an annotation shipper.booking.com/repository-url that " + how + "; its owner corrects that by: " + command
	}
	noLabel, noAnnotation, falseLabel := marked(repoURL), marked(""), marked(repoURL)
	noLabel.Labels, noAnnotation.Annotations = nil, nil
	falseLabel.Labels = map[string]string{shipper.RepositoryCredentialsLabel: "false"}
	for sentence, tc := range map[string]struct {
		meta metav1.ObjectMeta
		want string
	}{
		"neither":                {metav1.ObjectMeta{}, unmarked},
		"no label":               {noLabel, unmarked},
		"a label that says no":   {falseLabel, unmarked},
		"no annotation":          {noAnnotation, unmarked},
		"no URL":                 {marked(""), wrong("is not a URL such as https://charts.example.com/team")},
		"a host alone":           {marked("charts.example.com"), wrong("is not a URL such as https://charts.example.com/team")},
		"every host":             {marked("https://*"), wrong("must name one host, without *")},
		"every host of a domain": {marked("https://*.example.com/"), wrong("must name one host, without *")},
		"another scheme":         {marked("ftp://charts.example.com"), wrong("must begin with https://, http:// or oci://")},
		"a password": {
			marked("https://ann:s3cret@charts.example.com"), wrong("must have neither user name, password, query nor fragment"),
		},
		"dots": {marked("https://charts.example.com/team/.."), wrong(`must have a plain path, without ".", "..", \ or encoded slashes`)},
		"another URL": {
			marked("https://other.example.com/"),
			"Secret team/opener is for another URL than " + repoURL + ": credentials are sent only to the URL in its annotation " +
				"shipper.booking.com/repository-url and below; use a repository there or, if this server may have them, " +
				"its owner allows that by: " + command,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			sent, err := resolvedWith(t, repoURL, tc.meta)
			got := read(t, err)
			if diff := cmp.Diff(failure{"ChartFetchFailure", tc.want, true, chart.ErrCredentials}, got, same); diff != "" || len(sent) > 0 {
				t.Errorf("%d requests were sent; (-want +got)\n%s", len(sent), diff)
			}
		})
	}
}

// The owner of the Secret runs the command in a refusal; the author of the Application wrote the URL in it.
func TestACommandInARefusalHoldsNoTextThatAShellRuns(t *testing.T) {
	_, err := resolvedWith(t, "https://charts.example.com/$(id)&'x'", metav1.ObjectMeta{})
	if err == nil || !strings.HasSuffix(err.Error(), "repository-url=URL") {
		t.Errorf("got %v", err)
	}
}

func TestNoSecretOfShippersOwnNamespaceIsRead(t *testing.T) {
	var reads []string
	s := newEnv(t, func(o *repository.Options) {
		o.Secrets = func(_ context.Context, namespace, name string) (*corev1.Secret, error) {
			reads = append(reads, namespace+"/"+name)
			meta := marked("http://127.0.0.1")
			return &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"token": []byte("of-a-cluster")}}, nil
		}
	})
	opened, verified := s.chart("nginx", "0.0.1"), s.chart("nginx", "0.0.1")
	opened.Credentials.SecretName, verified.Verify.SecretName = "eu-west-1", "eu-west-1"
	_, resolved := s.Resolve(t.Context(), shipper.SystemNamespace, opened)
	_, loaded := s.Load(t.Context(), shipper.SystemNamespace, opened, "")
	known := s.Verifiable(t.Context(), shipper.SystemNamespace, verified, "")
	if !errors.Is(resolved, chart.ErrCredentials) || !errors.Is(loaded, chart.ErrCredentials) || !errors.Is(known, chart.ErrKeys) {
		t.Errorf("resolving: %v\nloading: %v\nverifying: %v", resolved, loaded, known)
	}
	if len(reads) > 0 || s.repo.Requests("") > 0 {
		t.Errorf("read %q, and asked the repository %d times", reads, s.repo.Requests(""))
	}
}

func TestARedirectOutOfTheURLOfASecretIsFollowedWithoutCredentials(t *testing.T) {
	var given []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given = append(given, r.URL.Path+" "+r.Header.Get("Authorization"))
		if r.URL.Path == "/team/index.yaml" {
			http.Redirect(w, r, "/others/index.yaml", http.StatusFound)
		}
	}))
	t.Cleanup(server.Close)
	s := newEnv(t, func(o *repository.Options) {
		o.Secrets = secrets{"team/opener": {"username": "ann", "password": "s3cret", forURL: server.URL + "/team"}}.read
	})
	_, err := s.Resolve(t.Context(), "team", shipper.Chart{
		Name: "nginx", Version: "0.0.1", RepoURL: server.URL + "/team", Credentials: shipper.ChartCredentials{SecretName: "opener"},
	})
	if err == nil {
		t.Error("an empty index was taken for one")
	}
	if diff := cmp.Diff([]string{"/team/index.yaml " + basic, "/others/index.yaml "}, given); diff != "" {
		t.Errorf("what the server was given (-want +got)\n%s", diff)
	}
}

// An index that was read with a Secret for one URL is not used after the Secret is marked for another URL.
func TestAnotherURLOfASecretIsTakenUpAtOnce(t *testing.T) {
	p := protect(t, basic)
	held := map[string]string{"username": "ann", "password": "s3cret", "ca.crt": p.ca(), forURL: p.URL}
	s := newEnv(t, func(o *repository.Options) {
		o.Secrets, o.Repositories = secrets{"team/opener": held}.read, anywhereHere(t)
	})
	if _, err := s.Resolve(t.Context(), "team", p.chart("opener")); err != nil {
		t.Fatal(err)
	}
	held[forURL] = "https://other.example.com"
	if got, err := s.Resolve(t.Context(), "team", p.chart("opener")); err == nil {
		t.Errorf("got %+v", got)
	}
}
