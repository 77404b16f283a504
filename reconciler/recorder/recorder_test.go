// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// server is the API server. Each request takes delay, and is answered by answer.
type server struct {
	delay  time.Duration
	answer func() error

	mu             sync.Mutex
	inFlight, most int
	events         map[string]*eventsv1.Event
}

func (s *server) request(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	s.mu.Lock()
	s.inFlight++
	s.most = max(s.most, s.inFlight)
	s.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-time.After(s.delay):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if s.answer != nil {
		if err := s.answer(); err != nil {
			return nil, err
		}
	}
	s.events[e.Name] = e
	return e, nil
}

func (s *server) Create(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	return s.request(ctx, e)
}

func (s *server) Update(context.Context, *eventsv1.Event) (*eventsv1.Event, error) {
	return nil, errors.New("events are not updated")
}

func (s *server) Patch(ctx context.Context, e *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	return s.request(ctx, e)
}

// notes are those the server has and how often each happened, `note x2`.
func (s *server) notes() []string {
	var out []string
	for _, e := range s.events {
		note := e.Note
		if e.Series != nil {
			note += fmt.Sprintf(" x%d", e.Series.Count)
		}
		out = append(out, note)
	}
	slices.Sort(out)
	return out
}

// run runs a sink and its server in a bubble of time. It returns what was dropped, and how long the end took.
func run(t *testing.T, s *server, record func(events.EventRecorder)) (dropped map[string]float64, end time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		scheme := runtime.NewScheme()
		if err := corev1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		s.events = map[string]*eventsv1.Event{}
		to := newSink(s)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error)
		go func() { ended <- to.Start(ctx) }()
		synctest.Wait()
		record(to.broadcaster().NewRecorder(scheme, "shipper-reconciler"))
		synctest.Wait()
		began := time.Now()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		end, dropped = time.Since(began), droppedBy(t, to)
	})
	return dropped, end
}

// about is an object with events.
func about(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), ResourceVersion: "7"}}
}

// droppedBy returns the number of events that were dropped, by type and cause.
func droppedBy(t *testing.T, s *sink) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(s.dropped)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		for _, m := range family.Metric {
			out[m.Label[1].GetValue()+" "+m.Label[0].GetValue()] = m.Counter.GetValue()
		}
	}
	return out
}

func TestFourRequestsAreInFlightAtMost(t *testing.T) {
	s := &server{delay: time.Second}
	run(t, s, func(r events.EventRecorder) {
		for i := range 100 {
			r.Eventf(about("web"), nil, "Normal", "Achieved", fmt.Sprint("Achieve ", i), "%d", i)
			time.Sleep(time.Nanosecond) // the moment is part of an event's name
		}
		time.Sleep(time.Minute)
	})
	if s.most != 4 || len(s.events) != 100 {
		t.Errorf("%d requests were in flight, and %d events were written", s.most, len(s.events))
	}
}

func TestMoreEventsThanMayWaitAreDroppedAndCounted(t *testing.T) {
	s := &server{delay: time.Second}
	dropped, _ := run(t, s, func(r events.EventRecorder) {
		for i := range maxWaiting + 2 {
			r.Eventf(about("web"), nil, "Warning", "Held", fmt.Sprint("Hold ", i), "%d", i)
			time.Sleep(time.Nanosecond)
		}
		time.Sleep(maxWaiting * time.Second)
	})
	if want := (map[string]float64{"Warning full": 2}); !maps.Equal(dropped, want) || len(s.events) != maxWaiting {
		t.Errorf("dropped %v of which %v were expected; %d events were written", dropped, want, len(s.events))
	}
}

func TestARepetitionIsCountedOnTheFirst(t *testing.T) {
	s := &server{}
	run(t, s, func(r events.EventRecorder) {
		for range 3 {
			r.Eventf(about("web"), nil, "Normal", "Held", "Hold", "held")
			r.Eventf(about("api"), nil, "Normal", "Held", "Hold", "held, too")
			time.Sleep(time.Nanosecond)
		}
		r.Eventf(about("web"), nil, "Normal", "Held", "Hold more", "held again")
		time.Sleep(time.Hour)
	})
	if diff := cmp.Diff([]string{"held again", "held x3", "held, too x3"}, s.notes()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAnEventWithoutAnAnswerIsSentAgain(t *testing.T) {
	for sentence, tc := range map[string]struct {
		answer  func(after time.Duration) error
		written []string
		dropped map[string]float64
	}{
		"it is answered after a while": {func(after time.Duration) error {
			if after < 30*time.Second {
				return errors.New("connection refused")
			}
			return nil
		}, []string{"held"}, map[string]float64{}},
		"it is refused": {func(time.Duration) error { return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no")) }, nil,
			map[string]float64{"Normal refused": 1}},
		"the answer to the first request was lost": {func(time.Duration) error {
			return apierrors.NewAlreadyExists(schema.GroupResource{}, "")
		}, nil, map[string]float64{}},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := &server{}
			dropped, _ := run(t, s, func(r events.EventRecorder) {
				began := time.Now()
				s.answer = func() error { return tc.answer(time.Since(began)) }
				r.Eventf(about("web"), nil, "Normal", "Held", "Hold", "held")
				time.Sleep(3 * time.Minute)
			})
			if diff := cmp.Diff(tc.written, s.notes()); diff != "" || !maps.Equal(dropped, tc.dropped) {
				t.Errorf("dropped %v; -want +got:\n%s", dropped, diff)
			}
		})
	}
}

func TestTheEndWaitsForAShortWhile(t *testing.T) {
	s := &server{delay: time.Second}
	_, took := run(t, s, func(r events.EventRecorder) {
		for i := range 40 {
			r.Eventf(about("web"), nil, "Normal", "Achieved", fmt.Sprint("Achieve ", i), "%d", i)
			time.Sleep(time.Nanosecond) // the moment is part of an event's name
		}
	})
	// Four at a time, a second each.
	if n := len(s.events); n < 8 || n > 16 || took != handOver+drainTimeout {
		t.Errorf("%d events were written, in %s", n, took)
	}
	quick := &server{delay: time.Millisecond}
	_, took = run(t, quick, func(r events.EventRecorder) { r.Eventf(about("web"), nil, "Normal", "Held", "Hold", "held") })
	if len(quick.events) != 1 || took != handOver {
		t.Errorf("recorded %v in %s", quick.notes(), took)
	}
	slow := &server{delay: time.Second}
	_, took = run(t, slow, func(r events.EventRecorder) { r.Eventf(about("web"), nil, "Normal", "Held", "Hold", "held") })
	if len(slow.events) != 1 || took != slow.delay {
		t.Errorf("recorded %v in %s", slow.notes(), took)
	}
}

// TestAManagerThatNeverStartsLeavesNothing fails by itself: a goroutine that is left keeps the bubble from ending.
func TestAManagerThatNeverStartsLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mgr, err := ctrl.NewManager(&rest.Config{}, ctrl.Options{
			Metrics:        metricsserver.Options{BindAddress: "0"},
			MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return meta.NewDefaultRESTMapper(nil), nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		if mgr, err = Manager(mgr, "shipper-reconciler", nil); err != nil {
			t.Fatal(err)
		}
		mgr.GetEventRecorder("rollout")
	})
}
