// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Unmet is what a run's stage requires of its version and known runs do not show; empty if nothing. ready is when the first soak of it
// ends; zero if no soak is waited for.
func Unmet(run *shipper.SequenceRun, known []*shipper.SequenceRun, now time.Time) (out []string, ready time.Time) {
	if !Deploys(run) {
		return nil, time.Time{}
	}
	for _, required := range StageOf(run).Requires {
		why, soaked := unmet(run, required, known, now)
		if why == "" {
			continue
		}
		out = append(out, why)
		if !soaked.IsZero() && (ready.IsZero() || soaked.Before(ready)) {
			ready = soaked
		}
	}
	return out, ready
}

func unmet(
	run *shipper.SequenceRun, required shipper.StageRequirement, known []*shipper.SequenceRun, now time.Time,
) (why string, ready time.Time) {
	const most = 3
	verified := map[string]time.Time{} // when a version passed first since a run ended what it had passed
	ended := ""                        // how what the version of the run has passed was ended last
	for _, other := range known {
		if !hasPassed(other) || other.Spec.Stage != required.Stage || other.Spec.Service != run.Spec.Service ||
			required.Sequence != "" && other.Spec.Sequence != required.Sequence || required.Sequence == "" && !Deploys(other) {
			continue
		}
		version := identity(VersionOf(other))
		if by := EndedBy(other, known); by != nil {
			if version == identity(VersionOf(run)) {
				ended = endedWhy(other, by)
			}
			continue
		}
		if at, again := verified[version]; !again || other.Status.FinishTime.Time.Before(at) {
			verified[version] = other.Status.FinishTime.Time
		}
	}
	if at, passed := verified[identity(VersionOf(run))]; passed {
		ready := at.Add(required.Soak.Value())
		if !now.Before(ready) {
			return "", time.Time{}
		}
		return fmt.Sprintf("version %s passed in stage %s at %s and has to soak for %s: until %s", VersionOf(run).Version, required.Stage,
			at.UTC().Format(time.RFC3339), required.Soak, ready.UTC().Format(time.RFC3339)), ready
	}
	var versions []string
	for version, at := range verified {
		if !now.Before(at.Add(required.Soak.Value())) {
			versions = append(versions, version)
		}
	}
	slices.SortFunc(versions, func(a, b string) int { return cmp.Or(verified[b].Compare(verified[a]), cmp.Compare(a, b)) })
	there := "no version has"
	if len(versions) > 0 {
		for i := range versions {
			versions[i], _, _ = strings.Cut(versions[i], "@")
		}
		there = strings.Join(versions[:min(most, len(versions))], ", ") + " have"
		if len(versions) == 1 {
			there = versions[0] + " has"
		}
	}
	return fmt.Sprintf("version %s has not passed in stage %s%s; %s", VersionOf(run).Version, required.Stage, ended, there), time.Time{}
}

// hasPassed reports whether a run has ended with pass.
func hasPassed(run *shipper.SequenceRun) bool {
	return IsFinished(run) && run.Status.Result == shipper.ResultPass && run.Status.FinishTime != nil
}

// EndedBy is a run of the same stage and service by which the pass of a run counts no longer: its version failed there later, or the
// Release that it made was taken back. Nil if there is none.
func EndedBy(passed *shipper.SequenceRun, known []*shipper.SequenceRun) *shipper.SequenceRun {
	for _, other := range known {
		if other.Name != passed.Name && other.Spec.Stage == passed.Spec.Stage && other.Spec.Service == passed.Spec.Service &&
			(takesBackFrom(other, passed) || failedAfter(other, passed)) {
			return other
		}
	}
	return nil
}

// TakenBack are the Releases that a run has begun to take back.
func TakenBack(run *shipper.SequenceRun) (releases []string) {
	for i := range run.Status.Tasks {
		if t := &run.Status.Tasks[i]; isTakenBack(t) {
			releases = append(releases, t.Release)
		}
	}
	return releases
}

func isTakenBack(t *shipper.TaskStatus) bool {
	return t.Release != "" && (t.Name == TaskRollback || t.Name == TaskRemediation)
}

// takesBackFrom reports whether a run has begun to take back the Release that another one deployed, or found there, and not before that:
// after an abort, a Release of the same template has the name of the deleted one.
func takesBackFrom(run, deployed *shipper.SequenceRun) bool {
	for i := range run.Status.Tasks {
		taken := &run.Status.Tasks[i]
		if isTakenBack(taken) && slices.ContainsFunc(deployed.Status.Tasks, func(t shipper.TaskStatus) bool {
			return t.Release == taken.Release && !taken.TriggerTime.Before(t.TriggerTime)
		}) {
			return true
		}
	}
	return false
}

// failedAfter reports whether a run of the version that has passed failed afterwards, or in the same second. One that never began shows
// nothing.
func failedAfter(run, passed *shipper.SequenceRun) bool {
	return IsFinished(run) && run.Status.Result == shipper.ResultFail && run.Status.StartTime != nil && run.Status.FinishTime != nil &&
		VersionOf(run).Version != "" && MayBeSame(VersionOf(run), VersionOf(passed)) &&
		!run.Status.FinishTime.Before(passed.Status.FinishTime)
}

// endedWhy says how the pass of a run was ended.
func endedWhy(passed, by *shipper.SequenceRun) string {
	if takesBackFrom(by, passed) {
		return " since run " + by.Name + " took it back"
	}
	return " since run " + by.Name + " failed"
}

// MayBeSame reports whether two versions are equal as far as is known: one that was resolved without its repository has no digest.
func MayBeSame(a, b shipper.RunVersion) bool {
	return a.Version == b.Version && a.Name == b.Name && (a.Digest == b.Digest || a.Digest == "" || b.Digest == "")
}

// identity is a version with the digest of its archive.
func identity(v shipper.RunVersion) string { return v.Version + "@" + v.Name + "@" + v.Digest }
