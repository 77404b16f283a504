// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"shipper.dev/shipper/apis/rules/printable"
)

// report collects what a person has to review, in the order it was found.
type report struct {
	// object is the one that is converted.
	object  string
	reviews []string
}

// add reports a field of the object.
func (r *report) add(field, format string, args ...any) {
	r.put(r.object, field, fmt.Sprintf(format, args...))
}

// addOf reports a field of another object of the input.
func (r *report) addOf(d document, field, format string, args ...any) {
	r.put(d.title(), field, fmt.Sprintf(format, args...))
}

func (r *report) put(object, field, message string) {
	r.reviews = append(r.reviews, printable.OneLine(fmt.Sprintf("%s: %s: %s", object, field, message)))
}

// Fields that are converted.
var (
	convertedSpec = []string{
		"minReadySeconds", "progressDeadlineAbort", "progressDeadlineSeconds", "replicas", "revisionHistoryLimit", "selector", "strategy",
		"template",
	}
	convertedCanary = []string{
		"abortScaleDownDelaySeconds", "analysis", "canaryService", "dynamicStableScale", "maxSurge", "maxUnavailable",
		"scaleDownDelaySeconds", "stableService", "steps", "trafficRouting",
	}
	convertedBlueGreen = []string{
		"abortScaleDownDelaySeconds", "activeService", "autoPromotionEnabled", "autoPromotionSeconds", "postPromotionAnalysis",
		"prePromotionAnalysis", "previewReplicaCount", "previewService", "scaleDownDelaySeconds",
	}
	convertedRouting = []string{"maxTrafficWeight"}
)

// convertedSteps are the fields of steps that are converted, and convertedBelow those of their fields. skippableSteps are those without
// which the following steps can begin.
var (
	convertedSteps = map[string]bool{"analysis": true, "pause": true, "setCanaryScale": true, "setWeight": true}
	convertedBelow = map[string][]string{"pause": {"duration"}, "setCanaryScale": {"matchTrafficWeight", "replicas", "weight"}}
	skippableSteps = map[string]bool{"setHeaderRoute": true, "setMirrorRoute": true}
)

// Parts of several texts.
const (
	byProgram = "is left out: have a program do its work and write a condition to the Release, and name that in readinessGates of "
	byLabel   = "is left out: the Pods of each Release have the label shipper-release; write other metadata into the Pod template"

	unknownField = "is not known to Shipper: find out whether it is needed, and delete it if not"
)

// unconverted has what to do instead of a field that is not converted.
var unconverted = map[string]string{
	"activeMetadata":              byLabel,
	"antiAffinity":                "is left out: write podAntiAffinity into the Pod template",
	"canaryMetadata":              byLabel,
	"experiment":                  "is left out: run the experiment as a second Application with this chart",
	"maxUnavailable":              "is left out: the switch needs all Pods of its step",
	"minPodsPerReplicaSet":        "is left out: raise capacity in the steps that have too few Pods; more than 0 % is at least one Pod",
	"paused":                      "is left out: an Application is not paused; hold its newest Release with `shipperctl rollout pause`",
	"pingPong":                    "is left out: both Releases share the production Service, and need no second pair of Services",
	"plugin":                      byProgram + "the step",
	"previewMetadata":             byLabel,
	"restartAt":                   "is left out: to restart Pods, change an annotation of the Pod template, which makes a Release",
	"rollbackWindow":              "is left out: go back without steps with `shipperctl rollout rollback --immediate`",
	"scaleDownDelayRevisionLimit": "is left out: only the contender and the incumbent have Pods during a rollout",
	"setHeaderRoute":              "is left out: add a rule of your ingress or Gateway that sends these requests to the preview Service",
	"setMirrorRoute":              "is left out: requests are not mirrored; send test requests to the preview Service",
	"stableMetadata":              byLabel,
	"workloadRef":                 "is replaced by the Pod template of the Deployment: delete the Deployment when the Application serves",
}

// unconvertedSpec has what to do instead of fields of spec that have the name of another field.
var unconvertedSpec = map[string]string{
	"analysis": "is left out: it limits how many AnalysisRuns are kept, of which there are none; delete it",
}

// leftOut has what to do with other objects of the input, by kind.
var leftOut = map[string]string{
	"AlertProvider":           "create a Notification (format Slack, or CloudEvents) whose Secret has the URL",
	"AnalysisRun":             "delete it: CheckTargets have what checks measured",
	"ConfigMap":               "no Pods of the input use it: apply it to the application clusters yourself if others do",
	"Experiment":              "run the experiment as a second Application with this chart",
	"HorizontalPodAutoscaler": "set replicaCount in the Application: Shipper sets the replicas of the Deployment itself",
	"Secret":                  "apply it to the application clusters yourself: who may read an Application could read it there",
}

// adviceFor is what to do instead of a field.
func adviceFor(key string) string {
	return cmp.Or(unconverted[key], unknownField)
}

// fields reports the fields of a Rollout that are not converted, except those of steps.
func (r *report) fields(d document) {
	r.annotations(d)
	r.below(d, convertedSpec, unconvertedSpec, "spec")
	strategies := []string{"blueGreen", "canary"}
	if kind, _, _ := unstructured.NestedString(d.Object, "spec", "strategy", "type"); kind == previewByPerson {
		strategies = append(strategies, "type")
	}
	r.below(d, strategies, map[string]string{"type": "is left out: later versions of Argo Rollouts do not read it"}, "spec", "strategy")
	r.below(d, convertedBlueGreen, nil, "spec", "strategy", "blueGreen")
	for _, field := range []string{"prePromotionAnalysis", "postPromotionAnalysis"} {
		r.below(d, convertedAnalysis, unconvertedAnalysis, "spec", "strategy", "blueGreen", field)
	}
	r.below(d, convertedCanary, nil, "spec", "strategy", "canary")
	r.below(d, convertedAnalysis, unconvertedAnalysis, "spec", "strategy", "canary", "analysis")
	const provider = "is left out: the production Service distributes requests over the Pods of both Releases, by their number; " +
		"point the routes of your ingress to it"
	routing, _, _ := unstructured.NestedMap(d.Object, "spec", "strategy", "canary", "trafficRouting")
	advice := map[string]string{}
	for key := range routing {
		advice[key] = provider
	}
	r.below(d, convertedRouting, advice, "spec", "strategy", "canary", "trafficRouting")
}

// annotations reports those that Argo's other parts read.
func (r *report) annotations(d document) {
	for _, key := range slices.Sorted(maps.Keys(d.GetAnnotations())) {
		if argoAnnotation(key) && !strings.HasPrefix(key, "rollout.argoproj.io/") {
			r.add("metadata.annotations."+key, "is left out: it is for Argo only; set the like for the Application where you need it")
		}
	}
}

// argoAnnotation reports whether the domain of a key is Argo's.
func argoAnnotation(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain == "argoproj.io" || strings.HasSuffix(domain, ".argoproj.io")
}

// below reports the fields of a map that are not converted. Fields that are null or false have no effect.
func (r *report) below(d document, converted []string, advice map[string]string, path ...string) {
	raw, _, _ := unstructured.NestedMap(d.Object, path...)
	r.keys(raw, converted, advice, strings.Join(path, "."))
}

// keys reports the fields of a map at field that are not converted.
func (r *report) keys(raw map[string]any, converted []string, advice map[string]string, field string) {
	for _, key := range slices.Sorted(maps.Keys(present(raw))) {
		if raw[key] != false && !slices.Contains(converted, key) {
			r.add(field+"."+key, "%s", cmp.Or(advice[key], adviceFor(key)))
		}
	}
}

// present are the fields of a map that are not null.
func present(raw any) map[string]any {
	fields, _ := raw.(map[string]any)
	out := maps.Clone(fields)
	maps.DeleteFunc(out, func(_ string, value any) bool { return value == nil })
	return out
}

// unread reports the fields of a map or a list that a type has no field for. Fields that are null or false have no effect.
func (r *report) unread(raw any, of reflect.Type, field string, advice map[string]string) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if items, ok := raw.([]any); ok && of.Kind() == reflect.Slice {
		for i, item := range items {
			r.unread(item, of.Elem(), fmt.Sprintf("%s[%d]", field, i), advice)
		}
	}
	if of.Kind() != reflect.Struct {
		return
	}
	read := map[string]reflect.Type{}
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		read[name] = of.Field(i).Type
	}
	fields := present(raw)
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if next, ok := read[key]; ok {
			r.unread(fields[key], next, field+"."+key, advice)
		} else if fields[key] != false {
			r.add(field+"."+key, "%s", cmp.Or(advice[key], unknownField))
		}
	}
}

// unused reports objects of the input that no Application has. fleet is true where the input is of KubeFleet.
func unused(d document, fleet bool) string {
	other := cmp.Or(leftOut[d.GetKind()],
		"put it into the chart's templates if it belongs to a Release, or apply it to the application clusters yourself")
	if fleet {
		other = "apply it to the management cluster, where Applications select it"
	}
	if d.ofFleet() {
		other = insteadOf(d)
	}
	r := report{object: d.title()}
	r.add(d.at(), "is left out: %s", other)
	return r.reviews[0]
}
