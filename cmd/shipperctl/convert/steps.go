// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
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

// blueGreenSteps are those of a blue/green strategy: preview, switched, full on.
func blueGreenSteps(d document, r *rollout, templates *index, report *report) ([]shipper.RolloutStrategyStep, error) {
	const field = "spec.strategy.blueGreen."
	from := r.Spec.Strategy.BlueGreen
	for _, number := range []struct {
		name  string
		value *int32
	}{
		{"autoPromotionSeconds", &from.AutoPromotionSeconds}, {"scaleDownDelaySeconds", from.ScaleDownDelaySeconds},
		{"previewReplicaCount", from.PreviewReplicaCount},
	} {
		if number.value != nil && *number.value < 0 {
			return nil, d.failed(field+number.name, "is less than 0")
		}
	}
	contender := int32(100)
	if from.PreviewReplicaCount != nil {
		contender = percentOf(*from.PreviewReplicaCount, r.replicas())
	}
	preview := at("preview", pair(contender, 100), pair(0, 100), "")
	if from.AutoPromotionEnabled != nil && !*from.AutoPromotionEnabled {
		preview.Gate = &shipper.StepGate{}
	} else {
		preview.After = bounded(time.Duration(from.AutoPromotionSeconds)*time.Second, field+"autoPromotionSeconds", report)
	}
	delay := int32(30) // Argo's default
	if from.ScaleDownDelaySeconds != nil {
		delay = *from.ScaleDownDelaySeconds
	}
	after := bounded(time.Duration(delay)*time.Second, field+"scaleDownDelaySeconds", report)
	switched := at("switched", pair(100, 100), pair(100, 0), after)
	if err := analysed(&preview, d, from.PrePromotionAnalysis, field+"prePromotionAnalysis", templates, report); err != nil {
		return nil, err
	}
	if err := analysed(&switched, d, from.PostPromotionAnalysis, field+"postPromotionAnalysis", templates, report); err != nil {
		return nil, err
	}
	return []shipper.RolloutStrategyStep{preview, switched, fullOn()}, nil
}

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
	// routed reports that a traffic provider distributes requests: the incumbent then keeps its Pods.
	routed bool

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
		walk.routed = true
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
		keys := slices.Sorted(maps.Keys(present(raw[i])))
		if len(keys) != 1 {
			return d.failed(field, "has %d fields: exactly one of setWeight, setCanaryScale, pause and others must be there", len(keys))
		}
		walk.followed = i
		if step.Analysis != nil {
			analysis, _ := present(raw[i])["analysis"].(map[string]any)
			report.keys(analysis, convertedAnalysis, unconvertedAnalysis, field+".analysis")
		}
		if err := walk.take(d, step, keys[0], field, report); err != nil {
			return err
		}
	}
	if walk.begun != "" && walk.weight < walk.total {
		walk.end("", "0s")
	}
	out.Steps = append(walk.steps, fullOn())
	return walk.background(d, from.Analysis, out, report)
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
	if !slices.ContainsFunc(before, func(s shipper.RolloutStrategyStep) bool { return s.Traffic.Contender > 0 }) {
		out.Checks = checks
		return nil
	}
	for i := len(before); i < len(w.steps); i++ {
		step := &out.Steps[i]
		if step.Checks = append(step.Checks, checks...); len(step.Checks) > maxChecks {
			return d.failed(field, "gives the step %q %d checks, and a step has %d at most", step.Name, len(step.Checks), maxChecks)
		}
	}
	if len(before) == len(w.steps) {
		report.add(field+".startingStep", "is after the last step: nothing is checked")
	}
	return nil
}

// take follows one step of Argo's, which is at field and has only key.
func (w *canaryWalk) take(d document, step canaryStep, key, field string, report *report) error {
	switch {
	case step.SetWeight != nil:
		if *step.SetWeight < 0 || *step.SetWeight > w.total {
			return d.failed(field+".setWeight", "must be from 0 to %d", w.total)
		}
		if w.weighed {
			w.endBefore()
		}
		w.weight, w.weighed, w.begun = *step.SetWeight, true, fmt.Sprintf("weight %d", *step.SetWeight)
	case step.SetCanaryScale != nil:
		if w.begun != "" {
			w.endBefore()
		}
		return w.rescale(d, *step.SetCanaryScale, field+".setCanaryScale")
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
		return analysed(&w.steps[len(w.steps)-1], d, step.Analysis, field+".analysis", w.templates, report)
	case skippableSteps[key]:
		report.add(field+"."+key, "%s", adviceFor(key))
	default: // Argo stops here until it has a result: without one, the step waits for a person.
		w.end(key, "")
		report.add(field+"."+key, "%s; the step %q waits for a person instead", adviceFor(key), w.steps[len(w.steps)-1].Name)
	}
	return nil
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
