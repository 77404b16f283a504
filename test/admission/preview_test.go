// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/env"
)

// ours filters the keys in etcd that a dry run could have left behind: Shipper's kinds and events. It leaves out what an idle
// cluster writes, such as Leases.
func ours(stored map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for key, revision := range stored {
		if strings.HasPrefix(key, shipper.GroupName+"/") || strings.HasPrefix(key, "events/") {
			out[key] = revision
		}
	}
	return out
}

func TestADryRunTellsThePlanAndLeavesNothingBehind(t *testing.T) {
	ns, dev := namespace(t), as(t, "dev")
	serverLocal(t)
	app := application(ns, startRepository(t), replicas(4), func(a *shipper.Application) {
		a.Spec.Template.Chart.RepoURL = charts.Serve(t).URL // the other repository has no archives
	})
	stored := func() map[string]int64 {
		t.Helper()
		all, err := management.Stored(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 0 {
			t.Fatal("etcd is empty")
		}
		return ours(all)
	}
	var warnings []string
	env.Eventually(t, "the plan to count Pods", func(ctx context.Context) error {
		dev.warnings()
		dry := app.DeepCopy()
		if err := dev.Create(ctx, dry, client.DryRunAll); err != nil {
			return err
		}
		if warnings = dev.warnings(); strings.Contains(strings.Join(warnings, "\n"), "cannot be counted") {
			return errors.New(warnings[len(warnings)-1])
		}
		return nil
	})
	before := stored()
	if err := dev.Create(t.Context(), app.DeepCopy(), client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, stored()); diff != "" {
		t.Errorf("the dry run wrote (-before +after):\n%s", diff)
	}
	name := nameOf(t, app)
	var plan []string
	for _, line := range warnings {
		if !strings.Contains(line, " cluster") || strings.Contains(line, "step") { // other tests decide which clusters there are
			plan = append(plan, line)
		}
	}
	want := []string{
		"this makes Release " + name,
		"plan: Release " + name + " of chart nginx 0.0.1",
		"plan: step 0 (staging): contender 1 Pod, 0 in traffic, in each cluster",
		"plan: step 1 (full on): contender 4 Pods, 4 in traffic, in each cluster",
	}
	if len(plan) > 1 {
		plan[1], _, _ = strings.Cut(plan[1], ", sha256 ")
	}
	if diff := cmp.Diff(want, plan); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}

	create(t, dev, app) // a real write does change etcd
	if cmp.Diff(before, stored()) == "" {
		t.Error("the creation did not show in etcd")
	}
}
