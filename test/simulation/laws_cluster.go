// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// ours reports whether Shipper may write an object that is in an application cluster: it was labelled by Shipper, or is an anchor.
func ours(c change) bool {
	labelled := c.old.GetLabels()[shipper.AppLabel]
	return c.old.GetNamespace() == shipper.SystemNamespace || labelled == appName || labelled == otherApp ||
		strings.HasSuffix(c.old.GetName(), shipper.AnchorName(""))
}

// clusterChange judges laws 1 and 2 in an application cluster.
func (l *laws) clusterChange(c change) {
	o := c.any()
	l.stays(c)
	l.waits(c)
	l.inPlace(c)
	l.keepsConfiguration(c)
	l.deletionHooks(c)
	switch c.kind {
	case pods:
		l.keepsSet(c)
		l.podRelease[c.host+" "+o.GetName()] = o.GetLabels()[shipper.ReleaseLabel]
	case services, endpoints:
	case clusterRoles, configMaps:
		l.lists(c)
		return
	default:
		return
	}
	verb := "is written"
	if c.object == nil {
		verb = "is gone"
	}
	l.serving(l.world.hosts[c.host], fmt.Sprintf("%s %s %s", c.kind, o.GetName(), verb))
}

// stays is law 13: what a Release has written stays as it was rendered, until its InstallationTarget goes.
func (l *laws) stays(c change) {
	if c.object == nil || !isReconciler(c.by.process()) {
		return
	}
	digest := c.object.GetAnnotations()[shipper.InstalledDigestAnnotation]
	target := l.world.hosts[management].get(kindOf("installationtargets"), namespace, c.object.GetLabels()[shipper.OwnedByLabel])
	if digest == "" || target == nil {
		return
	}
	what := fmt.Sprintf("%s %s of %s in %s", c.kind, c.object.GetName(), target.GetName(), c.host)
	key := what + " " + string(target.GetUID())
	if was := l.rendered[key]; was != "" && was != digest {
		l.offend(13, "%s is written from another rendering", what)
	}
	l.rendered[key] = digest
}

// deletionHooks is law 16, for chart leaving: its hooks are called before and after.
func (l *laws) deletionHooks(c change) {
	h := l.world.hosts[c.host]
	switch {
	case c.kind == jobs && c.old == nil && c.object.GetName() == "after":
		for _, kind := range []string{deployments, services} {
			for _, o := range h.all(kind) {
				if o.GetLabels()[shipper.AppLabel] == appName {
					l.offend(16, "%s: Job after begins while %s %s is there", c.host, kind, o.GetName())
				}
			}
		}
	case c.kind == deployments && c.object == nil && c.old.GetLabels()[shipper.AppLabel] == appName:
		var app shipper.Application
		known := l.world.hosts[management].read(kindOf("applications"), namespace, appName, &app)
		if !known || app.DeletionTimestamp == nil || app.Spec.Template.Chart.Name != "leaving" ||
			app.Annotations[shipper.AppDeleteSkipHooksAnnotation] == "true" {
			return
		}
		var before batchv1.Job
		if !h.read(jobs, namespace, "before", &before) || before.Status.Succeeded == 0 {
			l.offend(16, "%s: Deployment %s goes before Job before has succeeded", c.host, c.old.GetName())
		}
	}
}

// lists is law 12: a list of its Application names each object without a namespace. A user may delete the list.
func (l *laws) lists(c change) {
	if !isReconciler(c.by.process()) {
		return
	}
	h, listed := l.world.hosts[c.host], map[string]bool{}
	for _, o := range h.all(configMaps) {
		if o.GetNamespace() != shipper.SystemNamespace {
			continue
		}
		text, _, _ := unstructured.NestedString(o.Object, "data", "ClusterScoped") // a string, or absent
		for _, role := range h.all(clusterRoles) {
			if strings.Contains(text, `"name":"`+role.GetName()+`"`) {
				listed[role.GetName()+" of "+o.GetLabels()[shipper.AppLabel]] = true
			}
		}
	}
	for _, role := range h.all(clusterRoles) {
		by := role.GetLabels()[shipper.AppLabel]
		if by != "" && !listed[role.GetName()+" of "+by] {
			l.offend(12, "%s: after %s %s is written: ClusterRole %s of %s is listed nowhere", c.host, c.kind, c.any().GetName(), role.GetName(), by)
		}
	}
}

// serving judges the production Services of the Application.
func (l *laws) serving(h *host, after string) {
	for _, name := range l.services {
		l.serves(h, name, after)
	}
}

// serves judges one of them.
func (l *laws) serves(h *host, name, after string) {
	var service corev1.Service
	key := h.name + " " + name
	if !h.read(services, namespace, name, &service) {
		if (l.served[key] || l.floor > 0) && !l.leaves(h) && !l.replaces(h, name) {
			l.offend(1, "%s: after %s: Service %s is gone", h.name, after, name)
		}
		l.served[key] = false
		return
	}
	view := l.look(h, &service)
	if view.endpoints == nil && l.served[key] && !l.leaves(h) && !l.replaces(h, name) {
		l.offend(1, "%s: after %s: Service %s has no endpoints: %s", h.name, after, name, view)
	}
	l.served[key] = len(view.endpoints) > 0
	if l.floor > 0 && (view.selected < l.floor || len(view.endpoints) < l.floor) {
		l.offend(2, "%s: after %s: %d ready Pods are selected and %d are endpoints, %d must be: %s", h.name, after, view.selected,
			len(view.endpoints), l.floor, view)
	}
	for _, pod := range view.endpoints {
		if release := l.podRelease[h.name+" "+pod]; l.weightless[release] {
			l.offend(2, "%s: after %s: Pod %s serves, whose Release %s weighs nothing: %s", h.name, after, pod, release, view)
		}
	}
	for release := range view.traffic {
		if l.floor > 0 && view.ready[release] == 0 && len(view.ready) > 0 && !l.isRestored() { // its Pods are made, and others serve
			l.offend(2, "%s: after %s: traffic points at %s, none of whose Pods is ready: %s", h.name, after, release, view)
		}
	}
}

// leaves reports whether the Application goes, or leaves the cluster.
func (l *laws) leaves(h *host) bool {
	m := l.world.hosts[management]
	app := m.get(kindOf("applications"), namespace, appName)
	cluster := m.get(kindOf("clusters"), "", h.name)
	return app == nil || app.GetDeletionTimestamp() != nil || cluster == nil || cluster.GetDeletionTimestamp() != nil
}

// replaces reports whether the Application asks for regions without the cluster, and clients reach its Service in all clusters of those
// regions: it has endpoints and, if it is of type LoadBalancer, an address.
func (l *laws) replaces(h *host, name string) bool {
	m := l.world.hosts[management]
	var app shipper.Application
	if !m.read(kindOf("applications"), namespace, appName, &app) || len(app.Spec.Template.ClusterRequirements.Regions) == 0 {
		return false
	}
	wanted := func(other string) bool {
		var cluster shipper.Cluster
		return m.read(kindOf("clusters"), "", other, &cluster) &&
			slices.ContainsFunc(app.Spec.Template.ClusterRequirements.Regions, func(r shipper.RegionRequirement) bool {
				return r.Name == cluster.Spec.Region
			})
	}
	if wanted(h.name) {
		return false
	}
	serves := false
	for other := range l.world.Clusters {
		if !wanted(other) {
			continue
		}
		var service corev1.Service
		at := l.world.hosts[other]
		if !at.read(services, namespace, name, &service) || len(at.endpointsOf(name)) == 0 {
			return false
		}
		if service.Spec.Type == corev1.ServiceTypeLoadBalancer && len(service.Status.LoadBalancer.Ingress) == 0 {
			return false
		}
		serves = true
	}
	return serves
}

// sight is what serves an Application in one cluster.
type sight struct {
	pods           []string
	ready, traffic map[string]int // Pods by Release
	selected       int            // ready Pods that the Service selects
	endpoints      []string       // Pods that are ready endpoints
}

// String lists the Pods.
func (s sight) String() string {
	return fmt.Sprintf("%s; endpoints %s", strings.Join(s.pods, ", "), strings.Join(s.endpoints, " "))
}

func (l *laws) look(h *host, service *corev1.Service) sight {
	s := sight{ready: map[string]int{}, traffic: map[string]int{}}
	selector := labels.SelectorFromSet(service.Spec.Selector)
	for _, o := range h.all(pods) {
		if o.GetLabels()[shipper.AppLabel] != appName {
			continue
		}
		release, is := o.GetLabels()[shipper.ReleaseLabel], podReady(o)
		selected := selector.Matches(labels.Set(o.GetLabels()))
		s.pods = append(s.pods, fmt.Sprintf("%s ready=%t selected=%t", o.GetName(), is, selected))
		if is {
			s.ready[release]++
		}
		if selected && o.GetDeletionTimestamp() == nil {
			s.traffic[release]++
		}
		if selected && is {
			s.selected++
		}
	}
	s.endpoints = h.endpointsOf(service.Name)
	return s
}

// endpointsOf are the Pods that are ready endpoints of a Service, in the order of their names.
func (h *host) endpointsOf(service string) (out []string) {
	for _, o := range h.all(endpoints) {
		if o.GetLabels()[discoveryv1.LabelServiceName] != service {
			continue
		}
		var slice discoveryv1.EndpointSlice
		convert(o, &slice)
		out = append(out, readyEndpoints(&slice)...)
	}
	slices.Sort(out)
	return out
}

// podReady is ready without a conversion: Pods are judged most often.
func podReady(o *unstructured.Unstructured) bool {
	if o.GetDeletionTimestamp() != nil {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		m, _ := c.(map[string]any)
		return m["type"] == string(corev1.PodReady) && m["status"] == string(corev1.ConditionTrue)
	})
}

// weighs keeps whether a TrafficTarget certainly has no weight.
func (l *laws) weighs(c change) {
	name := c.any().GetName()
	var tt shipper.TrafficTarget
	if !convert(c.object, &tt) || tt.DeletionTimestamp != nil {
		delete(l.weightless, name)
		return
	}
	weighs := slices.ContainsFunc(tt.Spec.Clusters, func(c shipper.ClusterTrafficTarget) bool { return c.Weight > 0 || c.AsFound })
	settled := tt.Status.ObservedGeneration == tt.Generation && shipper.ConditionTrue(tt.Status.Conditions, shipper.TargetReady)
	switch {
	case weighs:
		delete(l.weightless, name)
	case settled && !l.weightless[name] && !l.isRestored():
		l.weightless[name] = true
		for _, cluster := range slices.Sorted(maps.Keys(l.world.Clusters)) {
			l.serving(l.world.hosts[cluster], name+" weighs nothing")
		}
	}
}
