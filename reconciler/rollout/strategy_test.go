// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestAReleaseHasTheStrategyThatWasAdmitted(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := shipper.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	content := func(step string) shipper.RolloutStrategy {
		return shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{{Name: step}}}
	}
	digest := func(step string) string {
		out, err := stamp.StrategyDigest(content(step))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	shared := func(namespace, step string) *shipper.Strategy {
		return &shipper.Strategy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "careful"}, Spec: content(step)}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		shared("default", "now"), shared("global", "all"), shared("other", "theirs"),
	).Build()
	taking := func(namespace, digest string) func(*shipper.ReleaseEnvironment) {
		return func(env *shipper.ReleaseEnvironment) {
			env.Strategy = &shipper.RolloutStrategy{From: &shipper.StrategyReference{Namespace: namespace, Name: "careful", Digest: digest}}
		}
	}
	then := complete(0, 0)
	then.Spec.Environment.Strategy = new(content("then"))
	then.Spec.Environment.Strategy.From = &shipper.StrategyReference{Name: "careful", Digest: digest("then")}
	const (
		edited = " is not any more what it was when the template was admitted"
		remedy = "; take it as it is now: kubectl annotate app web shipper.booking.com/app.strategy.refresh=<anything new> --overwrite " +
			"-n default"
	)
	for sentence, tc := range map[string]struct {
		edit func(*shipper.ReleaseEnvironment)
		want string // the first step, or why there is none
	}{
		"as it is":                         {taking("", digest("now")), "now"},
		"of the namespace that all share":  {taking("global", digest("all")), "all"},
		"as an earlier Release has it":     {taking("", digest("then")), "then"},
		"not as it is not any more":        {taking("", digest("other")), "Strategy default/careful" + edited + remedy},
		"not of another namespace":         {taking("other", digest("theirs")), "Strategy other/careful" + edited + remedy},
		"not if the webhook was not asked": {taking("", ""), "Strategy default/careful was never taken" + remedy},
	} {
		t.Run(sentence, func(t *testing.T) {
			app := web(1, "", 0)
			tc.edit(&app.Spec.Template)
			s := seen(app, then)
			r := &pass{Reconciler: &Reconciler{live: c, global: "global"}}
			if err := r.observeStrategy(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			p := planTemplate(s, metav1.Time{})
			reason, got := failure(p, applied{})
			if p.create != nil {
				got = p.create.Spec.Environment.Strategy.Steps[0].Name
				if diff := cmp.Diff(app.Spec.Template.Strategy.From, p.create.Spec.Environment.Strategy.From); diff != "" {
					t.Errorf("from (-want +got)\n%s", diff)
				}
			} else if reason != shipper.StrategyFetchFailure {
				t.Errorf("reason %s", reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
