// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	checkrules "shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Kinds of templates of analyses.
const (
	namespacedTemplate = "AnalysisTemplate"
	clusterTemplate    = "ClusterAnalysisTemplate"
)

// Bounds of Checks, as their schema has them.
const (
	minInterval   = 5 * time.Second
	maxInterval   = 24 * time.Hour
	maxTimeout    = 30 * time.Second
	maxExpression = 1024
	maxLimit      = 1000
	maxArguments  = 20
	maxChecks     = 10
)

// analysisSpec has the fields of an AnalysisTemplate that are converted.
type analysisSpec struct {
	Spec struct {
		Metrics []metric `json:"metrics"`
		Args    []struct {
			Name      string  `json:"name"`
			Value     *string `json:"value"`
			ValueFrom struct {
				SecretKeyRef *secretKey `json:"secretKeyRef"`
				FieldRef     fieldRef   `json:"fieldRef"`
			} `json:"valueFrom"`
		} `json:"args"`
		DryRun    dryRun        `json:"dryRun"`
		Templates []templateRef `json:"templates"`
	} `json:"spec"`
}

type fieldRef struct {
	FieldPath string `json:"fieldPath"`
}

// dryRun names metrics, by regular expressions, that are measured and do not count.
type dryRun []struct {
	MetricName string `json:"metricName"`
}

func (all dryRun) has(metric string) bool {
	for _, one := range all {
		if matches, err := regexp.MatchString(one.MetricName, metric); one.MetricName == "*" || err == nil && matches {
			return true
		}
	}
	return false
}

type templateRef struct {
	TemplateName string `json:"templateName"`
	ClusterScope bool   `json:"clusterScope"`
}

// String is the name.
func (ref templateRef) String() string { return ref.TemplateName }

type metric struct {
	Name                  string              `json:"name"`
	Interval              string              `json:"interval"`
	InitialDelay          string              `json:"initialDelay"`
	Count                 *intstr.IntOrString `json:"count"`
	SuccessCondition      string              `json:"successCondition"`
	FailureCondition      string              `json:"failureCondition"`
	FailureLimit          *intstr.IntOrString `json:"failureLimit"`
	InconclusiveLimit     *intstr.IntOrString `json:"inconclusiveLimit"`
	ConsecutiveErrorLimit *intstr.IntOrString `json:"consecutiveErrorLimit"`
	Provider              struct {
		Prometheus *prometheusProvider `json:"prometheus"`
		Web        *webProvider        `json:"web"`
		Job        *jobProvider        `json:"job"`
	} `json:"provider"`
}

var (
	convertedTemplate = []string{"args", "dryRun", "metrics", "templates"}
	convertedMetric   = []string{
		"consecutiveErrorLimit", "count", "failureCondition", "failureLimit", "inconclusiveLimit", "initialDelay", "interval", "name", "provider",
		"successCondition",
	}
	// unconvertedAnalysis has what to do instead of fields of templates, and of analyses that name them.
	unconvertedAnalysis = map[string]string{
		"analysisRunMetadata":     "is left out: a CheckTarget has the results, and belongs to its Release",
		"consecutiveSuccessLimit": "is left out: all measurements but failureLimit have to pass",
		"measurementRetention":    "is left out: a CheckTarget has the last 3 measurements of each cluster",
	}
)

// template is an AnalysisTemplate or a ClusterAnalysisTemplate of the input.
type template struct {
	document
	// index is that of the document.
	index int
	spec  analysisSpec
	args  arguments
	// metrics are its own, with their Checks.
	metrics []convertedMetricCheck
	// used reports that a Rollout of the input names it.
	used bool
	// unmeasured reports that its metrics cannot be converted.
	unmeasured bool
}

// convertedMetricCheck is a metric; check is nil where it has no counterpart.
type convertedMetricCheck struct {
	name  string
	dry   bool
	check *shipper.Check
	// uses are the names of the arguments that the Check uses.
	uses map[string]bool
}

// shared reports whether its Checks are in the namespace that all share.
func (t *template) shared() bool { return t.GetKind() == clusterTemplate }

// convertedCheck is one Check, or only reviews of a metric that has none.
type convertedCheck struct {
	check   *shipper.Check
	reviews []string
}

// templateOfAnalyses decodes a template.
func templateOfAnalyses(d document) (*template, error) {
	t := &template{document: d}
	if wrong := validation.IsDNS1123Subdomain(d.GetName()); len(wrong) > 0 {
		return nil, d.failed("metadata.name", "cannot be the name of a Check: %s", strings.Join(wrong, "; "))
	}
	if err := decodeInto(d, &t.spec); err != nil {
		return nil, err
	}
	for i, arg := range t.spec.Spec.Args {
		if arg.Name == "" || t.args.find(arg.Name) != nil {
			return nil, d.failed(fmt.Sprintf("spec.args[%d].name", i), "must be there, and only once")
		}
		t.args.add(argument{name: arg.Name, value: arg.Value, secret: arg.ValueFrom.SecretKeyRef, fieldPath: arg.ValueFrom.FieldRef.FieldPath})
	}
	for i, m := range t.spec.Spec.Metrics {
		if m.Name == "" {
			return nil, d.failed(fmt.Sprintf("spec.metrics[%d].name", i), "is missing")
		}
	}
	if len(t.spec.Spec.Metrics) == 0 && len(t.spec.Spec.Templates) == 0 {
		return nil, d.failed("spec.metrics", "is missing")
	}
	return t, nil
}

// checks converts the metrics.
func (t *template) checks() ([]convertedCheck, error) {
	first := report{object: t.title()}
	first.below(t.document, convertedTemplate, unconvertedAnalysis, "spec")
	if names := t.spec.Spec.Templates; len(names) > 0 && !t.used {
		first.add("spec.templates", "a step that used this template has to name the Checks of all these, too: %s", names)
	}
	out := []convertedCheck{{reviews: first.reviews}}
	for i := range t.spec.Spec.Metrics {
		m := &t.spec.Spec.Metrics[i]
		report := &report{object: t.title()}
		c := &metricConversion{template: t, metric: m, field: fmt.Sprintf("spec.metrics[%d]", i), report: report, used: map[string]bool{}}
		check, err := c.convert(i)
		if err != nil {
			return nil, err
		}
		dry := t.spec.Spec.DryRun.has(m.Name)
		if dry && check != nil && !t.used {
			report.add("spec.dryRun", "write dryRun: true where a step uses the metric %s", m.Name)
		}
		t.metrics = append(t.metrics, convertedMetricCheck{m.Name, dry, check, c.used})
		out = append(out, convertedCheck{check, report.reviews})
	}
	return out, nil
}

var notInCheckNames = regexp.MustCompile(`[^a-z0-9.]+`)

// checkSuffix is the name of a metric as names of Checks end with it.
func checkSuffix(metric string) string {
	return strings.Trim(notInCheckNames.ReplaceAllString(strings.ToLower(metric), "-"), "-.")
}

// checkName is the name of the Check of a metric.
func (t *template) checkName(metric string) (string, error) {
	if len(t.spec.Spec.Metrics) == 1 {
		return t.GetName(), nil
	}
	name := t.GetName() + "-" + checkSuffix(metric)
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		return "", t.failed("spec.metrics", "cannot make the name of a Check of %s: %s", metric, strings.Join(wrong, "; "))
	}
	return name, nil
}

// metricConversion converts one metric.
type metricConversion struct {
	*template
	metric *metric
	field  string
	report *report
	// used are the names of the arguments that the Check uses.
	used map[string]bool
}

func (c *metricConversion) add(field, format string, args ...any) {
	c.report.add(c.field+"."+field, format, args...)
}

// convert makes the Check; nil if the metric has no counterpart.
func (c *metricConversion) convert(i int) (*shipper.Check, error) {
	metrics, _, _ := unstructured.NestedSlice(c.Object, "spec", "metrics")
	raw := present(metrics[i])
	c.report.keys(raw, convertedMetric, unconvertedAnalysis, c.field)
	name, err := c.checkName(c.metric.Name)
	if err != nil {
		return nil, err
	}
	meta := metadataOf(name, c.GetLabels(), c.GetAnnotations())
	check := &shipper.Check{TypeMeta: metav1.TypeMeta{APIVersion: shipper.GroupVersion.String(), Kind: "Check"}}
	check.Name, check.Namespace = name, c.GetNamespace()
	check.Labels, _, _ = unstructured.NestedStringMap(meta, "labels")
	check.Annotations, _, _ = unstructured.NestedStringMap(meta, "annotations")
	if c.shared() {
		check.Namespace = checkrules.SharedNamespace
	}
	if !c.measure(&check.Spec, present(raw["provider"])) {
		return nil, nil
	}
	for _, arg := range c.args.all {
		if c.used[arg.name] && c.args.predefined(arg) == "" {
			check.Spec.Args = append(check.Spec.Args, arg.declared(c.report))
		}
	}
	if len(check.Spec.Args) > maxArguments {
		return nil, c.failed(c.field, "uses %d arguments, and a Check has %d at most", len(check.Spec.Args), maxArguments)
	}
	return check, nil
}

// measure converts the provider, and what it is judged by. It returns false if there is no counterpart.
func (c *metricConversion) measure(spec *shipper.CheckSpec, provider map[string]any) bool {
	if len(provider) != 1 {
		c.add("provider", "must be exactly one: the metric has no Check")
		return false
	}
	var ok bool
	switch from := c.metric.Provider; {
	case from.Prometheus != nil:
		c.timing(spec)
		ok = c.prometheus(spec, from.Prometheus, present(provider["prometheus"]))
	case from.Web != nil:
		c.timing(spec)
		ok = c.web(spec, from.Web, present(provider["web"]))
	case from.Job != nil:
		c.once(spec)
		ok = c.job(spec, from.Job, present(provider["job"]))
	default:
		for name := range provider {
			c.add("provider."+name, "%s", cmp.Or(vendors[name], vendor))
		}
	}
	return ok
}

// vendor is what to do instead of a provider, and vendors what differs from it.
const vendor = "is left out, and the metric has no Check: measure it by http, or by prometheus with an exporter; Shipper has no SDKs " +
	"of vendors"

var vendors = map[string]string{
	"kayenta": "is left out, and the metric has no Check: compare two queries of prometheus, $(release) with $(incumbent), or " +
		"ask Kayenta by http",
	"plugin": "is left out, and the metric has no Check: have the plugin answer http, or export what it measures to Prometheus",
}

// timing converts when it is measured, and how often.
func (c *metricConversion) timing(spec *shipper.CheckSpec) {
	m := c.metric
	if interval, ok := c.duration("interval", m.Interval); ok {
		within := min(max(interval, minInterval), maxInterval)
		if within != interval {
			c.add("interval", "must be from 5s to 24h in a Check: it becomes %s", format(within))
		}
		spec.Interval = format(within)
	}
	if delay, ok := c.duration("initialDelay", m.InitialDelay); ok {
		spec.InitialDelay = bounded(delay, c.field+".initialDelay", c.report)
	}
	spec.Count, _ = c.limit("count", m.Count)
	if spec.Interval == "" && spec.Count == 0 {
		spec.Count = 1 // as in Argo; a Check would be measured as often as the step has time
	}
	spec.FailureLimit, _ = c.limit("failureLimit", m.FailureLimit)
	spec.InconclusiveLimit, _ = c.limit("inconclusiveLimit", m.InconclusiveLimit)
	if limit, ok := c.limit("consecutiveErrorLimit", m.ConsecutiveErrorLimit); ok {
		spec.ConsecutiveErrorLimit = &limit
	}
}

// once converts when a Job runs, and reports that it runs once.
func (c *metricConversion) once(spec *shipper.CheckSpec) {
	m := c.metric
	if delay, ok := c.duration("initialDelay", m.InitialDelay); ok {
		spec.InitialDelay = bounded(delay, c.field+".initialDelay", c.report)
	}
	const instead = "is left out: a Job runs once in each cluster at each step, and has to succeed"
	count, counted := c.limit("count", m.Count)
	if count > 1 {
		c.add("count", instead)
	}
	if !counted && m.Interval != "" {
		c.add("interval", instead)
	}
	if limit, _ := c.limit("failureLimit", m.FailureLimit); limit > 0 {
		c.add("failureLimit", instead)
	}
	if m.SuccessCondition+m.FailureCondition != "" {
		c.add("successCondition", "has no effect on a Job: it is left out")
	}
}

// index are the templates of the input.
type index struct {
	all []*template
	// failed are the titles of those that cannot be read.
	failed []string
}

// find returns the template that an object names; nil if it is not in the input.
func (x *index) find(by document, ref templateRef) *template {
	for _, t := range x.all {
		if t.GetName() == ref.TemplateName && t.shared() == ref.ClusterScope && (t.shared() || t.besides(by)) {
			return t
		}
	}
	return nil
}

// reach are the templates that refs name, and those that these name, each once; missing are those that are not in the input.
func (x *index) reach(by document, refs []templateRef) (found []*template, missing []templateRef) {
	for len(refs) > 0 {
		ref := refs[0]
		refs = refs[1:]
		t := x.find(by, ref)
		switch {
		case t == nil && !slices.Contains(missing, ref):
			missing = append(missing, ref)
		case t != nil && !slices.Contains(found, t):
			found = append(found, t)
			refs = append(slices.Clone(t.spec.Spec.Templates), refs...)
		}
	}
	return found, missing
}
