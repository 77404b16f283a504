// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// Bounds of messages: how many endpoints of a cluster are named, and how long that of all clusters is, in bytes.
const (
	maxNamed   = 3
	maxForeign = 32 * 1024
)

// owners is what reports which Pods are of Releases.
type owners struct {
	// deployments are the names of those of a Release: those that its anchor lists or else those that the cache has; nil while unknown.
	deployments map[string][]string
	// known are the Releases that have TrafficTargets.
	known sets.Set[string]
	// backed are the Services that Pods of a Release's Deployments are made for, by Release, where objects are named by Application.
	backed map[string]sets.Set[string]
}

// ownersOf reads the Deployments of all Releases that Pods carry the label of and, where objects are named by Application, of those that
// have TrafficTargets. listed are those that the Releases' anchors list.
func ownersOf(
	ctx context.Context, m *fleet.Member, pods []corev1.Pod, family application, listed map[string][]string,
) (owners, error) {
	out := owners{deployments: map[string][]string{}, known: family.going.Clone(), backed: map[string]sets.Set[string]{}}
	var releases []string
	for _, r := range family.weights[m.Name] {
		out.known.Insert(r.Name)
		if family.byApplication {
			releases = append(releases, r.Name)
		}
	}
	for i := range pods {
		releases = append(releases, pods[i].Labels[shipper.ReleaseLabel])
	}
	for _, release := range releases {
		if _, read := out.deployments[release]; read || release == "" {
			continue
		}
		var list appsv1.DeploymentList
		of := client.MatchingFields{fleet.ByRelease: release}
		if err := m.Client().List(ctx, &list, client.InNamespace(family.namespace), of); err != nil {
			return out, fmt.Errorf("listing Deployments: %w", err)
		}
		found := candidates(list.Items, family.app, release, listed[release])
		if !family.byApplication {
			out.deployments[release] = oldest(found)
			continue
		}
		names := listed[release] // a Pod may reach the cache before its Deployment
		out.backed[release] = sets.New[string]()
		for i := range found {
			if listed[release] == nil {
				names = append(names, found[i].Name)
			}
			if found[i].Annotations[shipper.ReplicasAnnotation] != "0" {
				out.backed[release].Insert(backedBy(found[i].Spec.Template.Labels)...)
			}
		}
		out.deployments[release] = names
	}
	return out, nil
}

// candidates are the Deployments of an Application that Shipper may have installed for a Release: those that its anchor lists, where it is
// known; or else those that name it as their owner, which any Deployment can; or else all.
func candidates(deployments []appsv1.Deployment, app, release string, listed []string) []appsv1.Deployment {
	var all, owned []appsv1.Deployment
	for i := range deployments {
		d := &deployments[i]
		switch is := d.Labels[shipper.AppLabel] == app; {
		case !is || listed != nil && !slices.Contains(listed, d.Name):
			continue
		case slices.ContainsFunc(d.OwnerReferences, func(ref metav1.OwnerReference) bool {
			return ref.Kind == "ConfigMap" && ref.Name == shipper.AnchorName(release)
		}):
			owned = append(owned, *d)
		}
		all = append(all, *d)
	}
	if listed == nil && len(owned) > 0 {
		return owned
	}
	return all
}

// oldest names the oldest Deployment, and all that are as old as that: where objects are named by Release, Shipper installed one.
func oldest(deployments []appsv1.Deployment) (names []string) {
	for i := range deployments {
		older := func(d appsv1.Deployment) bool { return d.CreationTimestamp.Before(&deployments[i].CreationTimestamp) }
		if !slices.ContainsFunc(deployments, older) {
			names = append(names, deployments[i].Name)
		}
	}
	return names
}

// owns reports whether a ReplicaSet of the Deployment of the Pod's Release controls it. Labels alone prove nothing: a template of
// those of other owners can have them. Pods may reach the cache before their Deployment: until then, every ReplicaSet counts for a Release
// that has a TrafficTarget.
func (o owners) owns(pod *corev1.Pod) bool {
	controller := metav1.GetControllerOf(pod)
	if controller == nil || controller.Kind != "ReplicaSet" || !strings.HasPrefix(controller.APIVersion, appsv1.GroupName+"/") {
		return false
	}
	release := pod.Labels[shipper.ReleaseLabel]
	names := o.deployments[release]
	return names == nil && o.known.Has(release) || slices.ContainsFunc(names, func(name string) bool {
		return controller.Name == name+"-"+pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	})
}

// split parts Pods of Releases, and hooks, from those that only carry labels of the Application.
func (o owners) split(pods []corev1.Pod) (own, foreign []corev1.Pod) {
	for i := range pods {
		if pods[i].Annotations[shipper.HookRunAnnotation] != "" || o.owns(&pods[i]) {
			own = append(own, pods[i])
		} else {
			foreign = append(foreign, pods[i])
		}
	}
	return own, foreign
}

// foreignEndpoints names the ready endpoints of the production Service that are not Pods of the Application's Releases, sorted. Pods
// that are not in the cache are not named: most are gone. So are EndpointSlices of a Service that had the name before.
func foreignEndpoints(slicesOf []discoveryv1.EndpointSlice, service *corev1.Service, pods []corev1.Pod, own owners) []string {
	seen := map[string]*corev1.Pod{}
	for i := range pods {
		seen[pods[i].Name] = &pods[i]
	}
	out := sets.New[string]()
	for i := range slicesOf {
		slice := &slicesOf[i]
		if slice.Labels[discoveryv1.LabelServiceName] != service.Name {
			continue
		}
		written := metav1.GetControllerOf(slice) == nil
		for _, e := range slice.Endpoints {
			switch ready := e.Conditions.Ready == nil || *e.Conditions.Ready; {
			case !ready:
			case written:
				out.Insert(fmt.Sprintf("EndpointSlice %q, which no controller wrote", slice.Name))
			case e.TargetRef != nil && e.TargetRef.Kind == "Pod" && seen[e.TargetRef.Name] != nil:
				if pod := seen[e.TargetRef.Name]; !gone(pod) && !own.owns(pod) {
					out.Insert(described(pod))
				}
			}
		}
	}
	return sets.List(out)
}

// described names a Pod and its controller.
func described(pod *corev1.Pod) string {
	if controller := metav1.GetControllerOf(pod); controller != nil {
		return fmt.Sprintf("Pod %q of %s %q", pod.Name, controller.Kind, controller.Name)
	}
	return fmt.Sprintf("Pod %q", pod.Name)
}

// foreignMessage is the message about the endpoints that foreignEndpoints named.
func foreignMessage(service, app string, named []string) string {
	more := ""
	if n := len(named) - maxNamed; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("Service %q sends requests to what is of no Release of Application %q: %s%s. "+
		"Take the labels %s and %s off its Pods and off what makes them, and remove EndpointSlices that were written by hand",
		service, app, strings.Join(named[:min(len(named), maxNamed)], ", "), more, shipper.AppLabel, shipper.ReleaseLabel)
}

// foreignIn joins the messages about foreign endpoints of a target's clusters; empty if there are none.
func foreignIn(list []shipper.ClusterTrafficStatus) string {
	var out []string
	for _, c := range list {
		if owned := shipper.FindCondition(c.Conditions, shipper.TargetEndpointsOwned); owned != nil {
			out = append(out, c.Name+": "+owned.Message)
		}
	}
	return report.Shorten(strings.Join(out, "; "), maxForeign)
}

// withOwned sets the condition EndpointsOwned to False, or removes it when there is no message.
func withOwned(conditions []shipper.Condition, message string, now metav1.Time) []shipper.Condition {
	if message == "" {
		return withoutOwned(conditions)
	}
	return shipper.SetCondition(conditions, shipper.Condition{
		Type: shipper.TargetEndpointsOwned, Status: corev1.ConditionFalse, Reason: shipper.ForeignEndpoints, Message: message,
	}, now)
}

// withoutOwned are all conditions but EndpointsOwned. The argument is not modified.
func withoutOwned(conditions []shipper.Condition) []shipper.Condition {
	if shipper.FindCondition(conditions, shipper.TargetEndpointsOwned) == nil {
		return conditions
	}
	return slices.DeleteFunc(slices.Clone(conditions), func(c shipper.Condition) bool { return c.Type == shipper.TargetEndpointsOwned })
}
