// SPDX-License-Identifier: Apache-2.0

package native

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"shipper.dev/shipper/apis/rules/check"
	"shipper.dev/shipper/apis/rules/shipyard"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// test runs the tests of the chart in each cluster of the Release, or the Job of its properties. Neither begins under a block, for both run
// new Pods.
func test(o *observed) action {
	rel := o.delivered()
	if out := o.notServing(rel); out != nil {
		return *out
	}
	_, job := o.of.Properties["job"]
	begun := o.checks != nil || !job && rel.Annotations[shipper.ReleaseTestAnnotation] == o.task.EventID
	if blocked := blockedBy(rel.Status.Conditions, shipper.ReleaseBlocked); blocked != "" && !begun { // as of Checks with tests or a Job
		return action{outcome: shipyard.Outcome{Blocked: blocked}}
	}
	switch {
	case job:
		return o.job(rel)
	case !begun:
		out := waits("asks for the tests of Release %s", rel.Name)
		out.patch = patchOf(rel, map[string]any{"metadata": map[string]any{
			"annotations": map[string]any{shipper.ReleaseTestAnnotation: o.task.EventID},
		}})
		return out
	}
	return o.chartTests()
}

// notServing is what a task that measures a Release does when there is none, or it is not the newest; nil when there is.
func (o *observed) notServing(rel *shipper.Release) *action {
	var out action
	switch newest := o.newest(); {
	case rel == nil:
		out = fails("Application %s has no Release", o.key)
	case newest == nil || newest.Name != rel.Name:
		out = fails("Release %s is not the newest any more", rel.Name)
	default:
		return nil
	}
	return &out
}

// chartTests says how far the tests of the chart are.
func (o *observed) chartTests() action {
	if o.installation == nil {
		return waits("the installation is awaited")
	}
	var failed, awaited []string
	for _, cluster := range slices.Sorted(slices.Values(o.installation.Spec.Clusters)) {
		at := slices.IndexFunc(o.installation.Status.Clusters, func(c shipper.ClusterInstallationStatus) bool { return c.Name == cluster })
		var is *shipper.TestRun
		if at >= 0 {
			is = o.installation.Status.Clusters[at].Test
		}
		switch {
		case is == nil || is.Request != o.task.EventID:
			awaited = append(awaited, cluster)
		case is.Phase == shipper.HookHasFailed:
			failed = append(failed, fmt.Sprintf("%s: %s", cluster, is.Message))
		case is.Phase != shipper.HookSucceeded:
			awaited = append(awaited, cluster)
		}
	}
	switch {
	case len(awaited) > 0:
		return waits("the tests run in %s", strings.Join(awaited, ", "))
	case len(failed) > 0:
		out := fails("the tests failed: %s", strings.Join(failed, "; "))
		out.outcome.Completion = shipper.CompletionSucceeded
		return out
	}
	return passes("", nil)
}

// checksName is the name of the CheckTarget of a task: the same after a crash, another in a retry.
func checksName(task *shipper.TaskStatus) string { return "run-" + task.EventID }

// job runs the Job of the properties in each cluster of the Release, as a Check with a Job is made.
func (o *observed) job(rel *shipper.Release) action {
	if o.checks == nil {
		raw, err := json.Marshal(o.of.Properties["job"])
		if err != nil {
			return fails("job: %s", err)
		}
		run := shipper.CheckRun{
			Name: "test", From: o.run.Namespace + "/" + o.run.Name, Count: 1,
			Check: shipper.CheckSpec{Job: &runtime.RawExtension{Raw: raw}, Timeout: o.of.Timeout},
		}
		return o.measure(rel, []shipper.CheckRun{run})
	}
	switch state := check.StateOf(o.checks); {
	case state.Failed != nil:
		out := fails("%s", state.Failed)
		out.outcome.Completion = shipper.CompletionSucceeded
		return out
	case state.Undecided != nil:
		return fails("%s", state.Undecided)
	case !state.Passed:
		return waits("%s", state.Awaited)
	}
	return passes("", nil)
}

// measure begins checks of a Release.
func (o *observed) measure(rel *shipper.Release, checks []shipper.CheckRun) action {
	out := waits("begins %d checks of Release %s", len(checks), rel.Name)
	labels := map[string]string{}
	for key, value := range rel.Labels {
		labels[key] = value
	}
	out.begin = &shipper.CheckTarget{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: rel.Namespace, Name: checksName(o.task), Labels: labels,
			OwnerReferences: []metav1.OwnerReference{stamp.ReleaseReference(rel)},
		},
		Spec: shipper.CheckTargetSpec{
			Run: 1, Step: rel.Spec.TargetStep, StartTime: metav1.NewTime(o.now), Clusters: waves.Reached(rel, stamp.Clusters(rel)),
			Checks:    checks,
			Incumbent: o.incumbent(),
		},
	}
	return out
}

// incumbent is the Release that the newest replaces; empty if there is none.
func (o *observed) incumbent() string {
	rels := o.staying()
	if i := slices.Index(strategy.Roles(rels), strategy.Incumbent); i >= 0 {
		return rels[i].Name
	}
	return ""
}

// evaluate measures Checks, and passes by the weight of those that passed.
func evaluate(o *observed) action {
	wanted, err := shipyard.EvaluationOf(o.of.Properties)
	if err != nil {
		return fails("%s", err)
	}
	if len(wanted.Checks) == 0 {
		return passes(shipyard.NothingMeasured, nil)
	}
	rel := o.delivered()
	if out := o.notServing(rel); out != nil {
		return *out
	}
	if o.checks == nil {
		spec, err := check.Plan(check.Request{
			Release: rel, Incumbent: o.incumbent(), Shared: o.shared, Find: o.find, Checks: wanted.StepChecks(),
		}, o.now)
		if err != nil {
			return fails("%s", err)
		}
		for i := range spec.Checks {
			if check.Once(&spec.Checks[i].Check) {
				return fails("check %s runs tests or a Job: that is what the task test is for", spec.Checks[i].Name)
			}
		}
		return o.measure(rel, spec.Checks)
	}
	state := check.StateOf(o.checks)
	phases := map[string]shipper.CheckPhase{}
	for _, one := range state.Checks {
		phases[one.Name] = one.Phase
		if !one.Phase.Decided() {
			return waits("%s", state.Awaited)
		}
	}
	return judged(o.of.Name, wanted, phases, state)
}

// judged is the result of checks that are all decided.
func judged(space string, wanted shipyard.Evaluation, phases map[string]shipper.CheckPhase, state check.State) action {
	score, result, message := wanted.Judge(phases)
	if state.Undecided != nil && result == shipper.ResultFail {
		out := fails("%s", state.Undecided)
		out.outcome.Completion = shipper.CompletionUnknown
		return out
	}
	out := passes(message, shipper.FreeForm{space: map[string]any{"score": int64(score)}})
	out.outcome.Result = result
	return out
}
