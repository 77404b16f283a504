// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// at makes a step. after is empty where the step waits for a person.
func at(name string, capacity, traffic shipper.RolloutStrategyStepValue, after shipper.Duration) shipper.RolloutStrategyStep {
	return shipper.RolloutStrategyStep{Name: name, Capacity: capacity, Traffic: traffic, After: after}
}

// pair is a number for the contender and one for the incumbent.
func pair(contender, incumbent int32) shipper.RolloutStrategyStepValue {
	return shipper.RolloutStrategyStepValue{Contender: contender, Incumbent: incumbent}
}

// fullOn is the last step of every strategy.
func fullOn() shipper.RolloutStrategyStep { return at("full on", pair(100, 0), pair(100, 0), "") }

// analysed gives a step the checks of an analysis. Without all of them, the step waits for a person.
func analysed(step *shipper.RolloutStrategyStep, d document, by *analysis, field string, templates *index, report *report) error {
	if by == nil {
		return nil
	}
	checks, whole, err := templates.checks(d, by, field, report)
	if err != nil {
		return err
	}
	step.Checks = checks
	if !whole {
		step.After = ""
		report.add(field, "the step %q waits for a person instead", step.Name)
	}
	return nil
}

// canaryWalk follows the steps of a canary. What changes up to a pause becomes one step.
type canaryWalk struct {
	replicas int32
	// total is the weight that is all of the traffic.
	total int32
	// routed reports that a traffic provider distributes requests: the incumbent then keeps its Pods, unless dynamic reports that it has
	// as many as its weight needs.
	routed, dynamic bool

	// weight of the contender, and its Pods in percent where they do not follow from the weight.
	weight int32
	scale  *int32
	// begun names the step that is not at its pause yet; weighed reports that it sets the weight.
	begun   string
	weighed bool
	steps   []shipper.RolloutStrategyStep
	// followed is the index of the step of Argo's that is followed, and ends has those at which steps ended.
	followed int
	ends     []int

	templates *index
}

// canarySteps converts a canary strategy.
func canarySteps(d document, r *rollout, out *shipper.RolloutStrategy, templates *index, report *report) error {
	from := r.Spec.Strategy.Canary
	walk := canaryWalk{replicas: r.replicas(), total: 100, templates: templates}
	if from.TrafficRouting != nil {
		walk.routed, walk.dynamic = true, from.DynamicStableScale
		if heaviest := from.TrafficRouting.MaxTrafficWeight; heaviest != nil {
			walk.total = *heaviest
		}
	}
	if walk.total < 1 {
		return d.failed("spec.strategy.canary.trafficRouting.maxTrafficWeight", "is less than 1")
	}
	raw, _, err := unstructured.NestedSlice(d.Object, "spec", "strategy", "canary", "steps")
	if err != nil {
		return d.failed("spec.strategy.canary.steps", "is not a list")
	}
	for i, step := range from.Steps {
		field := fmt.Sprintf("spec.strategy.canary.steps[%d]", i)
		walk.followed = i
		if step.Analysis != nil {
			analysis, _ := present(raw[i])["analysis"].(map[string]any)
			report.keys(analysis, convertedAnalysis, unconvertedAnalysis, field+".analysis")
		}
		for _, key := range slices.Sorted(maps.Keys(convertedBelow)) {
			below, _ := present(raw[i])[key].(map[string]any)
			report.keys(below, convertedBelow[key], nil, field+"."+key)
		}
		if err := walk.take(d, step, present(raw[i]), field, report); err != nil {
			return err
		}
	}
	if walk.begun != "" && walk.weight < walk.total {
		walk.end("", "0s")
	}
	walk.shares(from.Steps, report)
	out.Steps = append(slices.Clip(walk.steps), walk.promotion(r, report)...)
	if err := walk.background(d, from.Analysis, out, report); err != nil || walk.routed {
		return err
	}
	return compareSurge(d, r, out.Steps, report)
}

// promotion are the steps after Argo's: with trafficRouting, the Pods of the version before stay for a time.
func (w *canaryWalk) promotion(r *rollout, report *report) []shipper.RolloutStrategyStep {
	const field = "spec.strategy.canary."
	from := r.Spec.Strategy.Canary
	if w.routed {
		compareAbort(from.AbortScaleDownDelaySeconds, field, report)
	}
	if delay := r.scaleDownDelay(from.ScaleDownDelaySeconds, field, report); w.routed && !w.dynamic && delay != "0s" {
		return []shipper.RolloutStrategyStep{at("promoted", pair(100, 100), pair(100, 0), delay), fullOn()}
	}
	return []shipper.RolloutStrategyStep{fullOn()}
}

// background converts the analysis that Argo makes beside the steps from startingStep on.
func (w *canaryWalk) background(d document, by *analysis, out *shipper.RolloutStrategy, report *report) error {
	const field = "spec.strategy.canary.analysis"
	if by == nil {
		return nil
	}
	checks, _, err := w.templates.checks(d, by, field, report)
	if err != nil {
		return err
	}
	w.templates.counted(d, by, report, field)
	early := slices.IndexFunc(w.ends, func(end int) bool { return end >= int(by.StartingStep) })
	before := w.steps
	if early >= 0 {
		before = w.steps[:early]
	}
	// Argo measures until the last step is over. Checks of the strategy would be measured while the Pods of the version before stay, too.
	promoted := len(out.Steps) > len(w.steps)+1
	if !promoted && !slices.ContainsFunc(before, func(s shipper.RolloutStrategyStep) bool { return s.Traffic.Contender > 0 }) {
		out.Checks = checks
		return nil
	}
	for i := len(before); i < len(w.steps); i++ {
		step := &out.Steps[i]
		if step.Traffic.Contender == 0 {
			continue
		}
		if step.Checks = append(step.Checks, checks...); len(step.Checks) > maxChecks {
			return d.failed(field, "gives the step %q %d checks, and a step has %d at most", step.Name, len(step.Checks), maxChecks)
		}
	}
	if len(before) == len(w.steps) {
		report.add(field+".startingStep", "is after the last step: nothing is checked")
	}
	return nil
}

// exclusive are the fields of which Argo accepts one in a step.
var exclusive = []string{"analysis", "experiment", "pause", "setWeight"}

// take follows one step of Argo's, which is at field and has the fields that are present. A step may set several things at once, and
// ends by the first of pause, setCanaryScale, setWeight, experiment and analysis, then the others.
func (w *canaryWalk) take(d document, step canaryStep, fields map[string]any, field string, report *report) error {
	keys := slices.Sorted(maps.Keys(fields))
	found := slices.DeleteFunc(slices.Clone(exclusive), func(key string) bool { return fields[key] == nil })
	switch {
	case len(keys) == 0:
		return d.failed(field, "is empty: write what it does, such as setWeight, or delete it")
	case len(found) > 1:
		return d.failed(field, "has %s, of which Argo accepts one: make a step of each", strings.Join(found, " and "))
	}
	if step.SetCanaryScale != nil {
		if w.begun != "" {
			w.endBefore()
		}
		if err := w.rescale(d, *step.SetCanaryScale, field+".setCanaryScale"); err != nil {
			return err
		}
	}
	if step.SetWeight != nil {
		if *step.SetWeight < 0 || *step.SetWeight > w.total {
			return d.failed(field+".setWeight", "must be from 0 to %d", w.total)
		}
		if w.weighed {
			w.endBefore()
		}
		w.weight, w.weighed, w.begun = *step.SetWeight, true, fmt.Sprintf("weight %d", *step.SetWeight)
	}
	for _, key := range keys {
		if skippableSteps[key] {
			report.add(field+"."+key, "%s", adviceFor(key))
		}
	}
	return w.finish(d, step, keys, field, report)
}

// finish ends a step where Argo waits for something.
func (w *canaryWalk) finish(d document, step canaryStep, keys []string, field string, report *report) error {
	scaled := ""
	if step.SetCanaryScale != nil {
		scaled = "; Argo does not wait for it, but only for the Pods of setCanaryScale"
	}
	switch {
	case step.Pause != nil:
		after, err := pauseOf(step.Pause.Duration)
		if err != nil {
			return d.failed(field+".pause.duration", "%w", err)
		}
		if after == nil {
			w.end("pause", "")
		} else {
			w.end("pause", bounded(*after, field+".pause.duration", report))
		}
	case step.Analysis != nil:
		w.end("analysis", "0s")
		if scaled != "" {
			report.add(field+".analysis", "the step %q waits for its checks%s", w.steps[len(w.steps)-1].Name, scaled)
		}
		return analysed(&w.steps[len(w.steps)-1], d, step.Analysis, field+".analysis", w.templates, report)
	}
	for _, key := range keys {
		switch {
		case convertedSteps[key] || skippableSteps[key]:
		case len(keys) == 1: // Argo stops here until it has a result: without one, the step waits for a person.
			w.end(key, "")
			report.add(field+"."+key, "%s; the step %q waits for a person instead", adviceFor(key), w.steps[len(w.steps)-1].Name)
		default:
			report.add(field+"."+key, "%s; Argo does not wait for it beside %s", adviceFor(key), beside(keys, key))
		}
	}
	return nil
}

// beside are the other fields of a step.
func beside(keys []string, key string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(keys), func(other string) bool { return other == key }), ", ")
}

// rescale sets the contender's Pods without its weight.
func (w *canaryWalk) rescale(d document, scale canaryScale, field string) error {
	switch {
	case scale.Replicas != nil && *scale.Replicas >= 0:
		w.scale = new(percentOf(*scale.Replicas, w.replicas))
		w.begun = fmt.Sprintf("scale %d%%", *w.scale)
	case scale.Weight != nil && *scale.Weight >= 0:
		w.scale = new(ceil(min(*scale.Weight, w.total), w.total))
		w.begun = fmt.Sprintf("scale %d%%", *w.scale)
	case scale.MatchTrafficWeight:
		w.scale, w.begun = nil, fmt.Sprintf("weight %d", w.weight)
	default:
		return d.failed(field, "must have weight or replicas, at least 0, or matchTrafficWeight: true")
	}
	return nil
}

// endBefore adds the step that was begun before the one that is followed.
func (w *canaryWalk) endBefore() {
	w.followed--
	w.end("", "0s")
	w.followed++
}

// end adds the step that was begun, or one of this name that only waits.
func (w *canaryWalk) end(name string, after shipper.Duration) {
	capacity := pair(ceil(w.weight, w.total), 100)
	switch {
	case w.scale != nil:
		capacity.Contender = *w.scale
	case !w.routed:
		capacity.Incumbent = 100 - capacity.Contender
	}
	if w.dynamic {
		capacity.Incumbent = ceil(w.total-w.weight, w.total)
	}
	w.steps = append(w.steps, at(cmp.Or(w.begun, name), capacity, pair(w.weight, w.total-w.weight), after))
	w.ends = append(w.ends, w.followed)
	w.begun, w.weighed = "", false
}

// ceil is a share of a total in percent, rounded up.
func ceil(share, total int32) int32 {
	return int32((100*int64(share) + int64(total) - 1) / int64(total))
}

// percentOf is the percentage of total that makes so many Pods, which Shipper rounds up; 100 at most.
func percentOf(pods, total int32) int32 {
	if pods >= total {
		return 100
	}
	percent := 100 * int64(pods) / int64(total)
	if percent*int64(total) <= 100*(int64(pods)-1) { // rounded down, it would make a Pod less
		percent++
	}
	return int32(percent)
}

// pauseOf is how long a pause takes: a number is in seconds. Nil means until a person goes on.
func pauseOf(duration *intstr.IntOrString) (*time.Duration, error) {
	if duration == nil {
		return nil, nil
	}
	value, err := time.ParseDuration(duration.StrVal)
	if seconds, wrong := strconv.ParseInt(duration.String(), 10, 32); wrong == nil {
		value, err = time.Duration(seconds)*time.Second, nil
	}
	if err != nil || value < 0 {
		return nil, fmt.Errorf("is %q, and must be a number of seconds or a duration such as 10m or 1h", duration.String())
	}
	return &value, nil
}

// bounded formats a duration that is at field, and reports one that is too long.
func bounded(d time.Duration, field string, report *report) shipper.Duration {
	if d > maxDuration {
		report.add(field, "must be at most 720h in an Application: it becomes 720h")
		d = maxDuration
	}
	return format(d)
}

// format writes a duration in h, m and s, rounded up to seconds.
func format(d time.Duration) shipper.Duration {
	seconds := int64((d + time.Second - 1) / time.Second)
	text := ""
	for _, unit := range []struct {
		seconds int64
		name    string
	}{{3600, "h"}, {60, "m"}, {1, "s"}} {
		if n := seconds / unit.seconds; n > 0 {
			text += strconv.FormatInt(n, 10) + unit.name
			seconds %= unit.seconds
		}
	}
	return shipper.Duration(cmp.Or(text, "0s"))
}
