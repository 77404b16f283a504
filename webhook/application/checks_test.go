// SPDX-License-Identifier: Apache-2.0

package application_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/response"
)

// errorRate is a Check of default.
func errorRate(name string) *shipper.Check {
	return &shipper.Check{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: shipper.CheckSpec{
			Args: []shipper.CheckArgument{{Name: "slack", Default: ptrTo("0")}},
			Prometheus: &shipper.PrometheusCheck{Queries: map[string]shipper.CheckQuery{
				"new": `sum(rate(errors{release="$(release)"}[5m])) + $(slack)`,
				"old": `sum(rate(errors{release="$(incumbent)"}[5m]))`,
			}},
			Pass: "new <= old + double(args.slack)",
		},
	}
}

// noServer is the warning about a Check of the cluster's own server, which cluster here does not have.
const noServer = "check errors: there is no Prometheus server to measure by in here: the check is undecided there, and rollouts hold, " +
	"until an administrator sets spec.metrics of the Cluster, or the Check names prometheus.address"

// checkedBy has the first step use a Check.
func checkedBy(name string, args ...string) func(*shipper.Application) {
	return func(app *shipper.Application) {
		c := shipper.StepCheck{Check: name}
		if len(args) > 0 {
			c.Args = map[string]string{args[0]: args[1]}
		}
		app.Spec.Template.Strategy.Steps[0].Checks = append(app.Spec.Template.Strategy.Steps[0].Checks, c)
	}
}

func TestChecksOfTemplates(t *testing.T) {
	const invalid = `Application.shipper.booking.com "super-server" is invalid: spec.template.strategy.steps[0].checks[0].`
	const gone = invalid + `check: Invalid value: "erors": there is no Check erors in default; there are: errors; shared ones are named ` +
		`shipper-checks/NAME; apply the Check first`
	before := ask.Release(ask.Application(checkedBy("erors")), nil)
	later := ask.Release(ask.Application(ask.Version("0.0.2")), []*shipper.Release{before})
	for sentence, tc := range map[string]struct {
		req     *admission.Request
		known   []client.Object
		message string
		warned  int
	}{
		"a Check that there is": {req: ask.Create("dev", ask.Application(checkedBy("errors", "slack", "0.1"))), warned: 2},
		"one that there is not": {req: ask.Create("dev", ask.Application(checkedBy("erors"))), message: gone},
		"a value that leaves its place": {
			req: ask.Create("dev", ask.Application(checkedBy("errors", "slack", "0) or vector(1"))), message: invalid +
				`args[slack]: Invalid value: "0) or vector(1": does not match the argument's pattern ^[A-Za-z0-9._:/-]{0,253}$`,
		},
		"one that is gone, and another change of the template": {
			req: ask.Update("dev", ask.Application(checkedBy("erors"), changed), ask.Application(checkedBy("erors"))), message: gone,
		},
		"one that is gone, and a change of the history": {
			req: ask.Update("dev", ask.Application(checkedBy("erors"), limited(ptrTo[int32](3))), ask.Application(checkedBy("erors"))), warned: 1,
		},
		"one that is gone, and a change of metadata": {
			req: ask.Update("dev", ask.Application(checkedBy("erors"), ask.Annotated("a", "b")), ask.Application(checkedBy("erors"))),
		},
		"one that is gone, and a way back to its Release": {
			req:   ask.Update("dev", ask.Application(checkedBy("erors")), ask.Application(ask.Version("0.0.2"))),
			known: []client.Object{before, later}, warned: 2,
		},
		"one that is gone, and an abort": {
			req:   ask.Update(ask.Reconciler, ask.Application(checkedBy("erors")), ask.Application(ask.Version("0.0.2"))),
			known: []client.Object{before}, warned: 1,
		},
		"one that is gone, in a backup": {
			req:    ask.Create("ann", ask.Application(checkedBy("erors"), ask.Annotated(shipper.AppHighestObservedGenerationAnnotation, "3"))),
			warned: 2,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			rights := ask.Grant("ann stamp applications default/super-server")
			hook := webhookOf(t, rights, exact(), append(tc.known, errorRate("errors"))...)
			a, decision := &response.Response{}, response.Decision("")
			if tc.message != "" {
				decision = response.Invalid
			}
			ask.CheckRefusal(t, hook.Validate(t.Context(), tc.req, a), decision, tc.message)
			if len(a.Warnings()) != tc.warned {
				t.Errorf("%d warnings, want %d: %q", len(a.Warnings()), tc.warned, a.Warnings())
			}
		})
	}
}

func TestADryRunShowsTheChecks(t *testing.T) {
	next := ask.Application(checkedBy("errors"), checkedBy("smoke"), func(app *shipper.Application) {
		app.Spec.Template.Strategy.Steps[0].After, app.Spec.Template.Strategy.OnFailure = "10m", shipper.OnFailureRetreat
	})
	smoke := errorRate("smoke")
	smoke.Spec = shipper.CheckSpec{Tests: &shipper.TestsCheck{}}
	hook := webhookOf(t, ask.Grant(), &catalog{found: repository.Resolution{Version: "0.0.1"}}, errorRate("errors"), smoke)
	a, req, dry := &response.Response{}, ask.Create(ask.Developer, next), true
	req.DryRun = &dry
	if err := hook.Validate(t.Context(), req, a); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"plan: step 0 (staging): contender 1 Pod, 0 in traffic, in each cluster; it is checked by errors (10 measurements until 9m after the " +
			"step has its capacity and traffic), smoke (once in each cluster, within 10m); it is a gate; it advances by itself after 10m",
		"plan: step 1 (full on): contender 3 Pods, 3 in traffic, in each cluster",
		"plan: the rollout fails if a check fails: it waits for a person, because a first Release has nothing to go back to",
		noServer,
	}
	if diff := cmp.Diff(want, a.Warnings()[3:]); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestADryRunOfAFirstReleaseAtItsLastStepShowsNoChecks(t *testing.T) {
	app := ask.Application(func(app *shipper.Application) {
		strategy := app.Spec.Template.Strategy
		strategy.FirstRelease = "Immediate"
		strategy.Steps[len(strategy.Steps)-1].Checks = []shipper.StepCheck{{Check: "errors"}}
	})
	hook := webhookOf(t, ask.Grant(), &catalog{found: repository.Resolution{Version: "0.0.1"}}, errorRate("errors"))
	a, req, dry := &response.Response{}, ask.Create(ask.Developer, app), true
	req.DryRun = &dry
	if err := hook.Validate(t.Context(), req, a); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"plan: the first Release begins at step 1 (firstRelease: Immediate)",
		"plan: step 1 (full on): contender 3 Pods, 3 in traffic, in each cluster",
		"plan: the rollout fails if a check fails: it waits for a person",
		noServer,
	}
	if diff := cmp.Diff(want, a.Warnings()[len(a.Warnings())-4:]); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// BenchmarkChecks is the validation of an edit of an Application with no check and with five.
func BenchmarkChecks(b *testing.B) {
	var known []client.Object
	for i := range 5 {
		known = append(known, errorRate(fmt.Sprintf("errors-%d", i)))
	}
	for _, n := range []int{0, 5} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var edits []func(*shipper.Application)
			for i := range n {
				edits = append(edits, checkedBy(fmt.Sprintf("errors-%d", i), "slack", "0.1"))
			}
			hook := webhookOf(b, ask.Grant(), exact(), known...)
			req := ask.Update("dev", ask.Application(append(edits, changed)...), ask.Application(edits...))
			for b.Loop() {
				if err := hook.Validate(b.Context(), req, &response.Response{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
