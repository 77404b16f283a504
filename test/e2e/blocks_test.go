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
	"shipper.dev/shipper/test/fleet"
)

const (
	// promptness is how soon everything concerned says that a block came or went.
	promptness = time.Second
	// rest is how long the reconcilers do nothing at all before the first block comes: what a timer drives would show.
	rest = 5 * time.Second
)

// TestBlocksAreToldToAllWithinASecond is not parallel: a global block stops every other test. The times are those at which
// watches tell of conditions and events. A machine that is busy may be late once or twice; a timer is late most of the time.
func TestBlocksAreToldToAllWithinASecond(t *testing.T) {
	s := begin(t, []string{west, east}, []string{westRegion, eastRegion})
	concerned := s.severalApplications(3)
	s.awaitsATime() // a block that waits for its time, too, polls for nothing
	s.reconcilersRest()
	c := s.chronicles()

	var times []time.Duration
	for round := range 5 {
		rb := s.globalBlock(fmt.Sprintf("%s-%d", s.namespace, round))
		began := time.Now()
		s.must("creating the block", world.management.Create(s.ctx, rb))
		times = append(times, s.told(c, comingOf(rb, concerned)).Sub(began))
		began = time.Now()
		s.must("lifting the block", world.management.Delete(s.ctx, rb))
		times = append(times, s.told(c, goingFrom(concerned)).Sub(began))
	}
	s.prompt("blocks that came and went", times)
	s.prompt("freezes that began and ended", s.freezesAfterAnother(c, concerned, 3))
}

// prompt fails when it mostly took too long until all had said so.
func (s *fixture) prompt(what string, times []time.Duration) {
	s.Helper()
	slices.Sort(times)
	s.Logf("%s were told to all after %v", what, times)
	if median := times[len(times)/2]; median > promptness {
		s.Errorf("%s: half of the times it took more than %s until all had said so, want %s at most", what, median, promptness)
	}
}

// globalBlock is one that is not made yet.
func (s *fixture) globalBlock(name string) *shipper.RolloutBlock {
	return &shipper.RolloutBlock{
		ObjectMeta: metav1.ObjectMeta{Namespace: shipper.GlobalBlocksNamespace, Name: name},
		Spec:       shipper.RolloutBlockSpec{Message: "for a moment", Author: shipper.RolloutBlockAuthor{Type: "user", Name: "testUser"}},
	}
}

// comingOf is what all say of a global block that comes into effect, goingFrom when there is none any more.
func comingOf(rb *shipper.RolloutBlock, concerned []string) []string {
	said := "rollouts blocked by: " + rb.Namespace + "/" + rb.Name
	var out []string
	for _, object := range concerned {
		out = append(out, object+" Blocked True RolloutsBlocked "+said)
		if strings.HasPrefix(object, "Application ") { // which tells for its Releases, too, when they rest
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

// severalApplications rolls Applications out, the first of them twice, and names them and their Releases.
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
	key := client.ObjectKey{Namespace: s.namespace, Name: "app-0"}
	s.must("reading an application", world.management.Get(s.ctx, key, app))
	before := app.DeepCopy()
	app.Spec.Template.Chart.Version = "0.0.2"
	s.must("editing an application", world.management.Patch(s.ctx, app, client.MergeFrom(before)))
	s.eventually("complete releases", fmt.Sprint(count+1), func() (string, error) {
		list := &shipper.ReleaseList{}
		err := world.management.List(s.ctx, list, client.InNamespace(s.namespace))
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
	s.must("listing releases", world.management.List(s.ctx, list, client.InNamespace(s.namespace)))
	for _, rel := range list.Items {
		out = append(out, "Release "+rel.Name)
	}
	return out
}

// passes finds how often those reconcilers have run that blocks concern, and that of clusters, which has nothing to do.
var passes = regexp.MustCompile(
	`(?m)^controller_runtime_reconcile_total\{controller="(?:application|cluster|release|rolloutblock)",.*\} (\S+)$`)

// reconcilersRest waits until the reconcilers that blocks concern have done nothing for a while. Nothing that polls rests.
func (s *fixture) reconcilersRest() {
	s.Helper()
	before, since := -1.0, time.Now()
	s.eventually("passes of the reconcilers", "none for "+rest.String(), func() (string, error) {
		request, err := http.NewRequestWithContext(s.ctx, http.MethodGet, world.pod.Reconciler.Metrics, nil)
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

// chronicle remembers when watches told of what.
type chronicle struct {
	mu    sync.Mutex
	facts []fact
	read  int // facts that told has used
	news  chan struct{}
}

// fact is a condition or an event of an object, in words.
type fact struct {
	at   time.Time
	what string
}

// chronicles watches Applications, Releases and events of the story's namespace until the test ends.
func (s *fixture) chronicles() *chronicle {
	s.Helper()
	c := &chronicle{news: make(chan struct{}, 1)}
	for _, list := range []client.ObjectList{&shipper.ApplicationList{}, &shipper.ReleaseList{}, &eventsv1.EventList{}} {
		w, err := world.management.Watch(s.ctx, list, client.InNamespace(s.namespace))
		s.must("watching", err)
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

// told waits until all of wants were told since the last time, and returns when the last of them was.
func (s *fixture) told(c *chronicle, wants []string) time.Time {
	s.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		last, missing := c.since(wants)
		if len(missing) == 0 {
			return last
		}
		select {
		case <-c.news:
		case <-deadline.C:
			s.Fatalf("not told within %s:\n%s", patience, strings.Join(missing, "\n"))
		}
	}
}

// since reports when the last of wants was told, and what is missing. What was told before all were counts for nothing later.
func (c *chronicle) since(wants []string) (last time.Time, missing []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, want := range wants {
		i := slices.IndexFunc(c.facts[c.read:], func(f fact) bool { return f.what == want })
		if i < 0 {
			missing = append(missing, want)
			continue
		}
		if at := c.facts[c.read+i].at; at.After(last) {
			last = at
		}
	}
	if len(missing) == 0 {
		c.read = len(c.facts)
	}
	return last, missing
}

// TestBlockMidStepFreezesItAndLiftingResumesIt blocks while the contender's Pods are starting.
func TestBlockMidStepFreezesItAndLiftingResumesIt(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		incumbent, contender := s.stuckHalfway()
		block := s.blocks()
		s.saysBlocked(contender, block)
		asked := [][]any{s.targets(incumbent), s.targets(contender)}
		s.pulls(contender, 2)     // what was requested already goes on
		s.readyPods(incumbent, 4) // what was not, does not begin
		s.endpoints(4)
		s.replaces(west, incumbent) // and Pods that die come back, into traffic as well
		s.readyPods(incumbent, 4)
		s.endpoints(4)
		if diff := cmp.Diff(asked, [][]any{s.targets(incumbent), s.targets(contender)}); diff != "" {
			t.Errorf("targets moved under a block (-before +after):\n%s", diff)
		}

		s.lifts(block)
		s.waitsForCommand(contender, 1)
		s.readyPods(contender, 2)
		s.readyPods(incumbent, 2)
	})
}

// asked waits until the capacity asked of a release is that in each cluster.
func (s *fixture) asked(release, percents string) {
	s.Helper()
	s.eventually("the capacity asked of "+release, percents, func() (string, error) {
		ct := &shipper.CapacityTarget{}
		err := world.management.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: release}, ct)
		var all []string
		for _, c := range ct.Spec.Clusters {
			all = append(all, fmt.Sprint(c.Percent))
		}
		return strings.Join(all, " "), client.IgnoreNotFound(err)
	})
}

// replaces deletes one Pod of a release in a cluster and waits until another has its place.
func (s *fixture) replaces(cluster, release string) {
	s.Helper()
	of := []client.ListOption{client.InNamespace(s.namespace), client.MatchingLabels{shipper.ReleaseLabel: release}}
	pods := &corev1.PodList{}
	s.must("listing pods", world.clusters[cluster].List(s.ctx, pods, of...))
	if len(pods.Items) == 0 {
		s.Fatalf("%s has no pods in %s", release, cluster)
	}
	count := len(pods.Items)
	victim := &pods.Items[0]
	s.must("deleting a pod", world.clusters[cluster].Delete(s.ctx, victim))
	s.eventually("pods beside the deleted one", fmt.Sprint(count, " ready"), func() (string, error) {
		now := &corev1.PodList{}
		err := world.clusters[cluster].List(s.ctx, now, of...)
		ready := 0
		for i := range now.Items {
			if now.Items[i].UID != victim.UID && fleet.PodReady(&now.Items[i]) {
				ready++
			}
		}
		return fmt.Sprint(ready, " ready"), err
	})
}
