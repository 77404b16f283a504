// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

const (
	// maxSending is how many requests are in flight, and maxWaiting how many events wait for that.
	maxSending, maxWaiting = 4, 2048
	// requestTimeout bounds one request, and drainTimeout the time that events are still written in when the process ends.
	requestTimeout, drainTimeout = 5 * time.Second, 3 * time.Second
	// handOver is the time that goroutines of the broadcaster need to pass on what is queued when it ends.
	handOver = 100 * time.Millisecond
)

// Manager returns mgr with event recorders that write as controller. It registers the metric of events if registry is not nil.
func Manager(mgr ctrl.Manager, controller string, registry prometheus.Registerer) (ctrl.Manager, error) {
	api, err := typedeventsv1.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making a client for events: %w", err)
	}
	s := newSink(&events.EventSinkImpl{Interface: api})
	if registry != nil {
		if err := registry.Register(s.dropped); err != nil {
			return nil, fmt.Errorf("registering the metric of events: %w", err)
		}
	}
	of := sync.OnceValue(func() recorder.EventRecorder {
		out, _ := s.broadcaster().NewRecorder(mgr.GetScheme(), controller).(recorder.EventRecorder)
		return out
	})
	return recording{Manager: mgr, recorder: of}, mgr.Add(s)
}

// recording is a manager and its event recorder. recorder makes that with the first event: the goroutine of a broadcaster would outlive
// a process that is ended before its manager starts.
type recording struct {
	ctrl.Manager
	recorder func() recorder.EventRecorder
}

// GetEventRecorder is ctrl.Manager.
func (r recording) GetEventRecorder(string) recorder.EventRecorder { return r }

// Eventf is recorder.EventRecorder.
func (r recording) Eventf(about, related runtime.Object, kind, reason, action, note string, args ...any) {
	r.recorder().Eventf(about, related, kind, reason, action, note, args...)
}

// AnnotatedEventf is recorder.EventRecorder.
func (r recording) AnnotatedEventf(
	about, related runtime.Object, annotations map[string]string, kind, reason, action, note string, args ...any,
) {
	r.recorder().AnnotatedEventf(about, related, annotations, kind, reason, action, note, args...)
}

// sink bounds the requests of its broadcaster.
type sink struct {
	events.EventSink
	broadcaster func() events.EventBroadcaster
	sending     *semaphore.Weighted
	waiting     atomic.Int64
	dropped     *prometheus.CounterVec
}

func newSink(to events.EventSink) *sink {
	s := &sink{EventSink: to, sending: semaphore.NewWeighted(maxSending), dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "shipper_events_dropped_total",
		Help: "Number of events that were not written. Labels type: Normal or Warning; cause: full, too many waited; refused, by the API " +
			"server. Absent until there is one.",
	}, []string{"type", "cause"})}
	s.broadcaster = sync.OnceValue(func() events.EventBroadcaster { return events.NewBroadcaster(s) })
	return s
}

// NeedLeaderElection returns false: the sink starts before the controllers that record events, and ends after them.
func (s *sink) NeedLeaderElection() bool { return false }

// Start writes events until ctx is done, and those that wait then for at most drainTimeout.
func (s *sink) Start(ctx context.Context) error {
	writing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	if err := s.broadcaster().StartRecordingToSinkWithContext(writing); err != nil {
		return fmt.Errorf("recording events: %w", err)
	}
	<-ctx.Done()
	s.broadcaster().Shutdown()
	queued, handed := context.WithTimeout(writing, handOver)
	defer handed()
	<-queued.Done()
	limit, end := context.WithTimeout(writing, drainTimeout)
	defer end()
	_ = s.sending.Acquire(limit, maxSending) // the semaphore is fair: all requests that waited before are done then
	return nil
}

// Create writes an event.
func (s *sink) Create(ctx context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	return s.send(ctx, e, func(ctx context.Context) (*eventsv1.Event, error) { return s.EventSink.Create(ctx, e) })
}

// Patch counts a repetition of an event.
func (s *sink) Patch(ctx context.Context, e *eventsv1.Event, patch []byte) (*eventsv1.Event, error) {
	return s.send(ctx, e, func(ctx context.Context) (*eventsv1.Event, error) { return s.EventSink.Patch(ctx, e, patch) })
}

// send makes a request when there is a slot. The broadcaster tries again what is not answered, and drops what an API server refuses.
func (s *sink) send(
	ctx context.Context, e *eventsv1.Event, request func(context.Context) (*eventsv1.Event, error),
) (*eventsv1.Event, error) {
	defer s.waiting.Add(-1)
	if s.waiting.Add(1) > maxWaiting {
		s.dropped.WithLabelValues(e.Type, "full").Inc()
		return nil, apierrors.NewTooManyRequestsError("too many events wait")
	}
	if err := s.sending.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer s.sending.Release(1)
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	out, err := request(ctx)
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) {
		s.dropped.WithLabelValues(e.Type, "refused").Inc()
	}
	return out, err
}
