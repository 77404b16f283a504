// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// OwnSequence is the sequence that a run does; nil before it is resolved.
func OwnSequence(run *shipper.SequenceRun) *shipper.Sequence {
	if run.Status.Resolved == nil {
		return nil
	}
	return &run.Status.Resolved.Sequence
}

// StageOf is the stage of a run, without its sequences; an empty one before the run is resolved.
func StageOf(run *shipper.SequenceRun) *shipper.Stage {
	if run.Status.Resolved == nil {
		return &shipper.Stage{}
	}
	return &run.Status.Resolved.Stage
}

// ApplicationOfRun names the Application of a resolved run.
func ApplicationOfRun(run *shipper.SequenceRun) types.NamespacedName {
	return ApplicationKey(run.Namespace, StageOf(run), run.Spec.Shipyard, run.Spec.Service)
}

// VersionOf is what a run delivers; empty before it is resolved, and if it deploys nothing.
func VersionOf(run *shipper.SequenceRun) shipper.RunVersion {
	if run.Status.Resolved == nil {
		return shipper.RunVersion{}
	}
	return run.Status.Resolved.Version
}

// ContextOf identifies the delivery of a run; empty before it is resolved.
func ContextOf(run *shipper.SequenceRun) string {
	if run.Status.Resolved == nil {
		return ""
	}
	return run.Status.Resolved.Context
}

// DataOf is what the next task of a run gets.
func DataOf(run *shipper.SequenceRun) shipper.FreeForm {
	if run.Status.Data != nil {
		return run.Status.Data
	}
	return firstData(run)
}

// firstData is what a run begins with.
func firstData(run *shipper.SequenceRun) shipper.FreeForm {
	if run.Status.Resolved != nil && run.Status.Resolved.Data != nil {
		return run.Status.Resolved.Data
	}
	return run.Spec.Data
}

// Requesters are the users who asked for a run, or for one that it repeats.
func Requesters(run *shipper.SequenceRun) []string {
	out := []string{run.Spec.RequestedBy.Username}
	if run.Status.Resolved != nil {
		out = append(out, run.Status.Resolved.EarlierRequesters...)
	}
	return out
}

// Deploys reports whether a run writes an Application.
func Deploys(run *shipper.SequenceRun) bool {
	sequence := OwnSequence(run)
	return sequence != nil && sequenceDeploys(sequence)
}

// IsAboutApplication reports whether a sequence, which may be nil, has tasks that read or write the Application of its stage.
func IsAboutApplication(of *shipper.Sequence) bool {
	return of != nil && slices.ContainsFunc(of.Tasks, func(t shipper.Task) bool { return IsNative(t.Name) && t.Name != TaskApproval })
}

func sequenceDeploys(of *shipper.Sequence) bool {
	return slices.ContainsFunc(of.Tasks, func(t shipper.Task) bool { return t.Name == TaskDeployment })
}

// Runner is the user name of the ServiceAccount that a resolved run writes as.
func Runner(run *shipper.SequenceRun) string {
	return "system:serviceaccount:" + run.Namespace + ":" + run.Status.Resolved.ServiceAccountName
}
