// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"slices"
	"strings"
	"time"

	checkrules "shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Names of the steps of a Canary besides its weights.
const (
	confirmRollout   = "confirm-rollout"
	preRollout       = "pre-rollout"
	underTest        = "testing"
	confirmPromotion = "confirm-promotion"
)

// hookUse is what the webhooks of one type do: their Checks, and whether a person decides instead of one.
type hookUse struct {
	checks []shipper.StepCheck
	gate   bool
}

// flaggerSteps is what the steps of a Canary are made of.
type flaggerSteps struct {
	hooks map[string]*hookUse
	// measured are the Checks of metrics.
	measured []shipper.StepCheck
}

// by is what webhooks of a type do.
func (s *flaggerSteps) by(kind string) *hookUse {
	if s.hooks[kind] == nil {
		s.hooks[kind] = &hookUse{}
	}
	return s.hooks[kind]
}

// byPerson has a person decide instead of a webhook or a metric.
func (s *flaggerSteps) byPerson(kind string) string {
	s.by(kind).gate = true
	return "the steps that need it wait for a person instead"
}

// analysed are the checks of each measurement of Flagger. whole is false if a person has to judge, too.
func (s *flaggerSteps) analysed() (checks []shipper.StepCheck, whole bool) {
	checks = slices.Concat(s.by(hookRollout).checks, s.measured, s.by(hookRollback).checks)
	return checks, !s.by(hookRollout).gate && !s.by(hookRollback).gate
}

// strategy converts the analysis.
func (c *canaryConversion) strategy() (*shipper.RolloutStrategy, error) {
	out := &shipper.RolloutStrategy{
		FirstRelease: shipper.FirstReleaseImmediate, PreviewWhenIdle: shipper.PreviewWhenIdleNone, OnFailure: shipper.OnFailureAbort,
		ProgressDeadline: progressDeadline(c.deadline(), c.report),
	}
	s := &flaggerSteps{hooks: map[string]*hookUse{}}
	if c.skips() {
		out.Steps = []shipper.RolloutStrategyStep{at("new Pods", pair(100, 100), pair(0, 100), "0s"), fullOn()}
		return out, nil
	}
	c.metrics(s)
	c.hooks(s)
	steps := hookStep(confirmRollout, pair(0, 100), pair(0, 100), s.by(hookConfirmRollout))
	switch weights := c.weights(); {
	case c.iterations() > 0:
		steps = append(steps, c.switchSteps(s)...)
	case len(weights) > 0:
		steps = append(steps, c.weightSteps(s, weights)...)
		out.Checks, _ = s.analysed()
	default:
		c.report.add(c.analysisField(), "has neither iterations nor stepWeight nor stepWeights, so that Flagger never promotes: the step %q "+
			"waits for a person", underTest)
		steps = append(steps, at(underTest, pair(100, 100), pair(0, 100), ""))
	}
	out.Steps = append(steps, fullOn())
	if len(out.Steps) > maxSteps {
		return nil, c.failed(c.analysisField(), "becomes %d steps, and an Application has %d at most: raise stepWeight", len(out.Steps), maxSteps)
	}
	for i := range out.Steps {
		if n := len(out.ChecksAt(int32(i))); n > maxChecks {
			return nil, c.failed(c.analysisField(), "makes %d checks at the step %q, and a step has %d at most", n, out.Steps[i].Name, maxChecks)
		}
	}
	unique(out)
	c.shares(out.Steps)
	c.limits(out)
	return out, nil
}

// hookStep is a step for webhooks alone; none if there are no such webhooks.
func hookStep(name string, capacity, traffic shipper.RolloutStrategyStepValue, by ...*hookUse) []shipper.RolloutStrategyStep {
	step, any := at(name, capacity, traffic, "0s"), false
	for _, use := range by {
		step.Checks = append(step.Checks, use.checks...)
		any = any || use.gate || len(use.checks) > 0
		if use.gate {
			wait(&step)
		}
	}
	if !any {
		return nil
	}
	return []shipper.RolloutStrategyStep{step}
}

// wait has a step wait for a person.
func wait(step *shipper.RolloutStrategyStep) { step.After, step.Gate = "", &shipper.StepGate{} }

// switchSteps are those of a Canary with iterations: all new Pods are tested without weight, and then get all requests.
func (c *canaryConversion) switchSteps(s *flaggerSteps) []shipper.RolloutStrategyStep {
	checks, whole := s.analysed()
	full, none := pair(100, 100), pair(0, 100)
	steps := hookStep(preRollout, full, none, s.by(hookPreRollout))
	n := c.iterations()
	test := at(underTest, full, none, bounded(c.interval()*time.Duration(n), c.analysisField()+".iterations", c.report))
	test.Checks = slices.Concat(checks, s.by(hookConfirmPromotion).checks)
	steps = append(steps, test)
	if !whole || s.by(hookConfirmPromotion).gate {
		confirm := at(confirmPromotion, full, none, "")
		wait(&confirm)
		steps = append(steps, confirm)
	}
	if c.onKubernetes() {
		c.report.add("spec.provider", "kubernetes replaces the old Pods one after the other: here all requests go to the new Pods at once, when "+
			"all of them are ready")
		return steps
	}
	if len(c.analysis().Match) > 0 {
		return steps
	}
	switched := at("switched", full, pair(100, 0), format(c.interval()))
	switched.Checks = checks
	if !whole {
		wait(&switched)
	}
	if len(checks) > 0 && n > 1 {
		c.report.add(c.analysisField()+".iterations", "%d is how often each Check measures also at the step %q, where Flagger measures once: "+
			"the old Pods stay %s longer", n, switched.Name, format(c.interval()*time.Duration(n-1)))
	}
	return append(steps, switched)
}

// weightSteps are those of a Canary with weights.
func (c *canaryConversion) weightSteps(s *flaggerSteps, weights []int32) []shipper.RolloutStrategyStep {
	_, whole := s.analysed()
	more, promotion := s.by(hookConfirmTraffic), s.by(hookConfirmPromotion)
	steps := hookStep(preRollout, pair(c.capacity(weights[0]), 100), pair(0, 100), s.by(hookPreRollout), more)
	for _, weight := range weights {
		step := at(fmt.Sprintf("weight %d", weight), pair(c.capacity(weight), 100), pair(weight, 100-weight), format(c.interval()))
		step.Checks = slices.Clone(more.checks)
		if more.gate || !whole {
			wait(&step)
		}
		steps = append(steps, step)
	}
	last := &steps[len(steps)-1]
	last.Checks = append(last.Checks, promotion.checks...)
	if promotion.gate && last.Gate == nil {
		confirm := at(confirmPromotion, last.Capacity, last.Traffic, "")
		wait(&confirm)
		steps = append(steps, confirm)
	}
	c.report.add(c.analysisField(), "has weights for a mesh or an ingress, and Flagger runs all %d new Pods from the beginning: here "+
		"requests are shared by the number of Pods, and a step has as many new Pods beside all old ones as its weight takes, at least 1", c.pods)
	return steps
}

// capacity is the percentage of new Pods that get the share of requests that a weight is, beside all old Pods.
func (c *canaryConversion) capacity(weight int32) int32 {
	if weight >= 50 {
		return 100
	}
	// Half a Pod is none: a share below the weight is safer than one above.
	pods := max((2*int64(c.pods)*int64(weight)+int64(100-weight)-1)/(2*int64(100-weight)), 1)
	if pods == (int64(c.pods)*int64(weight)+99)/100 {
		return weight
	}
	return percentOf(int32(pods), c.pods)
}

// weights are the shares of requests that Flagger gives the new Pods, one after another.
func (c *flaggerCanary) weights() (out []int32) {
	from := c.analysis()
	listed := from.StepWeights
	if from.StepWeight <= 0 && len(listed) == 0 {
		return nil
	}
	most := from.MaxWeight
	if most <= 0 {
		most = 100
	}
	if from.StepWeight <= 0 {
		most = min(listed[len(listed)-1], 100)
	}
	for weight := int32(0); weight < most && len(out) <= maxSteps; {
		next := weight + from.StepWeight
		if from.StepWeight <= 0 {
			next = 100
			if at := slices.Index(listed, weight); at >= 0 && at < len(listed)-1 {
				next = listed[at+1]
			} else if weight == 0 {
				next = listed[0]
			}
		}
		weight = min(max(next, 0), 100)
		out = append(out, weight)
	}
	return out
}

// metrics gives the steps the Checks of metrics, and reports those that have none.
func (c *canaryConversion) metrics(s *flaggerSteps) {
	for i, m := range c.analysis().Metrics {
		field := fmt.Sprintf("%s.metrics[%d]", c.analysisField(), i)
		switch {
		case m.TemplateRef != nil:
			check, found := c.checks[metricKey{c.index, i}]
			switch {
			case !found:
				c.report.add(field+".templateRef", "names the MetricTemplate %s, which is not in the input: add it, and convert both together; %s",
					m.TemplateRef.Name, s.byPerson(hookRollout))
			case check == nil:
				c.report.add(field+".templateRef", "names the MetricTemplate %s, which has no Check; %s", m.TemplateRef.Name, s.byPerson(hookRollout))
			default:
				s.measured = append(s.measured, shipper.StepCheck{
					Check: checkReference(check.Name, check.Namespace == checkrules.SharedNamespace),
				})
			}
		case m.Query != "":
			s.measured = append(s.measured, shipper.StepCheck{Check: c.queryCheckName(c.document, i)})
		default:
			c.report.add(field, "%s (%s) is a metric that Flagger measures by its mesh: write a Check with the query of yours, `pass: %s`, "+
				"interval %s and failureLimit %d, and name it in the steps; %s", m.Name, m.limits(), m.expression(), format(c.interval()),
				c.failureLimit(), s.byPerson(hookRollout))
		}
	}
}

// limits reports how Flagger counts failures, if anything is measured.
func (c *canaryConversion) limits(s *shipper.RolloutStrategy) {
	if !checkrules.Counts(s) {
		return
	}
	c.report.add(c.analysisField()+".threshold", "%d failed measurements of all metrics and webhooks, in the whole analysis, end it: here "+
		"each Check has failureLimit: %d at each step, and one failure more aborts the rollout", c.threshold(), c.failureLimit())
	c.report.add(c.analysisField()+".metrics", "a server that does not answer counts as a failed measurement: here it counts as none, and "+
		"after 5 one after another a person decides")
}

// builtIn reports whether Flagger has the query of a metric, for each mesh.
func (m canaryMetric) builtIn() bool { return m.TemplateRef == nil && m.Query == "" }

// bounds are the least and the greatest good value of a metric that Flagger has itself; nil means none.
func (m canaryMetric) bounds() thresholdRange {
	switch {
	case m.ThresholdRange != nil:
		return *m.ThresholdRange
	case m.Name == "request-success-rate":
		return thresholdRange{Min: &m.Threshold}
	}
	return thresholdRange{Max: &m.Threshold}
}

// limits says the bounds of a metric.
func (m canaryMetric) limits() string {
	var out []string
	if least := m.bounds().Min; least != nil {
		out = append(out, fmt.Sprintf("at least %v", *least))
	}
	if most := m.bounds().Max; most != nil {
		out = append(out, fmt.Sprintf("at most %v", *most))
	}
	if len(out) == 0 {
		return "any value"
	}
	return strings.Join(out, ", ") + m.unit()
}

// unit is that of a metric that Flagger has itself.
func (m canaryMetric) unit() string {
	switch m.Name {
	case "request-success-rate":
		return " %"
	case "request-duration":
		return " ms"
	}
	return ""
}

// expression is the expression of a Check for the bounds.
func (m canaryMetric) expression() string { return m.bounds().expression() }
