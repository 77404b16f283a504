// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/outward"
)

func selector(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

// noSecrets reads none.
type noSecrets struct {
	client.Reader
	err error
}

func (n noSecrets) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return n.err
}

func TestReceiversThatAreNotUsed(t *testing.T) {
	with := func(key, value string) *corev1.Secret {
		s := secret("https://hooks.example.com" + secretPath)
		s.Data[key] = []byte(value)
		return s
	}
	const listed = "https://hooks.example.com/services"
	for sentence, tc := range map[string]struct {
		urls   string
		secret *corev1.Secret
		err    error
		want   string
	}{
		"no URL is listed": {"", secret("https://hooks.example.com" + secretPath), nil, "URLNotAllowed Secret shop/slack: the URL is not in " +
			"--outgoing-urls: https://hooks.example.com; an administrator of Shipper can add it"},
		"another is listed": {"https://other.example.com", secret("https://hooks.example.com:8443" + secretPath), nil, "URLNotAllowed Secret " +
			"shop/slack: the URL is not in --outgoing-urls: https://hooks.example.com:8443; an administrator of Shipper can add it"},
		"a part of it is listed": {listed, secret("https://hooks.example.com/hush"), nil, "URLNotAllowed Secret shop/slack: the URL is not in " +
			"--outgoing-urls: https://hooks.example.com; an administrator of Shipper can add it"},
		"an address of the machine's surroundings": {"http://*:*", secret("http://169.254.169.254/hush"), nil,
			"URLNotAllowed Secret shop/slack: 169.254.169.254 is a link-local address, which nothing is sent to"},
		"no Secret":              {listed, nil, nil, "SecretMissing there is no Secret shop/slack"},
		"a Secret without a URL": {listed, with("url", ""), nil, "SecretInvalid Secret shop/slack has no key url"},
		"a URL that is none":     {listed, with("url", "https://a b/hush"), nil, "SecretInvalid key url of Secret shop/slack is not a URL"},
		"authorities of no PEM": {listed, with("ca.crt", "hush"), nil,
			"SecretInvalid Secret shop/slack has no certificate in PEM under ca.crt"},
		"a Secret not to be read": {listed, nil, apierrors.NewForbidden(corev1.Resource("secrets"), "slack", errors.New("no")),
			"SecretForbidden Shipper may not read Secret shop/slack; the owner of the namespace may let it read the Secrets there: " +
				"kubectl create rolebinding shipper-namespace-reader -n shop --clusterrole=shipper-namespace-reader " +
				"--serviceaccount=shipper-system:shipper-mgmt-cluster"},
		"no API server": {listed, nil, errors.New("hush"), "DeliveryFailed reading Secret shop/slack: "},
	} {
		t.Run(sentence, func(t *testing.T) {
			objects := []client.Object{notification()}
			if tc.secret != nil {
				objects = append(objects, tc.secret)
			}
			f := newFixture(t, tc.urls, objects...)
			if tc.err != nil {
				f.secrets = noSecrets{err: tc.err}
			}
			f.pass()
			if got, want := f.delivering()+" ", "False "+tc.want; got != want && got != want+" " {
				t.Errorf("without an event: %s", got)
			}
			f.completes("web-1")
			if wait := f.pass(); wait != time.Second || f.status().ConsecutiveFailures != 1 {
				t.Errorf("it is tried again after %s: %+v", wait, f.status())
			}
		})
	}
}

// deniedTransport connects to no address, as for a name that resolves to one of the machine's surroundings.
type deniedTransport struct{}

func (deniedTransport) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Err: &outward.Denied{Why: "a.example is at 127.0.0.1"}}
}

func TestAnAddressThatIsDeniedIsURLNotAllowed(t *testing.T) {
	to := receiver{url: "https://a.example/hush", client: &http.Client{Transport: deniedTransport{}}}
	f := to.post(t.Context(), message{}, time.Second, noon)
	if f.reason != shipper.URLNotAllowed || f.message != "the server cannot be reached: a.example is at 127.0.0.1" {
		t.Errorf("%s: %s", f.reason, f.message)
	}
}

func TestALongMessageIsCutBetweenCharacters(t *testing.T) {
	for short := range 3 {
		b := newOutbox(notification(), maxQueued)
		b.setNotDelivering(failed("%s%s", strings.Repeat("x", short), strings.Repeat("…", maxMessage)))
		if got := b.delivering.Message; !utf8.ValidString(got) || len(got) > maxMessage || len(got) < maxMessage-5 {
			t.Errorf("%d bytes, ends with %q", len(got), got[len(got)-5:])
		}
	}
}

// TestARepairedReceiverIsNoticedWithoutAnEvent creates the Secret an hour after the Notification. Once it can be used, nothing is read.
func TestARepairedReceiverIsNoticedWithoutAnEvent(t *testing.T) {
	f := newFixture(t, here, notification())
	reads := &countingReader{Reader: f.secrets}
	f.secrets = reads
	for end := noon.Add(time.Hour); f.now.Now().Before(end); {
		wait := f.pass()
		if wait <= 0 || wait > lastRetry {
			t.Fatalf("after %d checks the next is after %s", reads.count, wait)
		}
		f.later(wait)
	}
	if reads.count < 12 || reads.count > 25 || f.status().ConsecutiveFailures != 0 {
		t.Errorf("%d checks in an hour, %+v", reads.count, f.status())
	}
	if err := f.client.Create(t.Context(), secret("http://127.0.0.1:1"+secretPath)); err != nil {
		t.Fatal(err)
	}
	if wait := f.pass(); wait != 0 || f.delivering() != "Unknown NotDelivered" {
		t.Errorf("when the Secret exists: %s, the next pass is after %s", f.delivering(), wait)
	}
	before := reads.count
	f.later(time.Hour)
	if wait := f.pass(); wait != 0 || reads.count != before {
		t.Errorf("at rest it is read %d times, the next pass is after %s", reads.count-before, wait)
	}
}

// countingReader counts reads of single objects.
type countingReader struct {
	client.Reader
	count int
}

func (c *countingReader) Get(ctx context.Context, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
	c.count++
	return c.Reader.Get(ctx, key, into, o...)
}

func TestAnAuthorityOfTheSecretIsTrusted(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) }))
	t.Cleanup(s.Close)
	hidden := secret(s.URL + secretPath)
	f := newFixture(t, "https://127.0.0.1:*", notification(), hidden)
	f.timeout = time.Second
	f.completes("web-1")
	f.pass()
	const unknown = "False DeliveryFailed the server cannot be reached: tls: failed to verify certificate: x509: certificate signed by " +
		"unknown authority"
	if got := f.delivering(); got != unknown {
		t.Errorf("without: %s", got)
	}
	hidden.Data["ca.crt"] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := f.client.Update(t.Context(), hidden); err != nil {
		t.Fatal(err)
	}
	f.later(time.Second)
	f.pass()
	if got := f.delivering(); got != "True Delivered" {
		t.Errorf("with: %s", got)
	}
}

func TestErrorsThatQuoteWhatIsSentAreNotShown(t *testing.T) {
	const want = "False DeliveryFailed the server cannot be reached: the request or the answer is no valid HTTP"
	s := newServer(t)
	hidden := secret(s.URL)
	hidden.Data["token"] = []byte("hush\nhush")
	f := newFixture(t, here, notification(), hidden)
	f.completes("web-1")
	f.pass()
	if got := f.delivering(); got != want {
		t.Errorf("a token that is no header: %s", got)
	}
	s.does(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "://hush")
		w.WriteHeader(http.StatusFound)
	})
	f = newFixture(t, here, notification(), secret(s.URL))
	f.completes("web-1")
	f.pass()
	if got := f.delivering(); got != want {
		t.Errorf("a redirect to no URL: %s", got)
	}
}

// TestALeaderThatBeginsSendsWhatIsYounger gives the Releases that there are to new reconcilers.
func TestALeaderThatBeginsSendsWhatIsYounger(t *testing.T) {
	complete := func(at int) *shipper.Release {
		return release(achieved(2, at), condition(shipper.ReleaseComplete, "True", at), under("Complete"))
	}
	for sentence, tc := range map[string]struct {
		mark, at, want int
	}{
		"a change from before the Notification":               {0, -70, 0},
		"one from after it":                                   {0, -50, 1},
		"one of the same second":                              {0, -60, 1},
		"one from before it, with a mark of seconds after it": {-50, -63, 0},
		"one from after it, with a mark of seconds after it":  {-50, -58, 1},
		"one from before the mark":                            {100, 80, 0},
		"one that may not have been seen":                     {100, 90, 1},
		"one from after the mark":                             {100, 120, 1},
	} {
		s := newServer(t)
		f := newFixture(t, here, notification(func(n *shipper.Notification) {
			if tc.mark != 0 {
				n.Status.DeliveredUpToTime = &metav1.Time{Time: after(tc.mark).Time}
			}
		}), secret(s.URL))
		f.later(200 * time.Second)
		f.sees(nil, complete(tc.at))
		f.pass()
		if got := len(s.got()); got != tc.want {
			t.Errorf("%s: %d messages", sentence, got)
		}
	}
}

// TestNoEventIsLostInAnOutageWithTwoLeaderChanges queues the younger event first. The server accepts it and then fails until a third
// process leads.
func TestNoEventIsLostInAnOutageWithTwoLeaderChanges(t *testing.T) {
	completed := func(name string, at int) *shipper.Release {
		rel := release(achieved(2, at), condition(shipper.ReleaseComplete, "True", at), under("Complete"))
		rel.Name, rel.UID = name, types.UID("uid of "+name)
		return rel
	}
	s := newServer(t)
	f := newFixture(t, here, notification(), secret(s.URL))
	f.later(400 * time.Second)
	leads := func() {
		f.Reconciler = newReconciler(f.client, f.client, Options{Namespace: f.namespace, Clock: f.now, URLs: f.urls})
		f.sees(nil, completed("younger", 300))
		f.sees(nil, completed("older", 100))
		f.pass()
	}
	accepted := map[any]bool{}
	s.does(func(w http.ResponseWriter, _ *http.Request) {
		if len(s.got()) > 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	leads()
	accepted[s.got()[0]["subject"]] = true
	if got := f.status().DeliveredUpToTime; !got.Time.Equal(noon.Add(100 * time.Second)) {
		t.Errorf("while the older event is queued, the mark is %s", got)
	}
	s.does(nil)
	leads()
	for _, message := range s.got() {
		accepted[message["subject"]] = true
	}
	if !accepted["shop/younger"] || !accepted["shop/older"] {
		t.Errorf("accepted: %v", accepted)
	}
	if got := f.status().DeliveredUpToTime; !got.Time.Equal(noon.Add(300 * time.Second)) {
		t.Errorf("when all are delivered, the mark is %s", got)
	}
}

// TestTheMarkBecomesThePresent keeps the next leader from sending what was delivered again.
func TestTheMarkBecomesThePresent(t *testing.T) {
	s := newServer(t)
	f := newFixture(t, here, notification(), secret(s.URL))
	f.later(10 * time.Second)
	f.completes("web-1")
	f.later(f.pass())
	if wait := f.pass(); wait != 0 || !f.status().DeliveredUpToTime.Time.Equal(noon.Add(10*time.Second+quietAfter)) {
		t.Errorf("the next pass is after %s: %+v", wait, f.status())
	}
	next := newReconciler(f.client, f.client, Options{Namespace: f.namespace, Clock: f.now, URLs: f.urls})
	f.Reconciler = next
	f.sees(nil, release(achieved(2, 9), condition(shipper.ReleaseComplete, "True", 9), under("Complete")))
	f.pass()
	if got := len(s.got()); got != 1 {
		t.Errorf("there are %d messages", got)
	}
}
