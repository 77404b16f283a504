// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// prefix begins all keys of storage.Interface.
const prefix = "/objects"

// asked is a request that a Server carries out.
type asked struct {
	server  *Server
	request *http.Request
}

type askedKey struct{}

func requestOf(ctx context.Context) asked {
	a, _ := ctx.Value(askedKey{}).(asked) // every request to a handler has it
	return a
}

// stored is the storage.Interface of a kind, in the Server of a request. Watches are not served from it.
type stored struct{ kind Kind }

// place finds what a key names. namespace or name are empty for lists.
func (st stored) place(ctx context.Context, key string) (s *Server, t *table, namespace, name string) {
	s = requestOf(ctx).server
	rest := strings.Split(strings.Trim(strings.TrimPrefix(key, prefix), "/"), "/")
	if !st.kind.Cluster {
		namespace, rest = rest[0], rest[1:]
	}
	if len(rest) > 0 {
		name = rest[0]
	}
	return s, s.tables[st.kind.ID()], namespace, name
}

// Versioner is a part of storage.Interface.
func (stored) Versioner() storage.Versioner { return storage.APIObjectVersioner{} }

// enter calls Options.Enter. The server's mutex is held.
func (s *Server) enter(ctx context.Context) (leave func(done bool), err error) {
	if s.options.Enter == nil {
		return func(bool) {}, nil
	}
	leave, err = s.options.Enter(requestOf(ctx).request)
	if err != nil && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
		err = apierrors.NewInternalError(err)
	}
	return leave, err
}

// Create is a part of storage.Interface.
func (st stored) Create(ctx context.Context, key string, o, out runtime.Object, _ uint64) error {
	s, t, namespace, name := st.place(ctx, key)
	if m, err := meta.Accessor(o); err == nil && m.GetResourceVersion() != "" {
		return storage.ErrResourceVersionSetOnCreate
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.get(namespace, name) != nil {
		return storage.NewKeyExistsError(key, 0)
	}
	return s.commit(ctx, t, o, out)
}

// commit stores a created or changed object. The server's mutex is held.
func (s *Server) commit(ctx context.Context, t *table, o, out runtime.Object) error {
	m, err := meta.Accessor(o)
	if err != nil {
		return fmt.Errorf("reading metadata: %w", err)
	}
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	if t.get(m.GetNamespace(), m.GetName()) == nil {
		m.SetUID(s.id())
	}
	kept := s.put(t, o.DeepCopyObject())
	leave(true)
	return copyInto(kept.live, out)
}

// copyInto copies an object into another one of its type.
func copyInto(from, to runtime.Object) error {
	copied := from.DeepCopyObject()
	if u, ok := to.(*unstructured.Unstructured); ok {
		u.Object = copied.(*unstructured.Unstructured).Object
		return nil
	}
	a, b := reflect.ValueOf(copied).Elem(), reflect.ValueOf(to).Elem()
	if a.Type() != b.Type() {
		return fmt.Errorf("a %s is no %s", a.Type(), b.Type())
	}
	b.Set(a)
	return nil
}

// Get is a part of storage.Interface.
func (st stored) Get(ctx context.Context, key string, o storage.GetOptions, out runtime.Object) error {
	s, t, namespace, name := st.place(ctx, key)
	s.mu.Lock()
	now := t.get(namespace, name)
	s.mu.Unlock()
	switch {
	case now != nil:
		return copyInto(now.live, out)
	case o.IgnoreNotFound:
		return runtime.SetZeroValue(out)
	}
	return storage.NewKeyNotFoundError(key, 0)
}

// GetList is a part of storage.Interface; deletions of collections use it.
func (st stored) GetList(ctx context.Context, key string, o storage.ListOptions, out runtime.Object) error {
	s, t, namespace, _ := st.place(ctx, key)
	s.mu.Lock()
	found, version := t.list(namespace, selector{labels: o.Predicate.Label, fields: o.Predicate.Field}), s.version
	s.mu.Unlock()
	var items []runtime.Object
	for _, f := range found {
		item := f.live.DeepCopyObject()
		if !st.kind.custom() {
			item.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // items of a list have no kind
		}
		items = append(items, item)
	}
	if err := meta.SetList(out, items); err != nil {
		return fmt.Errorf("making a list: %w", err)
	}
	return storage.APIObjectVersioner{}.UpdateList(out, version, "", nil)
}

// Delete is a part of storage.Interface.
func (st stored) Delete(
	ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions, validate storage.ValidateObjectFunc,
	_ runtime.Object, _ storage.DeleteOptions,
) error {
	s, t, namespace, name := st.place(ctx, key)
	for {
		s.mu.Lock()
		now := t.get(namespace, name)
		s.mu.Unlock()
		if now == nil {
			return storage.NewKeyNotFoundError(key, 0)
		}
		o := now.live.DeepCopyObject()
		if err := preconditions.Check(key, o); err != nil {
			return err
		}
		if err := validate(ctx, o); err != nil {
			return err
		}
		if done, err := s.drop(ctx, t, now, out); done || err != nil {
			return err
		}
	}
}

// drop removes an object unless it has changed.
func (s *Server) drop(ctx context.Context, t *table, now *object, out runtime.Object) (done bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.get(now.namespace, now.name) != now {
		return false, nil
	}
	leave, err := s.enter(ctx)
	if err != nil {
		return false, err
	}
	s.remove(t, now)
	leave(true)
	if err := copyInto(now.live, out); err != nil {
		return true, err
	}
	return true, storage.APIObjectVersioner{}.UpdateObject(out, s.version)
}

// GuaranteedUpdate is a part of storage.Interface: it computes a change without the mutex, and stores it unless the object has changed
// meanwhile; then it computes it again.
func (st stored) GuaranteedUpdate(
	ctx context.Context, key string, out runtime.Object, ignoreNotFound bool, preconditions *storage.Preconditions,
	update storage.UpdateFunc, _ runtime.Object,
) error {
	s, t, namespace, name := st.place(ctx, key)
	for {
		s.mu.Lock()
		now := t.get(namespace, name)
		s.mu.Unlock()
		var before runtime.Object
		var of storage.ResponseMeta
		switch {
		case now != nil:
			before, of.ResourceVersion = now.live.DeepCopyObject(), now.version
		case !ignoreNotFound:
			return storage.NewKeyNotFoundError(key, 0)
		default:
			before = reflect.New(reflect.TypeOf(out).Elem()).Interface().(runtime.Object)
			if u, ok := before.(*unstructured.Unstructured); ok {
				u.SetGroupVersionKind(st.kind.gvk())
			}
		}
		if err := preconditions.Check(key, before); err != nil {
			return err
		}
		after, _, err := update(before, of)
		if err != nil {
			return err
		}
		if done, err := s.swap(ctx, t, now, namespace, name, after, out); done || err != nil {
			return err
		}
	}
}

// swap stores an object in place of the one that it was computed from; an equal object is not stored.
func (s *Server) swap(
	ctx context.Context, t *table, now *object, namespace, name string, after, out runtime.Object,
) (done bool, err error) {
	if now != nil {
		m, err := meta.Accessor(after)
		if err != nil {
			return false, fmt.Errorf("reading metadata: %w", err)
		}
		m.SetResourceVersion(versionString(now.version))
		if bytes.Equal(t.kind.encode(after), now.raw) {
			return true, copyInto(now.live, out)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.get(namespace, name) != now {
		return false, nil
	}
	return true, s.commit(ctx, t, after, out)
}

// errUnsupported is returned for parts of storage.Interface that handlers of writes do not use.
var errUnsupported = errors.New("this API server in memory does not support it")

// Watch is a part of storage.Interface.
func (stored) Watch(context.Context, string, storage.ListOptions) (watch.Interface, error) {
	return nil, errUnsupported
}

// Stats is a part of storage.Interface.
func (stored) Stats(context.Context) (storage.Stats, error) { return storage.Stats{}, errUnsupported }

// ReadinessCheck is a part of storage.Interface.
func (stored) ReadinessCheck() error { return nil }

// RequestWatchProgress is a part of storage.Interface.
func (stored) RequestWatchProgress(context.Context) error { return errUnsupported }

// GetCurrentResourceVersion is a part of storage.Interface.
func (stored) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	s := requestOf(ctx).server
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version, nil
}

// EnableResourceSizeEstimation is a part of storage.Interface.
func (stored) EnableResourceSizeEstimation(storage.KeysFunc) error { return nil }

// CompactRevision is a part of storage.Interface.
func (stored) CompactRevision() int64 { return 0 }

// deletionOf returns when an object was asked to be deleted.
func deletionOf(o runtime.Object) *metav1.Time {
	if m, ok := o.(metav1.Object); ok {
		return m.GetDeletionTimestamp()
	}
	return nil
}
