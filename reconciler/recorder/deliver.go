// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Causes for which events are dropped.
const (
	// causeFull: too many waited.
	causeFull = "full"
	// causeRefused: the API server does not want it, as in a namespace that is going away.
	causeRefused = "refused"
	// causeUnanswered: the API server had no answer for a minute.
	causeUnanswered = "unanswered"
	// causeEnd: the process ended.
	causeEnd = "end"
)

// newDropped counts events that are not told.
func newDropped() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "shipper_events_dropped_total",
		Help: "How many events were not told. Labels type: Normal or Warning; cause: full, when too many waited; refused, by the API " +
			"server; unanswered, when it had no answer for a minute; end, when the process ended. Absent until there is one.",
	}, []string{"type", "cause"})
}

// deliver tells a story, as far as it has happened by now, and lets it wait again when it has happened meanwhile.
func (h *Recorder) deliver(ctx context.Context, s *queuedEvent) {
	h.mu.Lock()
	e, known, told := s.event.DeepCopy(), s.name != "", s.times
	if e.Name = s.name; !known {
		e.Name = h.name(e)
	}
	if told > 1 {
		e.Series = &eventsv1.EventSeries{Count: told, LastObservedTime: s.last}
	}
	h.mu.Unlock()

	gone, err := h.send(ctx, e, known)

	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err != nil:
		cause := causeRefused
		switch {
		case ctx.Err() != nil:
			cause = causeEnd
		case unanswered(err):
			cause = causeUnanswered
		}
		h.log.V(1).Info("An event is not told", "cause", cause, "reason", e.Reason, "error", err.Error())
		h.drop(s, cause)
		return
	case gone: // another story begins
		s.name, s.times = "", s.times-told+1
		h.put(s)
		return
	}
	s.name = e.Name
	if s.times > told {
		h.put(s)
		return
	}
	s.waits, s.event = false, nil
	delete(h.waiting, s.id)
	h.known.Add(s.id, s)
}

// send makes the request, and again as long as there is no answer. gone tells that the event that e repeats is none any more.
func (h *Recorder) send(ctx context.Context, e *eventsv1.Event, known bool) (gone bool, err error) {
	waited := wait.ExponentialBackoffWithContext(ctx, requestTimeout, func(ctx context.Context) (bool, error) {
		if known {
			err = h.count(ctx, e)
		} else {
			_, err = h.sink.Create(ctx, e)
		}
		return !unanswered(err), nil
	})
	switch {
	case err == nil && waited != nil: // not even tried
		return false, waited
	case known && apierrors.IsNotFound(err):
		return true, nil
	case !known && apierrors.IsAlreadyExists(err): // by an answer that was lost
		return false, nil
	}
	return false, err
}

// count writes how often an event has happened.
func (h *Recorder) count(ctx context.Context, e *eventsv1.Event) error {
	patch, err := json.Marshal(map[string]any{"series": e.Series})
	if err == nil {
		_, err = h.sink.Patch(ctx, e, patch)
	}
	return err
}

// unanswered tells whether an error says nothing of the event.
func unanswered(err error) bool {
	if err == nil {
		return false
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests
}
