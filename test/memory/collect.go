// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storeerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/util/dryrun"
)

// refs returns what an object owns, in one order. The server's mutex is held.
func (s *Server) refs(uid string) []reference {
	var out []reference
	for ref := range s.dependents[uid] {
		out = append(out, ref)
	}
	slices.SortFunc(out, func(a, b reference) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	return out
}

// collect deletes what an object that is gone owned; of what has other owners it removes the reference alone.
func (s *Server) collect(owner string) {
	for _, ref := range s.refs(owner) {
		t := s.tables[ref.kind]
		o := t.get(ref.namespace, ref.name)
		if slices.ContainsFunc(o.owners, func(uid string) bool { return s.uids[uid] > 0 }) {
			s.disownAll(t, o, owner)
			continue
		}
		s.erase(t, o)
	}
}

// disownAll removes the references to an owner from an object.
func (s *Server) disownAll(t *table, o *object, owner string) {
	m := o.live.DeepCopyObject().(metav1.Object)
	m.SetOwnerReferences(slices.DeleteFunc(m.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return string(r.UID) == owner }))
	of, err := serve(t.kind)
	if err != nil {
		panic(err) // an object of the kind is stored
	}
	s.put(t, of.manager.UpdateNoErrors(o.live.DeepCopyObject(), m.(runtime.Object), "kube-controller-manager"))
}

// finish does what the finalizers of the garbage collector and a Pod's grace wait for.
func (s *Server) finish(ref reference) {
	t := s.tables[ref.kind]
	o := t.get(ref.namespace, ref.name)
	if o == nil || deletionOf(o.live) == nil {
		return
	}
	m := o.live.(metav1.Object)
	switch {
	case slices.Contains(m.GetFinalizers(), metav1.FinalizerOrphanDependents):
		for _, child := range s.refs(o.uid) {
			t := s.tables[child.kind]
			s.disownAll(t, t.get(child.namespace, child.name), o.uid)
		}
		s.unfinalize(t, o, metav1.FinalizerOrphanDependents)
	case slices.Contains(m.GetFinalizers(), metav1.FinalizerDeleteDependents):
		blocked := false
		for _, child := range s.refs(o.uid) {
			t := s.tables[child.kind]
			c := t.get(child.namespace, child.name)
			if slices.ContainsFunc(c.owners, func(uid string) bool { return uid != o.uid && s.uids[uid] > 0 }) {
				s.disownAll(t, c, o.uid) // it stays with its other owner
				continue
			}
			blocked = blocked || blocks(c, o.uid)
			s.erase(t, c)
			blocked = blocked && t.get(child.namespace, child.name) != nil
		}
		if !blocked {
			s.unfinalize(t, o, metav1.FinalizerDeleteDependents)
		}
	case ref.kind == pods && len(m.GetFinalizers()) == 0:
		s.later("remove "+o.uid, s.options.PodEnd, func() {
			if now := t.get(ref.namespace, ref.name); now != nil && now.uid == o.uid {
				s.remove(t, now)
			}
		})
	}
}

// blocks says whether an object must be gone before its owner, which is deleted in the foreground.
func blocks(o *object, owner string) bool {
	return slices.ContainsFunc(o.live.(metav1.Object).GetOwnerReferences(), func(r metav1.OwnerReference) bool {
		return string(r.UID) == owner && r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion
	})
}

// finishOwner looks at an owner that may wait for what it owned.
func (s *Server) finishOwner(uid string) {
	if s.uids[uid] == 0 {
		return
	}
	for id, t := range s.tables {
		for _, in := range t.objects {
			for _, o := range in {
				if o.uid == uid && deletionOf(o.live) != nil {
					s.finish(reference{id, o.namespace, o.name})
					return
				}
			}
		}
	}
}

// unfinalize removes a finalizer, and the object with the last one.
func (s *Server) unfinalize(t *table, o *object, finalizer string) {
	m := o.live.DeepCopyObject().(metav1.Object)
	m.SetFinalizers(slices.DeleteFunc(m.GetFinalizers(), func(f string) bool { return f == finalizer }))
	if len(m.GetFinalizers()) == 0 && t.kind.ID() != pods {
		s.remove(t, o)
		return
	}
	s.put(t, m.(runtime.Object))
}

// namespaces deletes Namespaces: a deleted one terminates first.
type namespaces struct{ *registry.Store }

// Delete is a part of rest.GracefulDeleter.
func (n namespaces) Delete(
	ctx context.Context, name string, validate rest.ValidateObjectFunc, o *metav1.DeleteOptions,
) (runtime.Object, bool, error) {
	found, err := n.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, false, err
	}
	ns := found.(*corev1.Namespace)
	if o == nil {
		o = metav1.NewDeleteOptions(0)
	}
	gr := corev1.Resource("namespaces")
	conditions := storage.Preconditions{UID: &ns.UID}
	if p := o.Preconditions; p != nil {
		if p.UID != nil && *p.UID != ns.UID {
			message := fmt.Sprintf("Precondition failed: UID in precondition: %v, UID in object meta: %v", *p.UID, ns.UID)
			return nil, false, apierrors.NewConflict(gr, name, errors.New(message))
		}
		conditions.ResourceVersion = p.ResourceVersion
	}
	if !ns.DeletionTimestamp.IsZero() {
		return ns, false, nil
	}
	key, err := n.KeyFunc(ctx, name)
	if err != nil {
		return nil, false, err
	}
	out := n.NewFunc()
	err = n.Storage.GuaranteedUpdate(ctx, key, out, false, &conditions, storage.SimpleUpdate(func(now runtime.Object) (runtime.Object, error) {
		ns := now.(*corev1.Namespace)
		if err := validate(ctx, ns); err != nil {
			return nil, err
		}
		at := metav1.NewTime(time.Now())
		ns.DeletionTimestamp, ns.Status.Phase = &at, corev1.NamespaceTerminating
		return ns, nil
	}), dryrun.IsDryRun(o.DryRun), nil)
	if err != nil {
		return nil, false, storeerr.InterpretUpdateError(storeerr.InterpretGetError(err, gr, name), gr, name)
	}
	return out, false, nil
}

// terminate deletes what is in a Namespace that is being deleted, and then the Namespace.
func (s *Server) terminate(name string) {
	t := s.tables[namespacesID]
	o := t.get("", name)
	if o == nil || deletionOf(o.live) == nil {
		return
	}
	left := false
	for _, k := range s.options.Kinds {
		of := s.tables[k.ID()]
		for _, in := range of.list(name, selector{}) {
			if k.Cluster {
				continue
			}
			s.erase(of, in)
			left = left || of.get(in.namespace, in.name) != nil
		}
	}
	if left {
		return // the removal of the last object has this called again
	}
	if len(o.live.(metav1.Object).GetFinalizers()) == 0 {
		s.remove(t, o)
	}
}
