// SPDX-License-Identifier: Apache-2.0

// Package memory serves Kubernetes APIs from memory, any number in one process. Writes go through the handlers, registries, field
// managers and schemas of kube-apiserver's own packages; this package has the storage below them, reads and watches, and the
// controllers without which nothing would be rolled out. A differential test holds all of it against a real kube-apiserver: when you
// depend on more of an API server here, add the request to its table (steps_test.go).
//
// It differs from one in this: fields of Kubernetes' own kinds are not validated, and defaulted only in part (defaults.go); a kind
// has one version; there are no quotas and no admission but namespaces' life and Options; watches end with the client alone and have
// no bookmarks but the one that ends initial events; Events are not stored; subresources but status and eviction are not served.
package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
)

// call is a request for objects.
type call struct {
	*table
	info     *request.RequestInfo
	user     user.Info
	selector selector
	metadata bool // PartialObjectMetadata is requested
	request  *http.Request
}

var requestInfo = request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// ServeHTTP responds as an API server.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, err := requestInfo.NewRequestInfo(r)
	if err != nil {
		refuse(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	if !info.IsResourceRequest {
		if found := s.discover(info.Path); found != nil {
			write(w, http.StatusOK, found)
			return
		}
		notFound(w)
		return
	}
	c := call{table: s.tables[info.APIGroup+"/"+info.Resource], info: info, request: r, user: s.user(r)}
	if c.table == nil || c.kind.Version != info.APIVersion {
		noRoute(w, info, http.StatusNotFound)
		return
	}
	if misplaced(r.Method, info) {
		noRoute(w, info, http.StatusMethodNotAllowed)
		return
	}
	if info.Verb == "watch" {
		if err := s.permit(c); err != nil {
			refuse(w, err)
			return
		}
		s.watch(w, c)
		return
	}
	s.count(c)
	late := time.NewTimer(s.options.Latency)
	defer late.Stop()
	select {
	case <-late.C:
	case <-r.Context().Done():
		return
	}
	if err := s.permit(c); err != nil {
		refuse(w, err)
		return
	}
	s.serve(w, c)
}

// permit asks Options.Authorize.
func (s *Server) permit(c call) error {
	if s.options.Authorize == nil || c.kind.Group == accessGroup && strings.HasPrefix(c.kind.Kind, "Self") {
		return nil
	}
	a := authorizer.AttributesRecord{
		User: c.user, Verb: c.info.Verb, Namespace: c.info.Namespace, APIGroup: c.info.APIGroup, APIVersion: c.info.APIVersion,
		Resource: c.info.Resource, Subresource: c.info.Subresource, Name: c.info.Name, ResourceRequest: true, Path: c.info.Path,
	}
	if ok, reason := s.options.Authorize(c.request.Context(), a); !ok {
		return responsewriters.ForbiddenStatusError(a, reason)
	}
	return nil
}

// count counts a request.
func (s *Server) count(c call) {
	switch {
	case c.kind.Group == eventsGroup || c.kind.Resource == "leases":
	case c.request.Method == http.MethodGet:
		s.Requests.Reads.Add(1)
	default:
		s.Requests.FirstWrite.CompareAndSwap(0, time.Now().UnixNano())
		s.Requests.Writes.Add(1)
	}
	s.Requests.mu.Lock()
	defer s.Requests.mu.Unlock()
	if s.Requests.kinds == nil {
		s.Requests.kinds = map[string]int{}
	}
	s.Requests.kinds[lower(c.request.Method)+" "+strings.TrimSuffix(c.kind.Resource+"/"+c.info.Subresource, "/")]++
}

// serve responds to what is no watch.
func (s *Server) serve(w http.ResponseWriter, c call) {
	switch {
	case c.kind.Group == eventsGroup:
		s.event(w, c)
	case c.kind.Group == accessGroup:
		s.access(w, c)
	case c.info.Verb == "get":
		s.get(w, c)
	case c.info.Verb == "list":
		s.list(w, c)
	default:
		s.write(w, c)
	}
}

// write has the handlers of kube-apiserver carry out a request.
func (s *Server) write(w http.ResponseWriter, c call) {
	if c.kind.ID() == pods && c.info.Subresource == "eviction" && c.info.Verb == "create" {
		s.evict(w, c)
		return
	}
	of, err := serve(c.kind)
	if err != nil {
		refuse(w, apierrors.NewInternalError(err))
		return
	}
	routes := of.main
	switch c.info.Subresource {
	case "":
	case "status":
		routes = of.status
	default:
		routes = nil
	}
	handler := routes[c.info.Verb]
	switch {
	case routes == nil:
		noRoute(w, c.info, http.StatusNotFound)
		return
	case handler == nil:
		noRoute(w, c.info, http.StatusMethodNotAllowed)
		return
	}
	media, _, _ := strings.Cut(c.request.Header.Get("Content-Type"), ";")
	if c.info.Verb == "patch" && !c.kind.custom() && !slices.Contains(patches, media) {
		noRoute(w, c.info, http.StatusUnsupportedMediaType)
		return
	}
	ctx := context.WithValue(c.request.Context(), askedKey{}, asked{s, c.request})
	ctx = audit.WithAuditContext(ctx)
	ctx = request.WithUser(request.WithRequestInfo(ctx, c.info), c.user)
	handler()(w, c.request.WithContext(warning.WithWarningRecorder(ctx, warnings{w.Header()})))
}

// warnings adds warnings to the header of a response.
type warnings struct{ http.Header }

func (w warnings) AddWarning(agent, text string) {
	if agent == "" {
		agent = "-"
	}
	if value, err := net.NewWarningHeader(299, agent, text); err == nil {
		w.Add("Warning", value)
	}
}

// event accepts an Event, and does not store it.
func (s *Server) event(w http.ResponseWriter, c call) {
	body, err := io.ReadAll(c.request.Body)
	switch {
	case err != nil:
		refuse(w, apierrors.NewBadRequest(err.Error()))
		return
	case c.info.Verb == "list":
		write(w, http.StatusOK, map[string]any{"kind": "EventList", "apiVersion": c.kind.groupVersion(), "items": []any{}})
		return
	case c.info.Verb == "patch": // an Event of a series
		write(w, http.StatusOK, json.RawMessage(`{"kind":"Event","apiVersion":"events.k8s.io/v1"}`))
		return
	case c.info.Verb != "create":
		refuse(w, apierrors.NewNotFound(c.kind.resource().GroupResource(), c.info.Name))
		return
	}
	if s.options.Event != nil {
		s.options.Event(body)
	}
	w.Header().Set("Content-Type", c.request.Header.Get("Content-Type"))
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(body)
}

// get responds with one object.
func (s *Server) get(w http.ResponseWriter, c call) {
	if c.info.Subresource != "" && (c.info.Subresource != "status" || !c.kind.Status) {
		noRoute(w, c.info, http.StatusNotFound)
		return
	}
	s.mu.Lock()
	o := c.get(c.space(), c.info.Name)
	s.mu.Unlock()
	if o == nil {
		refuse(w, apierrors.NewNotFound(c.kind.resource().GroupResource(), c.info.Name))
		return
	}
	var err error
	if c.metadata, err = partial(c.request, "PartialObjectMetadata", c.kind); err != nil {
		refuse(w, err)
		return
	}
	write(w, http.StatusOK, c.form(o.raw))
}

// space is the namespace that a request is about; RequestInfo has one for Namespaces, too.
func (c call) space() string {
	if c.kind.Cluster {
		return ""
	}
	return c.info.Namespace
}

// selection reads the selectors of a list or a watch.
func (c *call) selection() error {
	query := c.request.URL.Query()
	var err error
	if c.selector.labels, err = labels.Parse(query.Get("labelSelector")); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("unable to parse requirement: %v", err))
	}
	if c.selector.fields, err = fields.ParseSelector(query.Get("fieldSelector")); err == nil {
		c.selector.fields, err = c.selector.fields.Transform(c.kind.convertField)
	}
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}
