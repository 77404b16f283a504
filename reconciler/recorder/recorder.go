// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record/util"
	"k8s.io/client-go/tools/reference"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// Bounds of what is kept and waited for.
const (
	// maxQueued is how many Warnings, and how many other events, may wait.
	maxQueued = 2048
	// remembered is how many events are known on which a repetition is counted.
	remembered = 2048
	// requestTimeout bounds one request, and drainTimeout how long queued events are written when the process ends.
	requestTimeout, drainTimeout = 5 * time.Second, 3 * time.Second
)

// attempts are those for an event that gets no answer.
var attempts = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.25, Steps: 6}

// Recorder writes events. Eventf never waits: Warnings have a queue of their own, which goes first, and an event that finds its queue
// full is dropped and counted. A repetition of an event is counted on the first. It is safe for concurrent use.
type Recorder struct {
	sink                 events.EventSink
	scheme               *runtime.Scheme
	clock                clock.PassiveClock
	log                  logr.Logger
	controller, instance string
	dropped              *prometheus.CounterVec
	names                atomic.Int64 // how many were given: two events of one moment have two
	warnings, others     chan *eventsv1.Event
	written              *lru.Cache // the last event of each identity; Start alone uses it
}

// Manager is mgr with its recorders of events replaced by a Recorder of the name controller, which runs with it. Metrics go to
// registry, if there is one.
func Manager(mgr ctrl.Manager, controller string, clock clock.PassiveClock, registry prometheus.Registerer) (ctrl.Manager, error) {
	api, err := typedeventsv1.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making a client for events: %w", err)
	}
	r := newRecorder(&events.EventSinkImpl{Interface: api}, mgr.GetScheme(), clock, mgr.GetLogger().WithName("events"), controller)
	if registry != nil {
		if err := registry.Register(r.dropped); err != nil {
			return nil, fmt.Errorf("registering the metric of events: %w", err)
		}
	}
	if err := mgr.Add(r); err != nil {
		return nil, fmt.Errorf("adding the event recorder: %w", err)
	}
	return manager{Manager: mgr, recorder: r}, nil
}

type manager struct {
	ctrl.Manager
	recorder *Recorder
}

// GetEventRecorder is ctrl.Manager.
func (m manager) GetEventRecorder(string) recorder.EventRecorder { return m.recorder }

func newRecorder(sink events.EventSink, scheme *runtime.Scheme, clock clock.PassiveClock, log logr.Logger, controller string) *Recorder {
	host, _ := os.Hostname() // of the process, for people, who can do without
	return &Recorder{
		sink: sink, scheme: scheme, clock: clock, log: log, controller: controller, instance: controller + "-" + host,
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "shipper_events_dropped_total",
			Help: "Number of events that were not written. Labels type: Normal or Warning; cause: full, the queue was full; refused, by the API " +
				"server; unanswered, six requests got no answer; end, the process ended. Absent until there is one.",
		}, []string{"type", "cause"}),
		warnings: make(chan *eventsv1.Event, maxQueued), others: make(chan *eventsv1.Event, maxQueued), written: lru.New(remembered),
	}
}

// Eventf is events.EventRecorder. It returns at once.
func (r *Recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	r.AnnotatedEventf(regarding, related, nil, eventType, reason, action, note, args...)
}

// AnnotatedEventf is events.AnnotatedEventRecorder. It returns at once.
func (r *Recorder) AnnotatedEventf(
	regarding, related runtime.Object, annotations map[string]string, eventType, reason, action, note string, args ...any,
) {
	about, err := reference.GetReference(r.scheme, regarding)
	if err != nil {
		r.log.Error(err, "Cannot name what an event is about", "reason", reason)
		return
	}
	now := r.clock.Now()
	e := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: about.Namespace, Name: util.GenerateEventName(about.Name, now.UnixNano()+r.names.Add(1)), Annotations: annotations,
		},
		EventTime: metav1.MicroTime{Time: now}, ReportingController: r.controller, ReportingInstance: r.instance,
		Type: eventType, Reason: reason, Action: action, Note: fmt.Sprintf(note, args...), Regarding: *about,
	}
	if e.Namespace == "" {
		e.Namespace = metav1.NamespaceDefault
	}
	if related != nil {
		if e.Related, err = reference.GetReference(r.scheme, related); err != nil {
			r.log.Error(err, "Cannot name what an event has to do with", "reason", reason)
		}
	}
	queue := r.others
	if e.Type == corev1.EventTypeWarning {
		queue = r.warnings
	}
	select {
	case queue <- e:
	default:
		r.drop(e, "full")
	}
}

func (r *Recorder) drop(e *eventsv1.Event, cause string) {
	r.dropped.WithLabelValues(e.Type, cause).Inc()
}

// Start writes events until ctx is done, and then for drainTimeout those that are queued.
func (r *Recorder) Start(ctx context.Context) error {
	writing, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() {
		limit, done := context.WithTimeout(writing, drainTimeout)
		defer done()
		<-limit.Done()
		end()
	})()
	for e := r.next(ctx); e != nil; e = r.next(ctx) {
		err := r.write(writing, e)
		if err == nil {
			continue
		}
		cause := "refused"
		if writing.Err() != nil {
			cause = "end"
		} else if unanswered(err) {
			cause = "unanswered"
		}
		r.log.V(1).Info("An event is not written", "cause", cause, "reason", e.Reason, "error", err.Error())
		r.drop(e, cause)
	}
	return nil
}

// next is the next event, a Warning if there is one; nil if ctx is done and none is queued.
func (r *Recorder) next(ctx context.Context) *eventsv1.Event {
	select {
	case e := <-r.warnings:
		return e
	default:
	}
	select {
	case e := <-r.warnings:
		return e
	case e := <-r.others:
		return e
	default:
	}
	select {
	case e := <-r.warnings:
		return e
	case e := <-r.others:
		return e
	case <-ctx.Done():
		return nil
	}
}

// write creates an event, or counts it on the one that it repeats.
func (r *Recorder) write(ctx context.Context, e *eventsv1.Event) error {
	id := identity(e)
	if last, repeats := r.written.Get(id); repeats {
		first, _ := last.(*eventsv1.Event)
		again := first.DeepCopy()
		again.Series = &eventsv1.EventSeries{Count: 2, LastObservedTime: e.EventTime}
		if first.Series != nil {
			again.Series.Count = first.Series.Count + 1
		}
		patch, err := json.Marshal(map[string]any{"series": again.Series})
		if err != nil {
			return fmt.Errorf("counting an event: %w", err)
		}
		err = r.try(ctx, func(ctx context.Context) error { _, err := r.sink.Patch(ctx, again, patch); return err })
		if err == nil {
			r.written.Add(id, again)
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
	}
	err := r.try(ctx, func(ctx context.Context) error { _, err := r.sink.Create(ctx, e); return err })
	if apierrors.IsAlreadyExists(err) { // the answer to the first request was lost
		err = nil
	}
	if err == nil {
		r.written.Add(id, e)
	}
	return err
}

// try sends a request until it is answered.
func (r *Recorder) try(ctx context.Context, send func(context.Context) error) error {
	var err error
	waited := wait.ExponentialBackoffWithContext(ctx, attempts, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		err = send(ctx)
		return !unanswered(err), nil
	})
	if err == nil {
		return waited // nil, or the context ended before the first request
	}
	return err
}

// identity is what an event shares with its repetitions: all but the time, and the version of the object that it is about.
func identity(e *eventsv1.Event) string {
	about, related := e.Regarding, ""
	if e.Related != nil {
		related = string(e.Related.UID)
	}
	return fmt.Sprintf("%q", []string{
		about.APIVersion, about.Kind, about.Namespace, about.Name, string(about.UID), about.FieldPath, related,
		e.Type, e.Reason, e.Action, e.Note,
	})
}

// unanswered reports whether an error says nothing about the event.
func unanswered(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err != nil
	}
	if strings.Contains(err.Error(), "failed calling webhook") {
		return false // a namespace's own admission webhook must not hold up the events of others
	}
	code := status.Status().Code
	return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests
}
