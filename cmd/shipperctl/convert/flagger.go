// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	checkrules "shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// flagger is the apiVersion of MetricTemplates and Canaries.
const flagger = "flagger.app/v1beta1"

// flaggerInterval is Flagger's interval of an analysis, and of a metric, if none is said.
const flaggerInterval = "1m"

type metricTemplate struct {
	Spec struct {
		Provider struct {
			Type      string `json:"type"`
			Address   string `json:"address"`
			SecretRef struct {
				Name string `json:"name"`
			} `json:"secretRef"`
			InsecureSkipVerify bool `json:"insecureSkipVerify"`
		} `json:"provider"`
		Query string `json:"query"`
	} `json:"spec"`
}

type canaryOfFlagger struct {
	Spec struct {
		TargetRef  named `json:"targetRef"`
		IngressRef named `json:"ingressRef"`
		RouteRef   named `json:"routeRef"`
		Service    named `json:"service"`
		Analysis   struct {
			Interval   string         `json:"interval"`
			Threshold  int32          `json:"threshold"`
			Iterations int32          `json:"iterations"`
			Metrics    []canaryMetric `json:"metrics"`
		} `json:"analysis"`
	} `json:"spec"`
}

type named struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

type canaryMetric struct {
	Name              string            `json:"name"`
	Interval          string            `json:"interval"`
	Threshold         float64           `json:"threshold"`
	ThresholdRange    *thresholdRange   `json:"thresholdRange"`
	TemplateRef       *named            `json:"templateRef"`
	TemplateVariables map[string]string `json:"templateVariables"`
}

type thresholdRange struct {
	Min *float64 `json:"min"`
	Max *float64 `json:"max"`
}

// metricUse is how Canaries use a MetricTemplate: all that the Check has from them.
type metricUse struct {
	limits                  thresholdRange
	window, interval        string
	failureLimit, count     int32
	variables               map[string]string
	service, ingress, route string
	by, metric              string // of the first Canary; empty if there is none
	namespace, template     string
}

// checksOfMetrics makes the Checks of MetricTemplates.
func checksOfMetrics(all []document, used map[int]bool, failed *failures) []convertedCheck {
	uses, builtIn := usesOfMetrics(all, failed)
	var out []convertedCheck
	for i, d := range all {
		if !d.is(flagger, "MetricTemplate") {
			continue
		}
		used[i] = true
		if wrong := validation.IsDNS1123Subdomain(d.GetName()); len(wrong) > 0 {
			failed.add(i, d.failed("metadata.name", "cannot be the name of a Check: %s", strings.Join(wrong, "; ")))
			continue
		}
		var t metricTemplate
		if err := decodeInto(d, &t); err != nil {
			failed.add(i, err)
			continue
		}
		groups := groupsOf(d, uses)
		if len(groups) == 0 {
			groups = []metricUse{{window: flaggerInterval}}
		}
		for _, use := range groups {
			name := d.GetName()
			if len(groups) > 1 {
				name += "-" + use.by
			}
			if slices.ContainsFunc(groups, func(other metricUse) bool { return other.by == use.by && other.metric != use.metric }) {
				name += "-" + checkSuffix(use.metric)
			}
			report := &report{object: d.title()}
			check := checkOfMetric(d, &t, use, name, report)
			out = append(out, convertedCheck{check, report.reviews})
		}
	}
	if len(out) > 0 && len(builtIn) > 0 {
		out = append(out, convertedCheck{reviews: builtIn})
	}
	return out
}

// usesOfMetrics are the uses of MetricTemplates, and reviews of the metrics of Canaries that have no template.
func usesOfMetrics(all []document, failed *failures) (uses []metricUse, reviews []string) {
	for i, d := range all {
		if !d.is(flagger, "Canary") {
			continue
		}
		var c canaryOfFlagger
		if err := decodeInto(d, &c); err != nil {
			failed.add(i, err)
			continue
		}
		report := report{object: d.title()}
		target, analysis := c.Spec.TargetRef.Name, c.Spec.Analysis
		for i, m := range analysis.Metrics {
			if m.TemplateRef == nil {
				report.add(fmt.Sprintf("spec.analysis.metrics[%d]", i), "%s is a metric that Flagger has for its mesh: write a Check with a "+
					"query of it", m.Name)
				continue
			}
			use := metricUse{
				window: cmp.Or(m.Interval, flaggerInterval), interval: cmp.Or(analysis.Interval, flaggerInterval),
				failureLimit: max(analysis.Threshold, 1) - 1, count: analysis.Iterations, variables: m.TemplateVariables,
				service: cmp.Or(c.Spec.Service.Name, target), ingress: cmp.Or(c.Spec.IngressRef.Name, target),
				route: cmp.Or(c.Spec.RouteRef.Name, target), by: d.GetName(), metric: m.Name, namespace: d.GetNamespace(),
				template: cmp.Or(m.TemplateRef.Namespace, d.GetNamespace()) + "/" + m.TemplateRef.Name,
			}
			if use.limits.Max = &m.Threshold; m.ThresholdRange != nil {
				use.limits = *m.ThresholdRange
			}
			uses = append(uses, use)
		}
		reviews = append(reviews, report.reviews...)
	}
	return uses, reviews
}

// groupsOf are the different uses of a template.
func groupsOf(d document, uses []metricUse) []metricUse {
	var out []metricUse
	for _, use := range uses {
		namespace, name, _ := strings.Cut(use.template, "/")
		if name != d.GetName() || namespace != d.GetNamespace() && namespace != "" && d.GetNamespace() != "" {
			continue
		}
		same := func(other metricUse) bool {
			other.by, other.metric, other.template = use.by, use.metric, use.template
			return reflect.DeepEqual(other, use)
		}
		if !slices.ContainsFunc(out, same) {
			out = append(out, use)
		}
	}
	return out
}

// checkOfMetric makes a Check; nil if the template has no counterpart.
func checkOfMetric(d document, t *metricTemplate, use metricUse, name string, report *report) *shipper.Check {
	provider := t.Spec.Provider
	if provider.Type != "prometheus" {
		report.add("spec.provider.type", "%s %s", provider.Type, vendor)
		return nil
	}
	check := &shipper.Check{TypeMeta: metav1.TypeMeta{APIVersion: shipper.GroupVersion.String(), Kind: "Check"}}
	meta := metadataOf(name, d.GetLabels(), d.GetAnnotations())
	check.Labels, _, _ = unstructured.NestedStringMap(meta, "labels")
	check.Annotations, _, _ = unstructured.NestedStringMap(meta, "annotations")
	check.Name, check.Namespace = name, d.GetNamespace()
	if use.namespace != "" && d.GetNamespace() != "" && use.namespace != d.GetNamespace() {
		check.Namespace = checkrules.SharedNamespace
		report.add("metadata.namespace", "becomes %s, which all namespaces share: Canary %s is in another one", check.Namespace, use.by)
		if provider.SecretRef.Name != "" {
			report.add("spec.provider.secretRef", "names a Secret that has to be in %s", check.Namespace)
		}
	}
	args := &arguments{}
	query, err := flaggerQuery(t.Spec.Query, use, args)
	if err == nil && len(query) > maxQuery {
		err = fmt.Errorf("has %d characters, and a Check takes %d", len(query), maxQuery)
	}
	if err != nil {
		report.add("spec.query", "is not converted, and makes no Check: %s", err)
		return nil
	}
	if strings.Contains(query, "$(app)") {
		report.add("spec.query", "has $(app) for the target: Pods of the contender have the label shipper-release=$(release), and its "+
			"Deployment the name $(release): write that where the query selects them")
	}
	spec := &check.Spec
	spec.Prometheus = &shipper.PrometheusCheck{
		Address: provider.Address, SecretName: provider.SecretRef.Name,
		Queries: map[string]shipper.CheckQuery{resultName: shipper.CheckQuery(query)},
	}
	if provider.Address != "" {
		report.add("spec.provider.address", "%s %s", provider.Address, listAddress)
	}
	if provider.InsecureSkipVerify {
		report.add("spec.provider.insecureSkipVerify", "%s", unconvertedProvider["insecure"])
	}
	spec.NoData = shipper.NoDataFail // as in Flagger
	use.judge(spec, args, report)
	for _, arg := range args.all {
		spec.Args = append(spec.Args, arg.declared(report))
	}
	if len(spec.Args) > maxArguments {
		report.add("spec.query", "is not converted, and makes no Check: it uses %d arguments, and a Check has %d", len(spec.Args), maxArguments)
		return nil
	}
	return check
}

// judge says what values are good, and how often it is measured.
func (use metricUse) judge(spec *shipper.CheckSpec, args *arguments, report *report) {
	if use.by == "" {
		most := args.add(argument{name: "max"})
		spec.Pass = fmt.Sprintf("%s <= double(args.%s)", resultName, most.as)
		report.add("spec", "has no Canary in the input, which has its thresholdRange and interval: a step gives the argument max, or you "+
			"write pass; queries look back %s", use.window)
		return
	}
	var pass []string
	if least := use.limits.Min; least != nil {
		pass = append(pass, resultName+" >= "+asDouble(*least))
	}
	if most := use.limits.Max; most != nil {
		pass = append(pass, resultName+" <= "+asDouble(*most))
	}
	spec.Pass = cmp.Or(strings.Join(pass, " && "), "true")
	spec.FailureLimit = min(use.failureLimit, maxLimit)
	spec.Count = min(max(use.count, 0), maxLimit)
	interval, err := time.ParseDuration(use.interval)
	if err != nil {
		report.add("spec", "Canary %s has the interval %s, which is no duration: the Check has 1m", use.by, use.interval)
		return
	}
	spec.Interval = format(min(max(interval, 10*time.Second), maxInterval)) // Flagger's least is 10s
}

// asDouble prints a number as a double of CEL.
func asDouble(n float64) string {
	out := strconv.FormatFloat(n, 'g', -1, 64)
	if n == math.Trunc(n) && !strings.ContainsAny(out, ".e") {
		out += ".0"
	}
	return out
}

var (
	flaggerActions = regexp.MustCompile(`\{\{-?\s*(.*?)\s*-?\}\}`)
	variable       = regexp.MustCompile(`^(?:variables\.(\w+)|index\s+variables\s+"([^"]+)")$`)
)

// flaggerQuery converts the query of a template, whose variables become arguments.
func flaggerQuery(query string, use metricUse, args *arguments) (string, error) {
	if strings.TrimSpace(query) == "" {
		return "", fmt.Errorf("it is empty")
	}
	var wrong error
	value := func(name, of string) string {
		arg := args.find(name)
		if arg == nil {
			arg = args.add(argument{name: name})
			if of != "" {
				arg.value = &of
			}
		}
		return "$(" + arg.as + ")"
	}
	known := map[string]func() string{
		"namespace": func() string { return "$(namespace)" },
		"target":    func() string { return "$(app)" },
		"name":      func() string { return "$(app)" },
		"interval":  func() string { return use.window },
		"service":   func() string { return value("service", use.service) },
		"ingress":   func() string { return value("ingress", use.ingress) },
		"route":     func() string { return value("route", use.route) },
	}
	out := flaggerActions.ReplaceAllStringFunc(escaped(strings.TrimSpace(query)), func(action string) string {
		inner := flaggerActions.FindStringSubmatch(action)[1]
		if text := known[inner]; text != nil {
			return text()
		}
		found := variable.FindStringSubmatch(inner)
		if found == nil {
			wrong = cmp.Or(wrong, fmt.Errorf("%s is not one of %s and variables", action,
				strings.Join(slices.Sorted(maps.Keys(known)), ", ")))
			return ""
		}
		name := found[1] + found[2]
		if known[name] == nil {
			return value(name, use.variables[name])
		}
		return value("variables."+name, use.variables[name])
	})
	if strings.Contains(query, "${{") {
		wrong = cmp.Or(wrong, errors.New("it has a $ before {{"))
	}
	return out, wrong
}
