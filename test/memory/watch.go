// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// watch sends what there is, when that is asked for, and then all changes, until the client leaves. It never ends by itself.
func (s *Server) watch(w http.ResponseWriter, c call) {
	query := c.request.URL.Query()
	var out lines
	s.mu.Lock()
	next := c.first + len(c.log)
	var there []*object
	from, _ := strconv.ParseUint(query.Get("resourceVersion"), 10, 64) // empty: 0, which is any
	if query.Get("sendInitialEvents") == "true" || from == 0 {
		there = c.list(c.namespace, c.selector)
	} else {
		for next > c.first && c.log[next-1-c.first].version > from {
			next--
		}
	}
	version := s.version
	gone := c.first > 0 && next == c.first
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if gone {
		out.add("ERROR", []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`))
		_, _ = w.Write(out.Bytes())
		return
	}
	for _, o := range there {
		out.add("ADDED", c.form(o.raw))
	}
	if query.Get("sendInitialEvents") == "true" {
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
		if next < c.first {
			s.mu.Unlock()
			return // it lags behind what is remembered
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

// change adds what a change is to who selects.
func (l *lines) change(c call, n change) {
	if c.namespace != "" && c.namespace != n.namespace {
		return
	}
	before := n.before != nil && c.selector.takes(n.name, n.before)
	after := n.after != nil && c.selector.takes(n.name, n.after)
	switch {
	case before && after:
		l.add("MODIFIED", c.form(n.raw))
	case after:
		l.add("ADDED", c.form(n.raw))
	case before:
		l.add("DELETED", c.form(n.raw))
	}
}

// bookmark ends what there is.
func (c call) bookmark(version uint64) []byte {
	kind, apiVersion := c.kind.Kind, c.kind.groupVersion()
	if c.metadata {
		kind, apiVersion = "PartialObjectMetadata", metav1.SchemeGroupVersion.String()
	}
	return fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d","annotations":{%q:"true"}}}`,
		kind, apiVersion, version, metav1.InitialEventsAnnotationKey)
}
