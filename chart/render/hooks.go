// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
)

const (
	// defaultHookTimeout is Helm's.
	defaultHookTimeout = 5 * time.Minute
	// maxHookTimeout bounds what a chart may ask for.
	maxHookTimeout = 24 * time.Hour
)

// Hook is an object that Helm's annotations mark to be run at a moment of an installation instead of being installed.
type Hook struct {
	// Events are the moments: pre-install and the like.
	Events []release.HookEvent
	// Weight orders the hooks of one moment, the least first; 0 when absent or not a number, as in Helm.
	Weight int
	// Delete says when to remove the object; before-hook-creation by default.
	Delete []release.HookDeletePolicy
	// Timeout is how long it may take: the annotation shipper.booking.com/hook-timeout, 5 minutes when absent.
	Timeout time.Duration
}

// runs are the moments of Helm.
var runs = map[string]release.HookEvent{
	"pre-install": release.HookPreInstall, "post-install": release.HookPostInstall,
	"pre-upgrade": release.HookPreUpgrade, "post-upgrade": release.HookPostUpgrade,
	"pre-rollback": release.HookPreRollback, "post-rollback": release.HookPostRollback,
	"pre-delete": release.HookPreDelete, "post-delete": release.HookPostDelete,
	"test": release.HookTest, "test-success": release.HookTest,
}

// HookOf reads Helm's annotations. It returns nil for an object that is not a hook, and an error for a hook that Shipper does
// not run. A hook without events, Helm 2's test-failure, never runs.
func HookOf(o *unstructured.Unstructured) (*Hook, error) {
	annotations := o.GetAnnotations()
	given, isHook := annotations[release.HookAnnotation]
	if !isHook {
		return nil, nil
	}
	out := &Hook{Timeout: defaultHookTimeout}
	for event := range strings.SplitSeq(given, ",") {
		event = strings.ToLower(strings.TrimSpace(event))
		known, ok := runs[event]
		switch {
		case event == "crd-install": // of Helm 2: now an ordinary object
			return nil, nil
		case event == "test-failure":
			continue
		case !ok:
			return nil, fmt.Errorf("is a Helm hook (%s), and Shipper does not run %q; switch it off by the chart's values, or take "+
				"the annotation %s away to install it like any other object", chart.Shorten(given), chart.Shorten(event), release.HookAnnotation)
		}
		if !slices.Contains(out.Events, known) {
			out.Events = append(out.Events, known)
		}
	}
	out.Weight, _ = strconv.Atoi(annotations[release.HookWeightAnnotation])
	if policies, found := annotations[release.HookDeleteAnnotation]; found {
		for policy := range strings.SplitSeq(policies, ",") {
			out.Delete = append(out.Delete, release.HookDeletePolicy(strings.ToLower(strings.TrimSpace(policy))))
		}
	} else {
		out.Delete = []release.HookDeletePolicy{release.HookBeforeHookCreation}
	}
	if timeout, found := annotations[shipper.HookTimeoutAnnotation]; found {
		var err error
		if out.Timeout, err = time.ParseDuration(timeout); err != nil || out.Timeout <= 0 || out.Timeout > maxHookTimeout {
			return nil, fmt.Errorf("has the annotation %s: %q, which is not a duration between 1ns and 24h; write one like 10m",
				shipper.HookTimeoutAnnotation, chart.Shorten(timeout))
		}
	}
	return out, nil
}

// On reports whether the hook runs at a moment.
func (h *Hook) On(event release.HookEvent) bool { return slices.Contains(h.Events, event) }

// Deletes reports whether this policy removes the hook's object.
func (h *Hook) Deletes(when release.HookDeletePolicy) bool { return slices.Contains(h.Delete, when) }

// addHook adds an object if it is a hook, and reports whether it was one.
func (m *Manifest) addHook(source string, o *unstructured.Unstructured) (bool, error) {
	hook, err := HookOf(o)
	switch {
	case err != nil:
		return true, chartError("template %s: %s %q %s", source, o.GetKind(), chart.Shorten(o.GetName()), err)
	case hook == nil:
		return false, nil
	case len(hook.Events) > 0:
		m.hooks = append(m.hooks, *o)
		m.hookSources = append(m.hookSources, source)
	}
	return true, nil
}

// Hooks returns copies of the hooks in Helm's order: by weight, then by name, then by Helm's install order of kinds. They have
// the labels that mark objects of Shipper, but not those of the Release's Pods: the Pod of a hook has no part in capacity and
// traffic.
func (m Manifest) Hooks(t Target) ([]unstructured.Unstructured, error) {
	ordered := Manifest{Objects: m.hooks, sources: m.hookSources}
	ordered.sort()
	labels := map[string]string{shipper.AppLabel: t.App, shipper.OwnedByLabel: t.ReleaseName}
	out := make([]unstructured.Unstructured, 0, len(ordered.Objects))
	for i := range ordered.Objects {
		o := ordered.Objects[i].DeepCopy()
		if err := checkNamespace(o, ordered.source(i), t.Namespace); err != nil {
			return nil, err
		}
		removeMarks(o)
		if err := removeReserved(o, ordered.source(i), t); err != nil {
			return nil, err
		}
		if err := mergeLabels(o.Object, labels, "metadata", "labels"); err != nil {
			return nil, chartError("%s: %s", ordered.source(i), err)
		}
		if o.GetKind() == "Job" { // its delete policies apply, and only after its end was observed
			unstructured.RemoveNestedField(o.Object, "spec", "ttlSecondsAfterFinished")
		}
		out = append(out, *o)
	}
	slices.SortStableFunc(out, func(a, b unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(weight(&a), weight(&b)), strings.Compare(a.GetName(), b.GetName()))
	})
	return out, nil
}

func weight(o *unstructured.Unstructured) int {
	n, _ := strconv.Atoi(o.GetAnnotations()[release.HookWeightAnnotation])
	return n
}
