// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// ReleaseOf is the name of the Release that a target is of: its own name, unless a SequenceRun evaluates or tests a Release.
func ReleaseOf(target *shipper.CheckTarget) string {
	return cmp.Or(target.Labels[shipper.ReleaseLabel], target.Name)
}

// Current reports whether a run is the one of a Release's requested step, or of a SequenceRun; target may be nil.
func Current(target *shipper.CheckTarget, rel *shipper.Release) bool {
	if target != nil && target.Name != ReleaseOf(target) {
		return stamp.OwnedBy(target, rel)
	}
	return target != nil && stamp.OwnedBy(target, rel) && target.Spec.Step == rel.Spec.TargetStep &&
		target.Spec.Move == stamp.Moved(rel).Count && slices.Equal(target.Spec.Clusters, waves.Measured(rel, stamp.Clusters(rel))) &&
		target.Spec.Retry == rel.Annotations[shipper.ReleaseChecksRetryAnnotation]
}

// Of are the checks of a Release's requested step. A Release that was made at its last step, by a rollback at once or as the first of its
// Application, has none: it has passed before, or there is nothing that it could replace.
func Of(rel *shipper.Release) []shipper.StepCheck {
	s := rel.Spec.Environment.Strategy
	if last := s.LastStep(); last > 0 && rel.Spec.TargetStep == last && stamp.Moved(rel).Count == 0 {
		return nil
	}
	if position.HasWaves(rel) && len(waves.Measured(rel, stamp.Clusters(rel))) == 0 {
		return nil // an empty wave has nothing to measure, nor has one that failed everywhere
	}
	return s.ChecksIn(position.Of(rel).Wave, rel.Spec.TargetStep)
}

// Request is what a new run is made of.
type Request struct {
	Release *shipper.Release
	// Incumbent is the Release that the contender is compared with; empty when there is none.
	Incumbent string
	// Shared is the namespace with the Checks that all share.
	Shared string
	// Find returns a Check; nil when there is none.
	Find func(types.NamespacedName) *shipper.Check
	// Last is the run before; 0 when there was none.
	Last int64
	// Checks are those that a task of a SequenceRun names. Nil: those of the step.
	Checks []shipper.StepCheck
}

// Plan is the run of the requested step's checks that begins now. An error means that it cannot begin.
func Plan(r Request, now time.Time) (*shipper.CheckTargetSpec, error) {
	s, rel := r.Release.Spec.Environment.Strategy, r.Release
	spec := &shipper.CheckTargetSpec{
		Run: r.Last + 1, Step: rel.Spec.TargetStep, Move: stamp.Moved(rel).Count, StartTime: metav1.NewTime(now.Truncate(time.Second)),
		Retry: rel.Annotations[shipper.ReleaseChecksRetryAnnotation], Incumbent: r.Incumbent,
		Clusters: waves.Measured(rel, stamp.Clusters(rel)),
	}
	checks, after := r.Checks, time.Duration(0)
	if checks == nil {
		checks, after = Of(rel), s.ChecksLast(position.Of(rel).Wave, spec.Step).Value()
	}
	for _, c := range checks {
		key, err := KeyOf(c.Check, rel.Namespace, r.Shared)
		if err != nil {
			return nil, fmt.Errorf("check %s: %w", c.NameInStep(), err)
		}
		found := r.Find(key)
		if found == nil {
			return nil, fmt.Errorf("check %s: there is no Check %s", c.NameInStep(), key)
		}
		if found.Spec.Tests != nil && rel.Spec.Environment.Resources != nil {
			return nil, fmt.Errorf("check %s: Check %s runs tests of a chart, and resources have none: use prometheus, http or job",
				c.NameInStep(), key)
		}
		values, wrong := Resolve(found.Spec.Args, c.Args)
		if len(wrong) > 0 {
			return nil, fmt.Errorf("check %s: argument %w", c.NameInStep(), wrong[0])
		}
		spec.Checks = append(spec.Checks, shipper.CheckRun{
			Name: c.NameInStep(), From: key.String(), Args: values, DryRun: c.DryRun, Check: *found.Spec.DeepCopy(),
			Count: Count(&found.Spec, after),
		})
	}
	results := 0
	for i := range spec.Checks {
		results += len(JudgedIn(spec, &spec.Checks[i]))
	}
	if results > MaxResults {
		return nil, fmt.Errorf("%d checks in %d clusters have %d results, and at most %d are kept: use over: Fleet with prometheus, or fewer "+
			"checks", len(spec.Checks), len(spec.Clusters), results, MaxResults)
	}
	if text, err := json.Marshal(spec.Checks); err != nil || len(text) > maxRun {
		return nil, fmt.Errorf("the checks of the step have %d bytes together, and at most %d are kept: use fewer, or smaller ones", len(text),
			maxRun)
	}
	return spec, nil
}

// maxRun bounds, in bytes, the copies of Checks in a CheckTarget.
const maxRun = 512 << 10

// TestRequest names the run of a chart's tests that a check asks for. A target that is made again begins with run 1 again.
func TestRequest(target *shipper.CheckTarget, run *shipper.CheckRun) string {
	return fmt.Sprintf("check/%s/%d/%s", target.UID, target.Spec.Run, run.Name)
}

// Finding is a check that has failed or is undecided, and where.
type Finding struct {
	Check, Cluster, Message string
	// Run is the run.
	Run int64
}

// String says it to users.
func (f Finding) String() string {
	if f.Check == "" {
		return f.Message
	}
	where := ""
	if f.Cluster != "" {
		where = " in " + f.Cluster
	}
	return fmt.Sprintf("check %s%s: %s", f.Check, where, f.Message)
}

// State is how far the checks of a step are.
type State struct {
	// Checks are over all clusters, in the order of the run.
	Checks []shipper.ReleaseCheck
	// Passed reports whether all that count have passed everywhere.
	Passed bool
	// Failed and Undecided are the first that counts and has failed or is undecided; nil when there is none.
	Failed, Undecided *Finding
	// Awaited says what is awaited; empty when all have passed.
	Awaited string
}

// StateOf computes the state of a run from its results.
func StateOf(target *shipper.CheckTarget) State {
	results := target.Status.Results
	if target.Status.Run != target.Spec.Run {
		results = Start(&target.Spec)
	}
	known := make(map[resultKey]shipper.CheckResult, len(results))
	for _, r := range results {
		known[resultKey{r.Name, r.Cluster}] = r
	}
	out := State{Passed: true}
	var awaited []string
	for i := range target.Spec.Checks {
		run := &target.Spec.Checks[i]
		worst := worstOf(target, run, known)
		out.Checks = append(out.Checks, shipper.ReleaseCheck{
			Name: run.Name, Phase: worst.Phase, Cluster: worst.Cluster, Measured: Measured(&worst), Count: run.Count, DryRun: run.DryRun,
			Value: bounded(lastValue(worst), maxValue),
		})
		if run.DryRun || worst.Phase == shipper.CheckPassed {
			continue
		}
		out.Passed = false
		finding := &Finding{Check: run.Name, Cluster: worst.Cluster, Message: worst.Message, Run: target.Spec.Run}
		switch worst.Phase {
		case shipper.CheckHasFailed:
			out.Failed = cmp.Or(out.Failed, finding)
		case shipper.CheckUndecided:
			out.Undecided = cmp.Or(out.Undecided, finding)
		}
		awaited = append(awaited, describe(run, worst))
	}
	out.Awaited = strings.Join(awaited, "; ")
	return out
}

// maxValue bounds the value in the status of a Release, in bytes.
const maxValue = 64

func lastValue(r shipper.CheckResult) string {
	if len(r.Measurements) == 0 {
		return ""
	}
	return r.Measurements[len(r.Measurements)-1].Value
}

// describe says how far a check is that has not passed.
func describe(run *shipper.CheckRun, worst shipper.CheckResult) string {
	where := ""
	if worst.Cluster != "" {
		where = " in " + worst.Cluster
	}
	switch {
	case worst.Phase == shipper.CheckHasFailed:
		return fmt.Sprintf("check %s has failed%s: %s", run.Name, where, worst.Message)
	case worst.Phase == shipper.CheckUndecided:
		return fmt.Sprintf("check %s is undecided%s: %s", run.Name, where, worst.Message)
	case Once(&run.Check):
		return fmt.Sprintf("check %s runs%s", run.Name, where)
	}
	text := fmt.Sprintf("check %s has %d of %d results%s", run.Name, Measured(&worst), run.Count, where)
	if worst.Message != "" {
		text += " (" + worst.Message + ")"
	}
	return text
}

// resultKey is a check in a cluster.
type resultKey struct{ name, cluster string }

// severity orders phases, the worst first.
var severity = []shipper.CheckPhase{
	shipper.CheckHasFailed, shipper.CheckUndecided, shipper.CheckPending, shipper.CheckRunning, shipper.CheckPassed,
}

// worstOf is the result in the cluster in which a check is worst: by phase, then by how few results there are. A cluster without a result
// is pending.
func worstOf(target *shipper.CheckTarget, run *shipper.CheckRun, known map[resultKey]shipper.CheckResult) shipper.CheckResult {
	var worst *shipper.CheckResult
	for _, cluster := range JudgedIn(&target.Spec, run) {
		one, is := known[resultKey{run.Name, cluster}]
		if !is {
			one = shipper.CheckResult{Name: run.Name, Cluster: cluster, Phase: shipper.CheckPending}
		}
		if worst == nil || worse(&one, worst) {
			worst = &one
		}
	}
	if worst == nil { // a Release without clusters
		return shipper.CheckResult{Name: run.Name, Phase: shipper.CheckPending}
	}
	return *worst
}

func worse(a, b *shipper.CheckResult) bool {
	return cmp.Or(cmp.Compare(slices.Index(severity, a.Phase), slices.Index(severity, b.Phase)),
		cmp.Compare(Measured(a), Measured(b)), cmp.Compare(a.Cluster, b.Cluster)) < 0
}
