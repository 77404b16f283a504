// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// strategyWith is a strategy of staged runs with stages.
func strategyWith(stages string) string {
	return `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterStagedUpdateStrategy, metadata: {name: s}, spec: {stages: [` +
		stages + `]}}`
}

const canaryThenProd = "{name: canary, labelSelector: {matchLabels: {tier: canary}}}, " +
	"{name: prod, labelSelector: {matchLabels: {tier: prod}}}"

// wave is one that selects a tier.
func wave(name string, tasks *shipper.WaveTasks) shipper.Wave {
	return shipper.Wave{Name: name, ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": name}}, AfterTasks: tasks}
}

// onlyDocument is the one object of a text.
func onlyDocument(t *testing.T, text string) document {
	t.Helper()
	all, err := read([]byte(text))
	if err != nil || len(all) != 1 {
		t.Fatalf("%d objects: %v", len(all), err)
	}
	return all[0]
}

// TestStagesBecomeWaves compares the waves whole, and the fields and kinds of all reviews.
func TestStagesBecomeWaves(t *testing.T) {
	canary := func(fields string) string { return strings.Replace(canaryThenProd, "}}},", "}}, "+fields+"},", 1) }
	prod := func(fields string) string { return strings.TrimSuffix(canaryThenProd, "}") + ", " + fields + "}" }
	pause := func(time string) string {
		return canary("afterStageTasks: [{type: TimedWait, waitTime: " + time + "}]")
	}
	bound := func(n intstr.IntOrString) []shipper.Wave {
		out := wave("canary", nil)
		out.MaxConcurrency = &n
		return []shipper.Wave{out, wave("prod", nil)}
	}
	after := func(tasks *shipper.WaveTasks) []shipper.Wave {
		return []shipper.Wave{wave("canary", tasks), wave("prod", nil)}
	}
	waits := func(time shipper.Duration) []shipper.Wave { return after(&shipper.WaveTasks{Wait: time}) }
	plain, approved := after(nil), after(&shipper.WaveTasks{Approvals: 1})
	everyCluster := shipper.Wave{Name: "all", ClusterSelector: &metav1.LabelSelector{}}
	noCluster := shipper.Wave{Name: "none", ClusterSelector: noClusters()}
	const (
		users          = ": approvals are of users"
		approvalBefore = "beforeStageTasks: [{type: Approval}]"
		approvalAfter  = "afterStageTasks: [{type: Approval}"
		asAfter        = "[1].beforeStageTasks: becomes an approval after wave canary, which may be given while that wave waits"
	)
	for sentence, c := range map[string]struct {
		in      string
		want    []shipper.Wave
		reviews []string
	}{
		"two groups of clusters":    {canaryThenProd, plain, nil},
		"every cluster":             {"{name: all, labelSelector: {}}", []shipper.Wave{everyCluster}, nil},
		"no cluster":                {"{name: none}", []shipper.Wave{noCluster}, []string{"[0].labelSelector: is missing"}},
		"two clusters at a time":    {canary("maxConcurrency: 2"), bound(intstr.FromInt32(2)), nil},
		"all clusters at a time":    {canary("maxConcurrency: 100%"), bound(intstr.FromString("100%")), nil},
		"a share of them at a time": {canary("maxConcurrency: 30%"), bound(intstr.FromString("30%")), []string{"[0].maxConcurrency: 30%"}},
		"an order":                  {canary("sortingLabelKey: order"), plain, []string{"[0].sortingLabelKey: is left out"}},
		"a wait":                    {pause("1h0m30s"), waits("1h30s"), nil},
		"a part of a second":        {pause("0.5s"), waits("1s"), nil},
		"no time":                   {pause(`"0"`), plain, nil},
		"a wait of two months":      {pause("1500h"), waits("720h"), []string{"[0].afterStageTasks[0].waitTime: must be at most 720h"}},
		"an approval after":         {canary(approvalAfter + "]"), approved, []string{users}},
		"an approval between":       {prod(approvalBefore), approved, []string{asAfter, users}},
		"an approval before":        {canary(approvalBefore), plain, []string{users}},
		"both between": {
			strings.Replace(prod(approvalBefore), "}}},", "}}, "+approvalAfter+", {type: TimedWait, waitTime: 1m}]},", 1),
			after(&shipper.WaveTasks{Approvals: 2, Wait: "1m"}),
			[]string{asAfter + "; with the one after its stage, two users have to approve before prod begins", users},
		},
		"tasks after the last stage": {prod(approvalAfter + "]"), plain, []string{"[1].afterStageTasks: is left out"}},
		"a wait before": {prod("beforeStageTasks: [{type: TimedWait, waitTime: 1m}]"), plain,
			[]string{"[1].beforeStageTasks[0].type: TimedWait 1m is left out"}},
		"a task of another type":      {canary("afterStageTasks: [{type: A}]"), plain, []string{"[0].afterStageTasks[0].type: A is left out"}},
		"a field that is not known":   {canary("pace: slow"), plain, []string{"[0].pace: is not known"}},
		"a field of a task not known": {pause(`"0", unless: a`), plain, []string{"[0].afterStageTasks[0].unless: is not known"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := stagesToWaves(onlyDocument(t, strategyWith(c.in)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.waves); diff != "" {
				t.Errorf("waves (-want +got):\n%s", diff)
			}
			if first := sentence == "an approval before"; got.approvedFirst != first {
				t.Errorf("approved before the first: %t", got.approvedFirst)
			}
			expectReviews(t, "ClusterStagedUpdateStrategy s: spec.stages", c.reviews, got.reviews)
		})
	}
}

// expectReviews fails unless there are as many reviews as beginnings, and each begins so.
func expectReviews(t *testing.T, object string, want, got []string) {
	t.Helper()
	for i := range want {
		if i < len(got) && !strings.HasPrefix(got[i], object+want[i]) {
			t.Errorf("review %d is\n%s\nwant\n%s", i, got[i], object+want[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("reviews are\n%s\nwant %d", strings.Join(got, "\n"), len(want))
	}
}

func TestStrategiesThatAreNoWavesAreRefused(t *testing.T) {
	for sentence, c := range map[string]struct{ in, want string }{
		"two of one name": {"{name: a}, {name: a}", "spec.stages[1].name is that of another stage: a"},
		"a capital":       {"{name: Canary}", "spec.stages[0].name cannot be the name of a wave: "},
		"no concurrency":  {"{name: a, labelSelector: {}, maxConcurrency: 0}", "spec.stages[0].maxConcurrency is 0, and must be 1 at least"},
		"a wait without a time": {"{name: a, labelSelector: {}, afterStageTasks: [{type: TimedWait}]}, {name: b}",
			`spec.stages[0].afterStageTasks[0].waitTime is "", and must be a duration such as 1h30m`},
		"an operator that is not known": {"{name: a, labelSelector: {matchExpressions: [{key: b, operator: Is, values: [c]}]}}",
			"spec.stages[0].labelSelector makes a wave that Shipper refuses: "},
		"a text": {"{name: a, labelSelector: b}", "spec.stages.labelSelector is a string, and must be a map"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := stagesToWaves(onlyDocument(t, strategyWith(c.in)))
			if err == nil || !strings.HasPrefix(err.Error(), "document 1: "+c.want) {
				t.Errorf("got\n%v\nwant\n%s", err, c.want)
			}
		})
	}
}
