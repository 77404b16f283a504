// SPDX-License-Identifier: Apache-2.0

package stamp_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// taking is an Application that takes a Strategy, whose steps have one name.
func taking(t *testing.T, step string) (*shipper.Application, *shipper.RolloutStrategy) {
	t.Helper()
	content := &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{{Name: step}}, ProgressDeadline: "10m"}
	digest, err := stamp.StrategyDigest(*content)
	if err != nil {
		t.Fatal(err)
	}
	app := quickStart()
	app.Spec.Template.Strategy = &shipper.RolloutStrategy{From: &shipper.StrategyReference{Name: "careful", Digest: digest}}
	return app, content
}

func TestAReleaseHasWhatItsStrategyWas(t *testing.T) {
	app, content := taking(t, "canary")
	one, isNew, err := stamp.Next(stamp.WithStrategy(app, content), nil)
	if err != nil || !isNew {
		t.Fatalf("it is new: %t, %v", isNew, err)
	}
	want := *content
	want.From = app.Spec.Template.Strategy.From
	if diff := cmp.Diff(&want, one.Spec.Environment.Strategy); diff != "" {
		t.Errorf("its strategy (-want +got)\n%s", diff)
	}
	if is, err := stamp.StrategyDigest(*one.Spec.Environment.Strategy); err != nil || is != want.From.Digest {
		t.Errorf("the digest counts from: %s, %v", is, err)
	}
	if len(app.Spec.Template.Strategy.Steps) > 0 {
		t.Error("the Application has the steps, too")
	}
	// The Application alone has the same name and environment, without what was taken.
	hash, err := stamp.Hash(app.Spec.Template)
	if err != nil || one.Labels[shipper.ReleaseHashLabel] != hash {
		t.Errorf("hash %s, %v, and the Release has %s", hash, err, one.Labels[shipper.ReleaseHashLabel])
	}
	if again, isNew, err := stamp.Next(app, []*shipper.Release{one}); isNew || again != one || err != nil {
		t.Errorf("it gets %v, %v", again, err)
	}
	if diff := cmp.Diff(app.Spec.Template, stamp.Template(one.Spec.Environment)); diff != "" {
		t.Errorf("going back restores (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(one.Spec.Environment.Strategy, stamp.KnownStrategy(app, []*shipper.Release{one})); diff != "" {
		t.Errorf("known is (-want +got)\n%s", diff)
	}
}

func TestAnotherVersionOfAStrategyIsAnotherEnvironment(t *testing.T) {
	app, content := taking(t, "canary")
	one, err := stamp.Release(stamp.WithStrategy(app, content), nil)
	if err != nil {
		t.Fatal(err)
	}
	edited, content := taking(t, "slow")
	if stamp.SameTemplate(&one.Spec.Environment, &edited.Spec.Template) || stamp.KnownStrategy(edited, []*shipper.Release{one}) != nil {
		t.Error("they are the same")
	}
	two, isNew, err := stamp.Next(stamp.WithStrategy(edited, content), []*shipper.Release{one})
	if err != nil || !isNew || two.Labels[shipper.ReleaseHashLabel] == one.Labels[shipper.ReleaseHashLabel] {
		t.Errorf("it gets %v, %v", two, err)
	}
	if !stamp.SameFrom(&one.Spec.Environment, &edited.Spec.Template) {
		t.Error("they are of different Strategies")
	}
	edited.Spec.Template.Strategy.From.Namespace = "global"
	if stamp.SameFrom(&one.Spec.Environment, &edited.Spec.Template) {
		t.Error("one of another namespace is the same")
	}
}

func TestTheDigestOfAStrategyStaysTheSame(t *testing.T) {
	got, err := stamp.StrategyDigest(shipper.RolloutStrategy{
		From:  &shipper.StrategyReference{Name: "careful"},
		Steps: []shipper.RolloutStrategyStep{{Name: "full on"}}, Advance: shipper.AdvanceAutomatic,
		Waves: []shipper.Wave{{Name: "canary", BeforeTasks: &shipper.WaveTasks{Approvals: 2}}, {Name: "rest"}},
	})
	if want := "5bf6b06a0d3e500dbadc09a8fe0ab2fa029ed2bf48cb97a3441ad229c8933afd"; err != nil || got != want {
		t.Errorf("%s, %v: Releases that exist record %s", got, err, want)
	}
}

func TestAReleaseWhoseTakenStrategyWasChangedIsAnother(t *testing.T) {
	app, content := taking(t, "canary")
	one, err := stamp.Release(stamp.WithStrategy(app, content), nil)
	if err != nil {
		t.Fatal(err)
	}
	changed := one.DeepCopy()
	changed.Spec.Environment.Strategy.Advance, changed.Spec.Environment.Strategy.Steps = "", nil
	if stamp.SameEnvironment(&one.Spec.Environment, &changed.Spec.Environment) {
		t.Error("they are the same")
	}
	if stamp.KnownStrategy(app, []*shipper.Release{changed}) != nil {
		t.Error("the changed one is taken again")
	}
}
