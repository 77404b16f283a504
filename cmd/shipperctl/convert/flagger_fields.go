// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Fields of a Canary that are converted, or reported where the conversion knows more of them.
var (
	convertedOfCanary = []string{
		"analysis", "canaryAnalysis", "progressDeadlineSeconds", "provider", "service", "skipAnalysis", "targetRef",
	}
	convertedOfAnalysis = []string{
		"interval", "iterations", "maxWeight", "metrics", "stepWeight", "stepWeights", "threshold", "webhooks",
	}
	convertedOfMetric  = []string{"interval", "name", "query", "templateRef", "templateVariables", "threshold", "thresholdRange"}
	convertedOfHook    = []string{"metadata", "muteAlert", "name", "timeout", "type", "url"}
	convertedOfService = []string{"apex", "appProtocol", "canary", "name", "port", "portDiscovery", "portName", "targetPort"}
	// convertedOfTarget are the fields of a Deployment that become an Application's or its chart's.
	convertedOfTarget = []string{
		"minReadySeconds", "progressDeadlineSeconds", "replicas", "revisionHistoryLimit", "selector", "template",
	}
)

const inRoute = "is left out: Shipper makes no routes: put it into one of your own (VirtualService, HTTPRoute, Ingress) to the Service %s"

// unconvertedOfService has what to do instead of fields of spec.service. What is not listed here belongs into a route.
var unconvertedOfService = map[string]string{
	"backends": "is left out: write a VirtualNode with them into the chart, or apply it to the application clusters yourself",
	"headless": "is left out: set clusterIP: None in the Services of the chart",
	"meshName": "is left out: write a VirtualNode and a VirtualService of that mesh into the chart",
	"primary":  "is left out: there is no Service for the old Pods alone; write its metadata into apex",
}

// ofRoutes are the fields of spec.service that Flagger writes into a route.
var ofRoutes = []string{
	"corsPolicy", "delegation", "gatewayRefs", "gateways", "headers", "hosts", "match", "mirror", "retries", "rewrite", "timeout",
	"trafficPolicy",
}

// unconvertedOfCanary has what to do instead of fields of spec.
var unconvertedOfCanary = map[string]string{
	"autoscalerRef": "is left out: Shipper sets the number of Pods; set replicaCount in the Application to what your peak needs",
	"metricsServer": "is left out where a metric is not converted: name it in prometheus.address of the Check that you write",
	"revertOnDeletion": "is left out: deleting the Application deletes its Deployment and its Services; keep the manifest of the Deployment " +
		"if you want it back",
	"suspend":     "is left out: an Application is not suspended; hold its newest Release with `shipperctl rollout pause`",
	"upstreamRef": "is left out: write an Upstream to the Service into the chart",
}

// unconvertedOfDeployment has what to do instead of fields of the Deployment.
var unconvertedOfDeployment = map[string]string{
	"paused":   "is left out: hold a Release with `shipperctl rollout pause`",
	"strategy": "is left out: a new Release has all Pods of a step before it serves, and no Pod is replaced in place",
}

// fields reports the fields of the Canary and its Deployment that are not converted.
func (c *canaryConversion) fields() {
	r, d, service := c.report, c.document, c.serviceName()
	advice := maps.Clone(unconvertedOfCanary)
	for _, key := range []string{"ingressRef", "routeRef"} {
		advice[key] = fmt.Sprintf("is left out: let the object that it names route to the Service %s, which distributes requests over the Pods "+
			"of both Releases", service)
	}
	known := slices.Clone(convertedOfCanary)
	if c.autoscaler() >= 0 {
		known = append(known, "autoscalerRef") // reported with its numbers
	}
	if !slices.ContainsFunc(c.analysis().Metrics, canaryMetric.builtIn) {
		known = append(known, "metricsServer") // Checks of queries have it
	}
	r.below(d, known, advice, "spec")
	c.configs()
	r.add("spec.targetRef", "Flagger copies the tested Pods to the Deployment %[1]s-primary, which serves: here the Release that was tested "+
		"serves itself; there is no %[1]s-primary, and no Service %[2]s-primary: have what names them use the Service %[2]s",
		c.Spec.TargetRef.Name, service)
	advice = maps.Clone(unconvertedOfService)
	for _, key := range ofRoutes {
		advice[key] = fmt.Sprintf(inRoute, service)
	}
	r.below(d, convertedOfService, advice, "spec", "service")
	of := &report{object: c.all[c.target].title()}
	of.below(c.all[c.target], convertedOfTarget, unconvertedOfDeployment, "spec")
	r.reviews = append(r.reviews, of.reviews...)
	if c.skips() {
		if c.Spec.SkipAnalysis && (c.Spec.Analysis != nil || c.Spec.CanaryAnalysis != nil) {
			r.add("spec.skipAnalysis", "is true: %s is left out; set it to false, and convert again, to have its steps and checks",
				c.analysisField())
		}
		return
	}
	c.fieldsOfAnalysis()
}

// fieldsOfAnalysis reports fields of the analysis that are not converted.
func (c *canaryConversion) fieldsOfAnalysis() {
	r, service, field := c.report, c.serviceName(), c.analysisField()
	raw, _, _ := unstructured.NestedMap(c.Object, "spec", field[len("spec."):])
	const ready = "is left out: all Pods of a step have to be ready, 100 %"
	advice := map[string]string{
		"alerts": "is left out: create a Notification (format Slack, or CloudEvents) whose Secret has the URL of the provider; the events " +
			"Failed, Aborted and Completed are the severities error, warn and info",
		"match": fmt.Sprintf("is left out: Shipper makes no routes: add a rule to yours that sends these requests to the Service %s-canary; "+
			"without it the new Pods get no requests in the step %q", service, underTest),
		"mirror":                "is left out: requests are not mirrored; send test requests to the Service " + service + "-canary",
		"mirrorWeight":          "is left out: requests are not mirrored",
		"primaryReadyThreshold": ready,
		"canaryReadyThreshold":  ready,
		"sessionAffinity": "is left out: a user may get the new Pods at one request and the old ones at the next; set " +
			"spec.sessionAffinity: ClientIP in the Service of the chart, or a cookie in your route",
		"stepWeightPromotion": "is left out: after the last weight the new Release gets all requests at once",
	}
	converted := slices.Clone(convertedOfAnalysis)
	for _, key := range []string{"primaryReadyThreshold", "canaryReadyThreshold"} {
		if raw[key] == int64(100) {
			converted = append(converted, key)
		}
	}
	r.keys(raw, converted, advice, field)
	for _, list := range []struct {
		name  string
		known []string
	}{{"metrics", convertedOfMetric}, {"webhooks", convertedOfHook}} {
		items, _ := raw[list.name].([]any)
		for i, item := range items {
			fields, _ := item.(map[string]any)
			r.keys(fields, list.known, map[string]string{
				"disableTLS": "is left out: certificates are verified; put the CA into ca.crt of a Secret, and name it in secretName of the Check",
				"retries":    "is left out: a request that fails counts as a failed measurement, of which failureLimit are allowed",
			}, fmt.Sprintf("%s.%s[%d]", field, list.name, i))
		}
	}
}

// deadline is how long Pods may take: that of the Canary or, if that is shorter, of its Deployment, since Flagger heeds both.
func (c *canaryConversion) deadline() *int32 {
	out := *cmp.Or(c.Spec.ProgressDeadlineSeconds, new(int32(flaggerDeadlineSeconds)))
	if n, found, _ := unstructured.NestedInt64(c.all[c.target].Object, "spec", "progressDeadlineSeconds"); found && n > 0 && n < int64(out) {
		out = int32(n)
	}
	return &out
}
