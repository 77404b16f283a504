// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// call is a request for objects.
type call struct {
	*table
	namespace, name, subresource string
	selector                     selector
	metadata                     bool // is all that is wanted
	request                      *http.Request
}

// resource is for errors.
func (c call) resource() schema.GroupResource {
	return schema.GroupResource{Group: c.kind.Group, Resource: c.kind.Resource}
}

// ServeHTTP answers as an API server would.
func (s *Server) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	if answer := s.discover(parts); answer != nil {
		write(w, http.StatusOK, answer)
		return
	}
	c, err := s.parse(parts, request)
	switch {
	case err != nil:
		refuse(w, err)
	case request.URL.Query().Has("watch"):
		s.watch(w, c)
	default:
		s.count(c)
		late := time.NewTimer(s.options.Latency)
		defer late.Stop()
		select {
		case <-late.C:
			s.serve(w, c)
		case <-request.Context().Done():
		}
	}
}

// count counts a request.
func (s *Server) count(c call) {
	switch {
	case c.kind.Group == events || c.kind.Resource == "leases":
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
	s.Requests.kinds[strings.ToLower(c.request.Method)+" "+strings.TrimSuffix(c.kind.Resource+"/"+c.subresource, "/")]++
}

// parse finds out what is asked for: /api/v1 or /apis/group/version, then [namespaces/<namespace>/]<resource>[/<name>[/<subresource>]].
func (s *Server) parse(parts []string, request *http.Request) (call, error) {
	c := call{request: request}
	group, rest := "", []string(nil)
	switch {
	case len(parts) > 2 && parts[0] == "api":
		rest = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group, rest = parts[1], parts[3:]
	}
	if len(rest) > 2 && rest[0] == "namespaces" {
		c.namespace, rest = rest[1], rest[2:]
	}
	if len(rest) > 0 {
		c.table = s.tables[group+"/"+rest[0]]
	}
	if c.table == nil {
		return c, apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, "", "no such path", 0, true)
	}
	if len(rest) > 1 {
		c.name = rest[1]
	}
	if len(rest) > 2 {
		c.subresource = rest[2]
	}
	query := request.URL.Query()
	var err error
	if c.selector.labels, err = labels.Parse(query.Get("labelSelector")); err != nil {
		return c, apierrors.NewBadRequest(err.Error())
	}
	if field := query.Get("fieldSelector"); field != "" {
		name, ok := strings.CutPrefix(field, "metadata.name=")
		if !ok {
			return c, apierrors.NewBadRequest("this API server selects by metadata.name alone")
		}
		c.selector.name = name
	}
	c.metadata = strings.Contains(request.Header.Get("Accept"), "as=PartialObjectMetadata")
	return c, nil
}

// serve answers what is no watch.
func (s *Server) serve(w http.ResponseWriter, c call) {
	switch {
	case c.kind.Group == events: // read by Told
		body, _ := io.ReadAll(c.request.Body)
		if c.request.Method == http.MethodPatch { // one that is known has happened again
			write(w, http.StatusOK, json.RawMessage(`{"kind":"Event","apiVersion":"events.k8s.io/v1"}`))
			return
		}
		w.Header().Set("Content-Type", c.request.Header.Get("Content-Type"))
		if c.request.Method == http.MethodPost {
			w.WriteHeader(http.StatusCreated)
			if s.options.Told != nil {
				s.options.Told(body)
			}
		}
		_, _ = w.Write(body)
	case c.kind.Group == reviews:
		write(w, http.StatusCreated, json.RawMessage(
			`{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`))
	case c.request.Method == http.MethodGet && c.name == "":
		s.list(w, c)
	case c.request.Method == http.MethodGet:
		s.mu.Lock()
		o := c.get(c.namespace, c.name)
		s.mu.Unlock()
		if o == nil {
			refuse(w, apierrors.NewNotFound(c.resource(), c.name))
			return
		}
		write(w, http.StatusOK, c.form(o.raw))
	default:
		status, raw, err := s.change(c)
		if err != nil {
			refuse(w, err)
			return
		}
		write(w, status, c.form(raw))
	}
}

// list answers with all there are at one time.
func (s *Server) list(w http.ResponseWriter, c call) {
	s.mu.Lock()
	found, version := c.list(c.namespace, c.selector), s.version
	s.mu.Unlock()
	meta := map[string]any{"resourceVersion": strconv.FormatUint(version, 10)}
	if limit, err := strconv.Atoi(c.request.URL.Query().Get("limit")); err == nil && limit > 0 && limit < len(found) {
		found, meta["continue"] = found[:limit], "this API server gives the first page alone"
	}
	raws := make([]json.RawMessage, len(found))
	for i, o := range found {
		raws[i] = c.form(o.raw)
	}
	kind, apiVersion := c.kind.Kind+"List", c.kind.groupVersion()
	if c.metadata {
		kind, apiVersion = "PartialObjectMetadataList", metav1.SchemeGroupVersion.String()
	}
	write(w, http.StatusOK, map[string]any{"kind": kind, "apiVersion": apiVersion, "metadata": meta, "items": raws})
}

// form is an object as it was asked for.
func (c call) form(raw []byte) json.RawMessage {
	if !c.metadata {
		return raw
	}
	var of struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &of); err != nil {
		return raw
	}
	return fmt.Appendf(nil, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":%s}`, of.Metadata)
}

func write(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if raw, ok := answer.(json.RawMessage); ok {
		_, _ = w.Write(raw)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	status := apierrors.NewInternalError(err).ErrStatus
	if known, ok := err.(apierrors.APIStatus); ok {
		status = known.Status()
	}
	status.Kind, status.APIVersion = "Status", "v1"
	write(w, int(status.Code), status)
}

// discover answers what there is; nil when something else was asked.
func (s *Server) discover(parts []string) any {
	switch path := strings.Join(parts, "/"); {
	case path == "version":
		return map[string]string{"major": "1", "minor": "37", "gitVersion": "v1.37.1"}
	case path == "api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case path == "apis":
		return s.groups()
	case len(parts) == 2 && parts[0] == "api":
		return s.resources("", "v1")
	case len(parts) == 3 && parts[0] == "apis":
		return s.resources(parts[1], parts[2])
	}
	return nil
}

func (s *Server) groups() metav1.APIGroupList {
	out := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	var seen []string
	for _, k := range s.options.Kinds {
		if k.Group == "" || slices.Contains(seen, k.Group) {
			continue
		}
		seen = append(seen, k.Group)
		version := metav1.GroupVersionForDiscovery{GroupVersion: k.groupVersion(), Version: k.Version}
		out.Groups = append(out.Groups, metav1.APIGroup{
			Name: k.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
		})
	}
	return out
}

func (s *Server) resources(group, version string) metav1.APIResourceList {
	out := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}}
	out.GroupVersion = Kind{Group: group, Version: version}.groupVersion()
	verbs := metav1.Verbs{"get", "list", "watch", "create", "patch", "update", "delete"}
	for _, k := range s.options.Kinds {
		if k.Group == group && k.Version == version {
			out.APIResources = append(out.APIResources, metav1.APIResource{
				Name: k.Resource, SingularName: strings.ToLower(k.Kind), Namespaced: !k.Cluster, Kind: k.Kind, Verbs: verbs,
			})
		}
	}
	return out
}

// lines are what a watch is sent, one after the other.
type lines struct{ bytes.Buffer }

func (l *lines) add(kind string, raw []byte) {
	fmt.Fprintf(l, `{"type":%q,"object":`, kind)
	l.Write(raw)
	l.WriteString("}\n")
}
