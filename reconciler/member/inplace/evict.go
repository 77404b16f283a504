// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rules "shipper.dev/shipper/apis/rules/inplace"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/retry"
)

// stale reports whether Pods have to be evicted: the template of the object has more than its share of them, or some that its controller
// has to replace are not available, for which it may wait for ever.
func (p *pass) stale() bool {
	g := p.choice.goal
	switch {
	case p.kind.Kind != statefulSet || p.choice.contender < 0 || p.byUser || !p.is.observed:
		return false
	case len(p.choice.older) > 0 && g.Incumbents > 0:
		return !p.is.one && p.is.updated > g.Share()
	default:
		return p.is.updated < p.is.replicas-p.is.partition && p.is.missing() > 0
	}
}

// evict evicts the next Pod that has to be made of another template, if there is one. The decision is made by what the API server itself
// says.
func (p *pass) evict(ctx context.Context) error {
	if !p.stale() {
		return nil
	}
	found, err := look(ctx, p.member.Live(), p.kind.Kind, p.key)
	if err != nil {
		return err
	}
	p.is = liveOf(found)
	set, ok := found.(*appsv1.StatefulSet)
	if !ok {
		return nil // an event comes
	}
	pods, err := p.podsOf(ctx, set)
	if err != nil {
		return err
	}
	if p.shared() {
		p.is.leaving = leavingOf(set, pods)
	}
	if p.differs(p.choice, p.is) || !p.stale() {
		return nil // an event comes
	}
	pod, waits := next(p.choice.goal, set, pods, p.clock.Now())
	switch {
	case pod != nil:
		return p.evictPod(ctx, pod)
	case waits != "":
		return &problem{shipper.InProgress, retry.Recheck, fmt.Sprintf("Pod %q of %s %q is not ready; if that lasts, it is evicted, so that "+
			"the next one is replaced", waits, statefulSet, p.key.Name)}
	default:
		return nil
	}
}

// brokenAfter is how long a Pod has not been ready that its controller would replace later: one that depends on its neighbours is not ready
// for moments while they are replaced.
const brokenAfter = 2 * time.Minute

// evictTimeout bounds an eviction: client-go repeats one that is refused for a time, and says nothing of it meanwhile.
const evictTimeout = 5 * time.Second

// evictPod evicts one Pod, if its disruption budget allows.
func (p *pass) evictPod(ctx context.Context, pod *corev1.Pod) error {
	bounded, cancel := context.WithTimeout(ctx, evictTimeout)
	defer cancel()
	err := p.member.Client().SubResource("eviction").Create(bounded, pod, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))},
	})
	switch held := err != nil && bounded.Err() != nil && ctx.Err() == nil; {
	case apierrors.IsTooManyRequests(err), held:
		return &problem{shipper.InProgress, retry.Retry, fmt.Sprintf("Pod %q of %s %q has to be replaced, and a PodDisruptionBudget allows no "+
			"eviction now", pod.Name, statefulSet, p.key.Name)}
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("evicting Pod %s: %w", pod.Name, err)
	}
	return nil
}

// leaving counts the Pods that are being deleted of a StatefulSet with Pods of several Releases. Caches lack these Pods: the API server
// lists them, if the cached status counts Pods of neither template.
func (p *pass) leaving(ctx context.Context, o client.Object) (int32, error) {
	set, ok := o.(*appsv1.StatefulSet)
	if !ok || !p.shared() || uncounted(set) == 0 {
		return 0, nil
	}
	pods, err := p.podsOf(ctx, set)
	return leavingOf(set, pods), err
}

// uncounted is how many Pods in a status are of neither of its two templates: those that are being deleted, and those of other templates.
func uncounted(set *appsv1.StatefulSet) int32 {
	s := set.Status
	if s.CurrentRevision == s.UpdateRevision {
		return max(0, s.Replicas-s.UpdatedReplicas)
	}
	return max(0, s.Replicas-s.UpdatedReplicas-s.CurrentReplicas)
}

// leavingOf counts the Pods in a status that are being deleted. Pods that are newer than the status may lack some of these already.
func leavingOf(set *appsv1.StatefulSet, pods []corev1.Pod) int32 {
	count := uncounted(set)
	for i := range pods {
		revision := pods[i].Labels[appsv1.ControllerRevisionHashLabelKey]
		if pods[i].DeletionTimestamp == nil && revision != set.Status.UpdateRevision && revision != set.Status.CurrentRevision {
			count--
		}
	}
	return max(0, count)
}

// podsOf are the Pods of a StatefulSet, by what the API server itself says.
func (p *pass) podsOf(ctx context.Context, set *appsv1.StatefulSet) ([]corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("reading the selector of StatefulSet %s: %w", set.Name, err)
	}
	var list corev1.PodList
	err = p.member.Live().List(ctx, &list, client.InNamespace(set.Namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return nil, fmt.Errorf("listing the Pods of StatefulSet %s: %w", set.Name, err)
	}
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return !metav1.IsControlledBy(&pod, set) }), nil
}

// next is the next Pod to evict; nil if there is none. One that may have to be evicted later is what it waits for.
func next(g rules.Goal, set *appsv1.StatefulSet, pods []corev1.Pod, now time.Time) (pod *corev1.Pod, waits string) {
	whole := g.Incumbents == 0
	if whole { // its controller replaces all Pods from the partition on: those that are not ready may stop it
		g.Contender, g.Incumbents = false, g.Replicas
	}
	var all []rules.Pod
	byIndex := map[int32]*corev1.Pod{}
	for i := range pods {
		pod := &pods[i]
		index, ok := ordinal(set, pod.Name)
		if !ok || whole && index < g.Partition {
			continue
		}
		revision := pod.Labels[appsv1.ControllerRevisionHashLabelKey]
		other := revision == set.Status.UpdateRevision
		switch {
		case whole:
			other = revision != set.Status.UpdateRevision
		case index < g.Incumbents:
			other = revision != set.Status.CurrentRevision
		}
		byIndex[index] = pod
		ready := fleet.PodReady(pod)
		if whole && other && !ready && now.Sub(unreadySince(pod)) < brokenAfter {
			ready, waits = true, pod.Name
		}
		all = append(all, rules.Pod{
			Index: index, Contender: other, Ready: ready && pod.DeletionTimestamp == nil, Leaving: pod.DeletionTimestamp != nil,
		})
	}
	index, found := g.Evict(all)
	if !found {
		return nil, waits
	}
	return byIndex[index], ""
}

// ordinal is the index of a Pod of a StatefulSet.
func ordinal(set *appsv1.StatefulSet, pod string) (int32, bool) {
	text, ok := strings.CutPrefix(pod, set.Name+"-")
	n, err := strconv.ParseInt(text, 10, 32)
	if !ok || err != nil {
		return 0, false
	}
	if o := set.Spec.Ordinals; o != nil {
		n -= int64(o.Start)
	}
	return int32(n), true
}

// unreadySince is when a Pod has stopped to be ready, or was made.
func unreadySince(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.LastTransitionTime.Time
		}
	}
	return pod.CreationTimestamp.Time
}
