// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// deploymentOfCanary is the Deployment that canary names.
const deploymentOfCanary = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 10, selector: {matchLabels: ` +
	`{app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}}}`

// canaryOf is a Canary with fields of its spec.
func canaryOf(spec string) string {
	return fmt.Sprintf("{apiVersion: flagger.app/v1beta1, kind: Canary, metadata: {name: web}, spec: {targetRef: {name: web}, "+
		"service: {port: 80}, %s}}", spec)
}

// convertCanary converts a Canary with its Deployment.
func convertCanary(t *testing.T, spec string) result {
	t.Helper()
	out, err := convert(t.Context(), []byte(deploymentOfCanary+"\n---\n"+canaryOf(spec)), settings{regions: []string{"eu"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.all) != 1 {
		t.Fatalf("got %d Applications: %v", len(out.all), out.reviews())
	}
	return out
}

func TestWeightsOfACanaryAreThoseThatFlaggerGives(t *testing.T) {
	for analysis, want := range map[string][]int32{
		"stepWeight: 10, maxWeight: 30":                      {10, 20, 30},
		"stepWeight: 30, maxWeight: 50":                      {30, 60},
		"stepWeight: 40":                                     {40, 80, 100},
		"stepWeights: [1, 2, 10, 80]":                        {1, 2, 10, 80},
		"stepWeights: [50, 150]":                             {50, 100},
		"stepWeights: [20], maxWeight: 90":                   {20},
		"stepWeight: 50, stepWeights: [1, 2], maxWeight: 50": {50},
		"maxWeight: 50":                                      nil,
	} {
		t.Run(analysis, func(t *testing.T) {
			out := convertCanary(t, "analysis: {interval: 1m, threshold: 1, "+analysis+"}")
			var got []int32
			for _, step := range out.all[0].app.Spec.Template.Strategy.Steps {
				if strings.HasPrefix(step.Name, "weight ") {
					got = append(got, step.Traffic.Contender)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("weights (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStepsOfCanaries(t *testing.T) {
	full, none, all := pair(100, 100), pair(0, 100), pair(100, 0)
	gated := func(step shipper.RolloutStrategyStep) shipper.RolloutStrategyStep {
		step.Gate = &shipper.StepGate{}
		return step
	}
	halt := func(kind string) string {
		return fmt.Sprintf(`webhooks: [{type: %s, name: a, url: "http://tester.test/gate/halt"}]`, kind)
	}
	for sentence, c := range map[string]struct {
		spec string
		want []shipper.RolloutStrategyStep
	}{
		"weights without metrics advance by the interval": {
			"analysis: {interval: 30s, threshold: 1, maxWeight: 50, stepWeight: 50}",
			[]shipper.RolloutStrategyStep{at("weight 50", full, pair(50, 50), "30s")},
		},
		"an interval below 10s is 10s, as in Flagger": {
			"analysis: {interval: 1s, threshold: 1, maxWeight: 50, stepWeight: 50}",
			[]shipper.RolloutStrategyStep{at("weight 50", full, pair(50, 50), "10s")},
		},
		"a metric of the mesh is judged by a person": {
			"analysis: {interval: 30s, threshold: 1, maxWeight: 50, stepWeight: 50, metrics: [{name: request-duration, threshold: 500}]}",
			[]shipper.RolloutStrategyStep{gated(at("weight 50", full, pair(50, 50), ""))},
		},
		"iterations are tested without requests, and then switched": {
			"analysis: {interval: 1m, threshold: 1, iterations: 5}",
			[]shipper.RolloutStrategyStep{at("testing", full, none, "5m"), at("switched", full, all, "1m")},
		},
		"iterations come before weights": {
			"analysis: {interval: 1m, threshold: 1, iterations: 5, stepWeight: 10}",
			[]shipper.RolloutStrategyStep{at("testing", full, none, "5m"), at("switched", full, all, "1m")},
		},
		"Kubernetes alone has 10 iterations, and weights have no meaning": {
			"provider: kubernetes, analysis: {interval: 1m, threshold: 1, stepWeight: 10}",
			[]shipper.RolloutStrategyStep{at("testing", full, none, "10m")},
		},
		"A/B has no switched step": {
			"analysis: {interval: 1m, threshold: 1, iterations: 5, match: [{headers: {a: {exact: b}}}]}",
			[]shipper.RolloutStrategyStep{at("testing", full, none, "5m")},
		},
		"a person confirms before there are new Pods": {
			"analysis: {interval: 1m, threshold: 1, iterations: 5, match: [{}], " + halt("confirm-rollout") + "}",
			[]shipper.RolloutStrategyStep{gated(at("confirm-rollout", none, none, "")), at("testing", full, none, "5m")},
		},
		"a person confirms each weight, and the step before": {
			"analysis: {interval: 1m, threshold: 1, maxWeight: 50, stepWeight: 50, " + halt("confirm-traffic-increase") + "}",
			[]shipper.RolloutStrategyStep{gated(at("pre-rollout", full, none, "")), gated(at("weight 50", full, pair(50, 50), ""))},
		},
		"a person confirms the promotion after the last weight": {
			"analysis: {interval: 1m, threshold: 1, maxWeight: 50, stepWeight: 50, " + halt("confirm-promotion") + "}",
			[]shipper.RolloutStrategyStep{
				at("weight 50", full, pair(50, 50), "1m"), gated(at("confirm-promotion", full, pair(50, 50), "")),
			},
		},
		"a person confirms the switch": {
			"analysis: {interval: 1m, threshold: 1, iterations: 5, " + halt("confirm-promotion") + "}",
			[]shipper.RolloutStrategyStep{
				at("testing", full, none, "5m"), gated(at("confirm-promotion", full, none, "")), at("switched", full, all, "1m"),
			},
		},
		"without an analysis ready Pods are promoted": {"skipAnalysis: true", []shipper.RolloutStrategyStep{at("new Pods", full, none, "0s")}},
		"an analysis that is skipped has no steps": {
			"skipAnalysis: true, analysis: {interval: 1m, threshold: 1, stepWeight: 10}",
			[]shipper.RolloutStrategyStep{at("new Pods", full, none, "0s")},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := convertCanary(t, c.spec).all[0].app.Spec.Template.Strategy.Steps
			if diff := cmp.Diff(append(c.want, fullOn()), got); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAFailedCheckOfACanaryAbortsAsOftenAsInFlagger(t *testing.T) {
	out := convertCanary(t, `analysis: {interval: 2m, threshold: 4, stepWeight: 50, webhooks: [{name: slo, url: "https://slo.test/"}]}`)
	check := out.checks[len(out.checks)-1].check
	want := shipper.CheckSpec{
		Interval: "2m", InitialDelay: "2m", Timeout: "10s", FailureLimit: 3, Pass: "response.status <= 202",
		HTTP: &shipper.HTTPCheck{URL: "https://slo.test/", Method: "POST",
			Body: `{"checksum":"$(release)","name":"$(app)","namespace":"$(namespace)","phase":"Progressing"}`},
	}
	if diff := cmp.Diff(want, check.Spec); diff != "" {
		t.Errorf("Check (-want +got):\n%s", diff)
	}
	if got := out.all[0].app.Spec.Template.Strategy.OnFailure; got != shipper.OnFailureAbort {
		t.Errorf("onFailure is %s", got)
	}
}

func TestARolloutDoesNotFailAtAConfirmation(t *testing.T) {
	out := convertCanary(t, `analysis: {interval: 1m, threshold: 1, stepWeight: 50, webhooks: [{name: ok, type: confirm-promotion, `+
		`url: "https://change.test/ok"}]}`)
	got := out.checks[len(out.checks)-1].check.Spec
	want := shipper.CheckSpec{
		Interval: "1m", Timeout: "10s", Count: 1, InconclusiveLimit: maxLimit, ConsecutiveErrorLimit: new(int32(maxLimit)),
		Pass: "response.status <= 202", Fail: "false", HTTP: got.HTTP,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Check (-want +got):\n%s", diff)
	}
}

func TestCanariesThatAreNotConvertedAreNamed(t *testing.T) {
	for ref, want := range map[string]string{
		"{kind: Deployment, name: elsewhere}":          "is not in the input",
		"{kind: DaemonSet, name: web}":                 "the Pods of a DaemonSet cannot be counted out in steps",
		"{kind: Service, name: web}":                   "an Application has Pods of its own",
		"{apiVersion: x/v1, kind: Sandbox, name: web}": "only Deployments are",
		"{}": "names nothing",
	} {
		alone := "{apiVersion: flagger.app/v1beta1, kind: Canary, metadata: {name: a}, spec: {targetRef: " + ref + "}}"
		out, err := convert(t.Context(), []byte(alone), settings{})
		if err != nil {
			t.Fatal(err)
		}
		if len(out.leftOut) != 1 || !strings.Contains(out.leftOut[0], want) {
			t.Errorf("%s: got %v, want %s", ref, out.leftOut, want)
		}
		among, err := convert(t.Context(), []byte(alone+"\n---\n"+deploymentOfCanary+"\n---\n"+canaryOf("skipAnalysis: true")), settings{})
		if err != nil {
			t.Fatal(err)
		}
		if want := 1; len(among.all) != want {
			t.Errorf("%s: got %d Applications, want %d", ref, len(among.all), want)
		}
	}
}

func TestEveryDifferenceOfACanaryIsListed(t *testing.T) {
	for field, spec := range map[string]string{
		"spec.suspend":                         "suspend: true",
		"spec.revertOnDeletion":                "revertOnDeletion: true",
		"spec.autoscalerRef":                   "autoscalerRef: {kind: ScaledObject, name: web}",
		"spec.ingressRef":                      "ingressRef: {name: web}",
		"spec.routeRef":                        "routeRef: {name: web}",
		"spec.unknown":                         "unknown: 1",
		"spec.metricsServer":                   "metricsServer: http://p, analysis: {iterations: 1, metrics: [{name: request-duration}]}",
		"spec.analysis.mirror":                 "analysis: {iterations: 1, mirror: true}",
		"spec.analysis.alerts":                 "analysis: {iterations: 1, alerts: [{name: a}]}",
		"spec.analysis.canaryReadyThreshold":   "analysis: {iterations: 1, canaryReadyThreshold: 50}",
		"spec.analysis.stepWeightPromotion":    "analysis: {stepWeight: 50, stepWeightPromotion: 10}",
		"spec.analysis.sessionAffinity":        "analysis: {stepWeight: 50, sessionAffinity: {cookieName: a}}",
		"spec.analysis.metrics[0].unknown":     "analysis: {iterations: 1, metrics: [{name: a, query: up, unknown: 1}]}",
		"spec.analysis.webhooks[0].retries":    "analysis: {iterations: 1, webhooks: [{name: a, url: 'https://a', retries: 3}]}",
		"spec.analysis.webhooks[0].timeout":    "analysis: {iterations: 1, webhooks: [{name: a, url: 'https://a', timeout: 45s}]}",
		"spec.analysis.metrics[0].templateRef": "analysis: {iterations: 1, metrics: [{name: a, templateRef: {name: a}}]}",
		"spec.skipAnalysis":                    "skipAnalysis: true, analysis: {iterations: 1}",
	} {
		reviews := convertCanary(t, spec).reviews()
		if !strings.Contains(strings.Join(reviews, "\n"), "Canary web: "+field+": ") {
			t.Errorf("%s is not listed: %v", field, reviews)
		}
	}
}

func TestCanariesThatCannotBeReadAreErrorsBesideOthers(t *testing.T) {
	other := "\n---\n" + deploymentOfCanary + "\n---\n" + canaryOf("skipAnalysis: true")
	for sentence, c := range map[string]struct{ in, want string }{
		"a weight that is no number": {
			"{apiVersion: flagger.app/v1beta1, kind: Canary, metadata: {name: a}, spec: {analysis: {stepWeight: ten}}}",
			"document 1: spec.analysis.stepWeight is a string, and must be a number",
		},
		"a Canary without a name": {"{apiVersion: flagger.app/v1beta1, kind: Canary, spec: {}}", "document 1: metadata.name is missing"},
		"two Canaries of one name": {
			canaryOf("skipAnalysis: true"),
			"document 3: metadata.name is that of another object that becomes an Application: rename one of the two",
		},
		"a Deployment without a Pod template": {
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {}}\n---\n" +
				"{apiVersion: flagger.app/v1beta1, kind: Canary, metadata: {name: a}, spec: {targetRef: {name: a}}}",
			"document 1: spec.template is missing",
		},
		"more weights than steps": {
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {matchLabels: {app: a}}, template: {metadata: " +
				"{labels: {app: a}}, spec: {}}}}\n---\n{apiVersion: flagger.app/v1beta1, kind: Canary, metadata: {name: a}, spec: " +
				"{targetRef: {name: a}, analysis: {stepWeight: 1}}}",
			"document 2: spec.analysis becomes 101 steps, and an Application has 100 at most: raise stepWeight",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			out, err := convert(t.Context(), []byte(c.in+other), settings{})
			if err == nil || err.Error() != c.want {
				t.Errorf("got\n%v\nwant\n%s", err, c.want)
			}
			if len(out.all) != 1 || out.all[0].app.Name != "web" {
				t.Errorf("got %d Applications", len(out.all))
			}
		})
	}
}

func TestAnExportedCanaryKeepsAsManyPodsAsServe(t *testing.T) {
	in := strings.Replace(deploymentOfCanary, "replicas: 10", "replicas: 0", 1) + "\n---\n" +
		strings.Replace(deploymentOfCanary, "metadata: {name: web}", "metadata: {name: web-primary}", 1) + "\n---\n" +
		canaryOf("skipAnalysis: true")
	out, err := convert(t.Context(), []byte(in), settings{})
	if err != nil {
		t.Fatal(err)
	}
	if got := (*out.all[0].app.Spec.Template.Values)["replicaCount"]; got != int64(10) {
		t.Errorf("replicaCount is %v, want 10", got)
	}
}

func TestADeploymentOfTwoCanariesIsListed(t *testing.T) {
	second := strings.Replace(canaryOf("skipAnalysis: true"), "metadata: {name: web}", "metadata: {name: again}", 1)
	out, err := convert(t.Context(), []byte(deploymentOfCanary+"\n---\n"+canaryOf("skipAnalysis: true")+"\n---\n"+second), settings{})
	if err != nil {
		t.Fatal(err)
	}
	want := "Deployment web: metadata.name: is in the chart of Canary web and in that of Canary again: give each its own, since an object " +
		"belongs to one Application"
	if !slices.Contains(out.reviews(), want) {
		t.Errorf("got %q, want %q", out.reviews(), want)
	}
}
