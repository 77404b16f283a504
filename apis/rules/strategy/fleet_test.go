// SPDX-License-Identifier: Apache-2.0

package strategy_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/check"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	"shipper.dev/shipper/apis/rules/traffic"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// run is the part of one Release in one cluster that runs.
type run struct{ pods, traffic int32 }

// app is one simulated Application: its Releases and, for each of them, the Pods that run in each cluster.
type app struct {
	releases []*strategy.Release
	// leaving are those being deleted that are kept until others serve in their place.
	leaving []*strategy.Release
	// keeps makes covered Releases leave as others do; otherwise they go at once.
	keeps bool
	runs  map[string]map[string]*run
	// down are the clusters that do not answer; broken the Releases whose Pods never become available, also as
	// web-1 in b.
	down, broken map[string]bool
	// keepsUnlisted leaves what runs in clusters that an InstallationTarget never listed.
	keepsUnlisted bool
	// preview are the clusters that have a preview Service.
	preview map[string]bool
	// pace is how many Pods a cluster starts in one tick; all of them when it is 0.
	pace    int32
	blocked string
	// blockedIn are the clusters that blocks hold alone.
	blockedIn map[string]string
	// checks is how far those of the newest Release's step are; nil before they begin.
	checks *check.State
	// approvals are those of the newest Release.
	approvals []shipper.Approval
	// returning is true between the deletion of the newest Release and the application reconciler's reaction.
	returning bool
	now       time.Time
	plan      strategy.Plan
	serial    int
}

func newApp() *app {
	return &app{
		runs: map[string]map[string]*run{}, down: map[string]bool{}, broken: map[string]bool{}, now: time.Unix(0, 0),
	}
}

func step(name string, capacityI, capacityC, trafficI, trafficC int32) shipper.RolloutStrategyStep {
	return shipper.RolloutStrategyStep{
		Name:     name,
		Capacity: shipper.RolloutStrategyStepValue{Incumbent: capacityI, Contender: capacityC},
		Traffic:  shipper.RolloutStrategyStepValue{Incumbent: trafficI, Contender: trafficC},
	}
}

var (
	allIn    = []shipper.RolloutStrategyStep{step("full on", 0, 100, 0, 100)}
	vanguard = []shipper.RolloutStrategyStep{
		step("staging", 100, 1, 100, 0), step("50/50", 50, 50, 50, 50), step("full on", 0, 100, 0, 100),
	}
)

// release makes a new newest Release, scheduled, with nothing asked for yet.
func (a *app) release(steps []shipper.RolloutStrategyStep, replicas int32, clusters ...string) *strategy.Release {
	rel := &shipper.Release{}
	rel.Namespace, rel.Name, rel.Generation = "default", fmt.Sprintf("web-%d", a.serial), 1
	rel.Annotations = map[string]string{
		shipper.ReleaseGenerationAnnotation: strconv.Itoa(a.serial),
		shipper.ReleaseClustersAnnotation:   strings.Join(clusters, ","),
	}
	rel.Spec.Environment.Strategy = &shipper.RolloutStrategy{Steps: steps}
	a.serial++
	rel.Status.ObservedGeneration = 1 // a status is written in the pass that makes the targets
	r := &strategy.Release{Release: rel}
	schedule(r, replicas, clusters)
	a.runs[rel.Name] = map[string]*run{}
	a.releases = append(a.releases, r)
	return r
}

// schedule gives a Release new targets, which leave everything as it is.
func schedule(r *strategy.Release, replicas int32, clusters []string) {
	r.Installation, r.Capacity, r.Traffic = &shipper.InstallationTarget{}, &shipper.CapacityTarget{}, &shipper.TrafficTarget{}
	for _, o := range []metav1.Object{r.Installation, r.Capacity, r.Traffic} {
		o.SetName(r.Release.Name)
		o.SetGeneration(1)
	}
	r.Installation.Spec = shipper.InstallationTargetSpec{Clusters: clusters, CanOverride: true}
	for _, c := range clusters {
		r.Capacity.Spec.Clusters = append(r.Capacity.Spec.Clusters,
			shipper.ClusterCapacityTarget{Name: c, TotalReplicaCount: replicas, AsFound: true})
		r.Traffic.Spec.Clusters = append(r.Traffic.Spec.Clusters, shipper.ClusterTrafficTarget{Name: c, AsFound: true})
	}
}

// restore simulates the loss of the management cluster and its restoration: all targets are new, and statuses are restored or
// not.
func (a *app) restore(status bool) {
	for _, r := range a.releases {
		schedule(r, r.Capacity.Spec.Clusters[0].TotalReplicaCount, stamp.Clusters(r.Release))
		if !status {
			r.Release.Status = shipper.ReleaseStatus{}
		}
	}
}

// remove deletes a Release and all its Pods.
func (a *app) remove(name string) {
	a.releases = slices.DeleteFunc(a.releases, func(r *strategy.Release) bool { return r.Release.Name == name })
	delete(a.runs, name)
}

func (a *app) newest() *shipper.Release { return a.releases[len(a.releases)-1].Release }

func (a *app) observed() strategy.Observed {
	o := strategy.Observed{
		Blocked: a.blocked, Returning: a.returning, Checks: a.checks, BlockedIn: a.blockedIn, Approvals: a.approvals,
	}
	for _, r := range a.releases {
		o.Releases = append(o.Releases, *r)
	}
	for _, r := range a.leaving {
		o.Leaving = append(o.Leaving, *r)
	}
	return o
}

// reconcile makes a plan and carries it out.
func (a *app) reconcile() {
	a.plan = strategy.Make(a.observed(), metav1.NewTime(a.now))
	for i, outcome := range a.plan.Outcomes {
		a.releases[i].Release.Status = outcome.Status
		carryOut(a.releases[i], outcome.Write)
	}
	var gone []string
	for i, departure := range a.plan.Leaving {
		a.leaving[i].Release.Status = departure.Status
		carryOut(a.leaving[i], departure.Write)
		if departure.Ready {
			gone = append(gone, a.leaving[i].Release.Name)
		}
	}
	for _, name := range gone {
		a.leaving = slices.DeleteFunc(a.leaving, func(r *strategy.Release) bool { return r.Release.Name == name })
		delete(a.runs, name)
	}
	for _, name := range a.plan.Covered {
		if a.keeps {
			a.leave(name)
		} else {
			a.remove(name)
		}
	}
}

// carryOut writes what a plan wants of the targets of a Release.
func carryOut(r *strategy.Release, w strategy.Write) {
	if w.Installation != nil {
		r.Installation.Spec, r.Installation.Generation = *w.Installation, r.Installation.Generation+1
	}
	if w.Capacity != nil {
		r.Capacity.Spec, r.Capacity.Generation = *w.Capacity, r.Capacity.Generation+1
	}
	if w.Traffic != nil {
		r.Traffic.Spec, r.Traffic.Generation = *w.Traffic, r.Traffic.Generation+1
	}
}

// all are the Releases that are there, those being deleted too.
func (a *app) all() []*strategy.Release { return slices.Concat(a.releases, a.leaving) }

// leave deletes a Release, which goes when others serve in its place.
func (a *app) leave(name string) {
	i := slices.IndexFunc(a.releases, func(r *strategy.Release) bool { return r.Release.Name == name })
	a.leaving = append(a.leaving, a.releases[i])
	a.releases = slices.Delete(a.releases, i, i+1)
}

// work lets installation, capacity and traffic do what was requested, as far as clusters answer.
func (a *app) work() {
	a.now = a.now.Add(time.Second)
	for _, r := range a.all() {
		a.install(r)
		a.scale(r)
	}
	for _, r := range a.all() {
		a.shift(r)
	}
}

func (a *app) install(r *strategy.Release) {
	s := &r.Installation.Status
	s.ObservedGeneration, s.Clusters = r.Installation.Generation, nil
	for name := range a.runs[r.Release.Name] {
		if !slices.Contains(r.Installation.Spec.Clusters, name) && !a.keepsUnlisted {
			delete(a.runs[r.Release.Name], name)
		}
	}
	verdicts := map[string]string{}
	for _, name := range r.Installation.Spec.Clusters {
		verdicts[name] = ""
		if a.down[name] {
			verdicts[name] = "ClusterUnreachable no answer"
		} else if a.runs[r.Release.Name][name] == nil {
			a.runs[r.Release.Name][name] = &run{}
		}
		s.Clusters = append(s.Clusters, shipper.ClusterInstallationStatus{Name: name, Conditions: conditions(verdicts[name])})
	}
	s.Conditions = summary(verdicts)
}

func (a *app) scale(r *strategy.Release) {
	s := &r.Capacity.Status
	s.ObservedGeneration, s.Clusters = r.Capacity.Generation, nil
	verdicts := map[string]string{}
	for _, c := range r.Capacity.Spec.Clusters {
		here, desired := a.runs[r.Release.Name][c.Name], (c.TotalReplicaCount*c.Percent+99)/100
		if c.AsFound && here != nil {
			desired = here.pods
		}
		verdicts[c.Name] = ""
		switch {
		case a.down[c.Name]:
			verdicts[c.Name] = "ClusterUnreachable no answer"
		case here == nil:
			verdicts[c.Name] = "MissingDeployment nothing installed"
		default:
			a.start(r.Release.Name, c.Name, here, desired)
			if here.pods != desired {
				verdicts[c.Name] = fmt.Sprintf("InProgress %d/%d", here.pods, desired)
			}
		}
		status := shipper.ClusterCapacityStatus{Name: c.Name, Conditions: conditions(verdicts[c.Name])}
		if here != nil {
			status.AvailableReplicas = here.pods
		}
		s.Clusters = append(s.Clusters, status)
	}
	s.Conditions = summary(verdicts)
}

func (a *app) start(release, cluster string, here *run, desired int32) {
	switch {
	case here.pods > desired:
		here.pods = desired
	case a.broken[release], a.broken[release+" in "+cluster]:
	case a.pace > 0:
		here.pods = min(desired, here.pods+a.pace)
	default:
		here.pods = desired
	}
}

func (a *app) shift(r *strategy.Release) {
	s := &r.Traffic.Status
	s.ObservedGeneration, s.Clusters = r.Traffic.Generation, nil
	verdicts := map[string]string{}
	for _, c := range r.Traffic.Spec.Clusters {
		verdicts[c.Name] = ""
		status := shipper.ClusterTrafficStatus{Name: c.Name}
		if a.preview[c.Name] {
			status.Preview = "web-preview"
		}
		if a.down[c.Name] {
			verdicts[c.Name] = "ClusterUnreachable no answer"
		} else if here := a.runs[r.Release.Name][c.Name]; here != nil && c.AsFound {
			here.traffic = min(here.traffic, here.pods)
			status.AchievedTraffic = a.found(c.Name, here)
		} else if here != nil {
			here.traffic = a.share(c, here)
		}
		status.Conditions = conditions(verdicts[c.Name])
		s.Clusters = append(s.Clusters, status)
	}
	s.Conditions = summary(verdicts)
}

// found is the traffic that is reported of a Release without a requested weight.
func (a *app) found(cluster string, here *run) uint32 {
	var all, inTraffic int
	for _, r := range a.all() {
		if other := a.runs[r.Release.Name][cluster]; other != nil {
			all, inTraffic = all+int(other.pods), inTraffic+int(min(other.traffic, other.pods))
		}
	}
	return traffic.Found(int(here.traffic), int(here.pods), all, inTraffic)
}

// share is how many of a Release's Pods its weight puts in traffic.
func (a *app) share(c shipper.ClusterTrafficTarget, here *run) int32 {
	if sole := a.sole(c.Name); sole != "" {
		if a.runs[sole][c.Name] != here {
			return 0
		}
		return here.pods
	}
	var all, weights int64
	for _, r := range a.all() {
		if other := a.runs[r.Release.Name][c.Name]; other != nil {
			all += int64(other.pods)
		}
		for _, t := range r.Traffic.Spec.Clusters {
			if t.Name == c.Name {
				weights += int64(t.Weight)
			}
		}
	}
	if weights == 0 {
		return 0
	}
	return min(here.pods, int32((all*int64(c.Weight)+weights-1)/weights))
}

// sole is the Release that has all traffic of a cluster at once; empty when none has. One without Pods takes nothing from others.
func (a *app) sole(cluster string) string {
	for _, r := range slices.Backward(a.all()) {
		run := a.runs[r.Release.Name][cluster]
		for _, c := range r.Traffic.Spec.Clusters {
			if c.Name == cluster && c.Sole && c.Weight > 0 && run != nil && run.pods > 0 {
				return r.Release.Name
			}
		}
	}
	return ""
}

// conditions are those of one cluster; verdict says what is wrong with it.
func conditions(verdict string) []shipper.Condition {
	ready, operational := corev1.ConditionTrue, corev1.ConditionTrue
	if verdict != "" {
		ready = corev1.ConditionFalse
	}
	if strings.HasPrefix(verdict, shipper.ClusterUnreachable) {
		operational = corev1.ConditionFalse
	}
	return []shipper.Condition{
		{Type: shipper.TargetOperational, Status: operational}, {Type: shipper.TargetReady, Status: ready, Message: verdict},
	}
}

func summary(verdicts map[string]string) []shipper.Condition {
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(verdicts)) {
		if verdicts[name] != "" {
			wrong = append(wrong, name+": "+verdicts[name])
		}
	}
	c := shipper.Condition{Type: shipper.TargetReady, Status: corev1.ConditionTrue}
	if len(wrong) > 0 {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, shipper.ClustersNotReady, strings.Join(wrong, "; ")
	}
	return []shipper.Condition{c}
}
