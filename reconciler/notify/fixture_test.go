// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/outward"
)

// here lists the test's own servers.
const here = "http://127.0.0.1:*"

// secretPath is the part of a URL that must not be shown.
const secretPath = "/services/T0/B0/hush"

// server is a receiver of messages.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []map[string]any
	heads  []http.Header
	// answer is called for each request; nil accepts it.
	answer func(http.ResponseWriter, *http.Request)
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		var body map[string]any
		_ = json.Unmarshal(text, &body)
		s.mu.Lock()
		answer := s.answer
		s.bodies, s.heads = append(s.bodies, body), append(s.heads, r.Header)
		s.mu.Unlock()
		if answer != nil {
			answer(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// does replaces the answer, and forgets the requests.
func (s *server) does(answer func(http.ResponseWriter, *http.Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer, s.bodies, s.heads = answer, nil, nil
}

func (s *server) got() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies
}

// fixture is a reconciler of one Notification.
type fixture struct {
	*Reconciler
	t     *testing.T
	now   *testclock.FakePassiveClock
	queue requests
	key   client.ObjectKey
}

func newFixture(t *testing.T, urls string, objects ...client.Object) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{shipper.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&shipper.Notification{}).WithObjects(objects...).WithObjects(
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: shipper.SystemNamespace, Name: shipper.IdentityName},
			Data:       map[string]string{shipper.IdentityKey: "management"},
		}, &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"team": "a"}}}).Build()
	f := &fixture{t: t, now: testclock.NewFakePassiveClock(noon), key: client.ObjectKey{Namespace: "shop", Name: "slack"}}
	o := Options{Namespace: shipper.SystemNamespace, Clock: f.now}
	if urls != "" {
		policy, err := outward.ParsePolicy(urls)
		if err != nil {
			t.Fatal(err)
		}
		o.URLs = &policy
	}
	f.Reconciler = newReconciler(c, c, o)
	f.timeout = 100 * time.Millisecond
	f.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	t.Cleanup(f.queue.ShutDown)
	return f
}

func notification(edits ...func(*shipper.Notification)) *shipper.Notification {
	n := &shipper.Notification{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "slack", UID: "n", Generation: 1, CreationTimestamp: after(-60),
	}}
	n.Spec.To.SecretName = "slack"
	for _, edit := range edits {
		edit(n)
	}
	return n
}

func secret(url string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "slack"},
		Data:       map[string][]byte{"url": []byte(url + "\n"), "token": []byte("opensesame")},
	}
}

// sees is an update of a Release.
func (f *fixture) sees(was, is *shipper.Release) {
	f.t.Helper()
	h := f.changes()
	if was == nil {
		h.Create(f.t.Context(), event.CreateEvent{Object: is, IsInInitialList: true}, f.queue)
		return
	}
	h.Update(f.t.Context(), event.UpdateEvent{ObjectOld: was, ObjectNew: is}, f.queue)
}

// completes makes one change that is sent by default.
func (f *fixture) completes(name string) {
	f.t.Helper()
	was, is := release(), release(achieved(2, 9), condition(shipper.ReleaseComplete, "True", 9), under("Complete"))
	for _, rel := range []*shipper.Release{was, is} {
		rel.Name, rel.UID = name, types.UID("uid of "+name)
	}
	f.sees(was, is)
}

// pass reconciles once, and returns when to come back.
func (f *fixture) pass() time.Duration {
	f.t.Helper()
	got, err := f.Reconcile(context.WithoutCancel(f.t.Context()), ctrl.Request{NamespacedName: f.key})
	if err != nil {
		f.t.Fatal(err)
	}
	return got.RequeueAfter
}

// later turns the clock.
func (f *fixture) later(by time.Duration) { f.now.SetTime(f.now.Now().Add(by)) }

func (f *fixture) status() shipper.NotificationStatus {
	f.t.Helper()
	var n shipper.Notification
	if err := f.client.Get(f.t.Context(), f.key, &n); err != nil {
		f.t.Fatal(err)
	}
	text, err := json.Marshal(n)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, hidden := range []string{secretPath, "hush", "opensesame"} {
		if strings.Contains(string(text), hidden) {
			f.t.Fatalf("%s is shown: %s", hidden, text)
		}
	}
	return n.Status
}

// delivering is the condition in one line.
func (f *fixture) delivering() string {
	f.t.Helper()
	c := shipper.FindCondition(f.status().Conditions, shipper.NotificationDelivering)
	if c == nil {
		return ""
	}
	return strings.TrimSpace(string(c.Status) + " " + c.Reason + " " + c.Message)
}

func (f *fixture) counted(result string) int {
	return int(testutil.ToFloat64(f.results.WithLabelValues(result)))
}
