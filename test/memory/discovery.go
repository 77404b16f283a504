// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// discover responds to requests for the kinds that are served; nil when something else is requested.
func (s *Server) discover(path string) any {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case path == "/version":
		return map[string]string{"major": "1", "minor": "37", "gitVersion": "v1.37.1"}
	case path == "/healthz" || path == "/livez" || path == "/readyz":
		return json.RawMessage("ok")
	case path == "/api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case path == "/apis":
		return s.groups()
	case len(parts) == 2 && parts[0] == "api" && parts[1] == "v1":
		return s.resources("", "v1")
	case len(parts) == 2 && parts[0] == "apis":
		for _, g := range s.groups().Groups {
			if g.Name == parts[1] {
				g.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
				return g
			}
		}
	case len(parts) == 3 && parts[0] == "apis":
		return s.resources(parts[1], parts[2])
	}
	return nil
}

func (s *Server) groups() metav1.APIGroupList {
	out := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, k := range s.options.Kinds {
		known := slices.ContainsFunc(out.Groups, func(g metav1.APIGroup) bool { return g.Name == k.Group })
		if k.Group == "" || known {
			continue
		}
		version := metav1.GroupVersionForDiscovery{GroupVersion: k.groupVersion(), Version: k.Version}
		out.Groups = append(out.Groups, metav1.APIGroup{
			Name: k.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
		})
	}
	return out
}

// resources returns nil for a group and version that is not served.
func (s *Server) resources(group, version string) any {
	out := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}}
	if group == "" {
		out.APIVersion = "" // as kube-apiserver has it
	}
	out.GroupVersion = Kind{Group: group, Version: version}.groupVersion()
	for _, k := range s.options.Kinds {
		if k.Group != group || k.Version != version {
			continue
		}
		r := metav1.APIResource{Name: k.Resource, SingularName: lower(k.Kind), Namespaced: !k.Cluster, Kind: k.Kind}
		r.Verbs = metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
		switch {
		case k.Group == accessGroup:
			r.Verbs = metav1.Verbs{"create"}
		case k.custom():
			r.Verbs = metav1.Verbs{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
			if k.Definition != nil {
				names := k.Definition.Spec.Names
				r.SingularName, r.ShortNames, r.Categories = cmp.Or(names.Singular, r.SingularName), names.ShortNames, names.Categories
			}
		case k.Kind == "Namespace":
			r.Verbs = metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}
		}
		out.APIResources = append(out.APIResources, r)
		if k.Status {
			r.Name, r.SingularName, r.ShortNames, r.Categories = r.Name+"/status", "", nil, nil
			r.Verbs = metav1.Verbs{"get", "patch", "update"}
			out.APIResources = append(out.APIResources, r)
		}
	}
	if out.APIResources == nil {
		return nil
	}
	slices.SortFunc(out.APIResources, func(a, b metav1.APIResource) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// access responds to access reviews as Options.Authorize decides.
func (s *Server) access(w http.ResponseWriter, c call) {
	body, err := io.ReadAll(c.request.Body)
	if err != nil || c.info.Verb != "create" {
		refuse(w, apierrors.NewMethodNotSupported(c.kind.resource().GroupResource(), c.info.Verb))
		return
	}
	into, err := builtin.New(c.kind.gvk())
	if err == nil {
		_, _, err = builtinCodecs.UniversalDeserializer().Decode(body, nil, into)
	}
	if err != nil {
		refuse(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	into.GetObjectKind().SetGroupVersionKind(c.kind.gvk())
	switch o := into.(type) {
	case *authorizationv1.SelfSubjectAccessReview:
		o.Status = s.decide(c, c.user, o.Spec.ResourceAttributes)
	case *authorizationv1.SubjectAccessReview:
		who := &user.DefaultInfo{Name: o.Spec.User, UID: o.Spec.UID, Groups: o.Spec.Groups, Extra: map[string][]string{}}
		for k, v := range o.Spec.Extra {
			who.Extra[k] = v
		}
		o.Status = s.decide(c, who, o.Spec.ResourceAttributes)
	}
	write(w, http.StatusCreated, into)
}

// decide returns what a user may do.
func (s *Server) decide(c call, who user.Info, of *authorizationv1.ResourceAttributes) authorizationv1.SubjectAccessReviewStatus {
	if s.options.Authorize == nil || of == nil {
		return authorizationv1.SubjectAccessReviewStatus{Allowed: true}
	}
	ok, reason := s.options.Authorize(c.request.Context(), authorizer.AttributesRecord{
		User: who, Verb: of.Verb, Namespace: of.Namespace, APIGroup: of.Group, APIVersion: of.Version, Resource: of.Resource,
		Subresource: of.Subresource, Name: of.Name, ResourceRequest: true,
	})
	return authorizationv1.SubjectAccessReviewStatus{Allowed: ok, Reason: reason}
}
