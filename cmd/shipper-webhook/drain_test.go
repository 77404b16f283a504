// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"shipper.dev/shipper/manifests"
)

// listener is a server that serves until its context ends.
type listener struct {
	ctrlwebhook.Server

	hook   http.Handler
	served chan struct{} // closed when it has started
	last   chan struct{} // the last answer is given when this is closed
}

func (l *listener) Register(_ string, hook http.Handler) { l.hook = hook }

func (l *listener) Start(ctx context.Context) error {
	close(l.served)
	<-ctx.Done()
	<-l.last
	return nil
}

// steps is a clock that calls seen instead of sleeping.
type steps struct {
	clock.RealClock

	seen func(time.Duration)
}

func (s steps) Sleep(d time.Duration) { s.seen(d) }

func TestTheServerDrainsInOrder(t *testing.T) {
	l := &listener{served: make(chan struct{}), last: make(chan struct{})}
	d := newDrainingServer(t.Context(), l)
	d.Register("/", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	ended := make(chan error)
	manager, end := context.WithCancel(t.Context())
	defer end()
	go func() { ended <- d.Start(manager) }()
	<-l.served

	type state struct {
		Ready, Open bool
		Connection  string
		For         time.Duration
	}
	var got []state
	look := func(during time.Duration) {
		answer := httptest.NewRecorder()
		l.hook.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil))
		got = append(got, state{d.ready(nil) == nil, d.serving.Err() == nil, answer.Header().Get("Connection"), during})
	}
	look(0)
	left := make(chan struct{})
	go func() {
		d.drain(steps{seen: look}, 5*time.Second)
		close(left)
	}()
	<-d.serving.Done()
	select {
	case <-left:
		t.Error("left while an answer was on its way")
	default:
	}
	close(l.last)
	<-left
	look(0)
	want := []state{
		{Ready: true, Open: true},
		{Open: true, For: 2500 * time.Millisecond},
		{Open: true, For: 2500 * time.Millisecond, Connection: "close"},
		{Connection: "close"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestADoorThatWasNeverOpenIsLeftAtOnce(t *testing.T) {
	newDrainingServer(t.Context(), &listener{}).drain(steps{seen: func(time.Duration) {}}, time.Minute)
}

func TestTheDoorShutsWithItsManager(t *testing.T) {
	l := &listener{served: make(chan struct{}), last: make(chan struct{})}
	close(l.last)
	manager, end := context.WithCancel(t.Context())
	end()
	if err := newDrainingServer(t.Context(), l).Start(manager); err != nil {
		t.Error(err)
	}
}

// The kubelet kills what has not ended by the end of its grace period.
func TestThereIsTimeToLeave(t *testing.T) {
	deployment, err := manifests.Object(manifests.Deploy, "Deployment", "shipper")
	if err != nil {
		t.Fatal(err)
	}
	var shipper appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(deployment.Object, &shipper); err != nil {
		t.Fatal(err)
	}
	o, err := parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	grace := time.Duration(*shipper.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
	if needed := o.shutdownDelay + drainTimeout; grace < needed+5*time.Second {
		t.Errorf("terminationGracePeriodSeconds is %s, and leaving takes up to %s", grace, needed)
	}
}
