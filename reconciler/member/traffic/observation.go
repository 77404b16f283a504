// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rules "shipper.dev/shipper/apis/rules/traffic"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

// Outcome is what was read of a target in one cluster, and what was done there.
type Outcome struct {
	// missing is set where no pass was made since the target changed.
	missing bool
	want    shipper.ClusterTrafficTarget
	// services are the names of those that traffic is shifted on; there should be one.
	services []string
	// idle is true when the Release has no Pods in the cluster, and no weight or is no Pods at all there: nothing is to be done.
	idle bool
	// plan is what has to be done. Empty unless there is one Service.
	plan rules.Plan
	// change is what has to be done with the Service, when that is for this target to do: leads says so.
	change rules.SelectorChange
	leads  bool
	// leader names the Release whose target turns the Service, while that is under way and not for this target to do.
	leader string
	// service is the one that traffic is shifted on, proof the one beside it that proves; nil when there is none.
	service, shadow *corev1.Service
	// previews are the names of the preview Services; there should be at most one. previewLags is true while it should select the Release
	// and does not have all its ready Pods.
	previews    []string
	previewLags bool
	// foreign is the message about ready endpoints of the Service that are not Pods of Releases; empty if there are none, or if another
	// target reports them.
	foreign string
	// moved is true when labels of Pods were written in this pass.
	moved bool
	// empty is true when the Service has no ready endpoints, though the Release is to serve; outage when that is to be reported.
	empty, outage bool
	// served is true when a Release of the Application had endpoints in the cluster, by what statuses say.
	served bool
	// err is why the cluster could not be read or written; invalid why the target cannot be carried out anywhere.
	err, invalid error
}

// observation is what was read of an Application in one cluster.
type observation struct {
	// services are the names of those that traffic is shifted on; there should be one. service is that, shadow the one beside it that
	// proves; nil when there is none.
	services        []string
	service, shadow *corev1.Service
	// previews are the names of the preview Services; there should be at most one. preview is that; nil when there is none.
	previews []string
	preview  *corev1.Service
	app      rules.Application
	// foreign names the ready endpoints of the Service that are not Pods of Releases.
	foreign []string
}

// observe reads Pods, Service and EndpointSlices of an Application from the cluster's caches.
func (w *Worker) observe(ctx context.Context, m *fleet.Member, family application) (observation, error) {
	var out observation
	of := []client.ListOption{client.InNamespace(family.namespace), client.MatchingFields{fleet.ByApp: family.app}}
	var pods corev1.PodList
	if err := m.Client().List(ctx, &pods, of...); err != nil {
		return out, fmt.Errorf("listing Pods: %w", err)
	}
	var services corev1.ServiceList
	if err := m.Client().List(ctx, &services, of...); err != nil {
		return out, fmt.Errorf("listing Services: %w", err)
	}
	out.take(services.Items)
	var endpoints discoveryv1.EndpointSliceList
	if err := m.Client().List(ctx, &endpoints, of...); err != nil {
		return out, fmt.Errorf("listing EndpointSlices: %w", err)
	}
	belong, err := ownersOf(ctx, m, family.namespace, pods.Items, family)
	if err != nil {
		return out, err
	}
	own, foreign := belong.split(pods.Items)
	releases, err := w.known(ctx, m.Name, own, family)
	if err != nil {
		return out, err
	}
	serve := serving(endpoints.Items, out.services)
	out.app = withPods(rules.Application{SelectByRelease: w.selectByRelease, Releases: releases}, own, foreign, serve)
	if out.preview != nil {
		shown := serving(ownedBy(endpoints.Items, out.preview), []string{out.preview.Name})
		out.app.Preview = &rules.ShadowService{Selects: Selection(family.app, out.preview.Spec.Selector), Serving: names(shown)}
	}
	if out.service == nil {
		return out, nil
	}
	out.app.Selects = Selection(family.app, out.service.Spec.Selector)
	if out.shadow != nil {
		shown := serving(ownedBy(endpoints.Items, out.shadow), []string{out.shadow.Name})
		out.app.Shadow = &rules.ShadowService{Selects: Selection(family.app, out.shadow.Spec.Selector), Serving: names(shown)}
	}
	out.foreign = foreignEndpoints(endpoints.Items, out.service, pods.Items, belong)
	return out, nil
}

// plan decides what is to be done for one target. It is pure.
func (s observation) plan(tt *shipper.TrafficTarget, want shipper.ClusterTrafficTarget, family application) Outcome {
	release := releaseOf(tt)
	out := Outcome{
		want: want, services: s.services, service: s.service, shadow: s.shadow, previews: s.previews, served: family.served.Has(want.Name),
	}
	out.previewLags = want.Preview == shipper.PreviewRelease && s.preview != nil && !s.app.Previewed(release)
	out.idle = !hasPods(s.app, release) && (want.Weight == 0 || family.podless[release].Has(want.Name))
	if s.service == nil {
		return out
	}
	out.empty = s.app.LacksEndpoints(release)
	out.plan = s.app.For(release)
	leader, turn := s.app.Leader(), s.app.Next()
	switch out.leads = leader == release; {
	case out.leads:
		out.change = turn
	case turn.Shadow != nil || turn.Select != nil:
		out.leader = leader
	}
	if out.leads && len(s.foreign) > 0 {
		out.foreign = foreignMessage(s.service.Name, family.app, s.foreign)
	}
	return out
}

// known are the Releases that say a weight in a cluster, and those that have Pods there, say nothing, and are not going.
func (w *Worker) known(ctx context.Context, cluster string, pods []corev1.Pod, family application) ([]rules.Release, error) {
	out := slices.Clone(family.weights[cluster])
	seen := family.going.Clone()
	for _, of := range out {
		seen.Insert(of.Name)
	}
	for i := range pods {
		release := pods[i].Labels[shipper.ReleaseLabel]
		if seen.Has(release) || release == "" {
			continue
		}
		seen.Insert(release)
		leaving, err := w.leaving(ctx, family.namespace, release)
		if err != nil {
			return nil, err
		}
		if !leaving {
			out = append(out, rules.Release{Name: release, AsFound: true, Unknown: true})
		}
	}
	return out, nil
}

// take finds the Service that traffic is shifted on, and the one that proves, among those of the Application.
func (s *observation) take(services []corev1.Service) {
	var one *corev1.Service
	for i := range services {
		switch of := &services[i]; {
		case of.DeletionTimestamp != nil:
		case of.Labels[shipper.LBLabel] == shipper.LBForProduction:
			s.services = append(s.services, of.Name)
			one = of
		case of.Labels[shipper.LBLabel] == shipper.LBForPreview:
			s.previews = append(s.previews, of.Name)
			s.preview = of
		}
	}
	if len(s.previews) != 1 {
		s.preview = nil
	}
	if len(s.services) != 1 {
		return
	}
	s.service = one
	for i := range services {
		if of := &services[i]; isShadow(of, one) {
			s.shadow = of
		}
	}
}

// withPods adds the Pods of the cluster to an Application. Pods of hooks and foreign Pods do not count.
func withPods(app rules.Application, pods, foreign []corev1.Pod, serving sets.Set[string]) rules.Application {
	app.Releases, app.Serving = slices.Clone(app.Releases), serving.Len()
	of := map[string]*rules.Release{}
	for i := range app.Releases {
		of[app.Releases[i].Name] = &app.Releases[i]
	}
	for i := range foreign {
		is := podOf(&foreign[i], serving)
		if release := of[foreign[i].Labels[shipper.ReleaseLabel]]; release != nil && !is.Gone {
			release.Foreign = true
		}
		if is.Serving {
			app.Serving--
		}
		app.Foreign = append(app.Foreign, is)
	}
	for i := range pods {
		pod := &pods[i]
		gone := gone(pod)
		release := of[pod.Labels[shipper.ReleaseLabel]]
		if pod.Annotations[shipper.HookRunAnnotation] != "" {
			if release != nil && !gone {
				release.HookPods, release.Foreign = true, release.Foreign || serving.Has(pod.Name)
			}
			continue
		}
		if !gone {
			app.AppPods++
		}
		is := podOf(pod, serving)
		if release != nil {
			release.Pods = append(release.Pods, is)
		} else {
			app.Strays = append(app.Strays, is)
		}
	}
	return app
}

// podOf is what the rules need to know of a Pod.
func podOf(pod *corev1.Pod, serving sets.Set[string]) rules.Pod {
	return rules.Pod{
		Name: pod.Name, Gone: gone(pod), Ready: isReady(pod), Serving: serving.Has(pod.Name),
		Labelled: pod.Labels[shipper.TrafficStatusLabel] == shipper.TrafficEnabled,
	}
}

// gone reports whether a Pod has ended, or is about to.
func gone(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || pod.DeletionTimestamp != nil
}

// hasPods reports whether a Release has Pods.
func hasPods(app rules.Application, release string) bool {
	return slices.ContainsFunc(app.Releases, func(r rules.Release) bool { return r.Name == release && len(r.Pods) > 0 })
}

// serving are the Pods that are ready endpoints of the Services. An endpoint that does not say is ready.
func serving(list []discoveryv1.EndpointSlice, services []string) sets.Set[string] {
	out := sets.New[string]()
	for _, s := range list {
		if !slices.Contains(services, s.Labels[discoveryv1.LabelServiceName]) {
			continue
		}
		for _, e := range s.Endpoints {
			ready := e.Conditions.Ready == nil || *e.Conditions.Ready
			if ready && e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
				out.Insert(e.TargetRef.Name)
			}
		}
	}
	return out
}

// ownedBy are the EndpointSlices of a Service itself, and not of one that had its name before.
func ownedBy(list []discoveryv1.EndpointSlice, service *corev1.Service) []discoveryv1.EndpointSlice {
	return slices.DeleteFunc(slices.Clone(list), func(s discoveryv1.EndpointSlice) bool {
		return !metav1.IsControlledBy(&s, service)
	})
}

func names(of sets.Set[string]) map[string]bool {
	out := map[string]bool{}
	for name := range of {
		out[name] = true
	}
	return out
}
