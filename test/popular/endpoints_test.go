// SPDX-License-Identifier: Apache-2.0

package popular

import (
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// watchEndpoints follows the endpoints of the production Services that have some. The function that it returns ends that, and names those
// that had none for a moment.
func (s *story) watchEndpoints() func() (lost []string) {
	member := world.Clusters[west]
	var services corev1.ServiceList
	production := client.MatchingLabels{shipper.LBLabel: shipper.LBForProduction}
	s.Must("listing services", member.List(s.Ctx, &services, client.InNamespace(s.Namespace), production))
	var names []string
	for i := range services.Items {
		names = append(names, services.Items[i].Name)
	}
	changes, err := member.Watch(s.Ctx, &discoveryv1.EndpointSliceList{}, client.InNamespace(s.Namespace))
	s.Must("watching endpoints", err)
	var mu sync.Mutex
	var lost []string
	ready, served, ended := map[string]map[string]int{}, map[string]bool{}, make(chan struct{})
	go func() {
		defer close(ended)
		for event := range changes.ResultChan() {
			slice, ok := event.Object.(*discoveryv1.EndpointSlice)
			if !ok || !slices.Contains(names, slice.Labels[discoveryv1.LabelServiceName]) {
				continue
			}
			service := slice.Labels[discoveryv1.LabelServiceName]
			if ready[service] == nil {
				ready[service] = map[string]int{}
			}
			ready[service][slice.Name] = 0
			for _, e := range slice.Endpoints {
				if event.Type != watch.Deleted && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
					ready[service][slice.Name]++
				}
			}
			sum := 0
			for _, n := range ready[service] {
				sum += n
			}
			mu.Lock()
			if served[service] = served[service] || sum > 0; served[service] && sum == 0 {
				lost = append(lost, fmt.Sprintf("%s at %s", service, slice.ResourceVersion))
			}
			mu.Unlock()
		}
	}()
	return func() []string {
		changes.Stop()
		<-ended
		return lost
	}
}
