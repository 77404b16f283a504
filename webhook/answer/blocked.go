// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// CauseBlocked is the type of the causes of a refusal by blocks, one for each block.
const CauseBlocked metav1.CauseType = "RolloutBlock"

// Subject is the object whose override annotation counts.
type Subject struct {
	// Short is the resource's short name, as a user types it: app or rel.
	Short string
	// Namespace and Name are those of the object.
	Namespace, Name string
	// Annotated is true when it has an override annotation, be it an empty one.
	Annotated bool
	// New is true while the object does not exist yet, and therefore cannot be annotated.
	New bool
}

// Refuse says which blocks stop a change of the object of resource (a plural) and name, who put them there, since when
// and what for, and how subject could override them.
func Refuse(resource, name string, subject Subject, v block.Verdict, now time.Time) error {
	stories, causes := make([]string, 0, len(v.Effective)), make([]metav1.StatusCause, 0, len(v.Effective))
	for _, b := range v.Effective {
		key := block.Name(b).String()
		stories = append(stories, key+" ("+story(b, now)+")")
		causes = append(causes, metav1.StatusCause{Type: CauseBlocked, Message: key + ": " + oneLine(b.Spec.Message)})
	}
	message := "rollouts blocked by: " + strings.Join(stories, ", ") + ". To override: " + howToOverride(subject, v) +
		" (the verb override on these rolloutblocks is needed)"
	return &Refusal{Decision: Blocked, Status: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: message,
		Details: &metav1.StatusDetails{Group: shipper.GroupName, Kind: resource, Name: name, Causes: causes},
	}}
}

func story(b *shipper.RolloutBlock, now time.Time) string {
	author := oneLine(b.Spec.Author.Name)
	if author == "" {
		author = "unknown author"
	}
	age := duration.HumanDuration(max(now.Sub(b.CreationTimestamp.Time), 0))
	return fmt.Sprintf("%s; %s, %s ago", oneLine(b.Spec.Message), author, age)
}

// howToOverride adds to the overrides that are there. kubectl does not change an annotation unless it is told to.
func howToOverride(s Subject, v block.Verdict) string {
	names := slices.Concat(block.Names(v.Effective), block.Names(v.Overridden))
	override := block.FormatOverrides(names)
	if s.New {
		return fmt.Sprintf("add the annotation %s: %s", shipper.RolloutBlockOverrideAnnotation, override)
	}
	command := fmt.Sprintf("kubectl annotate %s %s %s=%s -n %s",
		s.Short, s.Name, shipper.RolloutBlockOverrideAnnotation, override, s.Namespace)
	if s.Annotated {
		command += " --overwrite"
	}
	return command
}
