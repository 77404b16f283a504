// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	checkrules "shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// flaggerHook is a webhook of an analysis.
type flaggerHook struct {
	Type     string            `json:"type"`
	Name     string            `json:"name"`
	URL      string            `json:"url"`
	Timeout  string            `json:"timeout"`
	Metadata map[string]string `json:"metadata"`
}

// Types of webhooks.
const (
	hookConfirmRollout   = "confirm-rollout"
	hookPreRollout       = "pre-rollout"
	hookRollout          = "rollout"
	hookConfirmTraffic   = "confirm-traffic-increase"
	hookConfirmPromotion = "confirm-promotion"
	hookPostRollout      = "post-rollout"
	hookRollback         = "rollback"
	hookEvent            = "event"
)

// hookKind is the type of a webhook; rollout if it names none.
func (h flaggerHook) hookKind() string { return cmp.Or(h.Type, hookRollout) }

// confirms reports whether the rollout waits at the webhook, and does not fail.
func (h flaggerHook) confirms() bool { return strings.HasPrefix(h.hookKind(), "confirm-") }

// path is that of the URL.
func (h flaggerHook) path() string {
	parsed, err := url.Parse(h.URL)
	if err != nil {
		return ""
	}
	return parsed.Path
}

// manual reports whether the webhook is the gate of Flagger's load tester that a person opens and closes.
func (h flaggerHook) manual() bool {
	return strings.Contains(h.path(), "/gate/") || strings.Contains(h.path(), "/rollback/")
}

// open reports whether the webhook is the gate of Flagger's load tester that is always open.
func (h flaggerHook) open() bool { return strings.HasSuffix(h.path(), "/gate/approve") }

// loads reports whether the webhook has Flagger's load tester make requests: it answers at once, and decides nothing.
func (h flaggerHook) loads() bool {
	kind := h.Metadata["type"]
	return h.hookKind() == hookRollout && h.Metadata["cmd"] != "" && (kind == "" || kind == "cmd")
}

// requested reports whether a Check makes the request of the webhook.
func (h flaggerHook) requested() bool {
	switch h.hookKind() {
	case hookConfirmRollout, hookConfirmTraffic, hookConfirmPromotion, hookRollback:
		return !h.manual()
	case hookPreRollout, hookRollout:
		return !h.loads()
	}
	return false
}

// hookCheckName is the name of the Check of a webhook.
func (c *flaggerCanary) hookCheckName(d document, i int) string {
	return d.GetName() + "-" + cmp.Or(checkSuffix(c.analysis().Webhooks[i].Name), fmt.Sprintf("webhook-%d", i))
}

// queryCheckName is the name of the Check of a metric that has a query of its own.
func (c *flaggerCanary) queryCheckName(d document, i int) string {
	return d.GetName() + "-" + cmp.Or(checkSuffix(c.analysis().Metrics[i].Name), fmt.Sprintf("metric-%d", i))
}

// ownChecks are the Checks of webhooks, and of metrics with queries of their own, if the Canary becomes an Application.
func (c *flaggerCanary) ownChecks(all []document) (out []convertedCheck) {
	if at, _ := c.target(all); at < 0 || c.skips() {
		return nil
	}
	d := all[c.index]
	for i, m := range c.analysis().Metrics {
		if m.TemplateRef != nil || m.Query == "" {
			continue
		}
		report := &report{object: d.title()}
		t := &metricTemplate{}
		t.Spec.Provider.Type, t.Spec.Provider.Address, t.Spec.Query = "prometheus", c.Spec.MetricsServer, m.Query
		out = append(out, convertedCheck{checkOfMetric(bare(d), t, c.use(d, i), c.queryCheckName(d, i), report), report.reviews})
	}
	for i, h := range c.analysis().Webhooks {
		if !h.requested() {
			continue
		}
		report := &report{object: d.title()}
		if check := c.hookCheck(d, i, report); check != nil {
			out = append(out, convertedCheck{check, report.reviews})
		}
	}
	return out
}

// bare is a document of the same name without labels and annotations.
func bare(d document) document {
	out := document{file: d.file, number: d.number, first: d.first}
	out.SetKind(d.GetKind())
	out.SetName(d.GetName())
	out.SetNamespace(d.GetNamespace())
	return out
}

// hookCheck is the Check that makes the request of a webhook; nil if its URL cannot be requested.
func (c *flaggerCanary) hookCheck(d document, i int, report *report) *shipper.Check {
	h, field := c.analysis().Webhooks[i], fmt.Sprintf("%s.webhooks[%d]", c.analysisField(), i)
	address := escaped(h.URL)
	parsed, err := url.Parse(h.URL)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" || len(address) > maxURL {
		return nil
	}
	report.add(field+".url", "%s %s; Shipper requests it once for each cluster, from the management cluster: expose it there if it is inside "+
		"of an application cluster", address, listURL)
	check := &shipper.Check{TypeMeta: metav1.TypeMeta{APIVersion: shipper.GroupVersion.String(), Kind: "Check"}}
	check.Name, check.Namespace = c.hookCheckName(d, i), d.GetNamespace()
	spec := &check.Spec
	spec.HTTP = &shipper.HTTPCheck{URL: address, Method: "POST", Body: hookBody(h)}
	spec.Interval = format(c.interval())
	c.hookTimeout(spec, field, report)
	c.hookVerdict(spec, h)
	switch {
	case h.confirms():
		report.add(field, "is asked at most %d times, each %s, and then a person decides: Flagger asks without end", maxLimit+1, spec.Interval)
	case h.hookKind() == hookRollback:
		report.add(field, "is asked while a step is measured, and not while it waits for a person")
	}
	return check
}

// hookVerdict says what the status of a response means, and how often it is asked.
func (c *flaggerCanary) hookVerdict(spec *shipper.CheckSpec, h flaggerHook) {
	const good = "response.status <= 202" // Flagger takes 203 and more for a failure
	switch kind := h.hookKind(); {
	case h.confirms():
		spec.Pass, spec.Fail, spec.Count = good, "false", 1
		spec.InconclusiveLimit, spec.ConsecutiveErrorLimit = maxLimit, new(int32(maxLimit))
	case kind == hookRollback:
		spec.Fail, spec.Count = good, c.iterations()
		spec.InitialDelay, spec.ConsecutiveErrorLimit = spec.Interval, new(int32(maxLimit))
	case kind == hookPreRollout:
		spec.Pass, spec.Count, spec.FailureLimit = good, 1, c.failureLimit()
	default:
		spec.Pass, spec.Count, spec.FailureLimit = good, c.iterations(), c.failureLimit()
		spec.InitialDelay = spec.Interval
	}
}

// hookTimeout converts the timeout of a request, 10s if there is none.
func (c *flaggerCanary) hookTimeout(spec *shipper.CheckSpec, field string, report *report) {
	timeout := checkrules.DefaultTimeout
	if text := c.timeoutOf(field); text != "" {
		if d, err := time.ParseDuration(text); err == nil && d > 0 {
			timeout = d
		} else {
			report.add(field+".timeout", "%s is no duration: it becomes 10s", text)
		}
	}
	if most := min(maxTimeout, checkrules.Interval(spec)); timeout > most {
		report.add(field+".timeout", "%s must be at most interval and 30s in a Check: it becomes %s", format(timeout), format(most))
		timeout = most
	}
	spec.Timeout = format(timeout)
}

// timeoutOf is the timeout of the webhook at a field; a text of one character is none, as in Flagger.
func (c *flaggerCanary) timeoutOf(field string) string {
	for i, h := range c.analysis().Webhooks {
		if strings.HasSuffix(field, fmt.Sprintf("[%d]", i)) && len(h.Timeout) > 1 {
			return h.Timeout
		}
	}
	return ""
}

// hookBody is the body of a request, as Flagger sends it.
func hookBody(h flaggerHook) string {
	body := map[string]any{"name": "$(app)", "namespace": "$(namespace)", "phase": "Progressing", "checksum": "$(release)"}
	if len(h.Metadata) > 0 {
		metadata := map[string]any{}
		for key, value := range h.Metadata {
			metadata[key] = escaped(value)
		}
		body["metadata"] = metadata
	}
	return encoded(body)
}

// hooks gives the steps the Checks and the gates of webhooks, and reports those that have none.
func (c *canaryConversion) hooks(s *flaggerSteps) {
	sent := false
	for i, h := range c.analysis().Webhooks {
		kind, field := h.hookKind(), fmt.Sprintf("%s.webhooks[%d]", c.analysisField(), i)
		use := shipper.StepCheck{Check: c.hookCheckName(c.document, i)}
		switch {
		case !h.requested():
			c.unrequested(s, h, kind, field)
			continue
		case c.hookCheck(c.document, i, &report{}) == nil:
			c.report.add(field+".url", "%s is not converted: a Check requests http and https only; %s", h.URL, s.byPerson(kind))
			continue
		}
		sent = true
		s.by(kind).checks = append(s.by(kind).checks, use)
	}
	if sent {
		c.report.add(c.analysisField()+".webhooks", "the bodies of their requests have name, namespace, phase and metadata as in Flagger, the "+
			"name of the Release as checksum, and no failedChecks, canaryWeight, iterations and remainingTime")
	}
}

// unrequested reports a webhook without a Check, or has a person decide instead of it.
func (c *canaryConversion) unrequested(s *flaggerSteps, h flaggerHook, kind, field string) {
	switch {
	case h.confirms() && h.open():
	case h.confirms():
		s.by(kind).gate = true
		c.report.add(field, "%s is opened by a person: the step waits for `shipperctl rollout advance %s` instead", h.URL, c.GetName())
	case kind == hookRollback:
		c.report.add(field, "%s is opened by a person: go back with `shipperctl rollout abort %s` instead", h.URL, c.GetName())
	case h.loads():
		c.report.add(field, "%s is a load test, and is left out: it makes requests, and decides nothing; have requests reach the Services %s "+
			"and %s-canary while a rollout is measured", cmp.Or(h.Name, h.URL), c.serviceName(), c.serviceName())
	case kind == hookPostRollout:
		c.report.add(field, "%s is left out: create a Notification with the URL in its Secret, for the events Aborted and Completed: its "+
			"messages have another format", h.URL)
	case kind == hookEvent:
		c.report.add(field, "%s is left out: create a Notification with the URL in its Secret, for the events Started, StepAchieved, Waiting, "+
			"Failed, Aborted and Completed: its messages have another format", h.URL)
	default:
		c.report.add(field+".type", "%s is not known: %s", kind, s.byPerson(hookRollout))
	}
}
