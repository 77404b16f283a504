// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/position"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// wavesRegions are the clusters of the story: one canary, then three of production.
var wavesRegions = []region{
	{"eu-1", "eu"}, {"eu-2", "eu"}, {"us-1", "us"}, {"us-2", "us"},
}

// waveStory is the fixture, with what the story of waves needs besides.
type waveStory struct {
	*fixture

	orders *orders
	// writes is how many writes of Shipper each cluster's audit log had when they were counted last.
	writes map[string]int
}

// waves shows a rollout that changes one group of clusters after another.
func waves(s *fixture) []chapter {
	w := &waveStory{fixture: s}
	return []chapter{
		{"A management cluster is set up, four application clusters join", w.joinTeams},
		{"A first Release, and an override for one cluster", w.firstRelease},
		{"The canary cluster goes through the steps, and a check measures it", w.canaryCluster},
		{"Production waits for a second person", w.approveWave},
		{"Production, two clusters at a time", w.twoAtATime},
		{"A block that names us-1 holds us-1 alone", w.blockOne},
		{"A bad image stops in the canary cluster, and is aborted", w.badImage},
	}
}

// joinTeams joins the clusters, labels the canary, and lets ann and bob work.
func (w *waveStory) joinTeams(ctx context.Context) error {
	if err := w.join(ctx); err != nil {
		return err
	}
	if _, err := w.show(ctx, w.kubectl, "label", "cluster", wavesRegions[0].cluster, "tier=canary"); err != nil {
		return err
	}
	roles := map[string][]string{
		"shipper:view": {"ann", "bob"}, "shipper:edit": {"ann"}, "shipper:approver": {"ann", "bob"},
		"edit": {"ann"}, // an override discloses what charts take from Secrets
	}
	for role, users := range roles {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: strings.ReplaceAll("team-"+role, ":", "-")},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		}
		for _, user := range users {
			binding.Subjects = append(binding.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user})
		}
		if err := w.management.Create(ctx, binding); err != nil {
			return fmt.Errorf("binding the role %s: %w", role, err)
		}
	}
	w.fact("eu-1 is the canary; ann may edit and approve, bob may approve")
	return nil
}

// applyWaves applies the Application as ann, with an image tag and more fields of its strategy.
func (w *waveStory) applyWaves(ctx context.Context, tag, more string) error {
	return w.applyByAnn(ctx, "app.yaml", fmt.Sprintf(`apiVersion: shipper.booking.com/v1alpha1
kind: Application
metadata:
  name: %s
spec:
  template:
    chart: {name: %s, repoUrl: %s, version: 0.0.1}
    clusterRequirements: {placement: {type: PickAll}}
    values: {replicaCount: 2, image: {tag: %s}}
    strategy:
      firstRelease: Immediate
      advance: Automatic%s
      steps:
      - name: half
        capacity: {contender: 100, incumbent: 100}
        traffic: {contender: 50, incumbent: 50}
        checks: [{check: orders}]
      - name: full on
        capacity: {contender: 100, incumbent: 0}
        traffic: {contender: 100, incumbent: 0}
      waves:
      - name: canary
        clusterSelector: {matchLabels: {tier: canary}}
        afterTasks: {approvals: 1}
      - name: production
        maxConcurrency: 2
`, application, service, w.charts.URL, tag, more))
}

// smaller is the override for one cluster.
const smaller = `apiVersion: shipper.booking.com/v1alpha1
kind: ResourceOverride
metadata: {name: small-us-2}
spec:
  applicationNames: [super-server]
  resources: [{group: apps, kind: Deployment}]
  rules:
  - clusterTerms: [{names: [us-2]}]
    patch: [{op: replace, path: /spec/replicas, value: 1}]
`

// firstRelease applies check, Application and override, and finds that the override changes nothing yet.
func (w *waveStory) firstRelease(ctx context.Context) error {
	w.orders = newOrders()
	w.ends = append(w.ends, w.orders.end)
	if err := w.applyByAnn(ctx, "check.yaml", w.orders.check()); err != nil {
		return err
	}
	if err := w.applyWaves(ctx, "stable", ""); err != nil {
		return err
	}
	var err error
	if w.incumbent, err = w.newRelease(ctx, 1); err != nil {
		return err
	}
	if err := w.reached(ctx, w.incumbent, "full on, complete"); err != nil {
		return err
	}
	fmt.Fprintln(w.out, indented(smaller))
	if err := w.applyByAnn(ctx, "override.yaml", smaller); err != nil {
		return err
	}
	if err := w.ready(ctx, w.incumbent, 2, 2, 2, 2); err != nil {
		return err
	}
	return w.countWrites()
}

// canaryCluster rolls an image out that takes four seconds to become ready, and follows it to the end of the first wave.
func (w *waveStory) canaryCluster(ctx context.Context) error {
	if err := w.applyWaves(ctx, "slow", ""); err != nil {
		return err
	}
	var err error
	if w.contender, err = w.newRelease(ctx, 2); err != nil {
		return err
	}
	w.orders.know(wavesRegions[0].cluster)
	if err := w.ready(ctx, w.contender, 2, 0, 0, 0); err != nil {
		return err
	}
	if err := w.advancing(ctx, w.contender, 1, shipper.AdvancingAwaitingApproval); err != nil {
		return err
	}
	if asked, want := w.orders.asked(w.contender), "eu-1"; asked != want {
		return differs("the clusters that the check measured", want, asked)
	}
	w.fact("the check of step 0 passed; it measured eu-1 alone")
	if err := w.ready(ctx, w.incumbent, 0, 2, 2, 2); err != nil {
		return err
	}
	return w.untouched("eu-2", "us-1", "us-2")
}

// approveWave is refused for the user who asked for the Release, and admitted for another.
func (w *waveStory) approveWave(ctx context.Context) error {
	if _, err := w.show(ctx, w.shipperctl, "rollout", "status", application, "-n", namespace); err != nil {
		return err
	}
	words := []string{`user "ann" has asked for Release ` + w.contender + ": another user has to approve it"}
	if err := w.refused(ctx, w.shipperctl, words, "rollout", "approve", application, "-n", namespace, "--as", "ann"); err != nil {
		return err
	}
	if err := w.advancing(ctx, w.contender, 1, shipper.AdvancingAwaitingApproval); err != nil {
		return err
	}
	if err := w.untouched("eu-2", "us-1", "us-2"); err != nil {
		return err
	}
	w.fact("the user who asked for the Release cannot approve it, and production is as it was")
	return nil
}

// twoAtATime approves as bob, and counts how many clusters of production get new Pods at a time.
func (w *waveStory) twoAtATime(ctx context.Context) error {
	stop := w.watchProduction(ctx)
	_, err := w.show(ctx, w.shipperctl, "rollout", "approve", application, "-n", namespace, "--as", "bob")
	since := time.Now()
	if err == nil {
		err = w.await(ctx, patience, "the wave of "+w.contender, "wave 1", func(ctx context.Context) (string, error) {
			rel := &shipper.Release{}
			err := w.management.Get(ctx, client.ObjectKey{Namespace: namespace, Name: w.contender}, rel)
			return fmt.Sprintf("wave %d", position.Of(rel).Wave), err
		})
	}
	if err == nil {
		w.fact("the wave production has begun, %.1f s after bob has approved", time.Since(since).Seconds())
		err = w.ready(ctx, w.contender, 2, 2, 2, 1)
	}
	seen := stop()
	if err := errors.Join(err, seen.err); err != nil {
		return err
	}
	if seen.most != 2 {
		return differs("how many clusters of production got new Pods at the same time", "2", fmt.Sprint(seen.most))
	}
	w.fact("at most two clusters of production got new Pods at the same time, of %d looks at their Pods", seen.looks)
	if err := w.advancing(ctx, w.contender, 0, shipper.AdvancingChecking); err != nil {
		return err
	}
	w.fact("the check holds production at step 0: no figures of it are there yet")
	out, err := w.show(ctx, w.kubectl, "get", "appr", "-o",
		"custom-columns=RELEASE:.spec.release,DECISION:.spec.decision,BY:.spec.by.username")
	if err == nil && (strings.Count(out, w.contender) != 1 || !strings.Contains(out, "bob")) {
		err = differs("the Approvals of "+w.contender, "one, by bob", out)
	}
	return err
}

// blockOne blocks us-1, then lets the check pass, and ends the block when the others are through.
func (w *waveStory) blockOne(ctx context.Context) error {
	const block = "us-1-network"
	if _, err := w.show(ctx, w.shipperctl, "block", "create", block, "-g", "--clusters", "us-1", "--message",
		"the network of us-1 is being replaced"); err != nil {
		return err
	}
	if err := w.await(ctx, patience, "whether the block is active", "true", func(ctx context.Context) (string, error) {
		rb := &shipper.RolloutBlock{}
		err := w.management.Get(ctx, client.ObjectKey{Namespace: shipper.GlobalBlocksNamespace, Name: block}, rb)
		return fmt.Sprint(rb.Status.Active != nil && *rb.Status.Active), err
	}); err != nil {
		return err
	}
	if err := w.countWrites(); err != nil {
		return err
	}
	w.orders.know("eu-2", "us-1", "us-2")
	w.fact("the block is active; now the orders of production are known, and the check can pass")
	if err := w.advancing(ctx, w.contender, 1, shipper.AdvancingHeldByBlock); err != nil {
		return err
	}
	if err := w.waveIs(ctx, "blocked", "us-1"); err != nil {
		return err
	}
	if err := w.ready(ctx, w.incumbent, 0, 0, 2, 0); err != nil {
		return err
	}
	if err := w.untouched("us-1"); err != nil {
		return err
	}
	if _, err := w.show(ctx, w.shipperctl, "rollout", "status", application, "-n", namespace); err != nil {
		return err
	}
	w.fact("eu-2 and us-2 are at the last step, us-1 stays where the block found it")
	if _, err := w.show(ctx, w.shipperctl, "block", "lift", block, "-g"); err != nil {
		return err
	}
	if err := w.reached(ctx, w.contender, "full on, complete"); err != nil {
		return err
	}
	if err := w.ready(ctx, w.incumbent, 0, 0, 0, 0); err != nil {
		return err
	}
	if err := w.serves(ctx, w.contender, 2, 2, 2, 1); err != nil {
		return err
	}
	w.fact("us-1 followed; us-2 has one Pod, as its override says")
	return nil
}

// badImage has an image that cannot be pulled. The deadline aborts it before any other cluster is changed.
func (w *waveStory) badImage(ctx context.Context) error {
	if err := w.countWrites(); err != nil {
		return err
	}
	if err := w.applyWaves(ctx, "broken", "\n      progressDeadline: 30s\n      onFailure: Abort"); err != nil {
		return err
	}
	w.incumbent = w.contender
	var err error
	if w.contender, err = w.newRelease(ctx, 3); err != nil {
		return err
	}
	if err := w.waveIs(ctx, "moving", "eu-1"); err != nil {
		return err
	}
	w.fact("the clock of the deadline runs for 30 s")
	if err := w.await(ctx, patience, "Releases of the Application", "2", func(ctx context.Context) (string, error) {
		history, err := w.history(ctx, application)
		return fmt.Sprint(len(history)), err
	}); err != nil {
		return err
	}
	w.fact("%s had no ready Pod in eu-1 for 30 s, and was aborted", w.contender)
	if err := w.await(ctx, patience, "what is left of the contender", w.each("nothing"), w.leftovers(w.contender)); err != nil {
		return err
	}
	if err := w.ready(ctx, w.incumbent, 2, 2, 2, 1); err != nil {
		return err
	}
	if err := w.serves(ctx, w.incumbent, 2, 2, 2, 1); err != nil {
		return err
	}
	if err := w.untouched("eu-2", "us-1", "us-2"); err != nil {
		return err
	}
	_, err = w.show(ctx, w.kubectl, "get", "events", "--field-selector", "reason=ProgressDeadlineExceeded", "-o",
		"custom-columns=RELEASE:.involvedObject.name,MESSAGE:.message")
	return err
}

// perClusterIs is what perCluster shows for these numbers.
func (w *waveStory) perClusterIs(numbers []int) string {
	var all []string
	for i, a := range w.applications {
		all = append(all, fmt.Sprintf("%s: %d", a.name, numbers[i]))
	}
	return strings.Join(all, ", ")
}

// ready waits until a Release has so many ready Pods in the clusters.
func (w *waveStory) ready(ctx context.Context, release string, numbers ...int) error {
	want := w.perClusterIs(numbers)
	err := w.await(ctx, patience, "ready Pods of "+release, want, w.readyPods(release))
	if err == nil {
		w.fact("ready Pods of %s: %s", release, want)
	}
	return err
}

// serves waits until the Service has so many endpoints in the clusters, all of a Release.
func (w *waveStory) serves(ctx context.Context, release string, numbers ...int) error {
	want := w.perClusterIs(numbers)
	err := w.await(ctx, patience, "endpoints of "+service, want, w.endpoints(release))
	if err == nil {
		w.fact("endpoints of service %s: %s, all of %s", service, want, release)
	}
	return err
}
