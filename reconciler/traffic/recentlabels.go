// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// fresh is for how long it is remembered what was written. A cache that is later than that is believed: it may be that of a cluster
// that was put back to an earlier time, and a label that is written twice harms nobody.
const fresh = time.Second

// recentLabels remembers the Pods that were labelled here, until caches show them so. Many events come while Pods are moved, and each
// pass would move again those of which the cache does not know yet. It is safe for concurrent use.
type recentLabels struct {
	mu   sync.Mutex
	pods map[types.UID]labelling
}

// labelling is a write of a Pod's label.
type labelling struct {
	version, value string
	at             time.Time
}

func newRecentLabels() *recentLabels { return &recentLabels{pods: map[types.UID]labelling{}} }

// wrote remembers a Pod as the API server answered when its label was written.
func (l *recentLabels) wrote(pod *corev1.Pod, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.pods, func(_ types.UID, was labelling) bool { return at.Sub(was.at) >= fresh })
	l.pods[pod.UID] = labelling{pod.ResourceVersion, pod.Labels[shipper.TrafficStatusLabel], at}
}

// show gives Pods from a cache, which are the caller's own, the labels that were written since.
func (l *recentLabels) show(pods []corev1.Pod, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range pods {
		pod := &pods[i]
		was, ok := l.pods[pod.UID]
		if !ok {
			continue
		}
		if order, err := resourceversion.CompareResourceVersion(pod.ResourceVersion, was.version); err != nil || order >= 0 ||
			now.Sub(was.at) >= fresh {
			delete(l.pods, pod.UID)
			continue
		}
		if pod.Labels == nil {
			pod.Labels = map[string]string{}
		}
		pod.Labels[shipper.TrafficStatusLabel] = was.value
	}
}
