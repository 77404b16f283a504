// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// batch is how long changes of a namespace's Pods and Services are collected before its EndpointSlices follow.
const batch = 50 * time.Millisecond

// later does something in a while, once for all who ask for it meanwhile. The server's mutex is held now, and will be then.
func (s *Server) later(what string, in time.Duration, do func()) {
	if s.timers[what] {
		return
	}
	s.timers[what] = true
	time.AfterFunc(in, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if delete(s.timers, what); !s.closed {
			do()
		}
	})
}

// wake has the controllers look at what was written or has gone.
func (s *Server) wake(k Kind, u *unstructured.Unstructured) {
	namespace, name := u.GetNamespace(), u.GetName()
	switch k.ID() {
	case "apps/deployments":
		s.later("deployment "+namespace+"/"+name, s.options.PodLatency, func() { s.deploy(namespace, name) })
	case "/pods", "/services":
		s.later("slices "+namespace, batch, func() { s.slice(namespace) })
	}
}

// collect deletes objects whose owner is gone.
func (s *Server) collect(owner string) {
	for ref := range s.dependents[owner] {
		t := s.tables[ref.kind]
		if o := t.get(ref.namespace, ref.name); o != nil {
			if slices.ContainsFunc(o.owners, s.exists) { // the reference alone is removed
				u := o.read()
				u.SetOwnerReferences(slices.DeleteFunc(u.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return string(r.UID) == owner }))
				s.put(t, u)
				continue
			}
			_, _ = s.delete(call{table: t, namespace: ref.namespace, name: ref.name}, o, nil) // it has no preconditions
		}
	}
}

// exists says whether an object of this UID is stored.
func (s *Server) exists(uid string) bool {
	for _, t := range s.tables {
		for _, in := range t.objects {
			for _, o := range in {
				if o.uid == uid {
					return true
				}
			}
		}
	}
	return false
}

// deploy gives a Deployment what Pods it wants.
func (s *Server) deploy(namespace, name string) {
	t, pods := s.tables["apps/deployments"], s.tables["/pods"]
	o := t.get(namespace, name)
	if o == nil {
		return
	}
	d := o.read()
	want, found, _ := unstructured.NestedInt64(d.Object, "spec", "replicas") // a number, or absent
	if !found {
		want = 1
	}
	var have []reference
	for ref := range s.dependents[o.uid] {
		have = append(have, ref)
	}
	slices.SortFunc(have, s.byCost)
	for _, ref := range have[min(int(want), len(have)):] {
		_, _ = s.delete(call{table: pods, namespace: ref.namespace, name: ref.name}, pods.get(ref.namespace, ref.name), nil)
	}
	for range int(want) - len(have) {
		s.put(pods, s.pod(d))
	}
	d.Object["status"] = deployed(d, want)
	if _, err := s.update(call{table: t, namespace: namespace, name: name, subresource: "status"}, o, d); err != nil {
		panic(err) // the caller has the mutex
	}
}

// byCost orders Pods as the ReplicaSet controller removes them: lower deletion cost first, then younger.
func (s *Server) byCost(a, b reference) int {
	pods := s.tables["/pods"]
	x, y := pods.get(a.namespace, a.name).read(), pods.get(b.namespace, b.name).read()
	return cmp.Or(cmp.Compare(cost(x), cost(y)),
		y.GetCreationTimestamp().Time.Compare(x.GetCreationTimestamp().Time), strings.Compare(a.name, b.name))
}

func cost(pod *unstructured.Unstructured) int64 {
	n, _ := strconv.ParseInt(pod.GetAnnotations()[corev1.PodDeletionCost], 10, 32) // absent: 0, as in Kubernetes
	return n
}

// deployed is the status of a Deployment that has what it wants.
func deployed(d *unstructured.Unstructured, n int64) map[string]any {
	at := d.GetCreationTimestamp().UTC().Format(time.RFC3339)
	condition := func(kind, reason string) any {
		return map[string]any{
			"type": kind, "status": "True", "reason": reason, "message": "as it should be", "lastTransitionTime": at, "lastUpdateTime": at,
		}
	}
	status := map[string]any{
		"observedGeneration": d.GetGeneration(),
		"conditions":         []any{condition("Available", "MinimumReplicasAvailable"), condition("Progressing", "NewReplicaSetAvailable")},
	}
	for _, count := range []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas"} {
		if n > 0 {
			status[count] = n
		}
	}
	return status
}

// pod is one of a Deployment that is ready.
func (s *Server) pod(d *unstructured.Unstructured) *unstructured.Unstructured {
	template, _, _ := unstructured.NestedMap(d.Object, "spec", "template") // a copy
	meta, _ := template["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
	}
	at := time.Now().UTC().Format(time.RFC3339)
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}}
	id := string(s.id())
	u.SetNamespace(d.GetNamespace())
	u.SetName(d.GetName() + "-" + id[:8])
	u.SetUID(s.id())
	u.SetCreationTimestamp(metav1.NewTime(time.Now()))
	yes := true
	const hash = "5d4f"
	of := u.GetLabels()
	if of == nil {
		of = map[string]string{}
	}
	of["pod-template-hash"] = hash
	u.SetLabels(of)
	// There are no ReplicaSets here: the Pod is owned by what would be the Deployment's, and goes with the Deployment.
	u.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Name: d.GetName() + "-" + hash, UID: d.GetUID(), Controller: &yes, BlockOwnerDeletion: &yes,
	}})
	var conditions []any
	for _, kind := range []string{"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		conditions = append(conditions, map[string]any{"type": kind, "status": "True", "lastTransitionTime": at})
	}
	u.Object["status"] = map[string]any{
		"phase": "Running", "conditions": conditions, "podIP": "10.0.0.1", "hostIP": "10.1.0.1", "startTime": at,
		"podIPs": []any{map[string]any{"ip": "10.0.0.1"}},
		"containerStatuses": []any{map[string]any{
			"name": "app", "ready": true, "restartCount": int64(0), "image": "nginx", "imageID": "", "started": true,
			"state": map[string]any{"running": map[string]any{"startedAt": at}},
		}},
	}
	return u
}

// slice gives the Services of a namespace EndpointSlices.
func (s *Server) slice(namespace string) {
	t, to := s.tables["/services"], s.tables[discovery+"/endpointslices"]
	if to == nil {
		return
	}
	for name, o := range t.objects[namespace] {
		service := o.read()
		wanted, _, _ := unstructured.NestedStringMap(service.Object, "spec", "selector") // of strings, or absent
		var endpoints []any
		for _, p := range s.tables["/pods"].list(namespace, selector{labels: labels.SelectorFromSet(wanted)}) {
			pod := p.read()
			endpoints = append(endpoints, map[string]any{
				"addresses":  []any{"10.0.0.1"},
				"conditions": map[string]any{"ready": true, "serving": true, "terminating": false},
				"targetRef":  map[string]any{"kind": "Pod", "namespace": namespace, "name": pod.GetName(), "uid": string(pod.GetUID())},
			})
		}
		s.publish(to, service, name, endpoints)
	}
}

// publish writes the EndpointSlice of a Service.
func (s *Server) publish(t *table, service *unstructured.Unstructured, name string, endpoints []any) {
	u := &unstructured.Unstructured{Object: map[string]any{"addressType": "IPv4", "endpoints": endpoints}}
	if endpoints == nil {
		u.Object["endpoints"] = []any{}
	}
	if ports, found, _ := unstructured.NestedSlice(service.Object, "spec", "ports"); found && len(ports) > 0 {
		port, _ := ports[0].(map[string]any)
		u.Object["ports"] = []any{map[string]any{"name": port["name"], "port": port["port"], "protocol": "TCP"}}
	}
	u.SetName(name + "-slice")
	of := map[string]string{"kubernetes.io/service-name": name, "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}
	for k, v := range service.GetLabels() {
		of[k] = v
	}
	u.SetLabels(of)
	yes := true
	u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: name, UID: service.GetUID(), Controller: &yes}})
	c := call{table: t, namespace: service.GetNamespace(), name: u.GetName()}
	now := c.get(c.namespace, c.name)
	if now == nil {
		if _, err := s.create(c, u); err != nil {
			panic(err)
		}
		return
	}
	old := now.read()
	for k, v := range u.Object {
		if k != "metadata" {
			old.Object[k] = v
		}
	}
	old.SetLabels(of)
	if _, err := s.update(c, now, old); err != nil {
		panic(fmt.Errorf("writing an EndpointSlice: %w", err))
	}
}
