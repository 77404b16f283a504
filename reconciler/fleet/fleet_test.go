// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/retry"
	"shipper.dev/shipper/test/await"
)

// oneCluster is a management cluster that has one Cluster, called known, and one that is being deleted, called going.
type oneCluster struct{ client.Reader }

func (oneCluster) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	switch key.Name {
	case "known", "untried":
		return nil
	case "worked":
		if cluster, ok := o.(*shipper.Cluster); ok {
			cluster.Status.KubernetesVersion = "v1.37.1"
		}
		return nil
	case "going":
		o.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
		return nil
	case "unreadable":
		return errors.New("the cache is broken")
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "clusters"}, key.Name)
}

// begin runs a fleet with a clock of its own.
func begin(t *testing.T) (*Fleet, *testingclock.FakeClock) {
	t.Helper()
	clock := testingclock.NewFakeClock(time.Unix(0, 0))
	f := New(Options{Reader: oneCluster{}, Clock: clock, Timeout: time.Minute})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return f, clock
}

// listen returns the requests that changes of connections make.
func listen(t *testing.T, f *Fleet) func() reconcile.Request {
	t.Helper()
	q := workqueue.NewTypedRateLimitingQueue(retry.ClusterLimiter[reconcile.Request]())
	t.Cleanup(q.ShutDown)
	err := f.Members().Start(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return func() reconcile.Request {
		request, _ := q.Get()
		q.Done(request)
		return request
	}
}

func TestTellsWhyAClusterCannotBeWorkedWith(t *testing.T) {
	f := New(Options{Reader: oneCluster{}})
	f.Set("silent", nil, &Error{Cluster: "silent", Reason: shipper.ClusterUnreachable, Message: "no answer"})
	f.Set("untried", nil, &Error{Cluster: "untried", Reason: shipper.SecretMissing, Message: "no Secret"})
	f.Set("worked", nil, &Error{Cluster: "worked", Reason: shipper.SecretMissing, Message: "no Secret"})
	f.Set("new", &Access{Config: &rest.Config{Host: "https://new"}, Fingerprint: "x"}, nil)
	tests := map[string]struct {
		want *Error
	}{
		"silent":  {&Error{Cluster: "silent", Reason: shipper.ClusterUnreachable, Message: "no answer"}},
		"untried": {&Error{Cluster: "untried", Reason: shipper.SecretMissing, Message: "no Secret", Untried: true}},
		"worked":  {&Error{Cluster: "worked", Reason: shipper.SecretMissing, Message: "no Secret"}},
		"new": {&Error{
			Cluster: "new", Reason: shipper.TargetClusterClientError, Message: "connecting to https://new", Pending: true,
		}},
		"known": {&Error{
			Cluster: "known", Reason: shipper.TargetClusterClientError, Message: "connecting", Pending: true,
		}},
		"going": {&Error{
			Cluster: "going", Reason: shipper.TargetClusterClientError, Message: `Cluster "going" is being deleted`,
		}},
		"absent": {&Error{
			Cluster: "absent", Reason: shipper.TargetClusterClientError, Message: `there is no Cluster "absent"`,
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := f.Get(t.Context(), name)
			var got *Error
			if !errors.As(err, &got) {
				t.Fatalf("error is %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if Pending(err) != tc.want.Pending {
				t.Errorf("Pending is %t", Pending(err))
			}
		})
	}
	var known *Error
	if _, err := f.Get(t.Context(), "unreadable"); err == nil || errors.As(err, &known) {
		t.Errorf("a cache that cannot be read says nothing of a cluster, but: %v", err)
	}
}

func TestRetriesWithBackOffAndHearsOfNewCredentials(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.Error(w, "who are you?", http.StatusUnauthorized)
	}))
	defer server.Close()
	f, clock := begin(t)
	next := listen(t, f)
	f.Set("c", &Access{Config: &rest.Config{Host: server.URL}, Fingerprint: "one"}, nil)
	refused := func() bool {
		state, ok := f.State("c")
		return ok && state.Reason == shipper.CredentialsRefused && !state.Pending && !state.Ready
	}
	for next(); !refused(); next() {
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times before any time had passed", n)
	}
	for attempt := int32(2); attempt <= 4; attempt++ {
		eventually(t, "it waits for the clock", clock.HasWaiters)
		clock.Step(30 * time.Second) // more than the longest pause with its jitter
		eventually(t, "it asks again", func() bool { return asked.Load() == attempt })
	}
	f.Set("c", &Access{Config: &rest.Config{Host: server.URL}, Fingerprint: "one"}, nil)
	if !refused() {
		t.Error("the same credentials connected again")
	}
	f.Set("c", &Access{Config: &rest.Config{Host: server.URL}, Fingerprint: "two"}, nil)
	eventually(t, "other credentials are tried at once", func() bool { return asked.Load() == 5 && refused() })

	f.Remove("c")
	if _, ok := f.State("c"); ok {
		t.Error("a cluster that was removed has a state")
	}
}

func TestTellsThatAClusterIsGoneThatHadNoConnection(t *testing.T) {
	f := New(Options{Reader: oneCluster{}})
	next := listen(t, f)
	f.Remove("absent")
	if got := next(); got.Name != "absent" {
		t.Errorf("told of %v", got)
	}
}

// eventually waits for other goroutines.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	await.Eventually(t, what, func(context.Context) error {
		if !is() {
			return errors.New("not yet")
		}
		return nil
	})
}

func TestWhichAnswersMeanLife(t *testing.T) {
	tests := map[string]struct {
		status int
		lives  bool
	}{
		"a Lease":                     {http.StatusOK, true},
		"no such Lease":               {http.StatusNotFound, true},
		"no right to the Lease":       {http.StatusForbidden, true},
		"credentials not accepted":    {http.StatusUnauthorized, false},
		"a load balancer before none": {http.StatusBadGateway, false},
		"an API server without etcd":  {http.StatusInternalServerError, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(tc.status)
				if tc.status == http.StatusOK {
					_, _ = w.Write([]byte(`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1"}`))
				}
			}))
			defer server.Close()
			c := &connection{fleet: New(Options{}), access: &Access{Config: &rest.Config{Host: server.URL}}}
			s, err := c.newSession(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := c.probe(t.Context(), s); (err == nil) != tc.lives {
				t.Errorf("probe says %v", err)
			}
		})
	}
}

func TestAPIVersions(t *testing.T) {
	got := apiVersions([]*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Kind: "Pod"}, {Name: "pods/status", Kind: "Pod"}}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Kind: "Deployment"}}},
	})
	if diff := cmp.Diff([]string{"apps/v1", "apps/v1/Deployment", "v1", "v1/Pod"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
