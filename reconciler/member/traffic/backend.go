// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	rules "shipper.dev/shipper/apis/rules/traffic"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// backend is a production Service with the Pods that are made for it, in one cluster.
type backend struct {
	selectors Selectors
	// services are the names of those that traffic is shifted on; there should be one. service is that, shadow the one beside it that
	// proves; nil when there is none.
	services        []string
	service, shadow *corev1.Service
	app             rules.Application
	// foreign names the ready endpoints of the Service that are not Pods of Releases.
	foreign []string
	// left is true when the Service stays as it is: the Release that has the traffic brings no Pods for it, and those that serve go on
	// until capacity removes them.
	left bool
}

// selectors are those of the production Services: where objects are named by Application, of all that are there and of all that Pods are
// made for. previews are the names of those that are for previews.
func (c contents) selectors(previews []string) []Selectors {
	if !c.family.byApplication {
		return []Selectors{{App: c.family.app}}
	}
	all := sets.New[string]()
	for i := range c.services {
		if of := &c.services[i]; isProduction(of) {
			all.Insert(of.Name)
		}
	}
	for _, backed := range c.owners.backed {
		all = all.Union(backed)
	}
	for i := range c.own {
		all.Insert(backedBy(c.own[i].Labels)...)
	}
	var out []Selectors
	for _, name := range sets.List(all.Delete(previews...)) {
		out = append(out, Selectors{App: c.family.app, Service: name})
	}
	return out
}

// isProduction reports whether traffic is shifted on a Service.
func isProduction(of *corev1.Service) bool {
	return of.DeletionTimestamp == nil && of.Labels[shipper.LBLabel] == shipper.LBForProduction
}

// backend is one of the production Services.
func (c contents) backend(of Selectors, app rules.Application) backend {
	out := backend{selectors: of}
	out.take(c.services)
	out.app = c.withPods(of, app, out.services)
	if out.service == nil {
		return out
	}
	out.app.Selects = of.Selection(out.service.Spec.Selector)
	if out.shadow != nil {
		shown := serving(ownedBy(c.endpoints, out.shadow), []string{out.shadow.Name})
		out.app.Shadow = &rules.ShadowService{Selects: of.Selection(out.shadow.Spec.Selector), Serving: names(shown)}
	}
	out.foreign = foreignEndpoints(c.endpoints, out.service, c.pods, c.owners)
	return out
}

// take finds the Service that traffic is shifted on, and the one that proves, among those of the Application.
func (b *backend) take(services []corev1.Service) {
	var one *corev1.Service
	for i := range services {
		if of := &services[i]; isProduction(of) && (b.selectors.Service == "" || b.selectors.Service == of.Name) {
			b.services = append(b.services, of.Name)
			one = of
		}
	}
	if len(b.services) != 1 {
		return
	}
	b.service = one
	for i := range services {
		if of := &services[i]; isShadow(of, one) {
			b.shadow = of
		}
	}
}

// withPods adds to an Application the Releases and Pods that matter for a Service.
func (c contents) withPods(of Selectors, app rules.Application, services []string) rules.Application {
	app.Releases = c.releases
	own, foreign := c.own, c.foreign
	if of.Service != "" {
		own, foreign = c.podsOf(of)
		app.Releases = c.releasesOf(of, own)
	}
	return withPods(of, app, own, foreign, serving(c.endpoints, services))
}

// podsOf are the Pods that are made for a Service, and those that are not and that one of its selectors matches.
func (c contents) podsOf(of Selectors) (own, foreign []corev1.Pod) {
	for _, pod := range c.own {
		switch {
		case of.backs(pod.Labels):
			own = append(own, pod)
		case of.labels(&pod): // by its Release, the Service does not select it
			pod.Labels = maps.Clone(pod.Labels)
			delete(pod.Labels, shipper.ReleaseLabel)
			foreign = append(foreign, pod)
		}
	}
	for _, pod := range c.foreign {
		if of.backs(pod.Labels) || of.labels(&pod) {
			foreign = append(foreign, pod)
		}
	}
	return own, foreign
}

// releasesOf are the Releases of whose Pods some are made for a Service.
func (c contents) releasesOf(of Selectors, own []corev1.Pod) []rules.Release {
	var out []rules.Release
	for _, r := range c.releases {
		made := c.owners.backed[r.Name].Has(of.Service)
		r.Awaited = r.Awaited && made
		if made || slices.ContainsFunc(own, func(pod corev1.Pod) bool { return pod.Labels[shipper.ReleaseLabel] == r.Name }) {
			out = append(out, r)
		}
	}
	return out
}

// leaves reports whether a Service stays as it is: none of its Releases has a weight, and a newer one that brings no Pods for it has.
func (c contents) leaves(app rules.Application) bool {
	newest := -1
	for i, r := range c.releases {
		switch of := slices.ContainsFunc(app.Releases, func(other rules.Release) bool { return other.Name == r.Name }); {
		case of && (r.AsFound || r.Weight > 0):
			return false
		case of:
			newest = i
		}
	}
	return newest >= 0 && slices.ContainsFunc(c.releases[newest+1:], func(r rules.Release) bool { return r.Weight > 0 })
}

// plan decides what is to be done with the Service for one Release. It is pure.
func (b backend) plan(out Outcome, release string, family application) Outcome {
	out.services, out.service, out.shadow, out.selectors = b.services, b.service, b.shadow, b.selectors
	if b.selectors.Service == "" {
		out.idle = !hasPods(b.app, release) && (out.want.Weight == 0 || family.podless[release].Has(out.want.Name))
	} else {
		known := slices.ContainsFunc(b.app.Releases, func(r rules.Release) bool { return r.Name == release })
		out.idle = b.left || !known || b.service == nil && out.want.Weight == 0
	}
	if b.service == nil || b.left {
		return out
	}
	out.empty = b.app.LacksEndpoints(release)
	out.plan = b.app.For(release)
	out.address = addressOf(b.service, out.established(family))
	leader, turn := b.app.Leader(), b.app.Next()
	switch out.leads = leader == release; {
	case out.leads:
		out.change = turn
	case turn.Shadow != nil || turn.Select != nil:
		out.leader = leader
	}
	if out.leads && len(b.foreign) > 0 {
		out.foreign = foreignMessage(b.service.Name, family.app, b.foreign)
	}
	return out
}

// backedBy are the Services that a Pod is made for, by its labels.
func backedBy(labels map[string]string) (names []string) {
	for key, value := range labels {
		if name, is := strings.CutPrefix(key, shipper.BackendPrefix); is && value == "true" {
			names = append(names, name)
		}
	}
	return names
}

// serves are the labels by which Services select a Pod.
func serves(pod *corev1.Pod) sets.Set[string] {
	out := sets.New[string]()
	for key, value := range pod.Labels {
		if strings.HasPrefix(key, shipper.ServesPrefix) && value == "true" {
			out.Insert(key)
		}
	}
	return out
}
