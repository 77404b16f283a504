// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
)

// hashOf names the ReplicaSet of a template.
func hashOf(template *corev1.PodTemplateSpec) string {
	raw, err := json.Marshal(template)
	if err != nil {
		panic(err) // it was read from JSON
	}
	h := fnv.New32a()
	_, _ = h.Write(raw)
	return rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
}

// replicas are a ReplicaSet with its Pods that are not being deleted.
type replicas struct {
	of   *object
	pods []*object
}

func (r replicas) ready() (n int) {
	for _, p := range r.pods {
		if ready(p.live.(*corev1.Pod)) {
			n++
		}
	}
	return n
}

// rollOut makes a step of a Deployment's rollout, as the controllers of Deployments and ReplicaSets do together.
func (s *Server) rollOut(namespace, name string) {
	t := s.tables[deployments]
	if t == nil || s.tables[replicaSets] == nil {
		return
	}
	o := t.get(namespace, name)
	if o == nil || deletionOf(o.live) != nil {
		return
	}
	d := o.live.(*appsv1.Deployment)
	now, old := s.replicaSets(d)
	want := int(*d.Spec.Replicas)
	if !d.Spec.Paused || len(old) == 0 {
		s.scale(d, now, old, want)
	}
	now, old = s.replicaSets(d)
	for _, set := range append(old, now) {
		s.recount(set)
	}
	s.report(o, now, old)
}

// replicaSets returns the ReplicaSet of a Deployment's template, which is made if it is not there, and the others with Pods.
func (s *Server) replicaSets(d *appsv1.Deployment) (now replicas, old []replicas) {
	t := s.tables[replicaSets]
	name := d.Name + "-" + hashOf(&d.Spec.Template)
	if t.get(d.Namespace, name) == nil {
		s.add(t, s.newReplicaSet(d, name))
	}
	s.adopt(d)
	for _, o := range s.owned(string(d.UID), replicaSets) {
		set := replicas{of: o}
		for _, p := range s.owned(o.uid, pods) {
			if deletionOf(p.live) == nil {
				set.pods = append(set.pods, p)
			}
		}
		slices.SortFunc(set.pods, s.byCost)
		if o.name == name {
			now = set
			continue
		}
		old = append(old, set)
	}
	slices.SortFunc(old, func(a, b replicas) int { return cmp.Compare(a.of.name, b.of.name) })
	return now, old
}

// adopt makes a Deployment the owner of the ReplicaSets that it selects and that have none.
func (s *Server) adopt(d *appsv1.Deployment) {
	wanted, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return
	}
	for _, o := range s.tables[replicaSets].list(d.Namespace, selector{}) {
		set := o.live.(*appsv1.ReplicaSet)
		if metav1.GetControllerOf(set) != nil || deletionOf(set) != nil || !wanted.Matches(labels.Set(set.Labels)) {
			continue
		}
		set = set.DeepCopy()
		set.OwnerReferences = append(set.OwnerReferences, *metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment")))
		s.put(s.tables[replicaSets], set)
	}
}

func (s *Server) newReplicaSet(d *appsv1.Deployment, name string) *appsv1.ReplicaSet {
	hash := hashOf(&d.Spec.Template)
	set := &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](0), Template: *d.Spec.Template.DeepCopy()}}
	set.Namespace, set.Name = d.Namespace, name
	set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
	if set.Spec.Template.Labels == nil {
		set.Spec.Template.Labels = map[string]string{}
	}
	set.Spec.Template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	set.Labels = set.Spec.Template.Labels
	set.Spec.Selector = d.Spec.Selector.DeepCopy()
	if set.Spec.Selector == nil {
		set.Spec.Selector = &metav1.LabelSelector{}
	}
	if set.Spec.Selector.MatchLabels == nil {
		set.Spec.Selector.MatchLabels = map[string]string{}
	}
	set.Spec.Selector.MatchLabels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	return set
}

// byCost orders Pods as the ReplicaSet controller removes them. Of those that it holds for equal, which it takes by chance, the ones go
// first that Services select: whoever relies on the others is found out.
func (s *Server) byCost(x, y *object) int {
	a, b := x.live.(*corev1.Pod), y.live.(*corev1.Pod)
	flag := func(is bool) int {
		if is {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(flag(a.Status.Phase == corev1.PodRunning), flag(b.Status.Phase == corev1.PodRunning)),
		cmp.Compare(flag(ready(a)), flag(ready(b))),
		cmp.Compare(cost(a), cost(b)),
		cmp.Compare(flag(s.selected(b)), flag(s.selected(a))),
		b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
		cmp.Compare(y.version, x.version))
}

// selected reports whether a Service selects a Pod.
func (s *Server) selected(pod *corev1.Pod) bool {
	for _, o := range s.tables[services].objects[pod.Namespace] {
		selector := o.live.(*corev1.Service).Spec.Selector
		if len(selector) > 0 && labels.SelectorFromSet(selector).Matches(labels.Set(pod.Labels)) {
			return true
		}
	}
	return false
}

func cost(pod *corev1.Pod) int64 {
	n, _ := strconv.ParseInt(pod.Annotations[corev1.PodDeletionCost], 10, 32) // absent: 0, as in Kubernetes
	return n
}

// scale adds and removes Pods within the bounds of the Deployment's strategy.
func (s *Server) scale(d *appsv1.Deployment, now replicas, old []replicas, want int) {
	surge, lack := bounds(d, want)
	total, available := len(now.pods), now.ready()
	for _, set := range old {
		total, available = total+len(set.pods), available+set.ready()
	}
	if extra := len(now.pods) - want; extra > 0 {
		s.eraseAll(now.pods[:extra])
		total -= extra
	}
	add := want - len(now.pods)
	if others := total - len(now.pods); others > 0 {
		add = min(add, want+surge-total)
		if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
			add = 0
		}
	}
	for range add {
		s.add(s.tables[pods], s.newPod(now.of.live.(*appsv1.ReplicaSet).Spec.Template, d.Namespace, now.of.name,
			*metav1.NewControllerRef(now.of.live.(*appsv1.ReplicaSet), appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))))
	}
	may := available - (want - lack) // ready Pods that may go
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		may = available
	}
	for _, set := range old {
		for _, p := range set.pods {
			if ready(p.live.(*corev1.Pod)) {
				if may <= 0 {
					continue
				}
				may--
			}
			s.erase(s.tables[pods], p)
		}
	}
}

func (s *Server) eraseAll(of []*object) {
	for _, p := range of {
		s.erase(s.tables[pods], p)
	}
}

// bounds returns by how many Pods a rolling update may exceed, and lack, its replicas.
func bounds(d *appsv1.Deployment, want int) (surge, lack int) {
	r := d.Spec.Strategy.RollingUpdate
	if r == nil {
		return 0, 0
	}
	surge, _ = intstr.GetScaledValueFromIntOrPercent(r.MaxSurge, want, true) // defaulted
	lack, _ = intstr.GetScaledValueFromIntOrPercent(r.MaxUnavailable, want, false)
	if surge == 0 && lack == 0 {
		lack = 1
	}
	return surge, min(lack, want)
}

// recount writes the replicas and the status of a ReplicaSet.
func (s *Server) recount(set replicas) {
	n, ready := int32(len(set.pods)), int32(set.ready())
	before := set.of.live.(*appsv1.ReplicaSet)
	now := before.DeepCopy()
	if *now.Spec.Replicas != n {
		now.Spec.Replicas = &n
		now.Generation++
	}
	now.Status = appsv1.ReplicaSetStatus{
		Replicas: n, FullyLabeledReplicas: n, ReadyReplicas: ready, AvailableReplicas: ready, ObservedGeneration: now.Generation,
	}
	if now.Generation != before.Generation || fmt.Sprint(now.Status) != fmt.Sprint(before.Status) {
		s.put(s.tables[replicaSets], now)
	}
}

// report writes the status of a Deployment.
func (s *Server) report(o *object, now replicas, old []replicas) {
	before := o.live.(*appsv1.Deployment)
	d := before.DeepCopy()
	want := int(*d.Spec.Replicas)
	total, available := len(now.pods), now.ready()
	for _, set := range old {
		total, available = total+len(set.pods), available+set.ready()
	}
	_, lack := bounds(d, want)
	status := appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: int32(total), UpdatedReplicas: int32(len(now.pods)), ReadyReplicas: int32(available),
		AvailableReplicas: int32(available), UnavailableReplicas: int32(max(want-available, total-available, 0)),
		CollisionCount: d.Status.CollisionCount,
	}
	enough := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable",
		Message: "Deployment has minimum availability.",
	}
	if available < want-lack {
		enough.Status, enough.Reason = corev1.ConditionFalse, "MinimumReplicasUnavailable"
		enough.Message = "Deployment does not have minimum availability."
	}
	done := len(now.pods) == want && total == want && now.ready() == want
	progress := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "ReplicaSetUpdated",
		Message: fmt.Sprintf("ReplicaSet %q is progressing.", now.of.name),
	}
	if done {
		progress.Reason, progress.Message = "NewReplicaSetAvailable", fmt.Sprintf("ReplicaSet %q has successfully progressed.", now.of.name)
	}
	status.Conditions = []appsv1.DeploymentCondition{dated(d, enough), s.deadline(d, status, dated(d, progress), done)}
	d.Status = status
	if string(s.tables[deployments].kind.encode(d)) != string(o.raw) {
		s.put(s.tables[deployments], d)
	}
}

// dated keeps the times of a condition that has not changed.
func dated(d *appsv1.Deployment, c appsv1.DeploymentCondition) appsv1.DeploymentCondition {
	c.LastUpdateTime, c.LastTransitionTime = metav1.NewTime(time.Now()), metav1.NewTime(time.Now())
	for _, old := range d.Status.Conditions {
		if old.Type != c.Type {
			continue
		}
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
			if old.Reason == c.Reason && old.Message == c.Message {
				c.LastUpdateTime = old.LastUpdateTime
			}
		}
	}
	return c
}

// deadline reports that a rollout has made no progress for as long as its Deployment allows.
func (s *Server) deadline(
	d *appsv1.Deployment, status appsv1.DeploymentStatus, c appsv1.DeploymentCondition, done bool,
) appsv1.DeploymentCondition {
	if done || d.Spec.ProgressDeadlineSeconds == nil {
		return c
	}
	moved := status.UpdatedReplicas != d.Status.UpdatedReplicas || status.ReadyReplicas > d.Status.ReadyReplicas ||
		status.Replicas < d.Status.Replicas || status.ObservedGeneration != d.Status.ObservedGeneration
	if moved {
		c.LastUpdateTime = metav1.NewTime(time.Now())
	}
	for _, old := range d.Status.Conditions {
		if old.Type == c.Type && old.Reason == "ProgressDeadlineExceeded" && !moved {
			return old
		}
	}
	left := time.Until(c.LastUpdateTime.Add(time.Duration(*d.Spec.ProgressDeadlineSeconds) * time.Second))
	if left <= 0 {
		c.Status, c.Reason = corev1.ConditionFalse, "ProgressDeadlineExceeded"
		c.Message = fmt.Sprintf("Deployment %q has timed out progressing.", d.Name)
		return dated(d, c)
	}
	namespace, name := d.Namespace, d.Name
	s.later("deadline "+string(d.UID), left+time.Second, func() { s.rollOut(namespace, name) })
	return c
}
