// SPDX-License-Identifier: Apache-2.0

package application_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/response"
)

// freeze is a block that comes in two hours, changed by edits.
func freeze(edits ...func(*shipper.RolloutBlock)) *shipper.RolloutBlock {
	b := ask.Block("global/freeze")
	b.Spec.Schedule = &shipper.RolloutBlockSchedule{Start: &metav1.Time{Time: ask.Now.Add(2 * time.Hour)}}
	for _, edit := range edits {
		edit(b)
	}
	return b
}

func TestADryRunShowsThePlan(t *testing.T) {
	complete := ask.Release(ask.Application(), nil, func(r *shipper.Release) {
		r.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseComplete, Status: "True"}}
	})
	next := ask.Application(ask.Version("0.0.2"), func(app *shipper.Application) {
		app.Spec.Template.Values = &shipper.ChartValues{"replicaCount": int64(10)}
		app.Annotations = map[string]string{
			shipper.AppChartVersionRawAnnotation: "~0.0", shipper.AppChartDigestAnnotation: "cafe",
		}
	})
	const makes = "super-server-993dd0d-0"
	scoped := func(b *shipper.RolloutBlock) { b.Spec.Scope = &shipper.RolloutBlockScope{Charts: []string{"other"}} }
	for sentence, tc := range map[string]struct {
		known  []client.Object
		count  error
		gates  []string // of the first step
		warned []string
	}{
		"a step that waits for others": {
			gates: []string{"example.com/Verified", "example.com/Signed"},
			warned: []string{
				"this makes Release super-server-27ce9793-0",
				"plan: Release super-server-27ce9793-0 of chart nginx 0.0.2 (~0.0), sha256 cafe",
				"plan: 1 cluster: here",
				"plan: step 0 (staging): contender 1 Pod, 0 in traffic, in each cluster; it waits for example.com/Verified, example.com/Signed",
				"plan: step 1 (full on): contender 10 Pods, 10 in traffic, in each cluster",
			},
		},
		"a step that waits for others, of a chart that is not there yet": {
			gates: []string{"example.com/Verified"}, count: errors.New("chart nginx 0.0.2 is still being fetched"),
			warned: []string{
				"this makes Release super-server-c7182209-0",
				"plan: Release super-server-c7182209-0 of chart nginx 0.0.2 (~0.0), sha256 cafe",
				"plan: 1 cluster: here",
				"plan: step 0 (staging): contender 1 % of capacity, weight 0 in traffic; it waits for example.com/Verified",
				"plan: step 1 (full on): contender 100 % of capacity, weight 100 in traffic",
				"plan: Pods cannot be counted: chart nginx 0.0.2 is still being fetched",
			},
		},
		"over an incumbent, with a freeze ahead": {
			known: []client.Object{complete, freeze()},
			warned: []string{
				"this makes Release " + makes,
				"plan: Release " + makes + " of chart nginx 0.0.2 (~0.0), sha256 cafe",
				"plan: 1 cluster: here",
				"plan: step 0 (staging): contender 1 Pod, 0 in traffic, incumbent 3 Pods, 3 in traffic, in each cluster",
				"plan: step 1 (full on): contender 10 Pods, 10 in traffic, incumbent 0 Pods, 0 in traffic, in each cluster",
				"plan: the incumbent is Release super-server-8c60a3ae-0",
				"plan: RolloutBlock global/freeze will stop rollouts from 2026-11-21T14:00:00Z on, in 120m: " +
					"DNS issues, troubleshooting in progress",
			},
		},
		"a first one, with a freeze ahead of others": {
			known: []client.Object{freeze(scoped)},
			warned: []string{
				"this makes Release " + makes,
				"plan: Release " + makes + " of chart nginx 0.0.2 (~0.0), sha256 cafe",
				"plan: 1 cluster: here",
				"plan: step 0 (staging): contender 1 Pod, 0 in traffic, in each cluster",
				"plan: step 1 (full on): contender 10 Pods, 10 in traffic, in each cluster",
			},
		},
		"a chart that is not there yet": {
			count: errors.New("chart nginx 0.0.2 is still being fetched"),
			warned: []string{
				"this makes Release " + makes,
				"plan: Release " + makes + " of chart nginx 0.0.2 (~0.0), sha256 cafe",
				"plan: 1 cluster: here",
				"plan: step 0 (staging): contender 1 % of capacity, weight 0 in traffic",
				"plan: step 1 (full on): contender 100 % of capacity, weight 100 in traffic",
				"plan: Pods cannot be counted: chart nginx 0.0.2 is still being fetched",
			},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			charts := &catalog{found: repository.Resolution{Version: "0.0.2"}, countErr: tc.count}
			hook := webhookOf(t, ask.Grant(), charts, tc.known...)
			next := next.DeepCopy()
			next.Spec.Template.Strategy.Steps[0].ReadinessGates = tc.gates
			a, req, dry := &response.Response{}, ask.Create(ask.Developer, next), true
			req.DryRun = &dry
			if err := hook.Validate(t.Context(), req, a); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.warned, a.Warnings()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if a, req.DryRun = (&response.Response{}), nil; hook.Validate(t.Context(), req, a) != nil || len(a.Warnings()) != 1 {
				t.Errorf("a write that is not a dry run warns of more than the Release: %q", a.Warnings())
			}
		})
	}
}

func TestADryRunShowsWherePodsDiffer(t *testing.T) {
	next := ask.Application(func(app *shipper.Application) {
		app.Spec.Template.ClusterRequirements.Regions[0].Replicas = new(int32(2))
		app.Spec.Template.ValuesPerCluster = []shipper.ValuesFor{
			{Name: "there", Values: &shipper.ChartValues{"replicaCount": int64(7)}},
			{Name: "elsewhere", Values: &shipper.ChartValues{"replicaCount": int64(9)}},
		}
	})
	there := &shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "there"}, Spec: shipper.ClusterSpec{Region: "local"}}
	hook := webhookOf(t, ask.Grant(), &catalog{found: repository.Resolution{Version: "0.0.1"}}, there)
	a, req, dry := &response.Response{}, ask.Create(ask.Developer, next), true
	req.DryRun = &dry
	if err := hook.Validate(t.Context(), req, a); err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(a.Warnings()[0], "this makes Release ")
	want := []string{
		"this makes Release " + name,
		"plan: Release " + name + " of chart nginx 0.0.1",
		"plan: 2 clusters: here, there",
		"plan: step 0 (staging): contender 1 % of capacity, weight 0 in traffic",
		"plan: step 1 (full on): contender 100 % of capacity, weight 100 in traffic",
		"plan: all Pods of Release " + name + " are 3 in here, 7 in there",
		"valuesPerCluster has values for elsewhere, where it will not run as clusters are now: it is placed on here, there",
	}
	if diff := cmp.Diff(want, a.Warnings()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestAPlanShowsTheBlockThatWillStopIt(t *testing.T) {
	complete := func(app *shipper.Application) *shipper.Release {
		return ask.Release(app, nil, func(r *shipper.Release) {
			r.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseComplete, Status: "True"}}
		})
	}
	override := ask.Overriding("global/freeze")
	before, after := ask.Application(), ask.Application(ask.Version("0.0.2"))
	for sentence, tc := range map[string]struct {
		freeze   func(*shipper.RolloutBlock)
		old, now *shipper.Application
		known    []client.Object
		warned   bool
	}{
		"a freeze": {func(*shipper.RolloutBlock) {}, before, after, nil, true},
		"one that warns stops nothing": {
			func(b *shipper.RolloutBlock) { b.Spec.Enforcement = shipper.RolloutBlockWarn }, before, after, nil, false,
		},
		"one that notes stops nothing": {
			func(b *shipper.RolloutBlock) { b.Spec.Enforcement = shipper.RolloutBlockAudit }, before, after, nil, false,
		},
		"one that is overridden stops nothing": {
			func(*shipper.RolloutBlock) {}, ask.Application(override), ask.Application(override, ask.Version("0.0.2")), nil, false,
		},
		"one with policy Nobody stops it": {
			func(b *shipper.RolloutBlock) { b.Spec.OverridePolicy = shipper.RolloutBlockNobody },
			ask.Application(override), ask.Application(override, ask.Version("0.0.2")), nil, true,
		},
		"one that lets rollbacks pass stops no rollback": {
			func(b *shipper.RolloutBlock) {
				b.Spec.Allow = []shipper.RolloutBlockChange{shipper.RolloutBlockRollback}
			},
			before, after, []client.Object{complete(after)}, false,
		},
		"one that allows rollbacks stops other changes": {
			func(b *shipper.RolloutBlock) {
				b.Spec.Allow = []shipper.RolloutBlockChange{shipper.RolloutBlockRollback}
			},
			before, after, nil, true,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			charts := &catalog{found: repository.Resolution{Version: "0.0.2"}}
			runs := ask.Release(tc.old, []*shipper.Release{complete(after)})
			hook := webhookOf(t, ask.Grant(), charts, append(tc.known, runs, freeze(tc.freeze))...)
			a, req, dry := &response.Response{}, ask.Update(ask.Developer, tc.now, tc.old), true
			req.DryRun = &dry
			if err := hook.Validate(t.Context(), req, a); err != nil {
				t.Fatal(err)
			}
			warned := slices.ContainsFunc(a.Warnings(), func(w string) bool { return strings.Contains(w, "will stop rollouts") })
			if warned != tc.warned {
				t.Errorf("warned of the freeze: %v, want %v: %q", warned, tc.warned, a.Warnings())
			}
		})
	}
}

func TestAnOverrideThatCoversNothingIsReported(t *testing.T) {
	overriding := ask.Annotated(shipper.RolloutBlockOverrideAnnotation, "global/freeze")
	hook := webhookOf(t, ask.Grant("dev override rolloutblocks global/freeze"), exact(), freeze())
	a := &response.Response{}
	if err := hook.Validate(t.Context(), ask.Create(ask.Developer, ask.Application(overriding)), a); err != nil {
		t.Fatal(err)
	}
	const want = "the override of global/freeze covers nothing now: what it names does not stop this change"
	if got := a.Warnings(); len(got) == 0 || got[0] != want {
		t.Errorf("warned %q, want %q first", got, want)
	}
}
