// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/retry"
)

// invalidTarget means that a target says something that cannot be carried out in any cluster.
type invalidTarget struct {
	message string
}

func invalid(format string, args ...any) error {
	return &invalidTarget{fmt.Sprintf(format, args...)}
}

// Error is the message.
func (e *invalidTarget) Error() string {
	return e.message
}

// Classify is InternalError, and to wait for the target to change.
func (e *invalidTarget) Classify() (reason string, action retry.Action) {
	return shipper.InternalError, retry.Wait
}

// status is the whole new status of a target. general is an error that concerns no cluster in particular.
func status(tt *shipper.TrafficTarget, outcomes []Outcome, general error, at time.Time) shipper.TrafficTargetStatus {
	now := metav1.NewTime(at)
	out := shipper.TrafficTargetStatus{ObservedGeneration: tt.Generation}
	if general != nil {
		reason, _ := retry.ClassifyInCluster(general)
		out.ObservedGeneration, out.Clusters = tt.Status.ObservedGeneration, tt.Status.Clusters
		out.Conditions = tt.Status.Conditions
		for _, conditionType := range []string{shipper.TargetOperational, shipper.TargetReady} {
			out.Conditions = shipper.SetCondition(out.Conditions, shipper.Condition{
				Type: conditionType, Status: corev1.ConditionFalse, Reason: reason, Message: retry.Brief(general),
			}, now)
		}
		return out
	}
	var unknown []report.Cluster
	for _, s := range outcomes {
		var old shipper.ClusterTrafficStatus
		for _, c := range tt.Status.Clusters {
			if c.Name == s.want.Name {
				old = c
			}
		}
		if s.missing {
			out.ObservedGeneration = tt.Status.ObservedGeneration
			if old.Name == "" {
				unknown = append(unknown, report.Cluster{Name: s.want.Name})
			} else {
				out.Clusters = append(out.Clusters, old)
			}
			continue
		}
		out.Clusters = append(out.Clusters, clusterStatus(old, s, now))
		if fleet.Pending(s.err) || fleet.Keeps(s.err, old.Conditions) {
			out.ObservedGeneration = tt.Status.ObservedGeneration
		}
	}
	slices.SortFunc(out.Clusters, func(a, b shipper.ClusterTrafficStatus) int { return cmp.Compare(a.Name, b.Name) })
	out.Conditions = report.Overall(tt.Status.Conditions, append(clusters(out.Clusters), unknown...), now)
	out.Conditions = withOwned(out.Conditions, foreignIn(out.Clusters), now)
	return out
}

// clusterStatus is the new status of one cluster. The status of a cluster that connects for the first time stays
// as it was; so does the traffic in one that could not be read or written.
func clusterStatus(old shipper.ClusterTrafficStatus, s Outcome, now metav1.Time) shipper.ClusterTrafficStatus {
	if fleet.Keeps(s.err, old.Conditions) {
		return old
	}
	out := shipper.ClusterTrafficStatus{Name: s.want.Name, AchievedTraffic: s.plan.Achieved, Preview: strings.Join(s.previews, ",")}
	if s.err != nil {
		out.AchievedTraffic, out.Preview = old.AchievedTraffic, old.Preview
		out.Status = shipper.TrafficStatusFailed
		if fleet.Pending(s.err) {
			out.Status = ""
		}
		out.Conditions = withoutOwned(report.Failed(old.Conditions, s.err, now))
		return out
	}
	ready := orOutage(s, ready(s))
	switch {
	case ready.Status == corev1.ConditionTrue:
		out.Status = shipper.TrafficStatusSynced
	case ready.Reason == shipper.MissingService:
		out.Status = shipper.TrafficStatusFailed
	}
	operational := shipper.Condition{Type: shipper.TargetOperational, Status: corev1.ConditionTrue}
	out.Conditions = shipper.SetCondition(shipper.SetCondition(old.Conditions, operational, now), ready, now)
	out.Conditions = withAddressed(withOwned(out.Conditions, s.foreign, now), s.address, now)
	return out
}

// ready reports whether a cluster that could be read has the traffic asked for, and if not, why.
func ready(s Outcome) shipper.Condition {
	no := func(reason, format string, args ...any) shipper.Condition {
		return shipper.Condition{
			Type: shipper.TargetReady, Status: corev1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, args...),
		}
	}
	of := func(reason, format string, args ...any) shipper.Condition {
		out := no(reason, format, args...)
		if s.named {
			out.Message = fmt.Sprintf("Service %q: %s", s.selectors.Service, out.Message)
		}
		return out
	}
	p := s.plan
	switch {
	case len(s.services) != 1 && !s.idle && s.selectors.Service != "":
		return no(shipper.MissingService, "there is no Service %q with the label %s=%s, and pods of this release are made for it",
			s.selectors.Service, shipper.LBLabel, shipper.LBForProduction)
	case len(s.services) != 1 && !s.idle:
		return no(shipper.MissingService, "expected one Service with the label %s=%s, found %d",
			shipper.LBLabel, shipper.LBForProduction, len(s.services))
	case s.moved:
		return of(shipper.InProgress, "moved %d pods into traffic and %d out of it", len(p.Enable), len(p.Disable))
	case len(s.previews) > 1:
		return no(shipper.PreviewNotReady, "expected at most one Service with the label %s=%s, found %d",
			shipper.LBLabel, shipper.LBForPreview, len(s.previews))
	case s.previewLags:
		return no(shipper.PreviewNotReady, "Service %s does not have all ready pods of the release yet", s.previews[0])
	case len(s.services) == 1 && p.Ready() && s.awaitsAddress():
		return no(shipper.AddressAwaited, "%s", s.address.message)
	case len(s.services) != 1 || p.Ready():
		return shipper.Condition{Type: shipper.TargetReady, Status: corev1.ConditionTrue}
	case p.Late:
		return of(shipper.InProgress, "the pods designated to receive traffic are not there yet")
	case p.NotReady > 0:
		return of(shipper.PodsNotReady, "%d/%d pods designated to receive traffic are not ready", p.NotReady, p.Needed)
	case p.Serving < p.Needed && s.leader != "":
		return of(shipper.PodsNotInEndpoints, "%d/%d pods designated to receive traffic are not yet in endpoints: "+
			"the Service is turned first, see the TrafficTarget of release %q", p.Needed-p.Serving, p.Needed, s.leader)
	case p.Serving < p.Needed:
		return of(shipper.PodsNotInEndpoints, "%d/%d pods designated to receive traffic are not yet in endpoints",
			p.Needed-p.Serving, p.Needed)
	case p.Held > 0:
		return of(shipper.InProgress, "%d pods stay in traffic until as many of other releases are in endpoints", p.Held)
	default:
		return of(shipper.InProgress, "%d pods taken out of traffic are still in endpoints", p.Serving-p.Needed)
	}
}

// said is what others may wait for in a target's status.
func said(tt *shipper.TrafficTarget) report.Status {
	return report.Status{
		Generation: tt.Status.ObservedGeneration, Conditions: tt.Status.Conditions, Clusters: clusters(tt.Status.Clusters),
	}
}

// Errors are those met.
func (o Outcome) Errors() []error {
	var out []error
	for _, err := range []error{o.invalid, o.err} {
		if err != nil {
			out = append(out, fmt.Errorf("cluster %q: %w", o.want.Name, err))
		}
	}
	return out
}
