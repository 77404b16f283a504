// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/retry"
	"shipper.dev/shipper/test/pipe"
)

// stand is a connection to a server in memory, as after it was opened, with its heartbeat beating.
func stand(t *testing.T, answer http.HandlerFunc) (*Fleet, *answers, string) {
	t.Helper()
	listener := pipe.Listen()
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: answer}}
	server.Start()
	t.Cleanup(server.Close)
	f := New(Options{Reader: oneCluster{}, Timeout: time.Second, Heartbeat: time.Hour})
	f.Identify("this", nil)
	c := &connection{fleet: f, name: "c", access: &Access{Config: &rest.Config{Host: server.URL, Dial: listener.Dial}}}
	f.connections["c"] = c
	ctx, cancel := context.WithCancel(t.Context())
	s, err := c.newSession(ctx)
	if err != nil {
		t.Fatal(err)
	}
	f.set(c, State{Ready: true}, &Member{Name: "c", session: s})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.lost(ctx, c.beat(ctx, s))
		cancel()
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		utilnet.CloseIdleConnectionsFor(s.http.Transport)
	})
	return f, s.answers, server.URL
}

// ask sends a request as a reconciler does.
func ask(ctx context.Context, t *testing.T, a *answers, url string) error {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := (&http.Client{Transport: a}).Do(request)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

func TestAFrozenClusterIsNamedAsSoonAsSomebodyWaits(t *testing.T) {
	synctest.Test(t, testAFrozenClusterIsNamedAsSoonAsSomebodyWaits)
}

func testAFrozenClusterIsNamedAsSoonAsSomebodyWaits(t *testing.T) {
	frozen := make(chan struct{})
	f, a, url := stand(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/before" {
			return
		}
		select {
		case <-frozen:
		case <-r.Context().Done():
		}
	})
	defer close(frozen)
	if err := ask(t.Context(), t, a, url+"/before"); err != nil {
		t.Errorf("before it froze: %v", err)
	}
	began := time.Now()
	err := ask(t.Context(), t, a, url)
	if reason, _ := retry.ClassifyInCluster(err); reason != shipper.ClusterUnreachable {
		t.Errorf("the request that waited says %v", err)
	}
	if took := time.Since(began); took != suspicion+f.options.Timeout {
		t.Errorf("the request waited %s, not until the heartbeat has asked", took)
	}
	var lost *Error
	if _, err := f.Get(t.Context(), "c"); !errors.As(err, &lost) || lost.Reason != shipper.ClusterUnreachable {
		t.Errorf("the next pass gets %v", err)
	}
}

func TestASlowAnswerDoesNotEndAClusterThatLives(t *testing.T) {
	synctest.Test(t, testASlowAnswerDoesNotEndAClusterThatLives)
}

func testASlowAnswerDoesNotEndAClusterThatLives(t *testing.T) {
	looked := make(chan struct{})
	var once sync.Once
	f, a, url := stand(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "leases") {
			select { // a webhook there is slow
			case <-r.Context().Done():
			case <-looked:
			}
			return
		}
		http.Error(w, "no such Lease", http.StatusNotFound)
		once.Do(func() { close(looked) })
	})
	if err := ask(t.Context(), t, a, url); err != nil {
		t.Errorf("the request failed: %v", err)
	}
	if _, err := f.Get(t.Context(), "c"); err != nil {
		t.Errorf("the cluster is lost: %v", err)
	}
}

func TestWatchesAreNotBounded(t *testing.T) {
	synctest.Test(t, testWatchesAreNotBounded)
}

func testWatchesAreNotBounded(t *testing.T) {
	_, a, url := stand(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), suspicion+500*time.Millisecond)
	defer cancel()
	if err := ask(ctx, t, a, url+"?watch=true"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the watch ended with %v", err)
	}
	if len(a.suspected) != 0 {
		t.Error("a watch without events was suspected")
	}
}

func inBubble(t *testing.T, name string, test func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

func TestAWatchThatCannotBeBegunMakesTheHeartbeatLook(t *testing.T) {
	for name, tc := range map[string]struct {
		heartbeat int // what the API server says to it
		lost      bool
	}{
		"no answer":                  {http.StatusServiceUnavailable, true},
		"only the watch was refused": {http.StatusNotFound, false},
	} {
		inBubble(t, name, func(t *testing.T) {
			looked := make(chan struct{})
			f, a, url := stand(t, func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, "leases") {
					defer close(looked)
					http.Error(w, "{}", tc.heartbeat)
					return
				}
				http.Error(w, "{}", http.StatusBadGateway)
			})
			told := make(chan struct{}, 1)
			f.listeners = append(f.listeners, func(string) { told <- struct{}{} })
			if err := ask(t.Context(), t, a, url+"?watch=true"); err != nil {
				t.Fatal(err)
			}
			<-looked
			if !tc.lost {
				if _, err := f.Get(t.Context(), "c"); err != nil {
					t.Errorf("the cluster is lost: %v", err)
				}
				return
			}
			<-told
			if state, _ := f.State("c"); state.Ready || state.Reason != shipper.ClusterUnreachable {
				t.Errorf("the cluster is %+v", state)
			}
		})
	}
}
