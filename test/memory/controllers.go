// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// reaction is how long a controller takes to look at a change.
const reaction = 10 * time.Millisecond

// later calls do after a time, once for all calls with this key meanwhile. The server's mutex is held now, and is held by do.
func (s *Server) later(key string, in time.Duration, do func()) {
	if s.timers[key] {
		return
	}
	s.timers[key] = true
	time.AfterFunc(in, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if delete(s.timers, key); !s.closed {
			do()
		}
	})
}

// wake has the controllers look at an object that was stored or removed. The server's mutex is held.
func (s *Server) wake(k Kind, o *object, gone bool) {
	namespace, name := o.namespace, o.name
	switch k.ID() {
	case deployments:
		s.wakeDeployment(namespace, name)
	case pods:
		s.wakeSlices(namespace)
		s.wakeOwner(o)
		if !gone {
			s.advance(o)
		}
	case services:
		s.wakeSlices(namespace)
	case jobs:
		s.later("job "+namespace+"/"+name, reaction, func() { s.runJob(namespace, name) })
	case statefulSets:
		s.later("set "+namespace+"/"+name, reaction, func() { s.roll(namespace, name) })
	case daemonSets:
		s.later("daemon "+namespace+"/"+name, reaction, func() { s.daemon(namespace, name) })
	case namespacesID:
		s.later("namespace "+name, reaction, func() { s.terminate(name) })
	}
	if deletionOf(o.live) != nil && !gone {
		s.later("end "+o.uid, reaction, func() { s.finish(reference{k.ID(), namespace, name}) })
	}
	if !gone {
		for _, owner := range o.owners { // one that went before this object named it
			if s.uids[owner] == 0 {
				s.later("collect "+owner, reaction, func() { s.collect(owner) })
			}
		}
	}
	if gone {
		if len(s.dependents[o.uid]) > 0 {
			s.later("collect "+o.uid, reaction, func() { s.collect(o.uid) })
		}
		for _, owner := range o.owners { // it may wait for this object
			s.later("owner "+owner, reaction, func() { s.finishOwner(owner) })
		}
		if ns := s.tables[namespacesID].get("", namespace); ns != nil && deletionOf(ns.live) != nil {
			s.later("namespace "+namespace, reaction, func() { s.terminate(namespace) })
		}
	}
}

const (
	deployments = "apps/deployments"
	replicaSets = "apps/replicasets"
	pods        = "/pods"
	services    = "/services"
	jobs        = "batch/jobs"

	statefulSets = "apps/statefulsets"
	daemonSets   = "apps/daemonsets"

	namespacesID = "/namespaces"
)

func (s *Server) wakeDeployment(namespace, name string) {
	in := cmp.Or(s.options.DeploymentLatency, reaction)
	s.later("deployment "+namespace+"/"+name, in, func() { s.rollOut(namespace, name) })
}

// wakeSlices has the EndpointSlices of a namespace follow its Pods and Services.
func (s *Server) wakeSlices(namespace string) {
	switch in := s.options.EndpointLatency; {
	case in < 0:
		s.slice(namespace)
	default:
		s.later("slices "+namespace, cmp.Or(in, reaction), func() { s.slice(namespace) })
	}
}

// wakeOwner has the controller of a Pod look at it.
func (s *Server) wakeOwner(o *object) {
	controller := metav1.GetControllerOf(o.live.(metav1.Object))
	if controller == nil {
		return
	}
	switch controller.Kind {
	case "ReplicaSet":
		if i := strings.LastIndex(controller.Name, "-"); i > 0 {
			s.wakeDeployment(o.namespace, controller.Name[:i])
		}
	case "StatefulSet":
		s.later("set "+o.namespace+"/"+controller.Name, reaction, func() { s.roll(o.namespace, controller.Name) })
	case "DaemonSet":
		s.later("daemon "+o.namespace+"/"+controller.Name, reaction, func() { s.daemon(o.namespace, controller.Name) })
	case "Job":
		s.later("job "+o.namespace+"/"+controller.Name, reaction, func() { s.runJob(o.namespace, controller.Name) })
	}
}

// erase deletes an object as a controller does: in the background, and a Pod gracefully. The server's mutex is held.
func (s *Server) erase(t *table, o *object) {
	m, ok := o.live.DeepCopyObject().(metav1.Object)
	if !ok || m.GetDeletionTimestamp() != nil {
		return
	}
	if len(m.GetFinalizers()) == 0 && t.kind.ID() != pods {
		s.remove(t, o)
		return
	}
	now, grace := metav1.NewTime(time.Now()), int64(0)
	if t.kind.ID() == pods {
		grace = 30
	}
	m.SetDeletionTimestamp(&now)
	m.SetDeletionGracePeriodSeconds(&grace)
	s.put(t, m.(runtime.Object))
}

// owned returns the objects of a kind that an object owns. The server's mutex is held.
func (s *Server) owned(uid, kindID string) (out []*object) {
	for _, ref := range s.refs(uid) {
		if ref.kind == kindID {
			out = append(out, s.tables[kindID].get(ref.namespace, ref.name))
		}
	}
	return out
}
