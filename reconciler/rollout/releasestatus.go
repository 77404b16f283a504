// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/placement"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	"shipper.dev/shipper/apis/rules/summary"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/reconciler/events"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// releaseStatus is the new status of the i-th live Release.
func releaseStatus(s *scope, p releasesPlan, d releasesDone, i int, now metav1.Time) shipper.ReleaseStatus {
	rel := s.history.Live[i].Release
	out := *p.rollout.Outcomes[i].Status.DeepCopy()
	out.ObservedGeneration = rel.Generation
	for _, c := range []*shipper.Condition{releaseBlocked(s, d, s.view(now).OfRelease(rel), rel), scheduled(s, p, d, i),
		healthy(s.history.Live[i])} {
		if c != nil {
			c.Message = report.Shorten(c.Message, maxMessage)
			out.Conditions = shipper.SetCondition(out.Conditions, *c, now)
		}
	}
	sayFault(&out, chartFault(out, d, rel), now)
	if placesNoMore(s, p, i) {
		out.Conditions = events.Without(out.Conditions, shipper.ReleaseHealthy) // of objects that are those of another Release now
	}
	if i == len(s.history.Live)-1 {
		out.Placement = placed(s, p.clusters, d)
	}
	setProgress(s, p.progress, i, &out, now)
	sum := summary.Of(afterwards(s, i, out), i)
	if p.rollout.Step.Converged {
		sum.Traffic = share(s, i)
	}
	out.Summary = &sum
	return out
}

// share is the share of the traffic that is requested for the i-th live Release; empty where it has none to share.
func share(s *scope, i int) string {
	all := make([]*shipper.TrafficTarget, len(s.history.Live))
	for n := range s.history.Live {
		all[n] = s.history.Live[n].Traffic
	}
	return summary.Traffic(all[i], all)
}

// placesNoMore reports whether another Release owns all objects that the i-th placed. Its own target says so a moment after that of the
// newest is ready.
func placesNoMore(s *scope, p releasesPlan, i int) bool {
	newest := len(s.history.Live) - 1
	return i < newest && (strategy.PlacesNothing(s.history.Live[i]) ||
		s.history.Live[i].Release.Spec.Environment.Resources != nil &&
			shipper.ConditionTrue(p.rollout.Outcomes[newest].Status.Conditions, shipper.ReleaseComplete))
}

// afterwards are the live Releases when the i-th has its new status.
func afterwards(s *scope, i int, status shipper.ReleaseStatus) []*shipper.Release {
	rels := s.history.Releases()
	now := *rels[i]
	now.Status, rels[i] = status, &now
	return rels
}

// releaseBlocked is the condition Blocked: to go on is not allowed, while going back may be. The gate may know of a block before
// this reconciler does.
func releaseBlocked(s *scope, d releasesDone, v block.Verdict, rel *shipper.Release) *shipper.Condition {
	c := &shipper.Condition{Type: shipper.ReleaseBlocked, Status: corev1.ConditionFalse}
	if whole, in := v.Split(rel); v.Blocked() {
		c.Message = v.Message()
		if held := in.Of(stamp.Clusters(rel)); !whole.Blocked() && len(held) > 0 && rel == s.history.Newest() {
			c.Message += fmt.Sprintf("; only in clusters %s", block.List(held))
		}
	} else if said := d.refused(); said != "" && rel == s.history.Newest() {
		c.Message = said
	}
	if c.Message != "" {
		c.Status, c.Reason = corev1.ConditionTrue, shipper.RolloutsBlocked
	}
	return c
}

// scheduled is the condition Scheduled; nil when nothing new is known. Unknown is of a Release that may have been scheduled
// elsewhere or before, and may run.
func scheduled(s *scope, p releasesPlan, d releasesDone, i int) *shipper.Condition {
	r := s.history.Live[i]
	c := &shipper.Condition{Type: shipper.ReleaseScheduled, Status: corev1.ConditionFalse}
	switch foreign, err := s.history.Foreign[r.Release.Name], d.scheduling[r.Release.Name]; {
	case r.Scheduled(), slices.Contains(d.scheduled, r.Release.Name):
		if r.Release == s.history.Newest() {
			return ofPlacement(r.Release, p.clusters, d)
		}
		c.Status = corev1.ConditionTrue
	case len(foreign) > 0:
		c.Reason = shipper.TargetsFailed
		c.Message = fmt.Sprintf("waiting for targets of the same name to go: %s", strings.Join(foreign, "; "))
	case err != nil:
		c.Reason, c.Message = reasonOf(err), err.Error()
		if r.Lost() && (p.clusters.choice == nil || r.Release != s.history.Newest()) {
			c.Status = corev1.ConditionUnknown
		}
	case p.clusters.refusal != nil && p.rollout.Outcomes[i].Role == strategy.Contender:
		c.Reason, c.Message = reasonOf(p.clusters.refusal), p.clusters.refusal.Error()
	default:
		return nil
	}
	return c
}

// chartFault is what is wrong with the chart of a Release; empty if nothing is known. A pass that a block holds does not ask again.
func chartFault(is shipper.ReleaseStatus, d releasesDone, rel *shipper.Release) string {
	errs := []error{d.scheduling[rel.Name]}
	if rel.Name == d.newest {
		errs = append(errs, d.rollout)
	}
	if broken, found := errors.AsType[*chart.Error](errors.Join(errs...)); found {
		return broken.Message
	}
	c := shipper.FindCondition(is.Conditions, shipper.ReleaseScheduled)
	if c != nil && c.Status != corev1.ConditionTrue && slices.Contains(ofCharts, c.Reason) {
		return c.Message
	}
	return ""
}

// ofCharts are the reasons of errors of charts.
var ofCharts = []string{
	shipper.ChartError, shipper.BrokenChartSpec, shipper.WrongChartDeployments, shipper.ChartFetchFailure, shipper.ChartNotVerified,
}

// sayFault adds a fault to what a Release waits for, which would never come.
func sayFault(is *shipper.ReleaseStatus, fault string, now metav1.Time) {
	executed := shipper.FindCondition(is.Conditions, shipper.ReleaseStrategyExecuted)
	if fault == "" || executed == nil || executed.Status == corev1.ConditionTrue {
		return
	}
	c := *executed
	c.Message = report.Shorten(c.Message+": "+fault, maxMessage)
	is.Conditions = shipper.SetCondition(is.Conditions, c, now)
}

// reasonOf is the reason of an error met while scheduling.
func reasonOf(err error) string {
	var broken *chart.Error
	var refusal *placement.Error
	switch {
	case errors.As(err, &broken):
		return broken.Reason
	case errors.As(err, &refusal):
		return refusal.Reason
	}
	return shipper.TargetsFailed
}

// brokenStatus is the new status of a Release without a valid generation. Its Pods stay as they are.
func brokenStatus(rel *shipper.Release, now metav1.Time) shipper.ReleaseStatus {
	out := *rel.Status.DeepCopy()
	out.ObservedGeneration = rel.Generation
	c := shipper.Condition{
		Type: shipper.ReleaseStrategyExecuted, Status: corev1.ConditionFalse, Reason: shipper.StrategyExecutionFailed,
	}
	if _, err := stamp.Generation(rel); err != nil {
		c.Message = fmt.Sprintf("failed to execute strategy: %q", err)
	}
	out.Conditions = shipper.SetCondition(out.Conditions, c, now)
	return out
}
