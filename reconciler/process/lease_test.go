// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// management answers for one Lease and any number of Events.
type management struct {
	mu     sync.Mutex
	lease  string
	events []string // their messages
}

// RoundTrip answers a request.
func (m *management) RoundTrip(r *http.Request) (*http.Response, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	status, body := http.StatusOK, ""
	if r.Body != nil {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = string(raw)
	}
	switch {
	case strings.Contains(r.URL.Path, "/events"):
		var event struct{ Message string }
		if err := json.Unmarshal([]byte(body), &event); err != nil {
			return nil, err
		}
		m.events = append(m.events, event.Message)
	case r.Method != http.MethodGet:
		m.lease = body
	case m.lease == "":
		status, body = http.StatusNotFound, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`
	default:
		body = m.lease
	}
	header := http.Header{"Content-Type": {"application/json"}}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// elected is a manager that stands for election and does nothing else.
type elected struct {
	manager.Manager
	lock resourcelock.Interface
}

// Start runs until the election is over, a moment after ctx is done, as that of controller-runtime.
func (e elected) Start(ctx context.Context) error {
	elections, end := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { time.Sleep(time.Second); end() })
	leaderelection.RunOrDie(elections, leaderelection.LeaderElectionConfig{
		Lock: e.lock, LeaseDuration: LeaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() { time.Sleep(time.Second) },
		},
	})
	return nil
}

// TestTheEventsOfTheLockEndWithTheProcess has a bubble, which fails when a goroutine is left in it.
func TestTheEventsOfTheLockEndWithTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &management{}
		config := &rest.Config{Host: "http://management", Transport: m, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
		lock, events, err := newLock(config, "shipper-system", "first")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := (candidate{Manager: elected{lock: lock}, events: events}).Start(ctx); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"first became leader", "first stopped leading"}, m.events); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}
