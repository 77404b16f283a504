// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// Create stores an object without asking over the network.
func (s *Server) Create(group, resource string, from runtime.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(from)
	if err != nil {
		return fmt.Errorf("creating: %w", err)
	}
	u := &unstructured.Unstructured{Object: content}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[group+"/"+resource]
	if t == nil {
		return fmt.Errorf("creating: there is no %s in %q", resource, group)
	}
	_, err = s.create(call{table: t, namespace: u.GetNamespace(), name: u.GetName()}, u)
	return err
}

// Edit changes an object without asking over the network.
func (s *Server) Edit(group, resource, namespace, name string, edit func(*unstructured.Unstructured) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := call{table: s.tables[group+"/"+resource], namespace: namespace, name: name}
	now := c.get(namespace, name)
	if now == nil {
		return fmt.Errorf("there is no %s %s/%s", resource, namespace, name)
	}
	u := now.read()
	if err := edit(u); err != nil {
		return err
	}
	_, err := s.update(c, now, u)
	return err
}

// Follow calls take with every object of a kind and with every change, until ctx is done.
func (s *Server) Follow(ctx context.Context, group, resource string, take func(raw []byte, gone bool)) {
	t := s.tables[group+"/"+resource]
	s.mu.Lock()
	next := t.first + len(t.log)
	for _, o := range t.list("", selector{labels: labels.Everything()}) {
		take(o.raw, false)
	}
	s.mu.Unlock()
	for {
		s.mu.Lock()
		changed, news := t.changed, t.log[max(next-t.first, 0):]
		s.mu.Unlock()
		for _, n := range news {
			take(n.raw, n.after == nil)
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

// Bytes is how much all objects are as JSON.
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
