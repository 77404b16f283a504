// SPDX-License-Identifier: Apache-2.0

package response

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/printable"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Overrider is the object whose override annotation counts.
type Overrider struct {
	// Short is the resource's short name, as a user types it: app or rel.
	Short string
	// Namespace and Name are those of the object.
	Namespace, Name string
	// Overrides are the blocks that it overrides already.
	Overrides []types.NamespacedName
	// Annotated is true when it has an override annotation or a reason, even an empty one.
	Annotated bool
	// New is true while the object does not exist, and so cannot be annotated.
	New bool
}

// OverriderOf is the Overrider of the object with a short name and meta.
func OverriderOf(short string, meta *metav1.ObjectMeta) Overrider {
	_, named := meta.Annotations[shipper.RolloutBlockOverrideAnnotation]
	_, reasoned := meta.Annotations[shipper.RolloutBlockOverrideReasonAnnotation]
	s := Overrider{Short: short, Namespace: meta.Namespace, Name: meta.Name, Annotated: named || reasoned}
	for _, o := range block.Overrides(meta.Annotations) {
		s.Overrides = append(s.Overrides, o.Name)
	}
	return s
}

// maxDescribed bounds the blocks that a refusal describes, to keep it readable.
const maxDescribed = 10

// Refuse is the refusal of a change of the object of resource (a plural) and name: which blocks stop it, their authors, age and
// reasons, and how to override them by the annotation of overrider.
func Refuse(resource, name string, overrider Overrider, v block.Verdict, now time.Time) error {
	causes := make([]metav1.StatusCause, 0, len(v.Effective))
	for _, b := range v.Effective {
		message := block.Name(b).String() + ": " + printable.OneLine(b.Spec.Message)
		causes = append(causes, metav1.StatusCause{Type: shipper.CauseRolloutBlock, Field: block.Name(b).String(), Message: message})
	}
	message := shipper.BlockedBy + describeBlocks(v.Effective, now) + ". " + howToProceed(overrider, v)
	return &Refusal{Decision: Blocked, Status: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: message,
		Details: &metav1.StatusDetails{Group: shipper.GroupName, Kind: resource, Name: name, Causes: causes},
	}}
}

// WarnOfBlocks names the blocks that would stop a change if they were enforced.
func WarnOfBlocks(v block.Verdict, now time.Time) string {
	return "rollouts are asked to wait by: " + describeBlocks(v.Warning, now)
}

// describeBlocks describes each block: its reason, its author, the changes that it allows, and its end if known.
func describeBlocks(blocks []*shipper.RolloutBlock, now time.Time) string {
	out := make([]string, min(len(blocks), maxDescribed))
	for i := range out {
		out[i] = block.Name(blocks[i]).String() + " (" + describeBlock(blocks[i], now) + ")"
	}
	text := strings.Join(out, ", ")
	if more := len(blocks) - len(out); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func describeBlock(b *shipper.RolloutBlock, now time.Time) string {
	author := printable.OneLine(b.Spec.Author.Name)
	if author == "" {
		author = "unknown author"
	}
	age := duration.HumanDuration(max(now.Sub(b.CreationTimestamp.Time), 0))
	out := fmt.Sprintf("%s; %s, %s ago", printable.OneLine(b.Spec.Message), author, age)
	if len(b.Spec.Allow) > 0 {
		var passes []string
		for _, change := range b.Spec.Allow {
			passes = append(passes, string(change))
		}
		out += "; lets pass: " + strings.Join(passes, ", ")
	}
	if t, err := block.When(b, now); err == nil && !t.NextEnd.IsZero() {
		out += "; until " + t.NextEnd.UTC().Format(time.RFC3339)
	}
	return out
}

// howToProceed says how to override the blocks, or that they cannot be overridden.
func howToProceed(s Overrider, v block.Verdict) string {
	var fixed []*shipper.RolloutBlock
	for _, b := range v.Effective {
		if b.Spec.OverridePolicy == shipper.RolloutBlockNobody {
			fixed = append(fixed, b)
		}
	}
	if len(fixed) > 0 {
		return "Nobody may override " + block.FormatOverrides(block.Names(fixed)) +
			": wait until it ends, or ask its author to lift it"
	}
	rights, reason := false, false
	for _, b := range added(s, v) {
		rights = rights || b.Spec.OverridePolicy != shipper.RolloutBlockAnyone
		reason = reason || b.Spec.RequireOverrideReason
	}
	out := "To override: " + howToOverride(s, v, reason)
	if rights {
		out += " (the verb override on these rolloutblocks is needed)"
	}
	return out
}

// added are the blocks that s still has to override. If s stands for several objects, that includes blocks that some of them
// override.
func added(s Overrider, v block.Verdict) []*shipper.RolloutBlock {
	return slices.DeleteFunc(slices.Concat(v.Effective, v.Overridden), func(b *shipper.RolloutBlock) bool {
		return slices.Contains(s.Overrides, block.Name(b)) && !slices.Contains(v.Effective, b)
	})
}

// howToOverride adds to the existing overrides. kubectl changes an existing annotation only with --overwrite.
func howToOverride(s Overrider, v block.Verdict, reason bool) string {
	names := slices.Concat(block.Names(added(s, v)), s.Overrides)
	override := block.FormatOverrides(names)
	if s.New {
		out := fmt.Sprintf("add the annotation %s: %s", shipper.RolloutBlockOverrideAnnotation, override)
		if reason {
			out += fmt.Sprintf(", and %s: <why>", shipper.RolloutBlockOverrideReasonAnnotation)
		}
		return out
	}
	command := fmt.Sprintf("kubectl annotate %s %s %s=%s -n %s",
		s.Short, s.Name, shipper.RolloutBlockOverrideAnnotation, override, s.Namespace)
	if reason {
		command += fmt.Sprintf(" %s='<why>'", shipper.RolloutBlockOverrideReasonAnnotation)
	}
	if s.Annotated {
		command += " --overwrite"
	}
	return command
}
