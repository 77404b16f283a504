// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"context"
	"math"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// flaggerCanary has the fields of a Canary that are converted.
type flaggerCanary struct {
	// index is that of the document.
	index int
	Spec  struct {
		Provider      string `json:"provider"`
		MetricsServer string `json:"metricsServer"`
		TargetRef     struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
		} `json:"targetRef"`
		AutoscalerRef           *named           `json:"autoscalerRef"`
		IngressRef              named            `json:"ingressRef"`
		RouteRef                named            `json:"routeRef"`
		Service                 flaggerService   `json:"service"`
		Analysis                *flaggerAnalysis `json:"analysis"`
		CanaryAnalysis          *flaggerAnalysis `json:"canaryAnalysis"`
		ProgressDeadlineSeconds *int32           `json:"progressDeadlineSeconds"`
		SkipAnalysis            bool             `json:"skipAnalysis"`
	} `json:"spec"`
}

type named struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

type flaggerService struct {
	Name          string             `json:"name"`
	Port          int32              `json:"port"`
	PortName      string             `json:"portName"`
	TargetPort    intstr.IntOrString `json:"targetPort"`
	AppProtocol   string             `json:"appProtocol"`
	PortDiscovery bool               `json:"portDiscovery"`
	Apex          flaggerMetadata    `json:"apex"`
	Canary        flaggerMetadata    `json:"canary"`
}

type flaggerMetadata struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

type flaggerAnalysis struct {
	Interval    string         `json:"interval"`
	Threshold   int32          `json:"threshold"`
	Iterations  int32          `json:"iterations"`
	MaxWeight   int32          `json:"maxWeight"`
	StepWeight  int32          `json:"stepWeight"`
	StepWeights []int32        `json:"stepWeights"`
	Match       []any          `json:"match"`
	Metrics     []canaryMetric `json:"metrics"`
	Webhooks    []flaggerHook  `json:"webhooks"`
}

type canaryMetric struct {
	Name              string            `json:"name"`
	Interval          string            `json:"interval"`
	Threshold         float64           `json:"threshold"`
	ThresholdRange    *thresholdRange   `json:"thresholdRange"`
	Query             string            `json:"query"`
	TemplateRef       *named            `json:"templateRef"`
	TemplateVariables map[string]string `json:"templateVariables"`
}

type thresholdRange struct {
	Min *float64 `json:"min"`
	Max *float64 `json:"max"`
}

// Flagger's defaults, and its least interval.
const (
	flaggerAnalysisInterval = time.Minute
	minFlaggerInterval      = 10 * time.Second
	flaggerDeadlineSeconds  = 600
	kubernetesIterations    = 10
)

// isCanary reports whether the object is a Canary of Flagger, of any version: fields were added only.
func (d document) isCanary() bool {
	group, _, _ := strings.Cut(d.GetAPIVersion(), "/")
	return group == "flagger.app" && d.GetKind() == "Canary"
}

// decodeCanaries decodes all Canaries.
func decodeCanaries(all []document, failed *failures) []*flaggerCanary {
	var out []*flaggerCanary
	for i, d := range all {
		if !d.isCanary() {
			continue
		}
		c := &flaggerCanary{index: i}
		err := decodeInto(d, c)
		if err == nil {
			err = d.checkName()
		}
		if err != nil {
			failed.add(i, err)
			continue
		}
		out = append(out, c)
	}
	return out
}

// analysis is spec.analysis or, in older versions, spec.canaryAnalysis.
func (c *flaggerCanary) analysis() *flaggerAnalysis {
	return cmp.Or(c.Spec.Analysis, c.Spec.CanaryAnalysis, &flaggerAnalysis{})
}

// analysisField is the field that has the analysis.
func (c *flaggerCanary) analysisField() string {
	if c.Spec.Analysis == nil && c.Spec.CanaryAnalysis != nil {
		return "spec.canaryAnalysis"
	}
	return "spec.analysis"
}

// skips reports whether new Pods are promoted without an analysis.
func (c *flaggerCanary) skips() bool {
	return c.Spec.SkipAnalysis || c.Spec.Analysis == nil && c.Spec.CanaryAnalysis == nil
}

// interval is the time between two measurements, as Flagger reads it.
func (c *flaggerCanary) interval() time.Duration {
	d, err := time.ParseDuration(c.analysis().Interval)
	if err != nil {
		return flaggerAnalysisInterval
	}
	return min(max(d, minFlaggerInterval), maxInterval)
}

// threshold is the number of failed measurements with which Flagger gives up.
func (c *flaggerCanary) threshold() int32 { return max(c.analysis().Threshold, 1) }

// failureLimit is the number of failed measurements that do not fail a Check.
func (c *flaggerCanary) failureLimit() int32 { return min(c.threshold()-1, maxLimit) }

// onKubernetes reports whether the Canary names no mesh and no ingress: Flagger then switches, and gives no weights.
func (c *flaggerCanary) onKubernetes() bool { return c.Spec.Provider == "kubernetes" }

// iterations is how often Flagger measures while the new Pods have no weight; 0 for a Canary with weights.
func (c *flaggerCanary) iterations() int32 {
	n := c.analysis().Iterations
	if n <= 0 && c.onKubernetes() {
		n = kubernetesIterations
	}
	return min(max(n, 0), maxLimit)
}

// serviceName is the name of the Service that clients use.
func (c *flaggerCanary) serviceName() string {
	return cmp.Or(c.Spec.Service.Name, c.Spec.TargetRef.Name)
}

// use is how a metric of the Canary, which has a template, uses it.
func (c *flaggerCanary) use(d document, i int) metricUse {
	m, target := c.analysis().Metrics[i], c.Spec.TargetRef.Name
	use := metricUse{
		window: cmp.Or(m.Interval, flaggerInterval), interval: format(c.interval()), failureLimit: c.failureLimit(), count: c.iterations(),
		variables: m.TemplateVariables, service: c.serviceName(), ingress: cmp.Or(c.Spec.IngressRef.Name, target),
		route: cmp.Or(c.Spec.RouteRef.Name, target), by: d.GetName(), metric: m.Name, namespace: d.GetNamespace(),
		of: metricKey{c.index, i}, limits: thresholdRange{Max: &m.Threshold},
	}
	if m.ThresholdRange != nil {
		use.limits = *m.ThresholdRange
	}
	if ref := m.TemplateRef; ref != nil {
		use.template = cmp.Or(ref.Namespace, d.GetNamespace()) + "/" + ref.Name
	}
	return use
}

// canaryConversion converts one Canary.
type canaryConversion struct {
	*flaggerCanary
	document
	all []document
	// target is the index of the Deployment.
	target int
	// pods is the number of Pods at full capacity.
	pods int32
	// checks are those that metrics with a template have.
	checks map[metricKey]*shipper.Check
	report *report
	// used are the indexes of the documents that the Application was made of.
	used []int
}

// convertCanaries converts all Canaries, beside Applications that are there already. leftOut says why some are not converted.
func convertCanaries(
	ctx context.Context, all []document, others []converted, used map[int]bool, failed *failures, with settings,
) (out []converted, leftOut []string) {
	canaries := decodeCanaries(all, failed)
	_, checks := metricChecks(all, used, failed, usesOfMetrics(all, canaries))
	taken, owner := map[types.NamespacedName]bool{}, map[int]string{}
	for _, one := range others {
		taken[types.NamespacedName{Namespace: one.app.Namespace, Name: one.app.Name}] = true
	}
	for _, canary := range canaries {
		d := all[canary.index]
		used[canary.index] = true
		name := types.NamespacedName{Namespace: d.GetNamespace(), Name: d.GetName()}
		if taken[name] {
			failed.add(canary.index, d.failed("metadata.name", "is that of another object that becomes an Application: rename one of the two"))
			continue
		}
		report := &report{object: d.title()}
		at, why := canary.target(all)
		if at < 0 {
			report.add("spec.targetRef", "%s", why)
			leftOut = append(leftOut, report.reviews...)
			continue
		}
		c := &canaryConversion{flaggerCanary: canary, document: d, all: all, target: at, checks: checks, report: report, used: []int{at}}
		one, err := c.convert(ctx, with)
		if err != nil {
			failed.add(canary.index, err)
			continue
		}
		for _, i := range c.used {
			if other := owner[i]; other != "" && other != d.title() {
				report.addOf(all[i], "metadata.name", "is in the chart of %s and in that of %s: give each its own, since an object belongs to one "+
					"Application", other, d.title())
			}
			used[i], owner[i] = true, d.title()
		}
		taken[name], one.reviews = true, report.reviews
		out = append(out, one)
	}
	return out, leftOut
}

// convert makes the Application and its chart. The Deployment gives it labels and annotations, and the Canary its name.
func (c *canaryConversion) convert(ctx context.Context, with settings) (converted, error) {
	d := c.all[c.target]
	template, selector, err := deploymentPods(d)
	if err != nil {
		return converted{}, err
	}
	c.pods = c.replicas()
	c.fields()
	app := c.application(with)
	if app.Spec.Template.Strategy, err = c.strategy(); err != nil {
		return converted{}, err
	}
	made := workload{
		of:     document{file: c.file, number: c.number, first: c.first, Unstructured: *d.DeepCopy()},
		origin: "the Flagger Canary " + c.GetName(), replicas: c.pods, template: template, selector: selector,
	}
	made.of.SetName(c.GetName())
	made.services = c.services(podsOf{made.of, template, selector})
	if n, _, _ := unstructured.NestedInt64(d.Object, "spec", "minReadySeconds"); n > 0 {
		made.minReadySeconds = int32(min(n, math.MaxInt32))
	}
	one, used, err := packaged(ctx, app, made, c.all, with, c.report)
	c.used = append(c.used, used...)
	return one, err
}

// application is the Application without its strategy and its chart.
func (c *canaryConversion) application(with settings) *shipper.Application {
	app := &shipper.Application{
		TypeMeta:   metav1.TypeMeta{APIVersion: shipper.GroupVersion.String(), Kind: "Application"},
		ObjectMeta: metav1.ObjectMeta{Name: c.GetName(), Namespace: c.GetNamespace()},
	}
	if limit, found, _ := unstructured.NestedInt64(c.all[c.target].Object, "spec", "revisionHistoryLimit"); found {
		of := &report{object: c.all[c.target].title()}
		app.Spec.RevisionHistoryLimit = historyLimit(new(int32(min(max(limit, 0), math.MaxInt32))), of)
		c.report.reviews = append(c.report.reviews, of.reviews...)
	}
	regions := with.regions
	if len(regions) == 0 {
		regions = []string{placeholderRegion}
		c.report.add("spec", "names no regions: replace %s in the Application by a region of your clusters, or give --region", placeholderRegion)
	}
	for _, region := range regions {
		app.Spec.Template.ClusterRequirements.Regions = append(app.Spec.Template.ClusterRequirements.Regions,
			shipper.RegionRequirement{Name: region})
	}
	return app
}
