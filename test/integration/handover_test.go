// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	testfleet "shipper.dev/shipper/test/fleet"
)

// TestNobodyLeavesTrafficBeforeOthersHaveCome takes the weight of one Release away. The other, whose own weight stays as it is,
// needs more Pods then: they come before those of the first go.
func TestNobodyLeavesTrafficBeforeOthersHaveCome(t *testing.T) {
	const pods = 6
	s := begin(t, west)
	for _, name := range []string{"web-1", "web-2"} {
		s.install(name, "test-nginx", "0.0.1", shipper.ChartValues{}, west)
		s.installed(name)
		s.takeOver(name, false)
		s.scale(name, 100, pods, west)
		s.scaled(name)
	}
	s.weigh("web-1", 3, west)
	s.weigh("web-2", 1, west)
	s.soon("traffic is not as weighed", s.serves(map[string]int{"web-1": pods, "web-2": pods / 2}))

	fewest := s.inTrafficAlways(west)
	s.weigh("web-1", 0, west)
	s.soon("traffic is not as weighed", s.serves(map[string]int{"web-2": pods}))
	s.weighed("web-1")
	s.weighed("web-2")
	if n := fewest(); n < pods {
		t.Errorf("%d pods were in traffic at the worst moment, want %d always", n, pods)
	}
}

// inTrafficAlways counts, after every event, the ready Pods in traffic that are not going. The returned function ends that and returns
// the least number.
func (s *fixture) inTrafficAlways(cluster string) func() int {
	s.Helper()
	c, err := client.NewWithWatch(world.members[cluster].Config, client.Options{Scheme: world.clusters[cluster].Scheme()})
	s.must(err)
	w, err := c.Watch(s.ctx, &corev1.PodList{}, client.InNamespace(s.namespace))
	s.must(err)
	in, least, end := map[types.UID]bool{}, -1, make(chan struct{})
	began := len(s.pods(cluster, "web-1")) + len(s.pods(cluster, "web-2"))
	go func() {
		defer close(end)
		seen := map[types.UID]bool{}
		for event := range w.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			seen[pod.UID] = true
			delete(in, pod.UID)
			if event.Type != watch.Deleted && pod.DeletionTimestamp == nil && testfleet.PodReady(pod) &&
				pod.Labels[shipper.TrafficStatusLabel] == shipper.TrafficEnabled {
				in[pod.UID] = true
			}
			if len(seen) >= began && (least < 0 || len(in) < least) { // an event came for each
				least = len(in)
			}
		}
	}()
	return func() int {
		w.Stop()
		<-end
		return least
	}
}
