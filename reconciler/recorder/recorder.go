// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	eventsv1 "k8s.io/api/events/v1"
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

// Bounds of what is done and kept.
const (
	// maxInFlight is how many requests for events are made at the same time.
	maxInFlight = 2
	// maxQueued is how many events may wait, of some 1.5 KiB each.
	maxQueued = 4096
	// remembered is how many events are known that a repetition is counted on, of some 300 bytes each.
	remembered = 2048
	// drainTimeout is how long what waits is told yet when the process is to end.
	drainTimeout = 3 * time.Second
)

// requestTimeout is how often an event is tried for which the API server has no answer: for a minute.
var requestTimeout = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.25, Steps: 7}

// Recorder tells events. Telling never waits: an event is put in a queue, Warnings before all others. One that is told again while it
// is known is counted on the first. When the queue is full the oldest event that is no Warning is dropped, and counted; with
// nothing but Warnings in it, the oldest of them for another. It is safe for concurrent use.
type Recorder struct {
	sink                 events.EventSink
	scheme               *runtime.Scheme
	clock                clock.PassiveClock
	log                  logr.Logger
	controller, instance string
	dropped              *prometheus.CounterVec

	mu      sync.Mutex
	more    *sync.Cond // something waits, or the end has come
	queue   queue
	waiting map[identity]*queuedEvent // all that wait to be told, or are being told
	known   *lru.Cache                // of what was told: *story
	names   int64                     // how many were given
}

// Manager is mgr with its recorders of events replaced by a Herald of the name controller, which runs with it. Metrics go to
// registry, if there is one.
func Manager(mgr ctrl.Manager, controller string, clock clock.PassiveClock, registry prometheus.Registerer) (ctrl.Manager, error) {
	api, err := typedeventsv1.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making a client for events: %w", err)
	}
	h := newRecorder(&events.EventSinkImpl{Interface: api}, mgr.GetScheme(), clock, mgr.GetLogger().WithName("events"), controller)
	if registry != nil {
		if err := registry.Register(h.dropped); err != nil {
			return nil, fmt.Errorf("registering the metric of events: %w", err)
		}
	}
	if err := mgr.Add(h); err != nil {
		return nil, fmt.Errorf("adding the herald: %w", err)
	}
	return manager{Manager: mgr, recorder: h}, nil
}

// manager is one that a Herald tells events for.
type manager struct {
	ctrl.Manager
	recorder *Recorder
}

// GetEventRecorder is ctrl.Manager.
func (m manager) GetEventRecorder(string) recorder.EventRecorder { return m.recorder }

func newRecorder(sink events.EventSink, scheme *runtime.Scheme, clock clock.PassiveClock, log logr.Logger, controller string) *Recorder {
	host, _ := os.Hostname() // of the process, for people, who can do without
	h := &Recorder{
		sink: sink, scheme: scheme, clock: clock, log: log, controller: controller, instance: controller + "-" + host,
		dropped: newDropped(), waiting: map[identity]*queuedEvent{}, known: lru.New(remembered),
	}
	h.more = sync.NewCond(&h.mu)
	return h
}

// Eventf is events.EventRecorder. It returns at once.
func (h *Recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	h.AnnotatedEventf(regarding, related, nil, eventType, reason, action, note, args...)
}

// AnnotatedEventf is events.AnnotatedEventRecorder. It returns at once.
func (h *Recorder) AnnotatedEventf(
	regarding, related runtime.Object, annotations map[string]string, eventType, reason, action, note string, args ...any,
) {
	about, err := reference.GetReference(h.scheme, regarding)
	if err != nil {
		h.log.Error(err, "Cannot name what an event is about", "reason", reason)
		return
	}
	e := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: about.Namespace, Annotations: annotations},
		EventTime:           metav1.MicroTime{Time: h.clock.Now()},
		ReportingController: h.controller, ReportingInstance: h.instance,
		Type: eventType, Reason: reason, Action: action, Note: fmt.Sprintf(note, args...),
		Regarding: *about,
	}
	if e.Namespace == "" {
		e.Namespace = metav1.NamespaceDefault
	}
	if related != nil {
		if e.Related, err = reference.GetReference(h.scheme, related); err != nil {
			h.log.Error(err, "Cannot name what an event has to do with", "reason", reason)
		}
	}
	h.log.V(1).Info("Event", "kind", about.Kind, "namespace", about.Namespace, "name", about.Name, "type", e.Type,
		"reason", e.Reason, "action", e.Action, "note", e.Note)
	h.queueEvent(e)
}

// queueEvent puts an event in the queue, or counts it on the one that it repeats.
func (h *Recorder) queueEvent(e *eventsv1.Event) {
	id := identify(e)
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.waiting[id]
	if s == nil {
		s = &queuedEvent{id: id}
		if told, repeats := h.known.Get(id); repeats {
			s = told.(*queuedEvent)
		}
	}
	if s.age(e) {
		h.put(s)
	}
}

// put lets a story wait. The caller has the lock.
func (h *Recorder) put(s *queuedEvent) {
	h.waiting[s.id] = s
	if out := h.queue.put(s); out != nil {
		h.drop(out, causeFull)
	}
	h.more.Signal()
}

// drop forgets a story and counts what is lost. The caller has the lock.
func (h *Recorder) drop(s *queuedEvent, cause string) {
	delete(h.waiting, s.id)
	h.known.Remove(s.id)
	h.dropped.WithLabelValues(s.event.Type, cause).Inc()
}

// identity is what two events have in common of which one repeats the other: all but the time, and the version of what they are
// about.
type identity [sha256.Size]byte

func identify(e *eventsv1.Event) identity {
	related := ""
	if e.Related != nil {
		related = string(e.Related.UID)
	}
	about := e.Regarding
	return sha256.Sum256(fmt.Appendf(nil, "%q", []string{
		about.APIVersion, about.Kind, about.Namespace, about.Name, string(about.UID), about.FieldPath, related,
		e.Type, e.Reason, e.Action, e.Note,
	}))
}

// name is one that no other event has, in a process as among several. The caller has the lock.
func (h *Recorder) name(e *eventsv1.Event) string {
	h.names++
	return util.GenerateEventName(e.Regarding.Name, e.EventTime.UnixNano()+h.names)
}

// Start tells events until ctx is done, and then for a short while what still waits.
func (h *Recorder) Start(ctx context.Context) error {
	work, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() {
		h.wakeAll()
		limit, done := context.WithTimeout(work, drainTimeout)
		defer done()
		<-limit.Done()
		end()
	})()
	var tellers sync.WaitGroup
	for range maxInFlight {
		tellers.Go(func() {
			for s := h.next(ctx, work); s != nil; s = h.next(ctx, work) {
				h.deliver(work, s)
			}
		})
	}
	tellers.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := h.queue.take(); s != nil; s = h.queue.take() {
		h.drop(s, causeEnd)
	}
	return nil
}

// wakeAll lets those who wait for something to tell see that the end has come.
func (h *Recorder) wakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.more.Broadcast()
}

// next waits for something to tell; nil when ctx is done and nothing waits, or work is.
func (h *Recorder) next(ctx, work context.Context) *queuedEvent {
	h.mu.Lock()
	defer h.mu.Unlock()
	for work.Err() == nil {
		if s := h.queue.take(); s != nil {
			return s
		}
		if ctx.Err() != nil {
			return nil
		}
		h.more.Wait()
	}
	return nil
}
