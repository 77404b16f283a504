// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// roll makes a step of a StatefulSet's rollout, as its controller does: Pods come in the order of their indices, those from the partition
// on are replaced from the highest down, and one at a time is not ready. Pods below the partition are made of the template that all had.
func (s *Server) roll(namespace, name string) {
	t := s.tables[statefulSets]
	if t == nil {
		return
	}
	o := t.get(namespace, name)
	if o == nil || deletionOf(o.live) != nil {
		return
	}
	set := o.live.(*appsv1.StatefulSet).DeepCopy()
	update := set.Name + "-" + hashOf(&set.Spec.Template)
	s.revisions[string(set.UID)+update] = *set.Spec.Template.DeepCopy()
	set.Status.UpdateRevision = update
	set.Status.CurrentRevision = cmp.Or(set.Status.CurrentRevision, update)
	s.order(set)
	all := s.podsOfSet(set)
	s.countSet(set, all)
	if string(t.kind.encode(set)) != string(o.raw) {
		s.put(t, set)
	}
}

// order creates, deletes or replaces at most one Pod, or all that are missing where the policy is Parallel.
func (s *Server) order(set *appsv1.StatefulSet) {
	parallel := set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement
	all, want := s.podsOfSet(set), int(*set.Spec.Replicas)
	for i := range want {
		pod := all[i]
		switch {
		case pod == nil:
			s.add(s.tables[pods], s.newPodOfSet(set, i))
			fallthrough
		case deletionOf(pod.live) != nil || !ready(pod.live.(*corev1.Pod)):
			if !parallel {
				return
			}
		}
	}
	for _, i := range slices.Backward(sortedKeys(all)) {
		if i >= want {
			s.erase(s.tables[pods], all[i])
			return
		}
	}
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return
	}
	for i := want - 1; i >= partitionOf(set); i-- {
		pod := all[i]
		if pod == nil || deletionOf(pod.live) != nil {
			return
		}
		if revisionOf(pod) != set.Status.UpdateRevision {
			s.erase(s.tables[pods], pod)
			return
		}
		if !ready(pod.live.(*corev1.Pod)) {
			return
		}
	}
}

// countSet counts Pods for the status. When all have the template of the object, it is the one that all have had.
func (s *Server) countSet(set *appsv1.StatefulSet, all map[int]*object) {
	status := appsv1.StatefulSetStatus{
		ObservedGeneration: set.Generation, CurrentRevision: set.Status.CurrentRevision, UpdateRevision: set.Status.UpdateRevision,
		CollisionCount: set.Status.CollisionCount,
	}
	for _, pod := range all {
		status.Replicas++
		if ready(pod.live.(*corev1.Pod)) {
			status.ReadyReplicas++
			status.AvailableReplicas++
		}
		if deletionOf(pod.live) != nil {
			continue
		}
		if revisionOf(pod) == status.CurrentRevision {
			status.CurrentReplicas++
		}
		if revisionOf(pod) == status.UpdateRevision {
			status.UpdatedReplicas++
		}
	}
	if set.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType && status.UpdatedReplicas == status.Replicas &&
		status.ReadyReplicas == status.Replicas {
		status.CurrentReplicas, status.CurrentRevision = status.UpdatedReplicas, status.UpdateRevision
	}
	set.Status = status
}

// podsOfSet are the Pods of a StatefulSet by index.
func (s *Server) podsOfSet(set *appsv1.StatefulSet) map[int]*object {
	out := map[int]*object{}
	for _, o := range s.owned(string(set.UID), pods) {
		if i, err := strconv.Atoi(strings.TrimPrefix(o.name, set.Name+"-")); err == nil {
			out[i] = o
		}
	}
	return out
}

// newPodOfSet makes the Pod of an index.
func (s *Server) newPodOfSet(set *appsv1.StatefulSet, i int) *corev1.Pod {
	revision := set.Status.UpdateRevision
	if i < partitionOf(set) && set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType {
		revision = set.Status.CurrentRevision
	}
	owner := *metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
	pod := s.newPod(s.revisions[string(set.UID)+revision], set.Namespace, set.Name, owner)
	pod.Name, pod.GenerateName = fmt.Sprint(set.Name, "-", i), set.Name+"-"
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[appsv1.ControllerRevisionHashLabelKey], pod.Labels[appsv1.StatefulSetPodNameLabel] = revision, pod.Name
	return pod
}

func partitionOf(set *appsv1.StatefulSet) int {
	if r := set.Spec.UpdateStrategy.RollingUpdate; r != nil && r.Partition != nil {
		return int(*r.Partition)
	}
	return 0
}

func revisionOf(o *object) string {
	return o.live.(*corev1.Pod).Labels[appsv1.ControllerRevisionHashLabelKey]
}

func sortedKeys(all map[int]*object) (out []int) {
	for i := range all {
		out = append(out, i)
	}
	slices.Sort(out)
	return out
}

// daemon makes a step of a DaemonSet's rollout on the one node that there is.
func (s *Server) daemon(namespace, name string) {
	t := s.tables[daemonSets]
	if t == nil {
		return
	}
	o := t.get(namespace, name)
	if o == nil || deletionOf(o.live) != nil {
		return
	}
	set, hash := o.live.(*appsv1.DaemonSet).DeepCopy(), ""
	hash = hashOf(&set.Spec.Template)
	all := s.owned(o.uid, pods)
	replaces := set.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType
	for _, pod := range all {
		if replaces && revisionOf(pod) != hash {
			s.erase(s.tables[pods], pod)
		}
	}
	if len(all) == 0 {
		owner := *metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))
		pod := s.newPod(set.Spec.Template, namespace, name, owner)
		if pod.Labels == nil {
			pod.Labels = map[string]string{}
		}
		pod.Labels[appsv1.ControllerRevisionHashLabelKey] = hash
		s.add(s.tables[pods], pod)
	}
	status := appsv1.DaemonSetStatus{ObservedGeneration: set.Generation, DesiredNumberScheduled: 1}
	for _, pod := range s.owned(o.uid, pods) {
		status.CurrentNumberScheduled = 1
		if deletionOf(pod.live) != nil {
			continue
		}
		if revisionOf(pod) == hash {
			status.UpdatedNumberScheduled = 1
		}
		if ready(pod.live.(*corev1.Pod)) {
			status.NumberReady, status.NumberAvailable = 1, 1
		}
	}
	status.NumberUnavailable = 1 - status.NumberAvailable
	set.Status = status
	if string(t.kind.encode(set)) != string(o.raw) {
		s.put(t, set)
	}
}
