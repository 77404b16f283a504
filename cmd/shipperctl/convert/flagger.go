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

// metricUse is how Canaries use a MetricTemplate: all that the Check has from them.
type metricUse struct {
	limits                  thresholdRange
	window                  string
	interval                shipper.Duration
	failureLimit, count     int32
	variables               map[string]string
	service, ingress, route string
	by, metric              string // of the first Canary; empty if there is none
	namespace, template     string
	of                      metricKey
}

// metricKey is a metric of a Canary: the index of the document, and that in its analysis.
type metricKey struct{ canary, metric int }

// same reports whether two uses make the same Check.
func (use metricUse) same(other metricUse) bool {
	other.by, other.metric, other.template, other.of = use.by, use.metric, use.template, use.of
	return reflect.DeepEqual(other, use)
}

// checksOfMetrics makes the Checks of MetricTemplates.
func checksOfMetrics(all []document, used map[int]bool, failed *failures) []convertedCheck {
	canaries := decodeCanaries(all, failed)
	out, _ := metricChecks(all, used, failed, usesOfMetrics(all, canaries))
	for _, c := range canaries {
		out = append(out, c.ownChecks(all)...)
	}
	return out
}

// metricChecks are the Checks of MetricTemplates, and which of them a metric of a Canary is; nil if it has none.
func metricChecks(
	all []document, used map[int]bool, failed *failures, uses []metricUse,
) ([]convertedCheck, map[metricKey]*shipper.Check) {
	var out []convertedCheck
	of := map[metricKey]*shipper.Check{}
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
			for _, other := range uses {
				if other.names(d) && use.same(other) {
					of[other.of] = check
				}
			}
		}
	}
	return out, of
}

// usesOfMetrics are the uses of MetricTemplates.
func usesOfMetrics(all []document, canaries []*flaggerCanary) (uses []metricUse) {
	for _, c := range canaries {
		for i, m := range c.analysis().Metrics {
			if m.TemplateRef != nil {
				uses = append(uses, c.use(all[c.index], i))
			}
		}
	}
	return uses
}

// names reports whether a use names a template.
func (use metricUse) names(d document) bool {
	namespace, name, _ := strings.Cut(use.template, "/")
	return name == d.GetName() && (namespace == d.GetNamespace() || namespace == "" || d.GetNamespace() == "")
}

// groupsOf are the different uses of a template.
func groupsOf(d document, uses []metricUse) []metricUse {
	var out []metricUse
	for _, use := range uses {
		if use.names(d) && !slices.ContainsFunc(out, use.same) {
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
	spec.Pass = use.limits.expression()
	spec.FailureLimit = min(use.failureLimit, maxLimit)
	spec.Count = min(max(use.count, 0), maxLimit)
	// Flagger measures at the end of each interval: before, the contender has no requests that could be counted.
	spec.Interval, spec.InitialDelay = use.interval, use.interval
}

// expression is true for the values within the limits.
func (r thresholdRange) expression() string {
	var pass []string
	if r.Min != nil {
		pass = append(pass, resultName+" >= "+asDouble(*r.Min))
	}
	if r.Max != nil {
		pass = append(pass, resultName+" <= "+asDouble(*r.Max))
	}
	return cmp.Or(strings.Join(pass, " && "), "true")
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
