// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/targets"
)

// OthersServe reports whether another Release of a target's Application has traffic or Pods in a cluster, or is to have Pods: in place
// these have no label of it. Then it needs the ports of its own chart. Home reads from the caches of the management cluster, pods those of
// the cluster, by fleet.ByApp.
func OthersServe(ctx context.Context, home, pods client.Reader, it *shipper.InstallationTarget, cluster string) (bool, error) {
	app := it.Labels[shipper.AppLabel]
	var all shipper.TrafficTargetList
	if err := targets.OfApplication(ctx, home, &all, it.Namespace, app); err != nil {
		return false, err
	}
	for i := range all.Items {
		tt := &all.Items[i]
		if releaseOf(tt) != it.Name && slices.ContainsFunc(tt.Spec.Clusters, func(c shipper.ClusterTrafficTarget) bool {
			return c.Name == cluster && (c.Weight > 0 || c.AsFound)
		}) {
			return true, nil
		}
	}
	var capacity shipper.CapacityTargetList
	if err := targets.OfApplication(ctx, home, &capacity, it.Namespace, app); err != nil {
		return false, err
	}
	for i := range capacity.Items {
		if ct := &capacity.Items[i]; ct.Name != it.Name && awaitedIn(ct).Has(cluster) {
			return true, nil
		}
	}
	var there corev1.PodList
	if err := pods.List(ctx, &there, client.InNamespace(it.Namespace), client.MatchingFields{fleet.ByApp: app}); err != nil {
		return false, fmt.Errorf("listing Pods: %w", err)
	}
	return hasOthers(there.Items, it.Name), nil
}

// hasOthers reports whether living Pods are of another Release.
func hasOthers(pods []corev1.Pod, release string) bool {
	return slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
		of := pod.Labels[shipper.ReleaseLabel]
		return of != "" && of != release && pod.Annotations[shipper.HookRunAnnotation] == "" && !gone(&pod)
	})
}

// outlived are the Services that have ports for other Releases than the one that wrote them last, where no other has traffic or Pods, nor
// is to have any.
func (c contents) outlived() []*corev1.Service {
	var out []*corev1.Service
	for i := range c.services {
		of := &c.services[i]
		owner := of.Labels[shipper.OwnedByLabel]
		if of.Annotations[shipper.KeptPortsAnnotation] == "" || of.DeletionTimestamp != nil || owner == "" || hasOthers(c.own, owner) {
			continue
		}
		weighs := false
		for _, r := range c.releases {
			weighs = weighs || r.Name != owner && (r.Weight > 0 || r.AsFound || r.Awaited || c.family.here.InPlace.Has(r.Name))
		}
		if !weighs {
			out = append(out, of)
		}
	}
	return out
}

// dropPorts removes the ports of a Service that were kept for other Releases.
func dropPorts(ctx context.Context, m *fleet.Member, service *corev1.Service) error {
	before := &corev1.Service{} // its selector may have been changed in this pass
	if err := m.Consistent().Get(ctx, client.ObjectKeyFromObject(service), before); err != nil {
		return client.IgnoreNotFound(err)
	}
	after := withoutKept(before)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	err := m.Consistent().Patch(ctx, after, patch, client.FieldOwner(shipper.FieldOwner))
	if err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil
		}
		return fmt.Errorf("removing ports of Service %s: %w", service.Name, err)
	}
	log.FromContext(ctx).V(1).Info("The Service has the ports of the newest Release alone", "cluster", m.Name, "service", service.Name)
	return m.WaitForCache(ctx, after)
}

// withoutKept is a Service with the ports of the newest chart alone. It keeps one port at least, which Kubernetes requires.
func withoutKept(service *corev1.Service) *corev1.Service {
	out := service.DeepCopy()
	var kept shipper.KeptPorts
	if json.Unmarshal([]byte(out.Annotations[shipper.KeptPortsAnnotation]), &kept) != nil {
		kept = shipper.KeptPorts{} // a user has edited it: the next Release writes the ports anew
	}
	delete(out.Annotations, shipper.KeptPortsAnnotation)
	var left []corev1.ServicePort
	for _, port := range out.Spec.Ports {
		key := fmt.Sprintf("%d/%s", port.Port, cmp.Or(port.Protocol, corev1.ProtocolTCP)) // as in KeptPorts
		if slices.Contains(kept.Drop, key) {
			continue
		}
		if left = append(left, port); slices.Contains(kept.Unname, key) {
			left[len(left)-1].Name = ""
		}
	}
	if len(left) > 1 { // a user has added one: several need names
		for i := range left {
			left[i].Name = cmp.Or(left[i].Name, fmt.Sprintf("port-%d", left[i].Port))
		}
	}
	if len(left) > 0 {
		out.Spec.Ports = left
	}
	return out
}
