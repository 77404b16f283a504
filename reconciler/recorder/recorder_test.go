// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// server is the API server. Each request takes takes, and answers what answer says.
type server struct {
	takes  time.Duration
	answer func(e *eventsv1.Event) error

	mu             sync.Mutex
	inFlight, most int
	creates        int
	order          []string
	events         map[string]*eventsv1.Event
}

func (s *server) ask(ctx context.Context, e *eventsv1.Event, do func() error) (*eventsv1.Event, error) {
	s.mu.Lock()
	s.inFlight++
	s.most = max(s.most, s.inFlight)
	s.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-time.After(s.takes):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if s.answer != nil {
		if err := s.answer(e); err != nil {
			return nil, err
		}
	}
	return e, do()
}

func (s *server) Create(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	return s.ask(ctx, e, func() error {
		s.creates++
		if s.events[e.Name] != nil {
			return apierrors.NewAlreadyExists(schema.GroupResource{}, e.Name)
		}
		s.events[e.Name] = e
		s.order = append(s.order, e.Note)
		return nil
	})
}

func (s *server) Update(context.Context, *eventsv1.Event) (*eventsv1.Event, error) {
	return nil, errors.New("events are not updated")
}

func (s *server) Patch(ctx context.Context, e *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	return s.ask(ctx, e, func() error {
		if s.events[e.Name] == nil {
			return apierrors.NewNotFound(schema.GroupResource{}, e.Name)
		}
		s.events[e.Name].Series = e.Series
		return nil
	})
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

// run runs a Recorder and its server in a bubble of time: tell is called before any write. parting is how long it took to
// end.
func run(t *testing.T, s *server, tell func(h *Recorder), after func(h *Recorder)) (parting time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		scheme := runtime.NewScheme()
		if err := corev1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		s.events = map[string]*eventsv1.Event{}
		h := newRecorder(s, scheme, clock.RealClock{}, logr.Discard(), "shipper-reconciler")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		tell(h)
		ended := make(chan error)
		go func() { ended <- h.Start(ctx) }()
		synctest.Wait()
		if after != nil {
			after(h)
		}
		cancel()
		begun := time.Now()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		parting = time.Since(begun)
	})
	return parting
}

// about is what events are about.
func about(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), ResourceVersion: "7"}}
}

// lost are the events that were dropped, by type and cause.
func lost(t *testing.T, h *Recorder) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(h.dropped)
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

func TestOneRequestIsInFlightAtATime(t *testing.T) {
	s := &server{takes: time.Second}
	run(t, s, func(r *Recorder) {
		for i := range 100 {
			r.Eventf(about("web"), nil, "Normal", "Told", "Tell", "%d", i)
		}
	}, func(*Recorder) { time.Sleep(2 * time.Minute) })
	if s.most != 1 || len(s.events) != 100 {
		t.Errorf("%d requests were in flight, and %d events were written", s.most, len(s.events))
	}
}

func TestAnEventNamesItsObjectsAndItsController(t *testing.T) {
	s := &server{}
	run(t, s, func(h *Recorder) {
		h.Eventf(about("web"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, "Warning", "Held", "Hold", "held by %s", "a")
		h.instance = "shipper-reconciler-0"
		h.Eventf(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, nil, "Normal", "Ready", "Set", "ready")
	}, nil)
	var got []eventsv1.Event
	for _, e := range s.events {
		e.Name, e.EventTime, e.ReportingInstance = "", metav1.MicroTime{}, ""
		got = append(got, *e)
	}
	slices.SortFunc(got, func(a, b eventsv1.Event) int { return len(a.Action) - len(b.Action) })
	want := []eventsv1.Event{
		{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default"}, ReportingController: "shipper-reconciler",
			Type: "Normal", Reason: "Ready", Action: "Set", Note: "ready",
			Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "n"},
		}, {
			ObjectMeta: metav1.ObjectMeta{Namespace: "default"}, ReportingController: "shipper-reconciler",
			Type: "Warning", Reason: "Held", Action: "Hold", Note: "held by a",
			Regarding: corev1.ObjectReference{
				APIVersion: "v1", Kind: "Secret", Namespace: "default", Name: "web", UID: "web", ResourceVersion: "7",
			},
			Related: &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "n"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestARepetitionIsCountedOnTheFirst(t *testing.T) {
	s := &server{takes: time.Second}
	run(t, s, func(h *Recorder) {
		h.Eventf(about("web"), nil, "Normal", "Told", "Tell", "once")
		h.Eventf(about("web"), nil, "Normal", "Told", "Tell", "while it waits")
		h.Eventf(about("web"), nil, "Normal", "Told", "Tell", "while it waits")
		h.Eventf(about("web"), nil, "Normal", "Told", "Tell", "later")
		h.Eventf(about("api"), nil, "Normal", "Told", "Tell", "once")
		h.Eventf(about("web"), nil, "Warning", "Told", "Tell", "while it is told")
	}, func(h *Recorder) {
		h.Eventf(about("web"), nil, "Warning", "Told", "Tell", "while it is told")
		time.Sleep(time.Minute)
		changed := about("web")
		changed.ResourceVersion = "8"
		h.Eventf(changed, nil, "Normal", "Told", "Tell", "later")
		h.Eventf(changed, nil, "Normal", "Told", "Tell", "later")
		time.Sleep(time.Minute)
	})
	want := []string{"later x3", "once", "once", "while it is told x2", "while it waits x2"}
	if diff := cmp.Diff(want, s.notes()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestARepetitionOfAnEventThatIsGoneIsAnother(t *testing.T) {
	s := &server{}
	run(t, s, func(h *Recorder) { h.Eventf(about("web"), nil, "Normal", "Told", "Tell", "again") }, func(h *Recorder) {
		clear(s.events)
		h.Eventf(about("web"), nil, "Normal", "Told", "Tell", "again")
		synctest.Wait()
		if diff := cmp.Diff([]string{"again"}, s.notes()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		h.Eventf(about("web"), nil, "Normal", "Told", "Tell", "again")
		synctest.Wait()
	})
	if diff := cmp.Diff([]string{"again x2"}, s.notes()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWarningsGoFirstAndHaveRoomOfTheirOwn(t *testing.T) {
	s := &server{takes: time.Second}
	run(t, s, func(r *Recorder) {
		for i := range maxQueued + 2 {
			r.Eventf(about("web"), nil, "Normal", "Told", "Tell", "cold %d", i)
		}
		r.Eventf(about("web"), nil, "Warning", "Told", "Tell", "hot")
		r.Eventf(about("web"), nil, "Warning", "Told", "Tell", "hotter")
		if got, want := lost(t, r), (map[string]float64{"Normal full": 2}); !maps.Equal(got, want) {
			t.Errorf("dropped %v, want %v", got, want)
		}
	}, func(*Recorder) { time.Sleep(2 * maxQueued * time.Second) })
	if len(s.order) != maxQueued+2 {
		t.Fatalf("%d events were written", len(s.order))
	}
	if diff := cmp.Diff([]string{"hot", "hotter", "cold 0", "cold 1"}, s.order[:4]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAnEventWithoutAnAnswerIsTriedSixTimes(t *testing.T) {
	for sentence, tc := range map[string]struct {
		answer  func(after time.Duration) error
		told    []string
		dropped map[string]float64
		creates int
	}{
		"it answers after a while": {func(after time.Duration) error {
			if after < 3*time.Second {
				return errors.New("connection refused")
			}
			return nil
		}, []string{"said"}, map[string]float64{}, 1},
		"it never does": {func(time.Duration) error { return apierrors.NewInternalError(errors.New("no")) }, nil,
			map[string]float64{"Normal unanswered": 1}, 0},
		"a webhook of the namespace is down": {func(time.Duration) error {
			return apierrors.NewInternalError(errors.New(`failed calling webhook "events.example.com": connection refused`))
		}, nil, map[string]float64{"Normal refused": 1}, 0},
		"it refuses": {func(time.Duration) error { return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no")) }, nil,
			map[string]float64{"Normal refused": 1}, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := &server{}
			run(t, s, func(h *Recorder) {
				begun := time.Now()
				s.answer = func(*eventsv1.Event) error { return tc.answer(time.Since(begun)) }
				h.Eventf(about("web"), nil, "Normal", "Told", "Tell", "said")
			}, func(h *Recorder) {
				time.Sleep(3 * time.Minute)
				if got := lost(t, h); !maps.Equal(got, tc.dropped) {
					t.Errorf("dropped %v, want %v", got, tc.dropped)
				}
			})
			if diff := cmp.Diff(tc.told, s.notes()); diff != "" || s.creates != tc.creates {
				t.Errorf("%d creates; -want +got:\n%s", s.creates, diff)
			}
		})
	}
}

func TestAnAnswerThatWasLostIsNoSecondEvent(t *testing.T) {
	s := &server{}
	first := true
	s.answer = func(e *eventsv1.Event) error {
		if !first {
			return nil
		}
		first = false
		s.events[e.Name] = e
		return errors.New("connection reset")
	}
	run(t, s, func(h *Recorder) { h.Eventf(about("web"), nil, "Normal", "Told", "Tell", "said") }, func(h *Recorder) {
		time.Sleep(time.Minute)
		if got := lost(t, h); len(got) > 0 {
			t.Errorf("dropped %v", got)
		}
	})
	if diff := cmp.Diff([]string{"said"}, s.notes()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheEndWaitsForAShortWhile(t *testing.T) {
	s := &server{takes: time.Second}
	var of *Recorder
	took := run(t, s, func(h *Recorder) {
		of = h
		for i := range 10 {
			h.Eventf(about("web"), nil, "Normal", "Told", "Tell", "%d", i)
		}
	}, nil)
	// One at a time, a second each; the deadline ends the third or the fourth.
	written := len(s.events)
	if got := lost(t, of); written < 2 || written > 3 || got["Normal end"] != float64(10-written) || len(got) != 1 || took != drainTimeout {
		t.Errorf("%d events were written, and dropped %v, in %s", written, got, took)
	}
	quick := &server{takes: time.Millisecond}
	took = run(t, quick, func(h *Recorder) { h.Eventf(about("web"), nil, "Normal", "Told", "Tell", "said") }, nil)
	if len(quick.events) != 1 || took != time.Millisecond {
		t.Errorf("recorded %v in %s", quick.notes(), took)
	}
}

func TestAsManyEventsAreRememberedAsMayBe(t *testing.T) {
	s := &server{}
	run(t, s, func(*Recorder) {}, func(r *Recorder) {
		for range 2 {
			for i := range remembered + 10 {
				r.Eventf(about("web"), nil, "Normal", "Told", "Tell", "%d", i)
				synctest.Wait()
			}
		}
		if got := r.written.Len(); got != remembered {
			t.Errorf("%d events are remembered", got)
		}
	})
	if len(s.events) != 2*(remembered+10) {
		t.Errorf("%d events were written", len(s.events))
	}
}
