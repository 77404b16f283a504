// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	k8sadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Review is a write that is about to be stored, as admission webhooks see it.
type Review struct {
	Kind Kind
	// Operation is CREATE, UPDATE or DELETE.
	Operation                    string
	Namespace, Name, Subresource string
	// Object is what would be stored, nil when it is deleted; Old is what is stored, nil when it is created. Old must not be changed.
	Object, Old *unstructured.Unstructured
	DryRun      bool
	User        user.Info
	Request     *http.Request
}

// admission calls Options.Mutate and Options.Review at the points where kube-apiserver calls mutating and validating webhooks.
type admission struct{}

func (admission) Handles(k8sadmission.Operation) bool { return true }

// Admit is a part of admission.MutationInterface.
func (admission) Admit(ctx context.Context, a k8sadmission.Attributes, _ k8sadmission.ObjectInterfaces) error {
	s := requestOf(ctx).server
	if err := s.lifecycle(a); err != nil {
		return err
	}
	if s.options.Mutate != nil && s.reviewed(a) {
		r, err := reviewOf(ctx, a, a.GetObject())
		if err != nil {
			return err
		}
		before := r.Object.DeepCopy()
		if err := s.options.Mutate(r); err != nil {
			return err
		}
		if r.Object != nil && !reflect.DeepEqual(before, r.Object) {
			if err := replace(a.GetObject(), r.Object); err != nil {
				return err
			}
		}
	}
	if a.GetOperation() == k8sadmission.Create {
		s.name(a.GetObject())
	}
	return nil
}

// name generates a name from a counter, so that runs can be repeated; kube-apiserver draws it.
func (s *Server) name(o runtime.Object) {
	m, err := meta.Accessor(o)
	if err != nil || m.GetName() != "" || m.GetGenerateName() == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m.SetName(m.GetGenerateName() + s.suffix())
}

// Validate is a part of admission.ValidationInterface.
func (admission) Validate(ctx context.Context, a k8sadmission.Attributes, _ k8sadmission.ObjectInterfaces) error {
	s := requestOf(ctx).server
	if s.options.Review == nil || !s.reviewed(a) {
		return nil
	}
	r, err := reviewOf(ctx, a, a.GetObject())
	if err != nil {
		return err
	}
	before := r.Object.DeepCopy()
	if err := s.options.Review(r); err != nil {
		return err
	}
	if !reflect.DeepEqual(before, r.Object) {
		return apierrors.NewInternalError(fmt.Errorf("Options.Review changed %s %s/%s; use Options.Mutate", r.Kind.ID(), r.Namespace, r.Name))
	}
	return nil
}

// reviewed asks Options.Reviewed.
func (s *Server) reviewed(a k8sadmission.Attributes) bool {
	if s.options.Reviewed == nil {
		return true
	}
	resource := a.GetResource()
	return s.options.Reviewed(s.tables[resource.Group+"/"+resource.Resource].kind, a.GetSubresource())
}

// replace gives an object another content.
func replace(o runtime.Object, by *unstructured.Unstructured) error {
	if u, ok := o.(*unstructured.Unstructured); ok {
		u.Object = by.Object
		return nil
	}
	fresh := reflect.New(reflect.TypeOf(o).Elem()).Interface().(runtime.Object)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(by.Object, fresh); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("reading what Options.Mutate returned: %w", err))
	}
	reflect.ValueOf(o).Elem().Set(reflect.ValueOf(fresh).Elem())
	return nil
}

func reviewOf(ctx context.Context, a k8sadmission.Attributes, o runtime.Object) (*Review, error) {
	from := requestOf(ctx)
	r := &Review{
		Kind: from.server.tables[a.GetResource().Group+"/"+a.GetResource().Resource].kind, Operation: string(a.GetOperation()),
		Namespace: a.GetNamespace(), Name: a.GetName(), Subresource: a.GetSubresource(),
		DryRun: a.IsDryRun(), User: a.GetUserInfo(), Request: from.request,
	}
	var err error
	if r.Operation != "DELETE" {
		if r.Object, err = r.Kind.unstructured(o); err != nil {
			return nil, err
		}
	}
	if r.Operation != "CREATE" {
		r.Old, err = r.Kind.unstructured(a.GetOldObject())
	}
	return r, err
}

// unstructured returns an object in the form that it has in JSON.
func (k Kind) unstructured(o runtime.Object) (*unstructured.Unstructured, error) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return u, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("converting: %w", err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(k.gvk())
	return u, nil
}

// lifecycle refuses objects in namespaces that do not exist or are being deleted, as the plugin NamespaceLifecycle does.
func (s *Server) lifecycle(a k8sadmission.Attributes) error {
	if a.GetNamespace() == "" || a.GetOperation() != k8sadmission.Create || a.GetKind().Kind == "Namespace" {
		return nil
	}
	s.mu.Lock()
	o := s.tables[namespacesID].get("", a.GetNamespace())
	s.mu.Unlock()
	if o == nil {
		return apierrors.NewNotFound(corev1.Resource("namespaces"), a.GetNamespace())
	}
	if o.live.(*corev1.Namespace).Status.Phase != corev1.NamespaceTerminating {
		return nil
	}
	ns := a.GetNamespace()
	err := k8sadmission.NewForbidden(a, fmt.Errorf("unable to create new content in namespace %s because it is being terminated", ns))
	var refused *apierrors.StatusError
	if errors.As(err, &refused) && refused.ErrStatus.Details != nil {
		refused.ErrStatus.Details.Causes = append(refused.ErrStatus.Details.Causes, metav1.StatusCause{
			Type: corev1.NamespaceTerminatingCause, Message: fmt.Sprintf("namespace %s is being terminated", ns), Field: "metadata.namespace",
		})
	}
	return err
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
