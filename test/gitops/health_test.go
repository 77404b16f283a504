// SPDX-License-Identifier: Apache-2.0

// Package gitops proves that Argo CD and Flux see in Shipper's objects what examples/gitops says that they see.
package gitops

import (
	"os"
	"testing"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"github.com/google/go-cmp/cmp"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// read reads a file of the examples.
func read(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile("../../examples/gitops/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// flux is what Flux sees in an object, or that it is unknown yet.
func flux(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	var kustomization struct {
		Spec struct {
			HealthCheckExprs []kustomize.CustomHealthCheck `json:"healthCheckExprs"`
		} `json:"spec"`
	}
	read(t, "flux.yaml", &kustomization)
	for _, check := range kustomization.Spec.HealthCheckExprs {
		if check.APIVersion != o.GetAPIVersion() || check.Kind != o.GetKind() {
			continue
		}
		evaluator, err := cel.NewStatusEvaluator(&check.HealthCheckExpressions)
		if err != nil {
			t.Fatal(err)
		}
		result, err := evaluator.Evaluate(t.Context(), o)
		if err != nil {
			return "not known"
		}
		return string(result.Status)
	}
	t.Fatalf("there is no check for %s", o.GetKind())
	return ""
}

// argo is what Argo CD sees in an object. It gives scripts Lua's base and its tables, nothing else.
func argo(t *testing.T, o *unstructured.Unstructured) (health, message string) {
	t.Helper()
	var config struct {
		Data map[string]string `json:"data"`
	}
	read(t, "argocd-cm.yaml", &config)
	script := config.Data["resource.customizations.health.shipper.booking.com_"+o.GetKind()]
	if script == "" {
		t.Fatalf("there is no check for %s", o.GetKind())
	}
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		state.Push(state.NewFunction(open))
		state.Push(lua.LString(name))
		state.Call(1, 0)
	}
	state.SetGlobal("obj", value(state, o.Object))
	if err := state.DoString(script); err != nil {
		t.Fatal(err)
	}
	answer, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("it answers %v", state.Get(-1))
	}
	return answer.RawGetString("status").String(), answer.RawGetString("message").String()
}

// value is a value of an object in Lua.
func value(state *lua.LState, in any) lua.LValue {
	switch in := in.(type) {
	case map[string]any:
		out := state.NewTable()
		for k, v := range in {
			out.RawSetString(k, value(state, v))
		}
		return out
	case []any:
		out := state.NewTable()
		for _, v := range in {
			out.Append(value(state, v))
		}
		return out
	case string:
		return lua.LString(in)
	case bool:
		return lua.LBool(in)
	case int64:
		return lua.LNumber(in)
	case float64:
		return lua.LNumber(in)
	}
	return lua.LNil
}

// seen is what both say of an object.
type seen struct{ Argo, Message, Flux string }

// observed is the status of an object, what both say of it, and more of its metadata.
type observed struct {
	status   string
	want     seen
	metadata string
}

// check compares what both say of objects of a kind, by their status.
func check(t *testing.T, kind string, cases map[string]observed) {
	t.Helper()
	for sentence, tc := range cases {
		t.Run(sentence, func(t *testing.T) {
			text := "{apiVersion: shipper.booking.com/v1alpha1, kind: " + kind + ", metadata: {name: a, generation: 2" + tc.metadata + "}" +
				tc.status + "}"
			raw, err := yaml.YAMLToJSON([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			o := &unstructured.Unstructured{}
			if err := o.UnmarshalJSON(raw); err != nil {
				t.Fatal(err)
			}
			got := seen{Flux: flux(t, o)}
			got.Argo, got.Message = argo(t, o)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error("(-want +got)\n" + diff)
			}
		})
	}
}

// reported is a status with conditions of the generation that there is.
func reported(conditions string) string {
	return ", status: {observedGeneration: 2, conditions: [" + conditions + "]}"
}

func TestHealthOfApplications(t *testing.T) {
	const (
		synced   = "{type: ReleaseSynced, status: 'True'}, {type: ValidHistory, status: 'True'}, {type: Aborting, status: 'False'}, "
		free     = "{type: Blocked, status: 'False'}, "
		held     = "{type: Blocked, status: 'True', reason: RolloutsBlocked, message: a freeze}, "
		active   = "{type: RollingOut, status: 'False', message: a-0 is active}"
		moving   = "{type: RollingOut, status: 'True', message: from a-0 to a-1}"
		unsynced = "{type: ReleaseSynced, status: 'False', reason: CreateReleaseFailed, message: it cannot}, "
		waiting  = "{type: ReleaseSynced, status: 'False', reason: RolloutsBlocked, message: a freeze}, "
		broken   = "{type: ReleaseSynced, status: 'True'}, {type: ValidHistory, status: 'False', reason: ReleasesMissing, message: which}, "
		failed   = "{type: RollingOut, status: 'False', reason: CreateReleaseFailed, message: it cannot}"
		missed   = "{type: Failed, status: 'True', reason: ProgressDeadlineExceeded, message: 'a-1: no capacity'}, "
		mended   = "{type: Failed, status: 'False'}, "
		pending  = "{type: ReleaseSynced, status: 'False', reason: SelectionPending, message: being taken}, "
		untaken  = "{type: ReleaseSynced, status: 'False', reason: SelectionNotAllowed, message: ann may not}, "
		waits    = "{type: ReleaseSynced, status: 'False', reason: RolloutsBlocked, message: a freeze of resources}, "
		taken    = "{type: ResourcesSelected, status: 'True', message: 3 objects}, "
		refused  = "{type: ResourcesSelected, status: 'False', reason: SelectionNotAllowed, message: ann may not}, "
		blocked  = "{type: ResourcesSelected, status: 'False', reason: RolloutsBlocked, message: a freeze of resources}, "
	)
	check(t, "Application", map[string]observed{
		"nothing is known yet":        {status: "", want: seen{"Progressing", "", "not known"}},
		"no condition is there":       {status: reported(""), want: seen{"Progressing", "", "InProgress"}},
		"it is rolled out":            {status: reported(synced + free + active), want: seen{"Healthy", "a-0 is active", "Current"}},
		"it is being rolled out":      {status: reported(synced + free + moving), want: seen{"Progressing", "from a-0 to a-1", "InProgress"}},
		"nothing is to be done":       {status: reported(synced + held + active), want: seen{"Healthy", "a-0 is active", "Current"}},
		"a block holds a Release":     {status: reported(synced + held + moving), want: seen{"Suspended", "a freeze", "InProgress"}},
		"a block holds the next":      {status: reported(waiting + held + active), want: seen{"Suspended", "a freeze", "InProgress"}},
		"no Release can be made":      {status: reported(unsynced + free + failed), want: seen{"Degraded", "it cannot", "Failed"}},
		"a Release has failed":        {status: reported(synced + free + missed + moving), want: seen{"Degraded", "a-1: no capacity", "Failed"}},
		"one that failed was aborted": {status: reported(synced + free + missed + active), want: seen{"Degraded", "a-1: no capacity", "Failed"}},
		"another has completed since": {status: reported(synced + free + mended + active), want: seen{"Healthy", "a-0 is active", "Current"}},
		"its history is broken":       {status: reported(broken + free + active), want: seen{"Degraded", "which", "Failed"}},
		"content is taken for the first time": {
			status: reported(pending + free + moving), want: seen{"Progressing", "being taken", "InProgress"},
		},
		"content was never taken": {
			status: reported(untaken + refused + free + moving), want: seen{"Degraded", "ann may not", "Failed"},
		},
		"content is taken": {status: reported(synced + taken + free + active), want: seen{"Healthy", "a-0 is active", "Current"}},
		"content is rolled out": {
			status: reported(synced + taken + free + moving), want: seen{"Progressing", "from a-0 to a-1", "InProgress"},
		},
		"content is not followed": {
			status: reported(synced + refused + free + active), want: seen{"Degraded", "ann may not", "Failed"},
		},
		"content is not followed, moving": {
			status: reported(synced + refused + free + moving), want: seen{"Degraded", "ann may not", "Failed"},
		},
		"a block holds content that is selected now": {
			status: reported(waits + blocked + held + active), want: seen{"Suspended", "a freeze of resources", "InProgress"},
		},
		"a block holds content": {
			status: reported(synced + blocked + free + active), want: seen{"Suspended", "a freeze of resources", "InProgress"},
		},
		"a block holds the first content": {
			status: reported(waits + blocked + free + moving), want: seen{"Suspended", "a freeze of resources", "InProgress"},
		},
		"the report is of an earlier generation": {
			status: ", status: {observedGeneration: 1, conditions: [" + synced + free + active + "]}", want: seen{"Progressing", "", "InProgress"},
		},
	})
}

func TestHealthOfReleases(t *testing.T) {
	const (
		placed   = "{type: Scheduled, status: 'True'}, {type: Blocked, status: 'False'}, "
		held     = "{type: Scheduled, status: 'True'}, {type: Blocked, status: 'True', message: a freeze}, "
		unplaced = "{type: Scheduled, status: 'False', reason: NotEnoughClustersInRegion, message: too few}"
		making   = "{type: StrategyExecuted, status: 'False', reason: StrategyInProgress, message: capacity}, {type: Complete, status: 'False'}"
		made     = "{type: StrategyExecuted, status: 'True'}, {type: Complete, status: 'False', reason: StrategyNotComplete}"
		complete = "{type: StrategyExecuted, status: 'True'}, {type: Complete, status: 'True'}"
		fewer    = "{type: Scheduled, status: 'False', reason: PlacementUnfulfilled, message: 1 of 2}, "
		on       = ", annotations: {shipper.booking.com/release.clusters: eu}"
		onNone   = ", annotations: {shipper.booking.com/release.clusters: ''}"
		failed   = "{type: Failed, status: 'True', reason: CheckFailed, message: 5 % > 1 %}, "
		failing  = "{type: StrategyExecuted, status: 'False', reason: StrategyExecutionFailed, message: how}"
	)
	check(t, "Release", map[string]observed{
		"nothing is known yet": {status: "", want: seen{"Progressing", "", "not known"}},
		"it has no cluster":    {status: reported(unplaced), want: seen{"Degraded", "too few", "Failed"}},
		"it has fewer clusters than it wants": {
			status: reported(fewer + complete), want: seen{"Healthy", "", "Current"}, metadata: on,
		},
		"a step is being made in fewer clusters": {
			status: reported(fewer + making), want: seen{"Progressing", "capacity", "InProgress"}, metadata: on,
		},
		"it cannot go on in fewer clusters": {
			status: reported(fewer + failing), want: seen{"Degraded", "how", "Failed"}, metadata: on,
		},
		"no cluster fits":          {status: reported(fewer), want: seen{"Degraded", "1 of 2", "Failed"}},
		"none has fitted yet":      {status: reported(fewer), want: seen{"Degraded", "1 of 2", "Failed"}, metadata: onNone},
		"a step is being made":     {status: reported(placed + making), want: seen{"Progressing", "capacity", "InProgress"}},
		"it cannot go on":          {status: reported(placed + failing), want: seen{"Degraded", "how", "Failed"}},
		"it has failed":            {status: reported(placed + failed + making), want: seen{"Degraded", "5 % > 1 %", "Failed"}},
		"a block holds it":         {status: reported(held + making), want: seen{"Suspended", "a freeze", "InProgress"}},
		"it is complete":           {status: reported(placed + complete), want: seen{"Healthy", "", "Current"}},
		"it was, and a block came": {status: reported(held + complete), want: seen{"Healthy", "", "Current"}},
		"it waits for targetStep": {
			status: ", status: {observedGeneration: 2, strategy: {state: {waitingForCommand: 'True'}}, conditions: [" + placed + made + "]}",
			want:   seen{"Suspended", "The step is achieved; targetStep is yours to raise.", "InProgress"},
		},
	})
}
