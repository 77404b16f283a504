// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	rules "shipper.dev/shipper/apis/rules/traffic"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// backing is a ready Pod of a Release that is made for Services.
func backing(name, release string, services ...string) corev1.Pod {
	pod := aPod(name, release, corev1.PodRunning, true, false)
	for _, service := range services {
		pod.Labels[shipper.BackendLabel(service)] = "true"
	}
	return pod
}

// admitted gives a Pod the labels of Services that it serves.
func admitted(pod corev1.Pod, services ...string) corev1.Pod {
	for _, service := range services {
		pod.Labels[shipper.ServesLabel(service)] = "true"
	}
	return pod
}

// production is a Service with the selector by label, and its endpoints.
func production(name string, pods ...string) (corev1.Service, discoveryv1.EndpointSlice) {
	of := Selectors{App: "web", Service: name}
	service := corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{shipper.LBLabel: shipper.LBForProduction}},
		Spec:       corev1.ServiceSpec{Selector: of.Selector(rules.Selection{ByLabel: true})},
	}
	yes := true
	slice := discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Name: name + "-x", Labels: map[string]string{discoveryv1.LabelServiceName: name},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Service", Name: name, Controller: &yes}},
	}}
	for _, pod := range pods {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: pod}})
	}
	return service, slice
}

// shop is an Application with the Services http and all. Pods of a Release: web for both, jobs for all, worker for none.
func shop(weights ...rules.Release) contents {
	c := contents{
		family: application{app: "web", byApplication: true}, releases: weights,
		owners: owners{backed: map[string]sets.Set[string]{}},
	}
	for _, r := range weights {
		c.own = append(c.own, backing(r.Name+"-web", r.Name, "http", "all"), backing(r.Name+"-jobs", r.Name, "all"),
			backing(r.Name+"-worker", r.Name))
		c.owners.backed[r.Name] = sets.New("http", "all")
	}
	for _, name := range []string{"all", "http"} {
		service, slice := production(name)
		c.services, c.endpoints = append(c.services, service), append(c.endpoints, slice)
	}
	return c
}

// asks is the TrafficTarget of a Release with a weight in cluster east.
func asks(release string, weight uint32) (*shipper.TrafficTarget, shipper.ClusterTrafficTarget) {
	return targetOf("web", release), shipper.ClusterTrafficTarget{Name: "east", Weight: weight}
}

// moves are the Pods that each Service lets in and takes out, for one Release.
func moves(c contents, selectByRelease bool, release string, weight uint32) map[string][2][]string {
	out := map[string][2][]string{}
	tt, want := asks(release, weight)
	c.pods = append(append([]corev1.Pod{}, c.own...), c.foreign...)
	for _, of := range c.observation(selectByRelease).plan(tt, want, c.family) {
		out[of.selectors.Service] = [2][]string{
			append(append([]string{}, of.plan.Enable...), of.change.Enable...), append(append([]string{}, of.plan.Disable...), of.change.Disable...),
		}
	}
	return out
}

func TestEachServiceIsShiftedOverThePodsThatAreMadeForIt(t *testing.T) {
	got := moves(shop(rules.Release{Name: "web-1", Weight: 50}, rules.Release{Name: "web-2", Weight: 50}), false, "web-2", 50)
	want := map[string][2][]string{"http": {{"web-2-web"}, {}}, "all": {{"web-2-jobs", "web-2-web"}, {}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	half := shop(rules.Release{Name: "web-1", Weight: 75}, rules.Release{Name: "web-2", Weight: 25})
	for _, b := range half.observation(false).backends {
		if want := map[string]int{"http": 2, "all": 4}[b.selectors.Service]; b.app.AppPods != want {
			t.Errorf("Service %s counts %d Pods, want %d: a worker counts for none", b.selectors.Service, b.app.AppPods, want)
		}
	}
}

func TestAServiceSelectsTheReleaseThatAloneHasPodsForIt(t *testing.T) {
	c := shop(rules.Release{Name: "web-1", Weight: 50}, rules.Release{Name: "web-2", Weight: 50})
	c.own[3] = backing("web-2-web", "web-2", "all") // the newer chart has no http
	c.owners.backed["web-2"] = sets.New("all")
	tt, want := asks("web-1", 50)
	got := map[string]*rules.Selection{}
	for _, of := range c.observation(true).plan(tt, want, c.family) {
		got[of.selectors.Service] = of.change.Select
	}
	if diff := cmp.Diff(map[string]*rules.Selection{"http": {Release: "web-1"}, "all": nil}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestAServiceThatTheNewestChartLeftOutServesOn takes the traffic from a Release while no other has Pods for one of its Services.
func TestAServiceThatTheNewestChartLeftOutServesOn(t *testing.T) {
	c := shop(rules.Release{Name: "web-1"}, rules.Release{Name: "web-2", Weight: 100})
	c.own[0] = admitted(c.own[0], "http", "all")
	c.own[3] = backing("web-2-web", "web-2", "all")
	c.owners.backed["web-2"] = sets.New("all")
	got := moves(c, false, "web-1", 0)
	if diff := cmp.Diff(map[string][2][]string{"http": {{}, {}}, "all": {{}, {}}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff) // of all, its Pods are held until those of the other come
	}
	if !c.observation(false).backends[1].left {
		t.Error("Service http does not stay as it is")
	}
	// The newer Release loses the traffic: what only it serves goes with that.
	c = shop(rules.Release{Name: "web-1", Weight: 100}, rules.Release{Name: "web-2"})
	c.own[0], c.own[3] = backing("web-1-web", "web-1", "all"), admitted(c.own[3], "http")
	c.owners.backed["web-1"] = sets.New("all")
	if got := moves(c, false, "web-2", 0)["http"]; !cmp.Equal(got, [2][]string{{}, {"web-2-web"}}) {
		t.Errorf("of a Service that only the contender has: %v", got)
	}
}

func TestReadyWithSeveralServices(t *testing.T) {
	one := shop(rules.Release{Name: "web-1", Weight: 100, Awaited: true})
	serving := shop(rules.Release{Name: "web-1", Weight: 100, Awaited: true})
	serving.own[0], serving.own[1] = admitted(serving.own[0], "http", "all"), admitted(serving.own[1], "all")
	_, serving.endpoints[0] = production("all", "web-1-web", "web-1-jobs")
	_, serving.endpoints[1] = production("http", "web-1-web")
	lags := serving
	lags.endpoints = []discoveryv1.EndpointSlice{serving.endpoints[1]}
	_, slice := production("all", "web-1-web")
	lags.endpoints = append(lags.endpoints, slice)
	missing := serving
	missing.services = missing.services[:1]
	starts := shop(rules.Release{Name: "web-1", Weight: 100, Awaited: true})
	starts.own = nil
	workers := contents{
		family: one.family, releases: one.releases, own: []corev1.Pod{backing("worker", "web-1")}, owners: owners{backed: nil},
	}
	for sentence, tc := range map[string]struct {
		contents contents
		reason   string
		message  string
		achieved uint32
	}{
		"all serve":           {serving, "", "", 100},
		"Pods have to be let": {one, shipper.InProgress, `Service "all": moved 2 pods into traffic and 0 out of it`, 0},
		"one of two lags": {
			lags, shipper.PodsNotInEndpoints, `Service "all": 1/2 pods designated to receive traffic are not yet in endpoints`, 50,
		},
		"one is missing": {
			missing, shipper.MissingService,
			`there is no Service "http" with the label shipper-lb=production, and pods of this release are made for it`, 0,
		},
		"the Pods are not seen yet": {starts, shipper.InProgress, `Service "all": the pods designated to receive traffic are not there yet`, 0},
		"workers need none":         {workers, "", "", 0},
	} {
		tt, want := asks("web-1", 100)
		got := worst(tc.contents.observation(false).plan(tt, want, tc.contents.family))
		is := ready(got)
		if is.Reason != tc.reason || is.Message != tc.message || got.plan.Achieved != tc.achieved {
			t.Errorf("%s: %s %q, achieved %d", sentence, is.Reason, is.Message, got.plan.Achieved)
		}
	}
}

func TestTheLeastTrafficOfAllServicesIsAchieved(t *testing.T) {
	of := func(service string, plan rules.Plan) Outcome {
		return Outcome{selectors: Selectors{App: "web", Service: service}, services: []string{service}, named: true, plan: plan}
	}
	got := worst([]Outcome{
		of("a", rules.Plan{Needed: 2, Labelled: 2, Serving: 2, Achieved: 100}), of("b", rules.Plan{Late: true}),
		of("c", rules.Plan{Needed: 2, Labelled: 2, Serving: 1, NotReady: 1, Achieved: 50}),
	})
	if got.plan.Achieved != 0 || got.selectors.Service != "c" {
		t.Errorf("achieved %d, said of Service %s", got.plan.Achieved, got.selectors.Service)
	}
}

func TestAPodIsPatchedOnceForAllItsServices(t *testing.T) {
	of := func(service string, in, out []string) Outcome {
		return Outcome{selectors: Selectors{App: "web", Service: service}, plan: rules.Plan{Enable: in, Disable: out}}
	}
	seen := observation{serves: map[string]sets.Set[string]{
		"a": {}, "b": sets.New(shipper.ServesLabel("http"), shipper.ServesLabel("all")), "c": sets.New(shipper.ServesLabel("all")),
	}}
	plans := []Outcome{of("all", []string{"a"}, []string{"b", "c"}), of("http", []string{"a"}, nil)}
	text := func(patches []*podPatch) map[string]string {
		out := map[string]string{}
		for _, p := range patches {
			raw, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			out[p.name] += string(raw)
		}
		return out
	}
	const cost = `"controller.kubernetes.io/pod-deletion-cost"`
	if diff := cmp.Diff(map[string]string{
		"a": `{"metadata":{"labels":{"serves.shipper.booking.com/all":"true","serves.shipper.booking.com/http":"true"},` +
			`"annotations":{` + cost + `:"1"}}}`,
	}, text(seen.patches(plans, enabled, true))); diff != "" {
		t.Errorf("in (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{
		"b": `{"metadata":{"labels":{"serves.shipper.booking.com/all":null},"annotations":{` + cost + `:"1"}}}`, // it serves http on
		"c": `{"metadata":{"labels":{"serves.shipper.booking.com/all":null},"annotations":{` + cost + `:null}}}`,
	}, text(seen.patches(plans, disabled, false))); diff != "" {
		t.Errorf("out (-want +got):\n%s", diff)
	}
	byRelease := []Outcome{{selectors: Selectors{App: "web"}, plan: rules.Plan{Enable: []string{"a"}, Disable: []string{"b"}}}}
	got := text(observation{}.patches(byRelease, disabled, false))
	if want := `{"metadata":{"labels":{"shipper-traffic-status":"disabled"},"annotations":{` + cost + `:null}}}`; got["b"] != want {
		t.Errorf("by Release: %s", got["b"])
	}
}

func TestPodsInTrafficGoAfterOthersAlsoIfAnotherShipperLabelledThem(t *testing.T) {
	yes, no := rules.Pod{Labelled: true}, rules.Pod{}
	pods := func(a, b, c rules.Pod) []rules.Pod {
		a.Name, b.Name, c.Name = "a", "b", "c"
		return []rules.Pod{a, b, c}
	}
	tests := map[string]struct {
		pods        []rules.Pod
		costs       map[string]string
		plan        rules.Plan
		selects     string
		last, first []string
	}{
		"labelled by another Shipper": {pods(yes, yes, no), nil, rules.Plan{}, "", []string{"a", "b"}, nil},
		"labelled by this one":        {pods(yes, yes, no), map[string]string{"a": "1", "b": "1"}, rules.Plan{}, "", nil, nil},
		"all are in traffic":          {pods(yes, yes, yes), nil, rules.Plan{}, "", nil, nil},
		"one is taken out":            {pods(yes, yes, yes), nil, rules.Plan{Disable: []string{"c"}}, "", []string{"a", "b"}, nil},
		"one is let in":               {pods(yes, no, no), nil, rules.Plan{Enable: []string{"b"}}, "", []string{"a"}, nil},
		"the chart writes costs": {
			pods(yes, yes, no), map[string]string{"a": "1", "b": "9", "c": "9"}, rules.Plan{}, "", []string{"b"}, []string{"c"},
		},
		"none is in traffic":             {pods(no, no, no), map[string]string{"a": "9"}, rules.Plan{}, "", nil, nil},
		"the Service selects by Release": {pods(yes, yes, no), nil, rules.Plan{}, "web-1", nil, nil},
	}
	for name, tc := range tests {
		service, _ := production("web")
		b := backend{service: &service, app: rules.Application{
			Selects: rules.Selection{ByLabel: tc.selects == "", Release: tc.selects}, Releases: []rules.Release{{Name: "web-1", Pods: tc.pods}},
		}}
		last, first := observation{costs: tc.costs}.misplaced(b, tc.plan, "web-1")
		if !cmp.Equal(last, tc.last) || !cmp.Equal(first, tc.first) {
			t.Errorf("%s: last %v, first %v; want %v and %v", name, last, first, tc.last, tc.first)
		}
	}
}

// TestCostsAreCorrectedBeforeADeploymentIsScaledDown: at other times another writer of costs would be answered without end.
func TestCostsAreCorrectedBeforeADeploymentIsScaledDown(t *testing.T) {
	c := shop(rules.Release{Name: "web-1", Weight: 1}, rules.Release{Name: "web-2", Weight: 99})
	c.own[0] = admitted(c.own[0], "http") // as another Shipper does it: without a cost
	c.own = append(c.own, backing("web-1-web-2", "web-1", "http"))
	c.pods = c.own
	tt, want := asks("web-1", 1)
	for _, lowering := range []bool{false, true} {
		c.family.here.Lowering = lowering
		corrected := false
		seen := c.observation(false)
		seen.costs = map[string]string{"web-1-web-2": "9"}
		for _, of := range seen.plan(tt, want, c.family) {
			corrected = corrected || len(of.last)+len(of.first) > 0
		}
		if corrected != lowering {
			t.Errorf("a Deployment is to be scaled down: %t, costs are corrected: %t", lowering, corrected)
		}
	}
}

// TestAWorkerWithTheLabelOfAServiceLosesIt has a user write the label to a Pod that the chart did not make for the Service.
func TestAWorkerWithTheLabelOfAServiceLosesIt(t *testing.T) {
	c := shop(rules.Release{Name: "web-1", Weight: 50}, rules.Release{Name: "web-2", Weight: 50})
	c.own[2] = admitted(c.own[2], "http")
	if got := moves(c, false, "web-1", 50)["http"]; !cmp.Equal(got, [2][]string{{"web-1-web"}, {"web-1-worker"}}) {
		t.Errorf("got %v", got)
	}
}

func TestThePreviewOfSeveralServicesSelectsItsOwnPods(t *testing.T) {
	c := shop(rules.Release{Name: "web-1", Weight: 100}, rules.Release{Name: "web-2"})
	preview, slice := production("preview", "web-2-web")
	preview.Labels[shipper.LBLabel] = shipper.LBForPreview
	preview.Spec.Selector = Selectors{App: "web", Service: "preview"}.Selector(rules.Selection{Release: "web-2"})
	c.services, c.endpoints = append(c.services, preview), append(c.endpoints, slice)
	c.own[3].Labels[shipper.BackendLabel("preview")] = "true"
	seen := c.observation(true)
	if len(seen.backends) != 2 || !seen.previewApp.Previewed("web-2") || seen.previewApp.Previewed("web-1") {
		t.Errorf("%d Services, preview %+v", len(seen.backends), seen.previewApp.Preview)
	}
}

func TestDeploymentsOfARelease(t *testing.T) {
	pod := ofReplicaSet("a", "web-1", "web-jobs-1-5d4f")
	all := owners{deployments: map[string][]string{"web-1": {"web-1", "web-jobs-1"}}}
	if !all.owns(&pod) {
		t.Error("a Pod of the second Deployment is not the Release's")
	}
}
