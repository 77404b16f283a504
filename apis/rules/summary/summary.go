// SPDX-License-Identifier: Apache-2.0

// Package summary sums a Release up for who looks at all of an Application's: how it ended, how long it took, and what it
// changed. The reconciler writes it into the Release's status, for kubectl; shipperctl asks for it itself.
package summary

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// maxChanged and maxReason bound, in characters, what a status says of changed values and of why blocks are overridden.
const maxChanged, maxReason = 256, 256

// Of sums the i-th of an Application's Releases up, which are ordered oldest first.
func Of(rels []*shipper.Release, i int) shipper.ReleaseSummary {
	out := shipper.ReleaseSummary{}
	if before := rels[i].Status.Summary; before != nil {
		out.Override, out.OverrideReason = before.Override, before.OverrideReason
	}
	if blocks := rels[i].Annotations[shipper.RolloutBlockOverrideAnnotation]; blocks != "" {
		out.Override, out.OverrideReason = blocks, shortened(rels[i].Annotations[shipper.RolloutBlockOverrideReasonAnnotation])
	}
	out.Outcome, out.Duration, out.ValuesChanged = outcome(rels, i), duration(rels[i]), Shorten(Changed(rels, i), maxChanged)
	return out
}

func shortened(reason string) string {
	if text := []rune(reason); len(text) > maxReason {
		return string(text[:maxReason-1]) + "…"
	}
	return reason
}

func outcome(rels []*shipper.Release, i int) shipper.ReleaseOutcome {
	rel, newest := rels[i], i == len(rels)-1
	switch {
	case !strategy.Complete(rel) && newest:
		return shipper.ReleaseInProgress
	case !strategy.Complete(rel):
		return shipper.ReleaseSuperseded
	case !newest && leaves(rels[i+1], rel):
		return shipper.ReleaseRolledBack
	}
	return shipper.ReleaseCompleted
}

// leaves tells whether next is a rollback to something else than rel.
func leaves(next, rel *shipper.Release) bool {
	return next.Annotations[shipper.ReleaseRollbackOfAnnotation] != "" &&
		!stamp.SameEnvironment(&next.Spec.Environment, &rel.Spec.Environment)
}

// duration is from the creation of a Release until it completed; empty before, and when that is not known: one whose status
// was lost is only taken for complete, which its condition says. What was said of it before stays: a Release that was restored
// is younger than its rollout.
func duration(rel *shipper.Release) string {
	c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseComplete)
	if c == nil || !strategy.Complete(rel) || c.Message != "" {
		return ""
	}
	if known := rel.Status.Summary; known != nil && known.Duration != "" {
		return known.Duration
	}
	took := c.LastTransitionTime.Sub(rel.CreationTimestamp.Time)
	if took < 0 {
		return ""
	}
	return took.Round(time.Second).String()
}

// Changed are the keys of values that the i-th Release has otherwise than the one before it; none of the first.
func Changed(rels []*shipper.Release, i int) []string {
	if i == 0 {
		return nil
	}
	return stamp.ChangedValues(&rels[i-1].Spec.Environment, &rels[i].Spec.Environment)
}

// Shorten writes keys after one another, in no more than so many characters; how many are left out is said within them.
func Shorten(keys []string, most int) string {
	for n := min(len(keys), most); n > 0; n-- {
		text := strings.Join(keys[:n], ", ")
		if n < len(keys) {
			text += fmt.Sprintf(", … %d more", len(keys)-n)
		}
		if utf8.RuneCountInString(text) <= most {
			return text
		}
	}
	if len(keys) == 0 {
		return ""
	}
	return fmt.Sprintf("%d values", len(keys))
}
