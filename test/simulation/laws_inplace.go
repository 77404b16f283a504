// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// asked is a percentage that a CapacityTarget asked for in a cluster, from a time on.
type asked struct {
	at      time.Time
	percent int32
}

// asks keeps what a CapacityTarget asks for, by Release and cluster.
func (l *laws) asks(c change) {
	var ct shipper.CapacityTarget
	if c.kind != kindOf("capacitytargets") || !convert(c.object, &ct) {
		return
	}
	for _, in := range ct.Spec.Clusters {
		key := ct.Name + " " + in.Name
		if list := l.capacity[key]; len(list) == 0 || list[len(list)-1].percent != in.Percent {
			l.capacity[key] = append(list, asked{c.at, in.Percent})
		}
	}
}

// lately is the highest percentage that a reconciler may still act on, and the lowest.
func (l *laws) lately(release, cluster string, now time.Time) (most, least int32) {
	list := l.capacity[release+" "+cluster]
	least = 100
	for i, a := range list {
		if i+1 < len(list) && now.Sub(list[i+1].at) > mostStale {
			continue
		}
		most, least = max(most, a.percent), min(least, a.percent)
	}
	if len(list) == 0 {
		least = 0
	}
	return most, least
}

// inPlace is law 14: a workload in place gets the template of a Release only while that asks for capacity, and where an older Release
// does, too, a StatefulSet gets no more of it than asked for.
func (l *laws) inPlace(c change) {
	if c.object == nil || !isReconciler(c.by.process()) || c.kind != statefulSets && c.kind != "apps/daemonsets" {
		return
	}
	owner, m := c.object.GetLabels()[shipper.OwnedByLabel], l.world.hosts[management]
	most, _ := l.lately(owner, c.host, c.at)
	older := false
	for _, o := range m.all(kindOf("capacitytargets")) {
		_, least := l.lately(o.GetName(), c.host, c.at)
		asks := o.GetLabels()[shipper.AppLabel] == appName && least > 0 && o.GetDeletionTimestamp() == nil
		older = older || asks && l.generation(o.GetName()) < l.generation(owner)
	}
	what := fmt.Sprintf("%s: %s %s has the template of %s", c.host, c.kind, c.object.GetName(), owner)
	if most == 0 && c.old != nil && c.old.GetLabels()[shipper.OwnedByLabel] != owner {
		l.offend(14, "%s, which asks for no capacity", what)
	}
	var set appsv1.StatefulSet
	if c.kind != statefulSets {
		if older && most < 100 {
			l.offend(14, "%s, which asks for %d %% of it", what, most)
		}
		return
	}
	convert(c.object, &set)
	if n := *set.Spec.Replicas; older && n-*set.Spec.UpdateStrategy.RollingUpdate.Partition > strategy.Pods(n, most) {
		l.offend(14, "%s from %d of %d on, which asks for %d %% of it", what, *set.Spec.UpdateStrategy.RollingUpdate.Partition, n, most)
	}
}

// keepsConfiguration is the second half of law 14, of ConfigMaps and Secrets.
func (l *laws) keepsConfiguration(c change) {
	if c.kind != configMaps && c.kind != secrets || c.old == nil || l.leaves(l.world.hosts[c.host]) {
		return
	}
	for _, field := range []string{"data", "stringData"} {
		if c.object != nil && !cmp.Equal(c.old.Object[field], c.object.Object[field]) || c.object == nil && c.old.Object[field] != nil {
			for _, pod := range l.world.hosts[c.host].all(pods) {
				owner := metav1.GetControllerOf(pod)
				inPlace := owner != nil && (owner.Kind == "StatefulSet" || owner.Kind == "DaemonSet")
				if inPlace && pod.GetDeletionTimestamp() == nil && usesConfiguration(pod, c.old.GetName()) {
					l.offend(14, "%s: %s %s changes under Pod %s", c.host, c.kind, c.old.GetName(), pod.GetName())
				}
			}
		}
	}
}

// usesConfiguration reports whether the containers of a Pod name a ConfigMap or Secret of the story.
func usesConfiguration(pod *unstructured.Unstructured, name string) bool {
	containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	return strings.Contains(fmt.Sprint(containers), "map[name:"+name+"]")
}

// generation is the place of a Release in the history; that of one that is gone is above all.
func (l *laws) generation(release string) int {
	o := l.world.hosts[management].get(kindOf("releases"), namespace, release)
	if o == nil {
		return math.MaxInt
	}
	n, err := strconv.Atoi(o.GetAnnotations()[shipper.ReleaseGenerationAnnotation])
	if err != nil {
		return math.MaxInt
	}
	return n
}

// keepsSet is law 15: of a StatefulSet with several Pods, one at a time is not ready.
func (l *laws) keepsSet(c change) {
	owner := metav1.GetControllerOf(c.any())
	if l.floor == 0 || owner == nil || owner.Kind != "StatefulSet" {
		return
	}
	h := l.world.hosts[c.host]
	ready := 0
	for _, o := range h.all(pods) {
		by := metav1.GetControllerOf(o)
		if by != nil && by.UID == owner.UID && podReady(o) {
			ready++
		}
	}
	if ready < replicaCount-1 {
		l.offend(15, "%s: after Pod %s: %d Pods of StatefulSet %s are ready", c.host, c.any().GetName(), ready, owner.Name)
	}
}

// imageOf is the image of the first container of a Pod.
func imageOf(pod *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	for _, c := range containers {
		image, _ := c.(map[string]any)["image"].(string)
		return image
	}
	return ""
}

// evicts reports whether a change begins the end of a Pod of a StatefulSet, as its eviction does: such a Pod has no label of Shipper.
func evicts(c change) bool {
	owner := metav1.GetControllerOf(c.any())
	return c.kind == pods && owner != nil && owner.Kind == "StatefulSet" && c.object != nil && c.object.GetDeletionTimestamp() != nil
}
