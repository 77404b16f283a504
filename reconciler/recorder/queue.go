// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// queuedEvent is an event, and how often it happened.
type queuedEvent struct {
	id identity
	// event as it happened last, while that is to be told; nil then, for it is what takes room.
	event *eventsv1.Event
	// name that the API server knows it by; empty as long as it does not.
	name string
	// times it happened, and when it did last.
	times int32
	last  metav1.MicroTime
	// waits to be told, or is being told.
	waits bool
}

// age notes an event, and tells whether the story has to be put in the queue.
func (s *queuedEvent) age(e *eventsv1.Event) bool {
	s.times++
	s.last = e.EventTime
	if s.event == nil || s.name != "" {
		s.event = e
	}
	was := s.waits
	s.waits = true
	return !was
}

// queue is what waits to be told: Warnings first, and otherwise the first first.
type queue struct{ warnings, others line }

// put lets s wait, and returns what has to go for it, or s itself.
func (q *queue) put(s *queuedEvent) (out *queuedEvent) {
	warns := s.event.Type == corev1.EventTypeWarning
	if q.warnings.len()+q.others.len() >= maxQueued {
		switch {
		case q.others.len() > 0:
			out = q.others.take()
		case warns:
			out = q.warnings.take()
		default:
			return s
		}
	}
	if warns {
		q.warnings.put(s)
	} else {
		q.others.put(s)
	}
	return out
}

// take the next one; nil when there is none.
func (q *queue) take() *queuedEvent {
	if s := q.warnings.take(); s != nil {
		return s
	}
	return q.others.take()
}

// line is first in, first out.
type line struct{ events []*queuedEvent }

func (l *line) len() int { return len(l.events) }

func (l *line) put(s *queuedEvent) { l.events = append(l.events, s) }

func (l *line) take() *queuedEvent {
	if len(l.events) == 0 {
		return nil
	}
	s := l.events[0]
	l.events[0] = nil
	if l.events = l.events[1:]; len(l.events) == 0 {
		l.events = nil // what a crowd needed is given back
	}
	return s
}
