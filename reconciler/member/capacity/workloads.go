// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/member/inplace"
)

// mostNamed is how many workloads a message is about.
const mostNamed = 3

// observations are what was read of a target in one cluster where objects are named by Application, and what was done there.
type observations struct {
	// want is the capacity asked for, of all workloads together.
	want shipper.ClusterCapacityTarget
	// parts are the Deployments that run side by side, by name. Each wants its own number of Pods.
	parts []observation
	// err is why the cluster could not be read.
	err error
}

// observeAll reads the Deployments and the Pods of a target from the cluster's caches. Deployments in place are not among them.
func observeAll(
	ctx context.Context, m *fleet.Member, ct *shipper.CapacityTarget, want shipper.ClusterCapacityTarget,
) observations {
	out := observations{want: want}
	deployments, err := deploymentsOf(ctx, m, ct)
	if err != nil {
		return observations{want: want, err: err}
	}
	pods, err := listPods(ctx, m, ct)
	if err != nil {
		return observations{want: want, err: err}
	}
	slices.SortFunc(deployments, func(a, b appsv1.Deployment) int { return cmp.Compare(a.Name, b.Name) })
	for i := range deployments {
		if d := &deployments[i]; d.Annotations[shipper.LotAnnotation] != shipper.LotInPlace {
			part := observation{want: want, wasReady: wasReady(ct, want.Name), deployments: deployments[i : i+1]}
			part.want.TotalReplicaCount = shipper.FullReplicas(d.Annotations)
			part.pods, part.err = podsOf(d, pods)
			out.parts = append(out.parts, part)
		}
	}
	return out
}

// missing are the Deployments that the anchor lists and that are not there.
func (s observations) missing(stake *inplace.Stake) (names []string) {
	for _, name := range stake.Deployments {
		if !slices.ContainsFunc(s.parts, func(part observation) bool { return part.deployments[0].Name == name }) {
			names = append(names, name)
		}
	}
	return names
}

// workload is how far one workload of a Release is.
type workload struct {
	kind, name string
	// full is its number of Pods at full capacity, and achieved which percentage of it there is.
	full, available, achieved int32
	ready                     shipper.Condition
	report                    shipper.ClusterCapacityReport
	sad                       []shipper.PodStatus
}

// String is for people.
func (w *workload) String() string { return fmt.Sprintf("%s %q", w.kind, w.name) }

// outcome keeps of the observations what the status says, together with workloads in place.
func (s observations) outcome(stake *inplace.Stake) Outcome {
	errs := []error{s.err, stake.Err}
	all := make([]workload, 0, len(s.parts)+len(stake.Shares))
	for _, part := range s.parts {
		errs = append(errs, part.err)
		one, d := outcome(part), &part.deployments[0]
		w := workload{
			kind: "Deployment", name: d.Name, full: part.want.TotalReplicaCount, available: one.available,
			achieved: Achieved(one.available, part.want.TotalReplicaCount), ready: one.ready, sad: one.sad,
		}
		if len(one.reports) > 0 {
			w.report = one.reports[0]
		}
		all = append(all, w)
	}
	for _, share := range stake.Shares {
		all = append(all, inPlace(share, s.want.Percent))
	}
	if err := errors.Join(errs...); err != nil {
		return Outcome{want: s.want, err: err}
	}
	slices.SortStableFunc(all, worse)
	out := Outcome{want: s.want}
	worst := int32(-1)
	for i := range all {
		w := &all[i]
		out.available += w.available
		out.reports = append(out.reports, w.report)
		out.sad = append(out.sad, w.sad...)
		if w.full > 0 && (worst < 0 || w.achieved < worst) {
			worst = w.achieved
		}
	}
	out.sad = out.sad[:min(len(out.sad), shipper.MaxSadPods)]
	if worst >= 0 {
		out.achieved = &worst
	}
	out.ready = readyTogether(s.want, stake, s.missing(stake), all)
	return out
}

// inPlace is a workload in place of which a Release has a share. Where all that the other Release leaves is there, what was asked for is
// achieved.
func inPlace(share inplace.Share, percent int32) workload {
	w := workload{
		kind: share.Kind, name: share.Name, full: share.Full, available: share.Have, achieved: Achieved(share.Have, share.Full),
		ready:  shipper.Condition{Type: shipper.TargetReady, Status: corev1.ConditionTrue},
		report: shipper.ClusterCapacityReport{Owner: shipper.ClusterCapacityReportOwner{Name: share.Name}},
	}
	if share.Reason == "" {
		w.achieved = max(w.achieved, percent)
	} else {
		w.ready = no(share.Reason, "%s", share.Message)
	}
	return w
}

// worse orders workloads: those first that are not ready, of these those that are stuck, and then those that lack most.
func worse(a, b workload) int {
	return cmp.Or(cmp.Compare(a.severity(), b.severity()), cmp.Compare(a.achieved, b.achieved), cmp.Compare(a.name, b.name))
}

// severity is lower for what is worse.
func (w *workload) severity() int {
	switch {
	case w.ready.Status == corev1.ConditionTrue:
		return 3
	case w.ready.Reason == shipper.InProgress:
		return 2
	case w.ready.Reason == shipper.PodsNotReady:
		return 1
	default:
		return 0
	}
}

// readyTogether reports whether all workloads are there and ready, and if not, why. They come with the worst first. The anchor lists what
// has to be there. totalReplicaCount does not say it: it may be counted before the cluster's version and APIs are known.
func readyTogether(
	want shipper.ClusterCapacityTarget, stake *inplace.Stake, missing []string, all []workload,
) shipper.Condition {
	if !stake.Installed && want.TotalReplicaCount > 0 {
		return no(shipper.MissingDeployment, "nothing of this release is installed yet")
	}
	if len(missing) > 0 {
		return no(shipper.MissingDeployment, "Deployments of this release are missing: %s", few(missing, ", "))
	}
	var messages []string
	for i := range all {
		w := &all[i]
		switch {
		case w.ready.Status == corev1.ConditionTrue:
		case len(all) == 1:
			return w.ready
		default:
			messages = append(messages, fmt.Sprintf("%s: %s", w, w.ready.Message))
		}
	}
	if len(messages) == 0 {
		return shipper.Condition{Type: shipper.TargetReady, Status: corev1.ConditionTrue}
	}
	return no(all[0].ready.Reason, "%s", few(messages, "; "))
}

// few lists the first texts, and counts the others.
func few(texts []string, separator string) string {
	if more := len(texts) - mostNamed; more > 0 {
		return strings.Join(texts[:mostNamed], separator) + fmt.Sprintf("%sand %d more", separator, more)
	}
	return strings.Join(texts, separator)
}
