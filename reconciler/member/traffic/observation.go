// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	// selectors are those that the Service may have, and named is true when messages say its name, since there are several.
	selectors Selectors
	named     bool
	// idle is true when the Release has no Pods in the cluster, and no weight or is no Pods at all there: nothing is to be done. It is also
	// true when no Pods of the Release are made for the Service.
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
	// last and first are Pods in traffic and out of it whose labels stay, and whose costs of deletion say otherwise.
	last, first []string
	// address is what the Service has of one, if it is of type LoadBalancer.
	address address
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
	// backends are the production Services: where objects are named by Release one, whatever number of Services there is.
	backends []backend
	// previews are the names of the preview Services; there should be at most one. preview is that; nil when there is none.
	previews []string
	preview  *corev1.Service
	// previewSelectors are those that it may have, and previewApp the Pods that it may select.
	previewSelectors Selectors
	previewApp       rules.Application
	// outlived are the Services that have ports which nothing needs any more.
	outlived []*corev1.Service
	// serves are the labels of living Pods that let them into the traffic of a Service, where objects are named by Application.
	serves map[string]sets.Set[string]
	// costs are the costs of deletion of living Pods; absent where there is none.
	costs map[string]string
}

// contents is what the cluster's caches have of an Application.
type contents struct {
	family    application
	pods      []corev1.Pod
	services  []corev1.Service
	endpoints []discoveryv1.EndpointSlice
	owners    owners
	// own are the Pods of its Releases, foreign others that carry labels of it.
	own, foreign []corev1.Pod
	releases     []rules.Release
}

// observe reads Pods, Services and EndpointSlices of an Application from the cluster's caches.
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
	var endpoints discoveryv1.EndpointSliceList
	if err := m.Client().List(ctx, &endpoints, of...); err != nil {
		return out, fmt.Errorf("listing EndpointSlices: %w", err)
	}
	c := contents{family: family, pods: pods.Items, services: services.Items, endpoints: endpoints.Items}
	var err error
	var listed map[string][]string
	if family.byApplication {
		if listed, err = w.listed(ctx, m, types.NamespacedName{Namespace: family.namespace, Name: family.app}); err != nil {
			return out, err
		}
	}
	if c.owners, err = ownersOf(ctx, m, c.pods, family, listed); err != nil {
		return out, err
	}
	c.own, c.foreign = c.owners.split(c.pods)
	if c.releases, err = w.known(ctx, m.Name, c.own, family); err != nil {
		return out, err
	}
	return c.observation(w.selectByRelease), nil
}

// observation sorts the contents of caches by Service. It is pure.
func (c contents) observation(selectByRelease bool) observation {
	out := observation{costs: map[string]string{}}
	for i := range c.pods {
		if cost, has := c.pods[i].Annotations[corev1.PodDeletionCost]; has {
			out.costs[c.pods[i].Name] = cost
		}
	}
	out.takePreview(c.services)
	out.previewSelectors = Selectors{App: c.family.app}
	var preview *rules.ShadowService
	if out.preview != nil {
		if c.family.byApplication {
			out.previewSelectors.Service = out.preview.Name
		}
		shown := serving(ownedBy(c.endpoints, out.preview), []string{out.preview.Name})
		preview = &rules.ShadowService{Selects: out.previewSelectors.Selection(out.preview.Spec.Selector), Serving: names(shown)}
	}
	for _, of := range c.selectors(out.previews) {
		b := c.backend(of, rules.Application{SelectByRelease: selectByRelease, Preview: preview})
		if c.family.byApplication {
			b.left = c.leaves(b.app)
		}
		out.backends = append(out.backends, b)
	}
	if !c.family.byApplication {
		out.previewApp = out.backends[0].app
		return out
	}
	if out.preview != nil {
		out.previewApp = c.withPods(out.previewSelectors, rules.Application{Preview: preview}, nil)
	}
	out.outlived, out.serves = c.outlived(), map[string]sets.Set[string]{}
	for i := range c.pods {
		out.serves[c.pods[i].Name] = serves(&c.pods[i])
	}
	return out
}

// plan decides what is to be done for one target, with each Service. It is pure.
func (s observation) plan(tt *shipper.TrafficTarget, want shipper.ClusterTrafficTarget, family application) []Outcome {
	general := Outcome{want: want, previews: s.previews, served: family.served.Has(want.Name)}
	general.previewLags = want.Preview == shipper.PreviewRelease && s.preview != nil && !s.previewApp.Previewed(releaseOf(tt))
	if len(s.backends) == 0 { // capacity decides alone
		general.idle = true
		return []Outcome{general}
	}
	out := make([]Outcome, 0, len(s.backends))
	for _, b := range s.backends {
		one := b.plan(general, releaseOf(tt), family)
		one.named = len(s.backends) > 1
		if family.here.Lowering { // otherwise another writer of costs and this one would answer each other
			one.last, one.first = s.misplaced(b, one.plan, releaseOf(tt))
		}
		out = append(out, one)
	}
	return out
}

// known are the Releases that say a weight in a cluster, and those that have Pods there, say nothing, and are not going.
func (w *Worker) known(ctx context.Context, cluster string, pods []corev1.Pod, family application) ([]rules.Release, error) {
	out := slices.Clone(family.weights[cluster])
	seen := family.going.Clone()
	for i := range out {
		seen.Insert(out[i].Name)
		out[i].Lacks = family.here.lacks(out[i].Name)
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

// takePreview finds the preview Service among those of the Application.
func (s *observation) takePreview(services []corev1.Service) {
	for i := range services {
		if of := &services[i]; of.DeletionTimestamp == nil && of.Labels[shipper.LBLabel] == shipper.LBForPreview {
			s.previews = append(s.previews, of.Name)
			s.preview = of
		}
	}
	if len(s.previews) != 1 {
		s.preview = nil
	}
}

// withPods adds the Pods of the cluster to an Application. Pods of hooks and foreign Pods do not count.
func withPods(of Selectors, app rules.Application, pods, foreign []corev1.Pod, serving sets.Set[string]) rules.Application {
	app.Releases, app.Serving = slices.Clone(app.Releases), serving.Len()
	byName := map[string]*rules.Release{}
	for i := range app.Releases {
		byName[app.Releases[i].Name] = &app.Releases[i]
	}
	for i := range foreign {
		is := podOf(of, &foreign[i], serving)
		if release := byName[foreign[i].Labels[shipper.ReleaseLabel]]; release != nil && !is.Gone {
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
		release := byName[pod.Labels[shipper.ReleaseLabel]]
		if pod.Annotations[shipper.HookRunAnnotation] != "" {
			if release != nil && !gone {
				release.HookPods, release.Foreign = true, release.Foreign || serving.Has(pod.Name)
			}
			continue
		}
		if !gone {
			app.AppPods++
		}
		is := podOf(of, pod, serving)
		if release != nil {
			release.Pods = append(release.Pods, is)
		} else {
			app.Strays = append(app.Strays, is)
		}
	}
	return app
}

// podOf is what the rules need to know of a Pod.
func podOf(of Selectors, pod *corev1.Pod, serving sets.Set[string]) rules.Pod {
	return rules.Pod{
		Name: pod.Name, Gone: gone(pod), Ready: fleet.PodReady(pod), Serving: serving.Has(pod.Name),
		Labelled: of.labels(pod),
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
