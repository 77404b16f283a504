// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/storage"
)

// watch sends the state, when that is requested, and then all changes until the client leaves, or Restore ends it.
func (s *Server) watch(w http.ResponseWriter, c call) {
	o, err := c.listOptions()
	if err == nil {
		err = c.selection()
	}
	if err == nil {
		c.metadata, err = partial(c.request, "PartialObjectMetadata", c.kind)
	}
	var from uint64
	if err == nil {
		from, err = storage.APIObjectVersioner{}.ParseResourceVersion(o.ResourceVersion)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	initial := o.SendInitialEvents != nil && *o.SendInitialEvents
	var out lines
	s.mu.Lock()
	next := c.first + len(c.log)
	var there []*object
	if initial || from == 0 && o.SendInitialEvents == nil {
		there = c.list(c.space(), c.selector)
	} else if from > 0 {
		for next > c.first && c.log[next-1-c.first].version > from {
			next--
		}
	}
	version := s.version
	expired := !initial && from > 0 && from < c.forgot
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if expired {
		out.add("ERROR", []byte(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",`+
			`"message":"too old resource version","reason":"Expired","code":410}`))
		_, _ = w.Write(out.Bytes())
		return
	}
	for _, o := range there {
		out.add("ADDED", c.form(o.raw))
	}
	if initial && o.AllowWatchBookmarks {
		out.add("BOOKMARK", c.bookmark(version))
	}
	s.follow(w, c, next, out)
}

// follow sends changes from a number on.
func (s *Server) follow(w http.ResponseWriter, c call, next int, out lines) {
	for {
		if _, err := w.Write(out.Bytes()); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush() // an error is seen by the next write
		out.Reset()
		s.mu.Lock()
		changed := c.changed
		if next < c.first || c.ended {
			s.mu.Unlock()
			return // it lags behind what is remembered, or that was restored
		}
		news := c.log[next-c.first:]
		s.mu.Unlock()
		for _, n := range news {
			out.change(c, n)
		}
		if next += len(news); len(news) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-c.request.Context().Done():
			return
		}
	}
}

// lines are what a watch is sent, one after the other.
type lines struct{ bytes.Buffer }

func (l *lines) add(kind string, raw []byte) {
	fmt.Fprintf(l, `{"type":%q,"object":`, kind)
	l.Write(raw)
	l.WriteString("}\n")
}

// change adds what a change is to a selector: an object that leaves it is deleted, as it was before.
func (l *lines) change(c call, n change) {
	if c.space() != "" && c.space() != n.of().namespace {
		return
	}
	before, after := c.takes(c.selector, n.before), c.takes(c.selector, n.after)
	switch {
	case before && after:
		l.add("MODIFIED", c.form(n.after.raw))
	case after:
		l.add("ADDED", c.form(n.after.raw))
	case before:
		l.add("DELETED", c.form(n.before.at(n.version)))
	}
}

// bookmark ends initial events.
func (c call) bookmark(version uint64) []byte {
	kind, apiVersion := c.kind.Kind, c.kind.groupVersion()
	if c.metadata {
		kind, apiVersion = "PartialObjectMetadata", metav1.SchemeGroupVersion.String()
	}
	return fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d","annotations":{%q:"true"}}}`,
		kind, apiVersion, version, metav1.InitialEventsAnnotationKey)
}
