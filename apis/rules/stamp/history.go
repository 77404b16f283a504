// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Generation is the place of a Release in its Application's history, from 0.
func Generation(rel *shipper.Release) (int, error) {
	return counter(rel, shipper.ReleaseGenerationAnnotation)
}

// Iteration is how many Releases with the same environment came before, from 0.
func Iteration(rel *shipper.Release) (int, error) {
	return counter(rel, shipper.ReleaseTemplateIterationAnnotation)
}

func counter(rel *shipper.Release, annotation string) (int, error) {
	text, ok := rel.Annotations[annotation]
	if !ok {
		return 0, fmt.Errorf("release %q has no annotation %s", rel.Name, annotation)
	}
	n, err := parseCounter(text)
	if err != nil {
		return 0, fmt.Errorf("release %q: annotation %s: %w", rel.Name, annotation, err)
	}
	return n, nil
}

// parseCounter reads a decimal that is not negative; 32 bits leave room to add.
func parseCounter(text string) (int, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is not a decimal number from 0 on", text)
	}
	return int(n), nil
}

// HighestObserved is the generation of the newest Release that was ever materialised for app; known is false when none
// was.
func HighestObserved(app *shipper.Application) (generation int, known bool, err error) {
	text, ok := app.Annotations[shipper.AppHighestObservedGenerationAnnotation]
	if !ok {
		return 0, false, nil
	}
	n, err := parseCounter(text)
	if err != nil {
		return 0, false, fmt.Errorf("application %q: annotation %s: %w",
			app.Name, shipper.AppHighestObservedGenerationAnnotation, err)
	}
	return n, true, nil
}

// Restoring reports whether app was restored from a backup and waits for its newest Release: the highest observed generation is
// above newest's (nil for none), and app has no status conditions, or a history with missing Releases. Once a status was
// written, a missing Release counts as deleted.
func Restoring(app *shipper.Application, newest *shipper.Release) bool {
	highest, known, err := HighestObserved(app)
	if err != nil || !known {
		return false
	}
	if newest != nil {
		if generation, err := Generation(newest); err != nil || generation >= highest {
			return false
		}
	}
	valid := shipper.FindCondition(app.Status.Conditions, shipper.ApplicationValidHistory)
	return len(app.Status.Conditions) == 0 || valid != nil && valid.Reason == shipper.ReleasesMissing
}

// SortByGeneration returns the Releases that have a valid generation, oldest first, and separately, by name, the others. Equal
// generations, which only manual edits can cause, are ordered by age and then name.
func SortByGeneration(rels []*shipper.Release) (ordered, broken []*shipper.Release) {
	type numbered struct {
		*shipper.Release
		generation int
	}
	known := make([]numbered, 0, len(rels))
	for _, rel := range rels {
		generation, err := Generation(rel)
		if err != nil {
			broken = append(broken, rel)
			continue
		}
		known = append(known, numbered{rel, generation})
	}
	slices.SortFunc(known, func(a, b numbered) int {
		return cmp.Or(
			cmp.Compare(a.generation, b.generation),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			strings.Compare(a.Name, b.Name),
		)
	})
	slices.SortFunc(broken, func(a, b *shipper.Release) int { return strings.Compare(a.Name, b.Name) })
	if len(known) > 0 {
		ordered = make([]*shipper.Release, len(known))
	}
	for i, n := range known {
		ordered[i] = n.Release
	}
	return ordered, broken
}

// Own returns those of rels that are app's: they carry its label and no other Application owns them. A Release of a deleted
// Application of the same name, still to be collected, is not app's.
func Own(app *shipper.Application, rels []*shipper.Release) []*shipper.Release {
	var own []*shipper.Release
	for _, rel := range rels {
		if rel.Namespace == app.Namespace && rel.Labels[shipper.AppLabel] == app.Name && !ownedByOther(app, rel) {
			own = append(own, rel)
		}
	}
	return own
}

// OwnedBy reports whether an owner of an object is this one, and no earlier one of its name.
func OwnedBy(o, owner metav1.Object) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == owner.GetUID() })
}

func ownedByOther(app *shipper.Application, rel *shipper.Release) bool {
	for _, ref := range rel.OwnerReferences {
		if ref.Kind == applicationKind && strings.HasPrefix(ref.APIVersion, shipper.GroupVersion.Group+"/") &&
			ref.UID != app.UID {
			return true
		}
	}
	return false
}

// Clusters are the clusters chosen for a Release, sorted; none before they are chosen.
func Clusters(rel *shipper.Release) []string {
	var out []string
	for _, name := range strings.Split(rel.Annotations[shipper.ReleaseClustersAnnotation], ",") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
