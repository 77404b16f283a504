// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// withStrategy is a Rollout of 10 Pods with a strategy, and with more fields of spec. A canary without maxSurge may start all its Pods at
// once, as Shipper does.
func withStrategy(strategy, more string) []byte {
	if !strings.Contains(strategy, "maxSurge") {
		strategy = strings.Replace(strategy, "canary: {", "canary: {maxSurge: 100%, ", 1)
	}
	return fmt.Appendf(nil, `
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web}
spec:
  replicas: 10
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: nginx}]}}
  strategy: %s
  %s
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
`, strategy, more)
}

type stepsCase struct {
	strategy, more string
	want           shipper.RolloutStrategy
	reviews        []string
}

func (c stepsCase) run(t *testing.T) {
	t.Helper()
	out, err := convert(t.Context(), withStrategy(c.strategy, c.more), settings{regions: []string{"eu"}})
	if err != nil {
		t.Fatal(err)
	}
	c.want.FirstRelease = shipper.FirstReleaseImmediate
	if c.want.ProgressDeadline == "" {
		c.want.ProgressDeadline = "10m" // Argo's default
	}
	c.want.Steps = append(c.want.Steps, fullOn())
	if diff := cmp.Diff(&c.want, out.all[0].app.Spec.Template.Strategy); diff != "" {
		t.Errorf("strategy (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(c.reviews, out.reviews()); diff != "" {
		t.Errorf("reviews (-want +got):\n%s", diff)
	}
}

// kept is a review of a strategy whose old Pods stay after an abort with Argo, by default.
func kept(strategy string) string {
	return "Rollout web: spec.strategy." + strategy + ": has no abortScaleDownDelaySeconds, which is then 30: Argo keeps the Pods of an " +
		"aborted version 30s longer; " + removed
}

const removed = "Shipper removes them when an abort has brought the incumbent back, and after `rollout retreat` keeps those of the step"

const noTemplates = "names no templates, so that there is nothing to check"

// strategy has these steps before the last.
func strategy(steps ...shipper.RolloutStrategyStep) shipper.RolloutStrategy {
	return shipper.RolloutStrategy{Steps: steps}
}

func TestCanarySteps(t *testing.T) {
	const whole = "requests are shared by whole Pods, so that the contender gets "
	const or = " replicas, or leave the contender without traffic there"
	routing := `trafficRouting: {maxTrafficWeight: 1000}, scaleDownDelaySeconds: 0`
	promoted := at("promoted", pair(100, 100), pair(100, 0), "30s")
	for sentence, c := range map[string]stepsCase{
		"a canary without steps replaces all Pods": {strategy: `{canary: {}}`, want: strategy()},
		"a weight and a pause are one step": {
			strategy: `{canary: {steps: [{setWeight: 15}, {pause: {duration: 10m}}]}}`,
			want:     strategy(at("weight 15", pair(15, 85), pair(15, 85), "10m")),
		},
		"a pause without duration waits for a person": {
			strategy: `{canary: {steps: [{setWeight: 20}, {pause: {}}]}}`,
			want:     strategy(at("weight 20", pair(20, 80), pair(20, 80), "")),
		},
		"a weight without pause goes on at once": {
			strategy: `{canary: {steps: [{setWeight: 20}, {setWeight: 40}]}}`,
			want:     strategy(at("weight 20", pair(20, 80), pair(20, 80), "0s"), at("weight 40", pair(40, 60), pair(40, 60), "0s")),
		},
		"durations are numbers of seconds, texts of them, and times": {
			strategy: `{canary: {steps: [{pause: {duration: 3661}}, {pause: {duration: "90"}}, {pause: {duration: 1.5h}}, ` +
				`{pause: {duration: 1500ms}}, {pause: {duration: 0}}]}}`,
			want: strategy(at("pause", pair(0, 100), pair(0, 100), "1h1m1s"), at("pause", pair(0, 100), pair(0, 100), "1m30s"),
				at("pause", pair(0, 100), pair(0, 100), "1h30m"), at("pause", pair(0, 100), pair(0, 100), "2s"),
				at("pause", pair(0, 100), pair(0, 100), "0s")),
		},
		"the whole weight at the end is the last step": {
			strategy: `{canary: {steps: [{setWeight: 0}, {pause: {}}, {setWeight: 100}]}}`,
			want:     strategy(at("weight 0", pair(0, 100), pair(0, 100), "")),
		},
		"the whole weight with a pause is a step": {
			strategy: `{canary: {steps: [{setWeight: 100}, {pause: {}}]}}`,
			want:     strategy(at("weight 100", pair(100, 0), pair(100, 0), "")),
		},
		"a scale holds until the weight decides again": {
			strategy: `{canary: {` + routing + `, steps: [{setCanaryScale: {replicas: 3}}, {setWeight: 1}, {pause: {}}, ` +
				`{setWeight: 100}, {pause: {}}, {setCanaryScale: {matchTrafficWeight: true}}, {pause: {}}]}}`,
			want: strategy(at("weight 1", pair(30, 100), pair(1, 999), ""), at("weight 100", pair(30, 100), pair(100, 900), ""),
				at("weight 100", pair(10, 100), pair(100, 900), "")),
			reviews: []string{
				"Rollout web: spec.strategy.canary.steps[1].setWeight: 1: " + whole + "9.1 % of the requests with 10 replicas, and not 0.1 %: " +
					"have at least 4660" + or,
				"Rollout web: spec.strategy.canary.steps[3].setWeight: 100: " + whole + "17 % of the requests with 10 replicas, and not 10 %: " +
					"have at least 17" + or,
				kept("canary"),
			},
		},
		"a scale after a weight is a step of its own": {
			strategy: `{canary: {` + routing + `, steps: [{setWeight: 100}, {setCanaryScale: {weight: 500}}, {pause: {duration: 1m}}]}}`,
			want:     strategy(at("weight 100", pair(10, 100), pair(100, 900), "0s"), at("scale 50%", pair(50, 100), pair(100, 900), "1m")),
			reviews: []string{
				"Rollout web: spec.strategy.canary.steps[0].setWeight: 100: " + whole + "17 % of the requests with 10 replicas, and not 10 %: " +
					"have at least 29" + or,
				kept("canary"),
			},
		},
		"a routed weight that whole Pods give needs no review": {
			strategy: `{canary: {trafficRouting: {}, steps: [{setWeight: 50}, {pause: {}}]}}`,
			want:     strategy(at("weight 50", pair(50, 100), pair(50, 50), ""), promoted),
			reviews:  []string{kept("canary")},
		},
		"a weight without a provider is a number of Pods in Argo as well": {
			strategy: `{canary: {steps: [{setWeight: 1}, {pause: {}}]}}`,
			want:     strategy(at("weight 1", pair(1, 99), pair(1, 99), "")),
		},
		"a routed weight above what its Pods can take": {
			strategy: `{canary: {trafficRouting: {}, steps: [{setCanaryScale: {replicas: 1}}, {setWeight: 90}, {pause: {}}]}}`,
			want:     strategy(at("weight 90", pair(10, 100), pair(90, 10), ""), promoted),
			reviews: []string{
				"Rollout web: spec.strategy.canary.steps[1].setWeight: 90: " + whole + "33 % of the requests with 10 replicas, and not 90 %: " +
					"raise capacity.contender of the step", kept("canary"),
			},
		},
		"a step of several fields sets all of them, and ends by one": {
			strategy: `{canary: {trafficRouting: {}, steps: [{setWeight: 5}, {setCanaryScale: {weight: 20}, ` +
				`setHeaderRoute: {name: a}}, {setCanaryScale: {replicas: 1}, setWeight: 10}, ` +
				`{setCanaryScale: {matchTrafficWeight: true}, pause: {duration: 5m}}]}}`,
			want: strategy(at("weight 5", pair(5, 100), pair(5, 95), "0s"), at("scale 20%", pair(20, 100), pair(5, 95), "0s"),
				at("weight 10", pair(10, 100), pair(10, 90), "0s"), at("weight 10", pair(10, 100), pair(10, 90), "5m"), promoted),
			reviews: []string{
				"Rollout web: spec.strategy.canary.steps[1].setHeaderRoute: " + unconverted["setHeaderRoute"],
				"Rollout web: spec.strategy.canary.steps[0].setWeight: 5: " + whole + "9.1 % of the requests with 10 replicas, and not 5 %: " +
					"have at least 25" + or,
				kept("canary"),
			},
		},
		"what Argo does not wait for is named": {
			strategy: `{canary: {trafficRouting: {}, steps: [{setCanaryScale: {weight: 20}, analysis: {}}, ` +
				`{setCanaryScale: {weight: 40}, experiment: {}}, {setWeight: 60, plugin: {}}]}}`,
			want: strategy(at("scale 20%", pair(20, 100), pair(0, 100), ""), at("weight 60", pair(40, 100), pair(60, 40), "0s"), promoted),
			reviews: []string{
				`Rollout web: spec.strategy.canary.steps[0].analysis: the step "scale 20%" waits for its checks; Argo does not wait for it, but ` +
					`only for the Pods of setCanaryScale`,
				"Rollout web: spec.strategy.canary.steps[0].analysis: " + noTemplates,
				`Rollout web: spec.strategy.canary.steps[0].analysis: the step "scale 20%" waits for a person instead`,
				"Rollout web: spec.strategy.canary.steps[1].experiment: " + unconverted["experiment"] +
					"; Argo does not wait for it beside setCanaryScale",
				"Rollout web: spec.strategy.canary.steps[2].plugin: " + unconverted["plugin"] + "; Argo does not wait for it beside setWeight",
				kept("canary"),
			},
		},
		"the Pods of the version before stay as long as with Argo": {
			strategy: `{canary: {trafficRouting: {}, scaleDownDelaySeconds: 600, abortScaleDownDelaySeconds: 90, steps: [{setWeight: 100}, ` +
				`{pause: {}}]}}`,
			want: strategy(at("weight 100", pair(100, 100), pair(100, 0), ""), at("promoted", pair(100, 100), pair(100, 0), "10m")),
			reviews: []string{"Rollout web: spec.strategy.canary.abortScaleDownDelaySeconds: Argo keeps the Pods of an aborted version 1m30s " +
				"longer; " + removed},
		},
		"the Pods of an aborted version stay": {
			strategy: `{canary: {trafficRouting: {}, abortScaleDownDelaySeconds: 0}}`, want: strategy(promoted),
			reviews: []string{"Rollout web: spec.strategy.canary.abortScaleDownDelaySeconds: 0 keeps the Pods of an aborted version until the " +
				"next one; " + removed},
		},
		"a stable scale that is dynamic leaves the incumbent what its weight needs": {
			strategy: `{canary: {trafficRouting: {}, dynamicStableScale: true, steps: [{setWeight: 5}, {pause: {}}, ` +
				`{setCanaryScale: {weight: 60}}, {setWeight: 30}, {pause: {}}]}}`,
			want: strategy(at("weight 5", pair(5, 95), pair(5, 95), ""), at("weight 30", pair(60, 70), pair(30, 70), "")),
			reviews: []string{
				"Rollout web: spec.strategy.canary.steps[0].setWeight: 5: " + whole + "9.1 % of the requests with 10 replicas, and not 5 %: " +
					"have at least 26" + or,
				kept("canary"),
			},
		},
		"more Pods than with Argo are counted": {
			strategy: `{canary: {maxSurge: 30%, steps: [{setWeight: 25}, {pause: {}}, {setWeight: 50}]}}`,
			want:     strategy(at("weight 25", pair(25, 75), pair(25, 75), ""), at("weight 50", pair(50, 50), pair(50, 50), "0s")),
			reviews: []string{"Rollout web: spec.strategy.canary.maxSurge: is 30%: Argo runs at most 13 Pods, and Shipper up to 15 on the way to " +
				`the step "full on": add steps with less capacity before it`},
		},
		"as many Pods as with Argo are no difference": {
			strategy: `{canary: {maxSurge: 2, maxUnavailable: 0, steps: [{setWeight: 20}, {setWeight: 40}, {setWeight: 60}, {setWeight: 80}]}}`,
			want: strategy(at("weight 20", pair(20, 80), pair(20, 80), "0s"), at("weight 40", pair(40, 60), pair(40, 60), "0s"),
				at("weight 60", pair(60, 40), pair(60, 40), "0s"), at("weight 80", pair(80, 20), pair(80, 20), "0s")),
		},
		"an analysis without templates waits for a person": {
			strategy: `{canary: {steps: [{setWeight: 20}, {analysis: {}}, {pause: {duration: 1m}}, {analysis: {}}]}}`,
			want: strategy(at("weight 20", pair(20, 80), pair(20, 80), ""), at("pause", pair(20, 80), pair(20, 80), "1m"),
				at("analysis", pair(20, 80), pair(20, 80), "")),
			reviews: []string{
				"Rollout web: spec.strategy.canary.steps[1].analysis: " + noTemplates,
				`Rollout web: spec.strategy.canary.steps[1].analysis: the step "weight 20" waits for a person instead`,
				"Rollout web: spec.strategy.canary.steps[3].analysis: " + noTemplates,
				`Rollout web: spec.strategy.canary.steps[3].analysis: the step "analysis" waits for a person instead`,
			},
		},
		"a deadline aborts": {
			strategy: `{canary: {}}`, more: "progressDeadlineSeconds: 45\n  progressDeadlineAbort: true",
			want: shipper.RolloutStrategy{ProgressDeadline: "45s", OnFailure: shipper.OnFailureAbort},
		},
		"a deadline that is too short is raised": {
			strategy: `{canary: {}}`, more: "progressDeadlineSeconds: 29",
			want:    shipper.RolloutStrategy{ProgressDeadline: "30s"},
			reviews: []string{"Rollout web: spec.progressDeadlineSeconds: must be at least 30 in an Application: it becomes 30s"},
		},
		"fields that are null or false have no effect": {
			strategy: `{canary: {dynamicStableScale: false, maxUnavailable: null}}`, more: "paused: false", want: strategy(),
		},
	} {
		t.Run(sentence, c.run)
	}
}

func TestBlueGreenSteps(t *testing.T) {
	const preview = "Rollout web: spec.strategy.blueGreen.prePromotionAnalysis: "
	const post = "Rollout web: spec.strategy.blueGreen.postPromotionAnalysis: "
	switched := at("switched", pair(100, 100), pair(100, 0), "30s")
	gated := at("preview", pair(20, 100), pair(0, 100), "")
	gated.Gate = &shipper.StepGate{}
	whole := gated
	whole.Capacity = pair(100, 100)
	for sentence, c := range map[string]stepsCase{
		"it promotes itself at once, and keeps the incumbent for Argo's 30 seconds": {
			strategy: `{blueGreen: {activeService: web}}`,
			want:     strategy(at("preview", pair(100, 100), pair(0, 100), "0s"), switched),
			reviews:  []string{kept("blueGreen")},
		},
		"a person promotes each preview of v0.1.0, and the old Pods go at once": {
			strategy: `{type: BlueGreenUpdate, blueGreen: {activeService: web, previewService: preview}}`,
			want:     strategy(whole, at("switched", pair(100, 100), pair(100, 0), "0s")),
			reviews: []string{"Rollout web: spec.strategy.blueGreen.previewService: the Service preview is not in the input: the chart has one " +
				"made from the ports of the containers; compare it with the one that runs"},
		},
		"a strategy of v0.1.0 that says more waits for a person, too": {
			strategy: `{type: BlueGreenUpdate, blueGreen: {activeService: web, autoPromotionSeconds: 60}}`,
			want:     strategy(whole, at("switched", pair(100, 100), pair(100, 0), "0s")),
			reviews: []string{
				`Rollout web: spec.strategy.type: Argo Rollouts v0.1.0 switches at once without a previewService; here the step "preview" waits for ` +
					`a person: replace its gate by after: 0s to switch at once`,
				`Rollout web: spec.strategy.type: BlueGreenUpdate stands for a person who promotes, and blueGreen promotes by itself: the step ` +
					`"preview" waits for a person; replace its gate by after: 1m if it is to go on by itself`,
			},
		},
		"it promotes itself after a time": {
			strategy: `{blueGreen: {activeService: web, autoPromotionSeconds: 600, scaleDownDelaySeconds: 0}}`,
			want: strategy(at("preview", pair(100, 100), pair(0, 100), "10m"),
				at("switched", pair(100, 100), pair(100, 0), "0s")),
			reviews: []string{kept("blueGreen")},
		},
		"a person promotes a preview of few Pods, whatever the seconds are": {
			strategy: `{blueGreen: {activeService: web, autoPromotionEnabled: false, autoPromotionSeconds: 9, previewReplicaCount: 2}}`,
			want:     strategy(gated, switched),
			reviews:  []string{kept("blueGreen")},
		},
		"analyses without templates wait for a person": {
			strategy: `{blueGreen: {activeService: web, prePromotionAnalysis: {}, postPromotionAnalysis: {}}}`,
			want:     strategy(at("preview", pair(100, 100), pair(0, 100), ""), at("switched", pair(100, 100), pair(100, 0), "")),
			reviews: []string{
				preview + noTemplates, preview + `the step "preview" waits for a person instead`,
				post + noTemplates, post + `the step "switched" waits for a person instead`, kept("blueGreen"),
			},
		},
	} {
		t.Run(sentence, c.run)
	}
}

// TestPercentagesMakeAsManyPods as the Rollout asks for, by the rounding of apis/rules/strategy.Pods.
func TestPercentagesMakeAsManyPods(t *testing.T) {
	for total := int32(1); total <= 100; total++ {
		for pods := int32(0); pods <= total; pods++ {
			percent := percentOf(pods, total)
			if got := (total*percent + 99) / 100; got != pods {
				t.Errorf("%d %% of %d are %d Pods, want %d", percent, total, got, pods)
			}
		}
	}
	type pods struct{ pods, total, want int32 }
	for _, c := range []pods{{1, 300, 1}, {1, 0, 100}, {7, 5, 100}, {299, 300, 100}, {4, 300, 2}} {
		if got := percentOf(c.pods, c.total); got != c.want {
			t.Errorf("%d of %d Pods are %d %%, want %d %%", c.pods, c.total, got, c.want)
		}
	}
}

func TestAMisspelledFieldOfAStepIsNamed(t *testing.T) {
	in := withStrategy(`{canary: {steps: [{setWeight: 50}, {pause: {duraton: 5m}}, {setCanaryScale: {weight: 50, replica: 2}}]}}`, "")
	out, err := convert(t.Context(), in, settings{regions: []string{"eu"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Rollout web: spec.strategy.canary.steps[1].pause.duraton: " + unknownField,
		"Rollout web: spec.strategy.canary.steps[2].setCanaryScale.replica: " + unknownField,
	}
	if diff := cmp.Diff(want, out.reviews()[:len(want)]); diff != "" {
		t.Errorf("reviews (-want +got):\n%s", diff)
	}
}
