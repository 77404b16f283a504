// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/bench/world"
	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/env"
)

// lag is how late an event may be: progress is written up to two seconds late, and a step that follows sooner is told together with the one
// before. The reconciler is another process: its clock is the machine's.
const lag = 5 * time.Second

// recorded collects events.
type recorded struct {
	mu     sync.Mutex
	events []eventsv1.Event
	errs   []error
	names  *strings.Replacer // of Releases, by what they are called here
}

// codecs read events, which typed clients send in protobuf.
var codecs = serializer.NewCodecFactory(scheme.Scheme)

func (to *recorded) take(raw []byte) {
	var e eventsv1.Event
	_, _, err := codecs.UniversalDeserializer().Decode(raw, nil, &e)
	to.mu.Lock()
	defer to.mu.Unlock()
	if err != nil {
		to.errs = append(to.errs, err)
	}
	to.events = append(to.events, e)
}

// between is what a step waits for: some of that is recorded or not, depending on the time it takes.
var between = regexp.MustCompile(
	`(; )?Release "[^"]+" had its state "[^"]+" transitioned to "(True|False)"|: release "[^"]+" hasn't .*[^]]`)

// next are the events about what is in namespaces since they were last asked for, in words and in the order in which they
// happened. On a busy machine it waits longer than lag, until there are enough. What a step waits for in between is left out: two states
// that turn at one moment are one event or two.
func (to *recorded) next(t *testing.T, enough int) (out []string) {
	t.Helper()
	time.Sleep(lag)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_ = env.Until(ctx, "events", func(context.Context) error { // if in vain, the caller says which are missing
		to.mu.Lock()
		defer to.mu.Unlock()
		if out = to.notes(t); len(out) < enough {
			return fmt.Errorf("%d events of %d", len(out), enough)
		}
		to.events = nil
		return nil
	})
	return out
}

// notes are the events in words.
func (to *recorded) notes(t *testing.T) (out []string) {
	t.Helper()
	for _, err := range to.errs {
		t.Error(err)
	}
	slices.SortStableFunc(to.events, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	for _, e := range to.events {
		note := between.ReplaceAllString(e.Note, "")
		if e.Regarding.Kind == "Cluster" || note == "" {
			continue
		}
		what := fmt.Sprintf("%s %s: %s %s: %s", e.Regarding.Kind, e.Regarding.Name, e.Type, e.Reason, note)
		out = append(out, to.names.Replace(what))
	}
	return out
}

// releases knows the Releases there are.
type releases struct {
	mu  sync.Mutex
	all map[string]shipper.Release
}

func (r *releases) take(raw []byte, gone bool) {
	var rel shipper.Release
	if err := json.Unmarshal(raw, &rel); err != nil || gone {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[string]shipper.Release{}
	}
	r.all[rel.Annotations[shipper.ReleaseGenerationAnnotation]] = rel
}

// achieved waits until the Release of a generation has a step, and returns its name.
func (r *releases) achieved(t *testing.T, generation string, step int32) string {
	t.Helper()
	var rel shipper.Release
	env.Within(t, 5*time.Minute, fmt.Sprintf("release %s to achieve step %d", generation, step), func(context.Context) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		rel = r.all[generation]
		if rel.Status.AchievedStep == nil || rel.Status.AchievedStep.Step != step {
			return fmt.Errorf("it has achieved %v", rel.Status.AchievedStep)
		}
		return nil
	})
	return rel.Name
}

func TestAllEventsOfAnUpgradeAndOfABlock(t *testing.T) {
	t.Parallel()
	var events recorded
	var rels releases
	s := simulation{
		applications: 1, clusters: 1, replicas: 10, workers: 2, latency: time.Millisecond, pods: 10 * time.Millisecond,
		patience: 3 * time.Minute, out: io.Discard, dir: t.TempDir(), told: events.take,
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	defer s.close()
	var err error
	s.charts, err = charts.Start()
	must(err)
	must(s.begin())
	s.look(t.Context())
	go s.management.Follow(t.Context(), shipper.GroupVersion.Group, "releases", rels.take)
	must(s.start())
	must(s.connect(t.Context()))
	edit := func(resource, name string, value any, fields ...string) {
		t.Helper()
		must(s.management.Edit(shipper.GroupVersion.Group, resource, namespace(0), name, func(u *unstructured.Unstructured) error {
			return unstructured.SetNestedField(u.Object, value, fields...)
		}))
	}
	tells := func(what string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, events.next(t, len(want))); diff != "" {
			t.Errorf("%s: -want +got:\n%s", what, diff)
		}
	}

	must(s.application(0))
	old := rels.achieved(t, "0", 0)
	events.names = strings.NewReplacer(old, "OLD")
	tells("the first rollout",
		`Application app: Normal ApplicationConditionChanged: [] -> [Aborting False], [] -> [Blocked False], `+
			`[] -> [ReleaseSynced True], [] -> [RollingOut True Rolling out initial release "OLD"], [] -> [ValidHistory True]`,
		`Release OLD: Normal ClustersSelected: Set clusters for "app-0/OLD" to cluster-0`,
		`Release OLD: Normal ReleaseScheduled: Created InstallationTarget "app-0/OLD"; Created TrafficTarget "app-0/OLD"; `+
			`Created CapacityTarget "app-0/OLD"`,
		`Release OLD: Normal ReleaseConditionChanged: [] -> [Blocked False], `+
			`[] -> [Complete False StrategyNotComplete step 0, the last, is not achieved yet], [] -> [Scheduled True], `+
			`[] -> [StrategyExecuted False StrategyInProgress step 0 (full on) waits for clusters to be chosen and targets to be created]`,
		`Release OLD: Normal StrategyApplied: step [0] finished; `+
			`[Complete False StrategyNotComplete step 0, the last, is not achieved yet] -> [Complete True]`,
		`Application app: Normal ApplicationConditionChanged: `+
			`[RollingOut True Rolling out initial release "OLD"] -> [RollingOut False Release "OLD" is active]`,
	)

	strategy, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{
		world.Step("staging", 100, 1, 100, 0), world.Step("50/50", 50, 50, 50, 50), world.Step("full on", 0, 100, 0, 100),
	}})
	must(err)
	edit("applications", "app", strategy, "spec", "template", "strategy")
	rel := rels.achieved(t, "1", 0)
	events.names = strings.NewReplacer(old, "OLD", rel, "NEW")
	tells("an upgrade",
		`Application app: Normal ApplicationConditionChanged: `+
			`[RollingOut False Release "OLD" is active] -> [RollingOut True Transitioning from "OLD" to "NEW"]`,
		`Release NEW: Normal ClustersSelected: Set clusters for "app-0/NEW" to cluster-0`,
		`Release NEW: Normal ReleaseScheduled: Created InstallationTarget "app-0/NEW"; Created TrafficTarget "app-0/NEW"; `+
			`Created CapacityTarget "app-0/NEW"`,
		`Release NEW: Normal ReleaseConditionChanged: [] -> [Blocked False], `+
			`[] -> [Complete False StrategyNotComplete targetStep is 0, the last step is 2], [] -> [Scheduled True], `+
			`[] -> [StrategyExecuted False StrategyInProgress step 0 (staging) waits for clusters to be chosen and targets to be created]`,
		`Release NEW: Normal StrategyApplied: step [0] finished`,
	)
	edit("releases", rel, int64(1), "spec", "targetStep")
	rels.achieved(t, "1", 1)
	tells("the second step",
		`Release NEW: Normal ReleaseStateTransitioned: ; [StrategyExecuted True] -> `+
			`[StrategyExecuted False StrategyInProgress step 1 (50/50) waits]`,
		`Release NEW: Normal StrategyApplied: step [1] finished`,
	)
	edit("releases", rel, int64(2), "spec", "targetStep")
	rels.achieved(t, "1", 2)
	tells("the last step",
		`Release NEW: Normal ReleaseStateTransitioned: ; [StrategyExecuted True] -> `+
			`[StrategyExecuted False StrategyInProgress step 2 (full on) waits]`,
		`Release NEW: Normal StrategyApplied: step [2] finished; `+
			`[Complete False StrategyNotComplete step 2, the last, is not achieved yet] -> [Complete True]`,
		`Application app: Normal ApplicationConditionChanged: `+
			`[RollingOut True Transitioning from "OLD" to "NEW"] -> [RollingOut False Release "NEW" is active]`,
	)

	must(s.management.Create(shipper.GroupVersion.Group, "rolloutblocks", &shipper.RolloutBlock{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace(0), Name: "dns"}, Spec: shipper.RolloutBlockSpec{
			Message: "no", Author: shipper.RolloutBlockAuthor{Type: "user", Name: "ann"},
		},
	}))
	tells("a block", `Application app: Warning RolloutBlocked: rollouts blocked by: app-0/dns`)
	edit("rolloutblocks", "dns", time.Now().Add(-time.Second).UTC().Format(time.RFC3339), "spec", "expiresAt")
	tells("its end",
		`RolloutBlock dns: Warning RolloutBlockWeakened: the block of ann was changed and stops less now: expiresAt; `+
			`the API server's audit log has who did it`,
		`RolloutBlock dns: Normal RolloutBlockEnded: not in effect any more`)
}

func TestAllEventsOfAPlacement(t *testing.T) {
	t.Parallel()
	var events recorded
	var rels releases
	s := simulation{
		applications: 1, clusters: 1, workers: 2, latency: time.Millisecond, resources: true, patience: 3 * time.Minute, out: io.Discard,
		dir: t.TempDir(), told: events.take,
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	defer s.close()
	var err error
	s.charts, err = charts.Start()
	must(err)
	must(s.begin())
	s.look(t.Context())
	go s.management.Follow(t.Context(), shipper.GroupVersion.Group, "releases", rels.take)
	must(s.start())
	must(s.connect(t.Context()))
	must(s.application(0))
	rel := rels.achieved(t, "0", 0)
	events.names = strings.NewReplacer(rel, "NEW")
	want := []string{
		`Application app: Normal ResourcesSelected: 2 objects: 1 Namespace, 1 ConfigMap, digest DIGEST; [] -> [Aborting False], ` +
			`[] -> [Blocked False], [] -> [ReleaseSynced True], [] -> [RollingOut True Rolling out initial release "NEW"], ` +
			`[] -> [ValidHistory True]`,
		`Release NEW: Normal ClustersSelected: Set clusters for "app-0/NEW" to cluster-0; Created InstallationTarget "app-0/NEW"; ` +
			`[] -> [Blocked False], [] -> [Complete False StrategyNotComplete waits for clusters to be chosen and its target to be created], ` +
			`[] -> [Scheduled True]`,
		`Release NEW: Normal StrategyApplied: step [0] finished; [Complete False StrategyNotComplete clusters pending: [cluster-0]. ` +
			"for more details try `kubectl describe it NEW`] -> [Complete True]",
		`Application app: Normal ApplicationConditionChanged: ` +
			`[RollingOut True Rolling out initial release "NEW"] -> [RollingOut False Release "NEW" is active]`,
	}
	got := events.next(t, len(want))
	for i := range got {
		got[i] = regexp.MustCompile("digest [0-9a-f]{12}").ReplaceAllString(got[i], "digest DIGEST")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
