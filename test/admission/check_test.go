// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
)

// smoke creates the Check smoke, which goes with its namespace: the webhook refuses the deletion of one in use.
func smoke(t *testing.T, namespace string) *shipper.Check {
	t.Helper()
	c := &shipper.Check{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "smoke"},
		Spec: shipper.CheckSpec{
			Prometheus: &shipper.PrometheusCheck{Queries: map[string]shipper.CheckQuery{"new": "sum(up)"}}, Pass: "new > 0.0",
		},
	}
	if err := as(t, "dev").Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return c
}

// checked has the first of two steps checked.
func checked(app *shipper.Application) {
	app.Spec.Template.Strategy.Steps[0].Checks = []shipper.StepCheck{{Check: "smoke"}}
}

func TestChecksInUseAreNotDeleted(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	c := smoke(t, ns)
	r := rollOut(t, ns, checked)
	dev := as(t, "dev")
	env.Eventually(t, "the refusal", func(ctx context.Context) error {
		err := dev.Delete(ctx, c.DeepCopy(), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "Application "+ns+"/"+r.app.Name+" names it") {
			return fmt.Errorf("it says: %w", err)
		}
		return nil
	})
	harder := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"pass":"new > 1.0"}}`))
	if err := dev.Patch(t.Context(), c, harder); err != nil {
		t.Errorf("an edit: %v", err)
	}
}

func TestCheckTargetsAreNotEditedByHand(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	r, dev, reconciler := rollOut(t, ns), as(t, "dev"), as(t, reconcilerUser)
	target := &shipper.CheckTarget{ObjectMeta: child(r.rel), Spec: shipper.CheckTargetSpec{
		Run: 1, StartTime: metav1.Now(), Clusters: []string{"eu"}, Checks: []shipper.CheckRun{},
	}}
	forbidden := refused{403, "spec of CheckTargets is written by Shipper only"}
	checkRefused(t, dev.Create(t.Context(), target.DeepCopy()), forbidden)
	create(t, reconciler, target)
	for _, patch := range []string{`{"spec":{"run":2}}`, `{"spec":{"clusters":[]}}`} {
		checkRefused(t, dev.Patch(t.Context(), target.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))), forbidden)
	}
	orphan := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`))
	checkRefused(t, dev.Patch(t.Context(), target.DeepCopy(), orphan), refused{422, "metadata.ownerReferences: Forbidden"})
	again := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+shipper.ReleaseChecksRetryAnnotation+`":"1"}}}`))
	if err := dev.Patch(t.Context(), r.rel.DeepCopy(), again); err != nil {
		t.Errorf("a user does not have the checks made again: %v", err)
	}
}

// TestThePolicyAloneHoldsStepsWithChecks moves Releases past steps with checks, with both webhook configurations deleted.
func TestThePolicyAloneHoldsStepsWithChecks(t *testing.T) {
	all := func(app *shipper.Application) {
		app.Spec.Template.Strategy.Checks = []shipper.StepCheck{{Check: "smoke"}}
	}
	rels := map[string]*shipper.Release{}
	for sentence, edit := range map[string]func(*shipper.Application){
		"a check of the step": checked,
		"a check of the strategy": func(app *shipper.Application) {
			all(app)
			app.Spec.Template.Strategy.Steps[0].Traffic.Contender = 1
		},
		"a check of the strategy, without traffic": all,
		"a check that does not count": func(app *shipper.Application) {
			checked(app)
			app.Spec.Template.Strategy.Steps[0].Checks[0].DryRun = true
		},
		"as many as there may be": func(app *shipper.Application) { // which the policy looks at within its costs
			s := app.Spec.Template.Strategy
			first, last := s.Steps[0], s.Steps[1]
			for i := range 10 {
				first.Checks = append(first.Checks, shipper.StepCheck{Check: "smoke", Name: fmt.Sprint("c", i), DryRun: true})
			}
			for s.Steps = nil; len(s.Steps) < 99; {
				s.Steps = append(s.Steps, first)
			}
			s.Steps = append(s.Steps, last)
		},
	} {
		ns := namespace(t)
		smoke(t, ns)
		rels[sentence] = rollOut(t, ns, edit).rel
	}
	grant(t, "skipper", "skip", "releases")
	withoutWebhooks(t)
	for sentence, rel := range rels {
		t.Run(sentence, func(t *testing.T) {
			raise := func(ctx context.Context, user string) error {
				moved := rel.DeepCopy()
				moved.Spec.TargetStep = rel.Spec.Environment.Strategy.LastStep()
				return as(t, user).Update(ctx, moved, client.DryRunAll)
			}
			held := sentence == "a check of the step" || sentence == "a check of the strategy"
			env.Eventually(t, "the policy", func(ctx context.Context) error {
				if err := raise(ctx, "dev"); apierrors.IsForbidden(err) != held || !held && err != nil {
					return fmt.Errorf("raised by a user: %w", err)
				}
				return nil
			})
			env.Eventually(t, "the verb skip", func(ctx context.Context) error { return raise(ctx, "skipper") })
		})
	}
}
