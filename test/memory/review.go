// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Review is a write that is about to be stored, as admission webhooks see it.
type Review struct {
	Kind Kind
	// Operation is CREATE, UPDATE or DELETE.
	Operation                    string
	Namespace, Name, Subresource string
	// Object is what would be stored, nil when it is deleted; Old is what is stored, nil when it is created.
	Object, Old *unstructured.Unstructured
	DryRun      bool
	User        user.Info
	Request     *http.Request
}

// review calls Options.Mutate and Options.Review. The server's mutex is not held.
func (s *Server) review(c call, w *pending) error {
	if s.options.Mutate == nil && s.options.Review == nil {
		return nil
	}
	r := &Review{
		Kind: c.kind, Operation: w.operation, Namespace: c.namespace, Name: c.name, Subresource: c.subresource,
		Object: w.u, DryRun: c.dryRun(), User: s.user(c.request), Request: c.request,
	}
	if r.Name == "" && w.u != nil {
		r.Name = w.u.GetName()
	}
	if w.operation != "CREATE" {
		r.Old = w.seen.read()
	}
	for _, call := range []func(*Review) error{s.options.Mutate, s.options.Review} {
		if call == nil {
			continue
		}
		if err := call(r); err != nil {
			return err
		}
		if w.operation != "DELETE" {
			w.u = r.Object
		}
	}
	return nil
}

// user returns who sends a request.
func (s *Server) user(r *http.Request) user.Info {
	if name := r.Header.Get("Impersonate-User"); name != "" {
		extra := map[string][]string{}
		for header, values := range r.Header {
			if key, ok := strings.CutPrefix(header, "Impersonate-Extra-"); ok {
				extra[strings.ToLower(key)] = values
			}
		}
		groups := slices.Clone(r.Header.Values("Impersonate-Group"))
		if !slices.Contains(groups, user.AllAuthenticated) {
			groups = append(groups, user.AllAuthenticated)
		}
		return &user.DefaultInfo{Name: name, UID: r.Header.Get("Impersonate-Uid"), Groups: groups, Extra: extra}
	}
	if s.options.User != nil {
		return s.options.User(r)
	}
	return &user.DefaultInfo{Name: "system:admin", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}
}
