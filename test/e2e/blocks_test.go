// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/fleet"
)

const (
	// promptness bounds, in `make nightly`, the fastest time until all affected objects report that a block began or ended.
	promptness = time.Second
	// patientPromptness bounds the median of these times: a busy machine exceeds promptness often, a timer this as well.
	patientPromptness = 4 * time.Second
	// rest is how long the reconcilers must be idle before the first block is created: a polling timer would show.
	rest = 5 * time.Second
)

// TestBlocksAreToldToAllWithinASecond is not parallel: a global block stops every other test. Watches of conditions and
// events give the times. They are judged in `make nightly` alone: other tests keep the machine busy in `make test`. The reconcilers are
// idle before, so that their events come from the block and no timer.
func TestBlocksAreToldToAllWithinASecond(t *testing.T) {
	s := begin(t, []string{west, east}, []string{westRegion, eastRegion})
	concerned := s.severalApplications(3)
	s.awaitsATime() // pending schedules must not cause polling either
	s.reconcilersRest()
	c := s.chronicles()

	var times []time.Duration
	rounds, freezes := 2, 2
	if env.IsNightly() { // where times are judged
		rounds, freezes = 5, 3
	}
	for round := range rounds {
		rb := s.globalBlock(fmt.Sprintf("%s-%d", s.Namespace, round))
		began := time.Now()
		s.Must("creating the block", world.Management.Create(s.Ctx, rb))
		times = append(times, s.told(c, comingOf(rb, concerned)).Sub(began))
		began = time.Now()
		s.Must("lifting the block", world.Management.Delete(s.Ctx, rb))
		times = append(times, s.told(c, goingFrom(concerned)).Sub(began))
	}
	s.prompt("blocks that came and went", times)
	s.prompt("freezes that began and ended", s.freezesAfterAnother(c, concerned, freezes, slices.Max(times)))
}

// prompt fails in `make nightly` if the fastest of times exceeds promptness, or the median patientPromptness.
func (s *fixture) prompt(what string, times []time.Duration) {
	s.Helper()
	slices.Sort(times)
	s.Logf("%s were reported by all objects after %v", what, times)
	if !env.IsNightly() {
		return
	}
	if fastest := times[0]; fastest > promptness {
		s.Errorf("%s: the fastest time until all objects reported it is %s, want %s at most", what, fastest, promptness)
	}
	if median := times[len(times)/2]; median > patientPromptness {
		s.Errorf("%s: the median time until all objects reported it is %s, want %s at most", what, median, patientPromptness)
	}
}

// globalBlock returns a global block; the caller creates it.
func (s *fixture) globalBlock(name string) *shipper.RolloutBlock {
	return &shipper.RolloutBlock{
		ObjectMeta: metav1.ObjectMeta{Namespace: shipper.GlobalBlocksNamespace, Name: name},
		Spec:       shipper.RolloutBlockSpec{Message: "for a moment", Author: shipper.RolloutBlockAuthor{Type: "user", Name: "testUser"}},
	}
}

// comingOf lists the facts that the affected objects report of a global block when it begins, goingFrom when it ends.
func comingOf(rb *shipper.RolloutBlock, concerned []string) []string {
	said := "rollouts blocked by: " + rb.Namespace + "/" + rb.Name
	var out []string
	for _, object := range concerned {
		out = append(out, object+" Blocked True RolloutsBlocked "+said)
		if strings.HasPrefix(object, "Application ") { // while its Releases are idle, only the Application has the event
			out = append(out, object+" event Warning RolloutBlocked "+said)
		}
	}
	return out
}

func goingFrom(concerned []string) []string {
	var out []string
	for _, object := range concerned {
		out = append(out, object+" Blocked False")
	}
	return out
}

// severalApplications rolls Applications out, the first of them twice, and returns the names of the Applications and
// Releases.
func (s *fixture) severalApplications(count int) []string {
	s.Helper()
	var out []string
	for i := range count {
		app := s.application("0.0.1", 1, allIn)
		app.Name = fmt.Sprint("app-", i)
		(*app.Spec.Template.Values)["nameOverride"] = app.Name
		s.applies(app)
		out = append(out, "Application "+app.Name)
	}
	for i := range count {
		s.rolledOut(fmt.Sprint("app-", i))
	}
	app := &shipper.Application{}
	key := client.ObjectKey{Namespace: s.Namespace, Name: "app-0"}
	s.Must("reading an application", world.Management.Get(s.Ctx, key, app))
	before := app.DeepCopy()
	app.Spec.Template.Chart.Version = "0.0.2"
	s.Must("editing an application", world.Management.Patch(s.Ctx, app, client.MergeFrom(before)))
	s.Eventually("complete releases", fmt.Sprint(count+1), func() (string, error) {
		list := &shipper.ReleaseList{}
		err := world.Management.List(s.Ctx, list, client.InNamespace(s.Namespace))
		complete := 0
		for _, rel := range list.Items {
			if shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseComplete) {
				complete++
			}
		}
		return fmt.Sprint(complete), err
	})
	s.rolledOut("app-0")
	list := &shipper.ReleaseList{}
	s.Must("listing releases", world.Management.List(s.Ctx, list, client.InNamespace(s.Namespace)))
	for _, rel := range list.Items {
		out = append(out, "Release "+rel.Name)
	}
	return out
}

// passes matches the run counts of the reconcilers that handle blocks, and of the Cluster reconciler, which should be idle.
var passes = regexp.MustCompile(
	`(?m)^controller_runtime_reconcile_total\{controller="(?:application|cluster|release|rolloutblock)",.*\} (\S+)$`)

// reconcilersRest waits until these reconcilers have been idle for the duration rest.
func (s *fixture) reconcilersRest() {
	s.Helper()
	before, since := -1.0, time.Now()
	s.Eventually("passes of the reconcilers", "none for "+rest.String(), func() (string, error) {
		request, err := http.NewRequestWithContext(s.Ctx, http.MethodGet, world.Pod.Reconciler.Metrics, nil)
		if err != nil {
			return "", err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		page, err := io.ReadAll(response.Body)
		if err != nil {
			return "", err
		}
		total := 0.0
		for _, match := range passes.FindAllStringSubmatch(string(page), -1) {
			n, err := strconv.ParseFloat(match[1], 64)
			if err != nil {
				return "", err
			}
			total += n
		}
		if total != before {
			before, since = total, time.Now()
		}
		if total > 0 && time.Since(since) >= rest {
			return "none for " + rest.String(), nil
		}
		return fmt.Sprint(total), nil
	})
}

// chronicle records what watches report, and when.
type chronicle struct {
	mu    sync.Mutex
	facts []fact // not yet consumed
	news  chan struct{}
}

// fact is a condition or an event of an object, as text.
type fact struct {
	at   time.Time
	what string
}

// chronicles watches Applications, Releases and events of the test's namespace until the test ends.
func (s *fixture) chronicles() *chronicle {
	s.Helper()
	c := &chronicle{news: make(chan struct{}, 1)}
	for _, list := range []client.ObjectList{&shipper.ApplicationList{}, &shipper.ReleaseList{}, &eventsv1.EventList{}} {
		w, err := world.Management.Watch(s.Ctx, list, client.InNamespace(s.Namespace))
		s.Must("watching", err)
		s.Cleanup(w.Stop)
		go c.follow(w)
	}
	return c
}

func (c *chronicle) follow(w watch.Interface) {
	for event := range w.ResultChan() {
		var what []string
		blocked := func(kind, name string, conditions []shipper.Condition) {
			if b := shipper.FindCondition(conditions, shipper.ReleaseBlocked); b != nil {
				what = append(what, strings.TrimSpace(fmt.Sprintf("%s %s Blocked %s %s %s", kind, name, b.Status, b.Reason, b.Message)))
			}
		}
		switch o := event.Object.(type) {
		case *shipper.Application:
			blocked("Application", o.Name, o.Status.Conditions)
		case *shipper.Release:
			blocked("Release", o.Name, o.Status.Conditions)
		case *eventsv1.Event:
			what = append(what, fmt.Sprintf("%s %s event %s %s %s", o.Regarding.Kind, o.Regarding.Name, o.Type, o.Reason, o.Note))
		}
		c.mu.Lock()
		for _, one := range what {
			c.facts = append(c.facts, fact{at: time.Now(), what: one})
		}
		c.mu.Unlock()
		select {
		case c.news <- struct{}{}:
		default:
		}
	}
}

// told waits until the chronicle has all of wants, and returns when the last of them arrived. It consumes what it has read.
func (s *fixture) told(c *chronicle, wants []string) time.Time {
	s.Helper()
	deadline := time.NewTimer(env.Patience)
	defer deadline.Stop()
	for {
		last, missing := c.since(wants)
		if len(missing) == 0 {
			return last
		}
		select {
		case <-c.news:
		case <-deadline.C:
			s.Fatalf("not told within %s:\n%s", env.Patience, strings.Join(missing, "\n"))
		}
	}
}

// since returns when the last of wants arrived, and the missing ones. When none is missing it consumes them.
func (c *chronicle) since(wants []string) (last time.Time, missing []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, want := range wants {
		i := slices.IndexFunc(c.facts, func(f fact) bool { return f.what == want })
		if i < 0 {
			missing = append(missing, want)
			continue
		}
		if at := c.facts[i].at; at.After(last) {
			last = at
		}
	}
	if len(missing) == 0 {
		for _, want := range wants {
			c.consume(want)
		}
	}
	return last, missing
}

// consume drops a fact, and what the same object said of the same matter before. What others said later may be of the next block.
func (c *chronicle) consume(what string) {
	i := slices.IndexFunc(c.facts, func(f fact) bool { return f.what == what })
	matter := strings.Join(strings.Fields(what)[:3], " ") + " " // kind, name and condition or event
	kept := slices.DeleteFunc(slices.Clone(c.facts[:i+1]), func(f fact) bool { return strings.HasPrefix(f.what, matter) })
	c.facts = append(kept, c.facts[i+1:]...)
}

// TestBlockMidStepFreezesItAndLiftingResumesIt blocks while the contender's Pods are starting.
func TestBlockMidStepFreezesItAndLiftingResumesIt(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		incumbent, contender := s.stuckHalfway()
		block := s.blocks()
		s.saysBlocked(contender, block)
		asked := [][]any{s.targets(incumbent), s.targets(contender)}
		s.pulls(contender, 2)     // Pods that were requested before the block still start
		s.readyPods(incumbent, 4) // the next change does not begin
		s.endpoints(4)
		s.replaces(west, incumbent) // Pods that die are replaced, and the new ones get traffic
		s.readyPods(incumbent, 4)
		s.endpoints(4)
		if diff := cmp.Diff(asked, [][]any{s.targets(incumbent), s.targets(contender)}); diff != "" {
			t.Errorf("targets moved under a block (-before +after):\n%s", diff)
		}

		s.lifts(block)
		s.WaitsForCommand(contender, 1)
		s.readyPods(contender, 2)
		s.readyPods(incumbent, 2)
	})
}

// asked waits until each cluster's CapacityTarget requests these percentages for a Release.
func (s *fixture) asked(release, percents string) {
	s.Helper()
	s.Eventually("the capacity asked of "+release, percents, func() (string, error) {
		ct := &shipper.CapacityTarget{}
		err := world.Management.Get(s.Ctx, client.ObjectKey{Namespace: s.Namespace, Name: release}, ct)
		var all []string
		for _, c := range ct.Spec.Clusters {
			all = append(all, fmt.Sprint(c.Percent))
		}
		return strings.Join(all, " "), client.IgnoreNotFound(err)
	})
}

// replaces deletes a Pod of a Release in a cluster and waits until its replacement is ready.
func (s *fixture) replaces(cluster, release string) {
	s.Helper()
	of := []client.ListOption{client.InNamespace(s.Namespace), client.MatchingLabels{shipper.ReleaseLabel: release}}
	pods := &corev1.PodList{}
	s.Must("listing pods", world.Clusters[cluster].List(s.Ctx, pods, of...))
	if len(pods.Items) == 0 {
		s.Fatalf("%s has no pods in %s", release, cluster)
	}
	count := len(pods.Items)
	victim := &pods.Items[0]
	s.Must("deleting a pod", world.Clusters[cluster].Delete(s.Ctx, victim))
	s.Eventually("pods beside the deleted one", fmt.Sprint(count, " ready"), func() (string, error) {
		now := &corev1.PodList{}
		err := world.Clusters[cluster].List(s.Ctx, now, of...)
		ready := 0
		for i := range now.Items {
			if now.Items[i].UID != victim.UID && fleet.PodReady(&now.Items[i]) {
				ready++
			}
		}
		return fmt.Sprint(ready, " ready"), err
	})
}
