// SPDX-License-Identifier: Apache-2.0

package reviewpath

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"shipper.dev/shipper/certs"
)

var secretName = types.NamespacedName{Namespace: "shipper-system", Name: "shipper-webhook-cert"}

const name = "shipper.booking.com"

// stored is a client of a store with both webhook configurations, and no Secret. They have the paths of an older version.
func stored(t *testing.T, funcs interceptor.Funcs) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := certs.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	service := func(path string) admissionv1.WebhookClientConfig {
		return admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Path: &path}}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(funcs).WithObjects(
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionv1.ValidatingWebhook{
			{Name: "application.shipper.booking.com", ClientConfig: service("/validate-application")},
			{ClientConfig: admissionv1.WebhookClientConfig{URL: ptr.To("https://localhost:9443/base/validate-release")}},
			{Name: "collected.cluster.shipper.booking.com", ClientConfig: service("/validate-cluster")},
			{Name: "application.example.com", ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{}}},
		}},
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionv1.MutatingWebhook{
			{Name: "mutate.application.shipper.booking.com", ClientConfig: service("/mutate-application")},
		}},
	).Build()
}

// process is a new replica. Its cache is cached.
func process(t *testing.T, c client.WithWatch, cached client.Reader) *Path {
	return &Path{
		ctx: t.Context(), secret: secretName, name: name, lifetime: 90 * 24 * time.Hour,
		cached: cached, api: c, writer: c, clock: clock.RealClock{}, log: logr.Discard(),
	}
}

// settle runs p until it rests.
func settle(t *testing.T, p *Path) reconcile.Result {
	t.Helper()
	for range 20 {
		result, err := p.Reconcile(t.Context(), reconcile.Request{})
		if err != nil && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		if err == nil && result.RequeueAfter > time.Second {
			return result
		}
	}
	t.Fatal("it never rests")
	return reconcile.Result{}
}

// upToDate is a replica that has replaced the paths of an older version.
func upToDate(t *testing.T, c client.WithWatch) *Path {
	t.Helper()
	p := process(t, c, c)
	settle(t, p)
	time.Sleep(patience)
	settle(t, p)
	time.Sleep(overlap)
	settle(t, p)
	return p
}

// paths are those in the configurations.
func paths(t *testing.T, c client.Reader) []string {
	t.Helper()
	s, err := process(t, nil, nil).observe(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range s.configurations {
		out = append(out, c.paths...)
	}
	return out
}

// reset writes the path without a token into the mutating configuration, as an apply of an older version's manifests does.
func reset(t *testing.T, c client.Client) {
	t.Helper()
	write(t, c, ptr.To("/mutate-application"))
}

// write writes the path of the mutating configuration; nil is none.
func write(t *testing.T, c client.Client, path *string) {
	t.Helper()
	configuration := &admissionv1.MutatingWebhookConfiguration{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: name}, configuration); err != nil {
		t.Fatal(err)
	}
	configuration.Webhooks[0].ClientConfig.Service.Path = path
	if err := c.Update(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
}

// token is the one in the Secret.
func token(t *testing.T, c client.Reader) string {
	t.Helper()
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), secretName, secret); err != nil {
		t.Fatal(err)
	}
	return read(secret.Data).token
}

// post is the code of the answer to a request at a path.
func post(t *testing.T, p *Path, path string) int {
	t.Helper()
	hooks := map[string]bool{"/mutate-application": true, "/validate-application": true}
	handler := p.Gate(func(hook string) bool { return hooks[hook] }, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hooks[r.URL.Path] {
			t.Errorf("%s was passed on as %s", path, r.URL.Path)
		}
		w.WriteHeader(http.StatusOK)
	}))
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path+"?timeout=5s", nil))
	return recorder.Code
}

// answers compares the codes for paths.
func answers(t *testing.T, when string, p *Path, want map[string]int) {
	t.Helper()
	got := map[string]int{}
	for path := range want {
		got[path] = post(t, p, path)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

var errKilled = errors.New("killed")

func TestConfigurationsGetThePathWhicheverWriteFails(t *testing.T) {
	killing := interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return errors.Join(c.Patch(ctx, o, p, opts...), errKilled)
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return errors.Join(c.Apply(ctx, o, opts...), errKilled)
		},
	}
	for sentence, funcs := range map[string]interceptor.Funcs{"none fails": {}, "each fails": killing} {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := stored(t, funcs)
				p := process(t, c, c)
				settle(t, p)
				time.Sleep(patience)
				settle(t, p)
				secret := token(t, c)
				want := []string{
					"/" + secret + "/validate-application", "https://localhost:9443/base/" + secret + "/validate-release",
					"/" + secret + "/validate-cluster",
					"/" + secret + "/mutate-application",
				}
				if diff := cmp.Diff(want, paths(t, c)); diff != "" || !isToken(secret) {
					t.Errorf("token %q, paths (-want +got):\n%s", secret, diff)
				}
			})
		})
	}
}

func TestOnlyTheSecretPathIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := stored(t, interceptor.Funcs{})
		p := process(t, c, c)
		answers(t, "before anything was read", p, map[string]int{"/mutate-application": 200, "/mutate-else": 404})
		settle(t, p)
		time.Sleep(patience)
		settle(t, p)
		secret, guessed := token(t, c), NewToken()
		answers(t, "while API servers may have the path of the manifests", p, map[string]int{
			"/mutate-application": 200, "/" + secret + "/mutate-application": 200, "/" + guessed + "/mutate-application": 404,
		})
		time.Sleep(overlap)
		answers(t, "later", p, map[string]int{
			"/mutate-application": 404, "/" + secret + "/mutate-application": 200, "/" + secret + "/validate-application": 200,
			"/" + secret[:25] + "/mutate-application": 404, "/" + secret: 404, "/" + secret + "/mutate-else": 404, "/": 404,
			"/base/" + secret + "/mutate-application": 404, "/" + secret + "/" + secret + "/mutate-application": 404,
			"/" + guessed + "/mutate-application": 404, "//mutate-application": 404,
		})
		answers(t, "of a replica that has just started", process(t, c, c), map[string]int{
			"/mutate-application": 404, "/" + secret + "/mutate-application": 200,
		})
	})
}

// A tool that applies the manifests again names the path without a token. API servers may know that before this replica's cache.
func TestAPathThatIsResetIsAnsweredUntilItIsPutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := stored(t, interceptor.Funcs{})
		upToDate(t, c)
		old := stored(t, interceptor.Funcs{}) // a cache of the time before the reset
		upToDate(t, old)
		p := process(t, c, old)
		settle(t, p)
		answers(t, "before", p, map[string]int{"/mutate-application": 404})
		for range 3 {
			reset(t, c)
			answers(t, "after the reset, before the cache has it", p, map[string]int{"/mutate-application": 200})
			p.cached = c
			if result := settle(t, p); result.RequeueAfter != patience || paths(t, c)[3] != "/mutate-application" {
				t.Errorf("it is put back before replicas of an older version are gone, or after %s", result.RequeueAfter)
			}
			time.Sleep(patience)
			settle(t, p)
			if diff := cmp.Diff("/"+token(t, c)+"/mutate-application", paths(t, c)[3]); diff != "" {
				t.Errorf("it is not put back (-want +got):\n%s", diff)
			}
			answers(t, "once it is put back", p, map[string]int{"/mutate-application": 200})
			time.Sleep(overlap)
			answers(t, "some minutes later", p, map[string]int{"/mutate-application": 404})
		}
	})
}

func TestAnotherTokenIsReplacedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := stored(t, interceptor.Funcs{})
		p := upToDate(t, c)
		for range 3 {
			other := "/" + NewToken() + "/mutate-application"
			write(t, c, &other)
			settle(t, p)
			if got := paths(t, c)[3]; got == other {
				t.Error("it is not replaced")
			}
			write(t, c, &other)
			if result := settle(t, p); result.RequeueAfter != pause || paths(t, c)[3] != other {
				t.Errorf("it is replaced a second time after %s", result.RequeueAfter)
			}
			answers(t, "meanwhile", p, map[string]int{other: 200, "/" + token(t, c) + "/mutate-application": 200})
			time.Sleep(pause)
			settle(t, p)
			time.Sleep(pause + overlap)
			answers(t, "later", p, map[string]int{other: 404})
		}
	})
}

// A tool that replaces the configuration takes the path away: then API servers find no webhook.
func TestAPathThatIsMissingIsPutBackAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := stored(t, interceptor.Funcs{})
		write(t, c, nil)
		p := process(t, c, c)
		if err := p.Ready(nil); err == nil {
			t.Error("it is ready before API servers find it")
		}
		for range 3 {
			settle(t, p)
			if want, got := "/"+token(t, c)+"/mutate-application", paths(t, c)[3]; got != want || p.Ready(nil) != nil {
				t.Errorf("the path is %s, want %s; ready: %v", got, want, p.Ready(nil))
			}
			time.Sleep(pause)
			settle(t, p)
			write(t, c, nil)
		}
	})
}

func TestNamesOfWebhooksSayWhereTheyAre(t *testing.T) {
	for name, want := range map[string]string{
		"application.shipper.booking.com": "/validate-application", "collected.release.shipper.booking.com": "/validate-release",
		"mutate.sequencerun.shipper.booking.com": "/mutate-sequencerun", "application.example.com": "", "a.b.shipper.booking.com": "", "": "",
	} {
		if got := HookOf(name); got != want {
			t.Errorf("%q is at %q, want %q", name, got, want)
		}
	}
}

func TestAnOldPathIsReplacedAndAnsweredForSomeMinutes(t *testing.T) {
	for sentence, age := range map[string]func(*testing.T, client.Client){
		"by age": func(*testing.T, client.Client) { time.Sleep(90 * 24 * time.Hour) },
		"once its Secret is deleted": func(t *testing.T, c client.Client) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secretName.Namespace, Name: secretName.Name}}
			if err := c.Delete(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := stored(t, interceptor.Funcs{})
				p := upToDate(t, c)
				before := token(t, c)
				age(t, c)
				settle(t, p)
				now := token(t, c)
				if now == before {
					t.Error("the token is the same")
				}
				answers(t, "at first", p, map[string]int{"/" + before + "/mutate-application": 200, "/" + now + "/mutate-application": 200})
				time.Sleep(overlap)
				answers(t, "later", p, map[string]int{"/" + before + "/mutate-application": 404, "/" + now + "/mutate-application": 200})
			})
		})
	}
}

func TestUnknownPathsReadOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads, fails := 0, false
		c := stored(t, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if fails {
					return errors.New("no answer")
				}
				if key == secretName {
					reads++
				}
				return c.Get(ctx, key, o, opts...)
			},
		})
		p := upToDate(t, c)
		reads = 0
		began := time.Now()
		for range 10 {
			done := make(chan int)
			for range 100 {
				go func() { done <- post(t, p, "/mutate-application") }()
			}
			for range 100 {
				if code := <-done; code != http.StatusNotFound {
					t.Errorf("got %d", code)
				}
			}
		}
		// A request that comes while a read is on its way waits for the next one.
		if took := time.Since(began); reads > 11 || took > 10*time.Second {
			t.Errorf("1,000 requests made %d reads in %s", reads, took)
		}
		fails = true
		answers(t, "without an API server", p, map[string]int{
			"/mutate-application": 503, "/" + NewToken() + "/mutate-application": 503, "/mutate-else": 404,
		})
	})
}
