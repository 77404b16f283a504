// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Create stores an object without a request: it is defaulted, and neither validated nor reviewed. A Namespace that is missing for it
// is created, too.
func (s *Server) Create(group, resource string, from runtime.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(from)
	if err != nil {
		return fmt.Errorf("creating: %w", err)
	}
	t := s.tables[group+"/"+resource]
	if t == nil {
		return fmt.Errorf("creating: there is no %s in %q", resource, group)
	}
	o, err := t.kind.decode((&unstructured.Unstructured{Object: content}).DeepCopy())
	if err != nil {
		return fmt.Errorf("creating: %w", err)
	}
	if err := t.kind.setDefaults(o); err != nil {
		return err
	}
	m := o.(metav1.Object)
	s.mu.Lock()
	defer s.mu.Unlock()
	if namespaces := s.tables[namespacesID]; !t.kind.Cluster && namespaces.get("", m.GetNamespace()) == nil {
		s.add(namespaces, newNamespace(m.GetNamespace()))
	}
	if m.GetName() == "" {
		m.SetName(m.GetGenerateName() + s.suffix())
	}
	if t.get(m.GetNamespace(), m.GetName()) != nil {
		return apierrors.NewAlreadyExists(t.kind.resource().GroupResource(), m.GetName())
	}
	s.add(t, o)
	return nil
}

// newNamespace returns a Namespace as kube-apiserver stores it.
func newNamespace(name string) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	ns.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes}
	builtin.Default(ns)
	return ns
}

// setDefaults sets defaults as for a request.
func (k Kind) setDefaults(o runtime.Object) error {
	if !k.custom() {
		builtin.Default(o)
		return nil
	}
	of, err := serve(k)
	if err == nil {
		of.defaulter.Default(o)
	}
	return err
}

// add stores a new object with the metadata that the server gives it. The server's mutex is held.
func (s *Server) add(t *table, o runtime.Object) *object {
	m := o.(metav1.Object)
	m.SetUID(s.id())
	m.SetCreationTimestamp(metav1.NewTime(time.Now()))
	if t.kind.Counted {
		m.SetGeneration(1)
	}
	return s.put(t, o)
}

// Edit changes an object without a request: it is neither validated nor reviewed. A change of spec counts as a generation.
func (s *Server) Edit(group, resource, namespace, name string, edit func(*unstructured.Unstructured) error) error {
	t := s.tables[group+"/"+resource]
	if t == nil {
		return fmt.Errorf("editing: there is no %s in %q", resource, group)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := t.get(namespace, name)
	if now == nil {
		return apierrors.NewNotFound(t.kind.resource().GroupResource(), name)
	}
	u, old := now.read(), now.read()
	if err := edit(u); err != nil {
		return err
	}
	if t.kind.Counted && !sameContent(u, old) {
		u.SetGeneration(old.GetGeneration() + 1)
	}
	o, err := t.kind.decode(u)
	if err != nil {
		return fmt.Errorf("editing: %w", err)
	}
	if u.GetDeletionTimestamp() != nil && len(u.GetFinalizers()) == 0 {
		s.remove(t, now)
		return nil
	}
	if string(t.kind.encode(o)) != string(now.raw) {
		s.put(t, o)
	}
	return nil
}

// sameContent compares what is neither metadata nor status.
func sameContent(a, b *unstructured.Unstructured) bool {
	content := func(u *unstructured.Unstructured) map[string]any {
		out := maps.Clone(u.Object)
		delete(out, "metadata")
		delete(out, "status")
		return out
	}
	return reflect.DeepEqual(content(a), content(b))
}

// Follow calls take with every object of a kind and with every change, until ctx is done or
// Restore is called.
func (s *Server) Follow(ctx context.Context, group, resource string, take func(raw []byte, gone bool)) {
	t := s.tables[group+"/"+resource]
	s.mu.Lock()
	next := t.first + len(t.log)
	for _, o := range t.list("", selector{}) {
		take(o.raw, false)
	}
	s.mu.Unlock()
	for {
		s.mu.Lock()
		changed, news, ended := t.changed, t.log[max(next-t.first, 0):], t.ended
		s.mu.Unlock()
		if ended {
			return
		}
		for _, n := range news {
			take(n.of().raw, n.after == nil)
		}
		if next += len(news); len(news) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// All returns all objects of a kind, by namespace and name. kindID is Kind.ID.
func (s *Server) All(kindID string) (out []*unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[kindID]
	if t == nil {
		return nil
	}
	for _, namespace := range slices.Sorted(maps.Keys(t.objects)) {
		for _, name := range slices.Sorted(maps.Keys(t.objects[namespace])) {
			out = append(out, t.objects[namespace][name].read())
		}
	}
	return out
}

// Bytes returns the size of all objects as JSON.
func (s *Server) Bytes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, t := range s.tables {
		for _, in := range t.objects {
			for _, o := range in {
				n += len(o.raw)
			}
		}
	}
	return n
}
