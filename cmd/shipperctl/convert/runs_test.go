// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// runWith is a staged run of the placement work with a strategy, and more fields in its spec.
func runWith(version, name, metadata, strategy, fields string) string {
	return `{apiVersion: placement.kubernetes-fleet.io/` + version + `, kind: ClusterStagedUpdateRun, metadata: {name: ` + name + metadata +
		`}, spec: {placementName: work, stagedRolloutStrategyName: ` + strategy + fields + `}}`
}

func TestARunGivesItsPlacementWaves(t *testing.T) {
	external := placementWith("strategy: {type: External}")
	strategy := strategyWith(canaryThenProd)
	other := strings.Replace(strategyWith("{name: all, labelSelector: {}}"), "name: s", "name: other", 1)
	approved := strategyWith(strings.Replace(canaryThenProd, "}}},", "}}, beforeStageTasks: [{type: Approval}]},", 1))
	run := func(fields string) string { return runWith("v1beta1", "r", "", "s", fields) }
	const (
		follows  = "ClusterResourcePlacement work: spec.strategy.type: External becomes follow: OnRefresh and the waves of "
		of       = "ClusterStagedUpdateStrategy s: spec.stages"
		users    = of + ": approvals are of users"
		left     = ": is left out: "
		labelled = "ClusterResourcePlacement work: spec.strategy.type: External places nothing before a staged run"
		refresh  = "ClusterResourcePlacement work: spec.strategy.type: becomes follow: OnRefresh: "
	)
	for sentence, c := range map[string]struct {
		in      []string
		waves   string
		reviews []string
	}{
		"that begin at once":   {[]string{external, strategy, run(", state: Run")}, "canary prod", []string{follows}},
		"whatever comes first": {[]string{run(", state: Run"), strategy, external}, "canary prod", []string{follows}},
		"that begin at once in the first version": {[]string{external, strategy, runWith("v1alpha1", "r", "", "s", "")}, "canary prod",
			[]string{follows}},
		"that wait for a run without a state": {[]string{external, strategy, run("")}, "before-canary canary prod", []string{follows,
			"ClusterStagedUpdateRun r: document 3: spec.state: is Initialize, the default: wave before-canary has no cluster, "}},
		"that wait for a run that is stopped": {[]string{external, strategy, run(", state: Stop")}, "before-canary canary prod", []string{follows,
			"ClusterStagedUpdateRun r: document 3: spec.state: is Stop: wave before-canary has no cluster, "}},
		"that wait for a run": {[]string{external, strategy}, "before-canary canary prod", []string{follows,
			"ClusterResourcePlacement work: spec.strategy.type: has no run in the input: wave before-canary "}},
		"that wait for an approval before the first": {[]string{external, approved, run(", state: Run")}, "before-canary canary prod",
			[]string{follows, users, of + "[0].beforeStageTasks: becomes a wave in front: wave before-canary "}},
		"and none of another strategy": {[]string{external, strategy, other, run(", state: Run")}, "canary prod",
			[]string{"ClusterStagedUpdateStrategy other: document 3" + left + "no run in the input names it for a placement", follows}},
		"of content that only KubeFleet has": {[]string{external, strategy, run(`, state: Run, resourceSnapshotIndex: "1"`)}, "canary prod",
			[]string{follows, `ClusterStagedUpdateRun r: document 3: spec.resourceSnapshotIndex: "1" names content of an earlier time`}},
		"and loses what is not known": {[]string{external, strategy, run(`, state: Run, pace: slow`)}, "canary prod",
			[]string{follows, "ClusterStagedUpdateRun r: document 3: spec.pace: is not known"}},
		"and no bounds that have no effect": {[]string{placementWith("strategy: {type: External, rollingUpdate: {maxSurge: 1}}"), strategy,
			run(", state: Run")}, "canary prod",
			[]string{"ClusterResourcePlacement work: spec.strategy.rollingUpdate" + left + "it has no effect with External", follows}},
		"of the last of several": {[]string{external, strategy, other, runWith("v1beta1", "a", "", "other", ", state: Run"), run(", state: Run")},
			"canary prod", []string{"ClusterStagedUpdateStrategy other: document 3" + left, "ClusterStagedUpdateRun a: document 4" + left +
				"the Application of ClusterResourcePlacement work has what run r asks for", follows}},
		"of the newest of several": {[]string{external, strategy, other,
			runWith("v1", "a", `, creationTimestamp: "2026-02-01T00:00:00Z"`, "other", ", state: Run"),
			runWith("v1", "r", `, creationTimestamp: "2026-01-01T00:00:00Z"`, "s", ", state: Run")}, "all",
			[]string{"ClusterStagedUpdateStrategy s: document 2" + left, "ClusterStagedUpdateRun r: document 5" + left, follows}},
		"but not one that is deleted": {[]string{external, strategy,
			runWith("v1", "r", `, deletionTimestamp: "2026-02-01T00:00:00Z"`, "s", ", state: Run")}, "before-canary canary prod",
			[]string{"ClusterStagedUpdateRun r: document 3" + left + "it is being deleted", follows,
				"ClusterResourcePlacement work: spec.strategy.type: has no run in the input: "}},
		"but not without its strategy": {[]string{external, run("")}, "", []string{
			"ClusterStagedUpdateRun r: document 2" + left + "its strategy s is not in the input: give its file, too", labelled, refresh}},
		"but not of no stages": {[]string{external, strategyWith(""), run("")}, "", []string{
			"ClusterStagedUpdateStrategy s: document 2" + left + "it has no stages", "ClusterStagedUpdateRun r: document 3" + left +
				"its strategy s is not converted", labelled, refresh}},
		"but not where there are two": {[]string{external, strategy, other}, "", []string{
			"ClusterStagedUpdateStrategy s: document 2" + left, "ClusterStagedUpdateStrategy other: document 3" + left, labelled, refresh}},
		"but not one that rolls": {[]string{placementWith(""), strategy, run("")}, "", []string{
			"ClusterStagedUpdateStrategy s: document 2" + left, "ClusterStagedUpdateRun r: document 3" + left +
				"ClusterResourcePlacement work does not have the strategy External"}},
		"and has to be approved anew": {[]string{external, strategy, run(", state: Run"), `{apiVersion: placement.kubernetes-fleet.io/v1beta1, ` +
			`kind: ClusterApprovalRequest, metadata: {name: r-canary}, spec: {parentStageRollout: r, targetStage: canary}}`}, "canary prod",
			[]string{"ClusterApprovalRequest r-canary: document 4" + left + "it approves stage canary of run r. When wave canary waits, another " +
				"user than the one who asked for the Release approves it anew, with `shipperctl rollout approve work -n work`", follows}},
	} {
		t.Run(sentence, func(t *testing.T) {
			out, err := convert(t.Context(), []byte(strings.Join(c.in, "\n---\n")), settings{})
			if err != nil {
				t.Fatal(err)
			}
			app, ok := out.fleet[0].object.(*shipper.Application)
			if !ok || len(out.fleet) != 1 {
				t.Fatalf("there are %d objects, the first a %T", len(out.fleet), out.fleet[0].object)
			}
			var names []string
			for _, one := range app.Spec.Template.Strategy.Waves {
				names = append(names, one.Name)
			}
			if got := strings.Join(names, " "); got != c.waves {
				t.Errorf("waves are %q, want %q", got, c.waves)
			}
			expectReviews(t, "", c.reviews, out.reviews())
		})
	}
}

// TestARunInANamespaceIsOfItsPlacementAlone has a placement, a strategy and a run in a namespace, and others of the same names elsewhere.
func TestARunInANamespaceIsOfItsPlacementAlone(t *testing.T) {
	in := func(namespace, kind, spec string) string {
		return "{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: " + kind + ", metadata: {name: a, namespace: " + namespace +
			"}, spec: {" + spec + "}}"
	}
	const placement = "resourceSelectors: [{version: v1, kind: ConfigMap, name: a}], strategy: {type: External}"
	out, err := convert(t.Context(), []byte(strings.Join([]string{
		in("shop", "ResourcePlacement", placement),
		in("tools", "ResourcePlacement", placement),
		in("shop", "StagedUpdateStrategy", "stages: ["+canaryThenProd+"]"),
		in("tools", "StagedUpdateStrategy", "stages: [{name: all, labelSelector: {}}]"),
		strings.Replace(strategyWith("{name: a, labelSelector: {}}"), "name: s", "name: a", 1),
		in("shop", "StagedUpdateRun", "placementName: a, stagedRolloutStrategyName: a, state: Run"),
	}, "\n---\n")), settings{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]shipper.Wave{}
	for _, one := range out.fleet {
		app, _ := one.object.(*shipper.Application)
		got[app.Namespace] = app.Spec.Template.Strategy.Waves
	}
	all := shipper.Wave{Name: "all", ClusterSelector: &metav1.LabelSelector{}}
	want := map[string][]shipper.Wave{"shop": {wave("canary", nil), wave("prod", nil)}, "tools": held([]shipper.Wave{all})}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("waves by namespace (-want +got):\n%s", diff)
	}
	const left = "ClusterStagedUpdateStrategy a: document 5: is left out: "
	if len(out.leftOut) != 1 || !strings.HasPrefix(out.leftOut[0], left) {
		t.Errorf("left out are %q, want %s", out.leftOut, left)
	}
}
