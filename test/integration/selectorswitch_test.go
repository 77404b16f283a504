// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// endpointsOf follows the EndpointSlices of a Service in one cluster, event by event.
type endpointsOf struct {
	*fixture
	mu       sync.Mutex
	slices   map[string]*discoveryv1.EndpointSlice
	may      []string // the Releases that may serve; nothing is judged while there are none
	always   bool     // whichever Release serves, one must
	events   int
	offences []string
}

// follow begins to follow the Service of test-nginx.
func (s *fixture) follow(cluster string) *endpointsOf {
	s.Helper()
	return s.followService(cluster, "test-nginx-prod", false)
}

// followService begins to follow a Service. With always, some Release has to serve from the first event on.
func (s *fixture) followService(cluster, service string, always bool) *endpointsOf {
	s.Helper()
	c, err := client.NewWithWatch(world.members[cluster].Config, client.Options{Scheme: world.clusters[cluster].Scheme()})
	s.must(err)
	of := client.MatchingLabels{discoveryv1.LabelServiceName: service}
	w, err := c.Watch(s.ctx, &discoveryv1.EndpointSliceList{}, client.InNamespace(s.namespace), of)
	s.must(err)
	e := &endpointsOf{fixture: s, slices: map[string]*discoveryv1.EndpointSlice{}, always: always}
	go func() {
		for event := range w.ResultChan() {
			if slice, ok := event.Object.(*discoveryv1.EndpointSlice); ok {
				e.take(slice, event.Type)
			}
		}
	}()
	s.Cleanup(func() {
		w.Stop()
		e.mu.Lock()
		defer e.mu.Unlock()
		s.Logf("%d events of EndpointSlices", e.events)
		if len(e.offences) > 0 {
			s.Errorf("EndpointSlices were:\n%s", strings.Join(e.offences, "\n"))
		}
	})
	return e
}

func (e *endpointsOf) take(slice *discoveryv1.EndpointSlice, what watch.EventType) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.events++
	if e.slices[slice.Name] = slice; what == watch.Deleted {
		delete(e.slices, slice.Name)
	}
	if len(e.may) == 0 && !e.always {
		return
	}
	serve := e.serve()
	if len(serve) == 0 {
		e.offences = append(e.offences, "empty")
	}
	if e.always {
		return
	}
	for release := range serve {
		if !slices.Contains(e.may, release) {
			e.offences = append(e.offences, fmt.Sprintf("%v, but only %v may serve", serve, e.may))
		}
	}
}

// serve counts the ready endpoints by Release.
func (e *endpointsOf) serve() map[string]int {
	out := map[string]int{}
	for _, slice := range e.slices {
		for _, endpoint := range slice.Endpoints {
			if (endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready) && endpoint.TargetRef != nil {
				release, _, _ := strings.Cut(endpoint.TargetRef.Name, "-test-nginx-")
				out[release]++
			}
		}
	}
	return out
}

// from now on, only these may serve, and some must.
func (e *endpointsOf) only(releases ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.may = releases
}

// settles waits until just so many Pods serve, by the Service's selector. From then on only those Releases may.
func (e *endpointsOf) settles(selector map[string]string, want map[string]int) {
	e.Helper()
	e.serves(selector, want, func() { e.may = slices.Collect(maps.Keys(want)) })
}

// serves waits until just so many Pods serve, by the Service's selector, and does something as long as they do.
func (e *endpointsOf) serves(selector map[string]string, want map[string]int, do func()) {
	e.Helper()
	selector[shipper.AppLabel] = e.app
	e.soon("traffic does not settle", func() string {
		var service corev1.Service
		e.find(west, "test-nginx-prod", &service)
		e.mu.Lock()
		defer e.mu.Unlock()
		if got := e.serve(); !maps.Equal(got, want) || !maps.Equal(service.Spec.Selector, selector) {
			return fmt.Sprint(got, service.Spec.Selector)
		}
		do()
		return ""
	})
	for release := range want {
		e.weighed(release)
	}
}

func byRelease(release string) map[string]string {
	return map[string]string{shipper.ReleaseLabel: release}
}

func byLabel() map[string]string {
	return map[string]string{shipper.TrafficStatusLabel: shipper.TrafficEnabled}
}

// up installs a Release, and gives it Pods and then a weight. It is the newest, which alone may take what is shared.
func (s *fixture) up(name string, pods int32, weight uint32) {
	s.Helper()
	var older shipper.InstallationTargetList
	s.must(s.management.List(s.ctx, &older, client.InNamespace(s.namespace)))
	for i := range older.Items {
		s.takeOver(older.Items[i].Name, false)
	}
	s.install(name, "test-nginx", "0.0.1", shipper.ChartValues{}, west)
	s.installed(name)
	s.scale(name, 100, pods, west)
	s.scaled(name)
	s.weigh(name, weight, west)
}

// newFixture has web-1 with all of the traffic in west, and web-2 with as many Pods and none.
func newFixture(t *testing.T) (*fixture, *endpointsOf) {
	t.Helper()
	s := begin(t, west)
	served := s.follow(west)
	s.up("web-1", 2, 1)
	s.up("web-2", 2, 0)
	served.settles(byRelease("web-1"), map[string]int{"web-1": 2})
	return s, served
}

// TestTheServiceIsNeverEmptyNorServesWhoWeighsNothing goes forward, backward, forward and aborts, and looks at every event of the
// EndpointSlices. A third Release has no weight, but Pods with the label.
func TestTheServiceIsNeverEmptyNorServesWhoWeighsNothing(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	served := s.follow(west)
	s.up("web-0", 4, 1)
	served.settles(byRelease("web-0"), map[string]int{"web-0": 4})
	s.unlabelled("web-0")
	s.up("web-1", 4, 0)
	s.weighed("web-1")

	served.only("web-0", "web-1")
	s.weigh("web-1", 1, west)
	served.settles(byLabel(), map[string]int{"web-0": 4, "web-1": 4})
	s.weigh("web-0", 0, west)
	served.settles(byRelease("web-1"), map[string]int{"web-1": 4})
	s.weighed("web-0")
	for _, pod := range s.pods(west, "web-0") {
		if pod.Labels[shipper.TrafficStatusLabel] != shipper.TrafficEnabled {
			t.Fatalf("pod %s has lost its label, and shows nothing any more", pod.Name)
		}
	}

	s.up("web-2", 4, 0)
	for range 3 {
		served.only("web-1", "web-2")
		s.weigh("web-2", 1, west) // forward
		served.settles(byLabel(), map[string]int{"web-1": 4, "web-2": 4})
		s.weigh("web-1", 0, west)
		served.settles(byRelease("web-2"), map[string]int{"web-2": 4})
		served.only("web-1", "web-2")
		s.weigh("web-1", 1, west) // backward
		served.settles(byLabel(), map[string]int{"web-1": 4, "web-2": 4})
		s.weigh("web-2", 0, west)
		served.settles(byRelease("web-1"), map[string]int{"web-1": 4})
	}

	served.only("web-1", "web-2")
	s.weigh("web-2", 3, west)
	served.settles(byLabel(), map[string]int{"web-1": 3, "web-2": 4})
	it := &shipper.InstallationTarget{ObjectMeta: s.meta("web-2")} // abort
	for _, o := range []client.Object{&shipper.TrafficTarget{ObjectMeta: s.meta("web-2")}, it} {
		s.must(s.management.Delete(s.ctx, o))
	}
	served.settles(byRelease("web-1"), map[string]int{"web-1": 4})
	s.gone(it)
	s.soon("the second Service stays", func() string {
		var all corev1.ServiceList
		s.must(world.clusters[west].List(s.ctx, &all, client.InNamespace(s.namespace), client.HasLabels{shipper.ProofLabel}))
		return strings.Repeat("x", len(all.Items))
	})
}

// unlabelled fails when a Pod of a Release has a label for traffic.
func (s *fixture) unlabelled(release string) {
	s.Helper()
	for _, pod := range s.pods(west, release) {
		if has, ok := pod.Labels[shipper.TrafficStatusLabel]; ok {
			s.Errorf("pod %s has the label %q", pod.Name, has)
		}
	}
}

// TestTrafficThatMovesAtOnceGoesFromPodsToPods gives traffic to a Release after that which has all of it began to go, so that the
// Service never selects by label.
func TestTrafficThatMovesAtOnceGoesFromPodsToPods(t *testing.T) {
	s := begin(t, west)
	served := s.follow(west)
	const finalizer = "test.example.com/wait"
	going := s.release("web-1")
	s.up("web-1", 3, 1)
	s.give(going)
	s.up("web-2", 3, 0)
	served.settles(byRelease("web-1"), map[string]int{"web-1": 3})
	served.only("web-1", "web-2")
	s.change(going, func(o client.Object) { o.SetFinalizers([]string{finalizer}) })
	s.must(s.management.Delete(s.ctx, going))
	s.weigh("web-2", 1, west)
	served.settles(byRelease("web-2"), map[string]int{"web-2": 3})
	s.change(going, func(o client.Object) { o.SetFinalizers(nil) })
	s.unlabelled("web-2")
}

// TestAnEditedSelectorIsMended edits it to one that selects nothing, and adds a key to it while two Releases share the traffic.
func TestAnEditedSelectorIsMended(t *testing.T) {
	s := begin(t, west)
	s.up("web-1", 2, 1)
	served := s.follow(west)
	served.settles(byRelease("web-1"), map[string]int{"web-1": 2})
	served.only()
	service := &corev1.Service{ObjectMeta: s.meta("test-nginx-prod")}
	s.meddle(west, service, func() { service.Spec.Selector = map[string]string{"app": "nothing"} })
	s.soon("it stays", func() string {
		s.find(west, "test-nginx-prod", service)
		return cmp.Diff(map[string]string{shipper.AppLabel: s.app, shipper.ReleaseLabel: "web-1"}, service.Spec.Selector)
	})
	// An effect of the edit may still come: slices are late.
	served.serves(byRelease("web-1"), map[string]int{"web-1": 2}, func() {})
	s.up("web-2", 2, 1)
	shared := map[string]int{"web-1": 2, "web-2": 2}
	served.serves(byLabel(), shared, func() {})
	s.meddle(west, service, func() { service.Spec.Selector["key-of-a-user"] = "none" })
	served.serves(byLabel(), shared, func() {})
}

// TestInstallingLeavesTheSelectorAlone installs a Release that takes the Service over while another has it, and corrects drift.
func TestInstallingLeavesTheSelectorAlone(t *testing.T) {
	s := begin(t, west)
	s.policy(shipper.DriftCorrect)
	s.up("web-1", 2, 1)
	served := s.follow(west)
	served.settles(byRelease("web-1"), map[string]int{"web-1": 2})
	s.takeOver("web-1", false)
	s.install("web-2", "test-nginx", "0.0.2", shipper.ChartValues{}, west)
	s.installed("web-2")
	service := &corev1.Service{ObjectMeta: s.meta("test-nginx-prod")}
	s.find(west, "test-nginx-prod", service)
	if owner := service.Labels[shipper.OwnedByLabel]; owner != "web-2" {
		t.Fatalf("the Service is %s's", owner)
	}
	s.meddle(west, service, func() { service.Spec.Ports[0].Port++ })
	changed := service.Spec.Ports[0].Port
	s.soon("drift is not corrected", func() string {
		if s.find(west, "test-nginx-prod", service); service.Spec.Ports[0].Port == changed {
			return "still"
		}
		return ""
	})
	served.settles(byRelease("web-1"), map[string]int{"web-1": 2})
	s.drifts("web-2", west)
}

// TestInstallingLeavesAnEditedSelectorToTraffic edits it to one that neither kind of traffic has while no target wants any, so that
// nothing but installing could mend it, and asks for some in the end.
func TestInstallingLeavesAnEditedSelectorToTraffic(t *testing.T) {
	s := begin(t, west)
	s.policy(shipper.DriftCorrect)
	s.up("web-1", 2, 1)
	served := s.follow(west)
	served.settles(byRelease("web-1"), map[string]int{"web-1": 2})
	s.unlabelled("web-1")
	s.must(s.management.Delete(s.ctx, &shipper.TrafficTarget{ObjectMeta: s.meta("web-1")}))
	service := &corev1.Service{ObjectMeta: s.meta("test-nginx-prod")}
	edited := map[string]string{"app": "test-nginx"}
	s.meddle(west, service, func() { service.Spec.Selector, service.Spec.Ports[0].Port = edited, service.Spec.Ports[0].Port+1 })
	changed := service.Spec.Ports[0].Port
	s.soon("drift is not corrected", func() string {
		if s.find(west, "test-nginx-prod", service); service.Spec.Ports[0].Port == changed {
			return "still"
		}
		return cmp.Diff(edited, service.Spec.Selector)
	})
	s.takeOver("web-1", false)
	s.install("web-2", "test-nginx", "0.0.2", shipper.ChartValues{}, west)
	s.installed("web-2")
	s.find(west, "test-nginx-prod", service)
	if diff := cmp.Diff(edited, service.Spec.Selector); diff != "" || service.Labels[shipper.OwnedByLabel] != "web-2" {
		t.Errorf("the Service of %s was mended without preparation:\n%s", service.Labels[shipper.OwnedByLabel], diff)
	}
	s.weigh("web-1", 1, west)
	served.settles(byRelease("web-1"), map[string]int{"web-1": 2})
}

// TestAServiceIsMadeAgainAsTrafficHasIt deletes it. Pods of the Release that has all the traffic have no label, and those of the one
// before have it still.
func TestAServiceIsMadeAgainAsTrafficHasIt(t *testing.T) {
	s, served := newFixture(t)
	for _, pod := range s.pods(west, "web-2") {
		s.meddle(west, &pod, func() { pod.Labels[shipper.TrafficStatusLabel] = shipper.TrafficEnabled })
	}
	served.only()
	c, err := client.NewWithWatch(world.members[west].Config, client.Options{Scheme: world.clusters[west].Scheme()})
	s.must(err)
	production := client.MatchingLabels{shipper.LBLabel: shipper.LBForProduction}
	w, err := c.Watch(s.ctx, &corev1.ServiceList{}, client.InNamespace(s.namespace), production)
	s.must(err)
	defer w.Stop()
	service := &corev1.Service{ObjectMeta: s.meta("test-nginx-prod")}
	s.find(west, "test-nginx-prod", service)
	old := service.UID
	s.must(world.clusters[west].Delete(s.ctx, service))
	for event := range w.ResultChan() {
		made, ok := event.Object.(*corev1.Service)
		if !ok || event.Type != watch.Added || made.UID == old {
			continue
		}
		want := map[string]string{shipper.AppLabel: s.app, shipper.ReleaseLabel: "web-1"}
		if diff := cmp.Diff(want, made.Spec.Selector); diff != "" {
			t.Errorf("it is made to select otherwise:\n%s", diff)
		}
		break
	}
	// The slices of the one that was deleted may yet go.
	served.serves(byRelease("web-1"), map[string]int{"web-1": 2}, func() {})
}

// TestAPodThatIsAHookServesNobody looks at a Pod that is ready while its Release is being installed.
func TestAPodThatIsAHookServesNobody(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	s.publish("probing", map[string]string{"templates/probe.yaml": `apiVersion: v1
kind: Pod
metadata:
  name: probe
  annotations: {helm.sh/hook: post-install}
spec: {containers: [{name: it, image: "nginx:stable"}]}
`})
	s.install("web-1", "probing", "0.0.1", shipper.ChartValues{}, west)
	pod := &corev1.Pod{}
	s.soon("the hook does not run", func() string {
		if !s.find(west, "probe", pod) {
			return "not there"
		}
		return ""
	})
	got := pod.Labels
	if _, has := got[shipper.ReleaseLabel]; has || got[shipper.AppLabel] != s.app {
		t.Errorf("it has the labels %v", got)
	}
}

// TestAServiceIsMadeForNobodyWhileNobodyIsAsked installs the first Release of an Application, whose step gives it Pods and no traffic:
// its TrafficTarget stays as it was found.
func TestAServiceIsMadeForNobodyWhileNobodyIsAsked(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	tt := &shipper.TrafficTarget{ObjectMeta: s.meta("web-1")}
	tt.Spec.Clusters = []shipper.ClusterTrafficTarget{{Name: west, AsFound: true}}
	s.must(s.management.Create(s.ctx, tt))
	served := s.follow(west)
	s.install("web-1", "test-nginx", "0.0.1", shipper.ChartValues{}, west)
	s.installed("web-1")
	s.scale("web-1", 100, 2, west)
	s.scaled("web-1")
	s.weighed("web-1")
	service := &corev1.Service{ObjectMeta: s.meta("test-nginx-prod")}
	s.find(west, "test-nginx-prod", service)
	want := byLabel()
	want[shipper.AppLabel] = s.app
	if diff := cmp.Diff(want, service.Spec.Selector); diff != "" {
		t.Errorf("a Release that was never asked has the Service:\n%s", diff)
	}
	s.weigh("web-1", 1, west)
	served.settles(byRelease("web-1"), map[string]int{"web-1": 2})
}

// TestAStepWithoutTrafficTakesItFromWhoHasAllOfIt has the next Release staged meanwhile, which was never asked for traffic.
func TestAStepWithoutTrafficTakesItFromWhoHasAllOfIt(t *testing.T) {
	t.Parallel()
	s := begin(t, west)
	s.up("web-1", 2, 1)
	served := s.follow(west)
	served.settles(byRelease("web-1"), map[string]int{"web-1": 2})
	served.only()
	tt := &shipper.TrafficTarget{ObjectMeta: s.meta("web-2")}
	tt.Spec.Clusters = []shipper.ClusterTrafficTarget{{Name: west, AsFound: true}}
	s.must(s.management.Create(s.ctx, tt))
	s.takeOver("web-1", false)
	s.install("web-2", "test-nginx", "0.0.1", shipper.ChartValues{}, west)
	s.installed("web-2")
	s.scale("web-2", 100, 2, west)
	s.scaled("web-2")
	s.weigh("web-1", 0, west)
	served.settles(byLabel(), map[string]int{})
	s.weighed("web-1")
}
