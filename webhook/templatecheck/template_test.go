// SPDX-License-Identifier: Apache-2.0

package templatecheck_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/util/validation/field"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/templatecheck"
)

type edit = func(*shipper.ReleaseEnvironment)

func env(edits ...edit) *shipper.ReleaseEnvironment {
	e := &ask.Application().Spec.Template
	for _, edit := range edits {
		edit(e)
	}
	return e
}

func steps(s ...shipper.RolloutStrategyStep) edit {
	return func(e *shipper.ReleaseEnvironment) { e.Strategy = &shipper.RolloutStrategy{Steps: s} }
}

func gated(gates ...string) shipper.RolloutStrategyStep {
	step := ask.Step("full on", 0, 100, 0, 100)
	step.ReadinessGates = gates
	return step
}

// checked is a step with checks of that name.
func checked(name string, checks ...string) shipper.RolloutStrategyStep {
	step := ask.Step("canary", 100, 1, 100, 0)
	for _, check := range checks {
		step.Checks = append(step.Checks, shipper.StepCheck{Check: check, Name: name})
	}
	return step
}

func strategyChecks(checks ...string) edit {
	return func(e *shipper.ReleaseEnvironment) { e.Strategy.Checks = checked("", checks...).Checks }
}

func lastChecks(checks ...string) edit {
	return func(e *shipper.ReleaseEnvironment) {
		e.Strategy.Steps[e.Strategy.LastStep()].Checks = checked("", checks...).Checks
	}
}

func regions(r ...shipper.RegionRequirement) edit {
	return func(e *shipper.ReleaseEnvironment) { e.ClusterRequirements.Regions = r }
}

func placed(p shipper.Placement) edit {
	return func(e *shipper.ReleaseEnvironment) { e.ClusterRequirements.Placement = &p }
}

func repository(url string) edit {
	return func(e *shipper.ReleaseEnvironment) { e.Chart.RepoURL = url }
}

func values(v *shipper.ChartValues) edit {
	return func(e *shipper.ReleaseEnvironment) { e.Values = v }
}

func perRegion(v ...shipper.ValuesFor) edit {
	return func(e *shipper.ReleaseEnvironment) { e.ValuesPerRegion = v }
}

func perCluster(v ...shipper.ValuesFor) edit {
	return func(e *shipper.ReleaseEnvironment) { e.ValuesPerCluster = v }
}

// patched is a patch of one operation.
func patched(name, op, at string) shipper.ValuesFor {
	return shipper.ValuesFor{Name: name, Patch: []shipper.PatchOperation{{"op": op, "path": at}}}
}

func TestValidatePatches(t *testing.T) {
	path := field.NewPath("env")
	clusters := []shipper.Cluster{{Spec: shipper.ClusterSpec{Region: "eu"}}, {Spec: shipper.ClusterSpec{Region: "us"}}}
	clusters[0].Name, clusters[1].Name = "west", "east"
	region := path.Child("valuesPerRegion").Index(0).Child("patch")
	cluster := path.Child("valuesPerCluster")
	extra := shipper.ValuesFor{Name: "eu", Values: &shipper.ChartValues{"extra": int64(1)}}
	for sentence, tc := range map[string]struct {
		env  *shipper.ReleaseEnvironment
		want field.ErrorList
	}{
		"nothing to patch": {env: env()},
		"a region's that applies, and a cluster's that sees the region's values": {
			env: env(perRegion(shipper.ValuesFor{Name: "eu", Values: extra.Values, Patch: []shipper.PatchOperation{
				{"op": "test", "path": "/extra", "value": int64(1)},
			}}),
				perCluster(patched("west", "remove", "/extra"))),
		},
		"a cluster's that sees no values of another region": {
			env: env(perRegion(extra), perCluster(patched("east", "remove", "/extra"), patched("nowhere", "remove", "/extra"))),
			want: field.ErrorList{
				field.Invalid(cluster.Index(0).Child("patch").Index(0), "remove /extra", ""),
				field.Invalid(cluster.Index(1).Child("patch").Index(0), "remove /extra", ""),
			},
		},
		"a region's that does not apply is reported once": {
			env:  env(perRegion(patched("eu", "remove", "/none")), perCluster(shipper.ValuesFor{Name: "west"})),
			want: field.ErrorList{field.Invalid(region.Index(0), "remove /none", "")},
		},
		"one that leaves no map": {
			env: env(perRegion(shipper.ValuesFor{Name: "eu", Patch: []shipper.PatchOperation{
				{"op": "replace", "path": "", "value": []any{}},
			}})),
			want: field.ErrorList{field.Invalid(region, "(the patched values)", "")},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := templatecheck.ValidatePatches(tc.env, path, clusters)
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(field.Error{}, "Detail", "Origin")); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPatchesAreBoundedByTheirTargets counts the bytes below the keys that patches name, for each cluster.
func TestPatchesAreBoundedByTheirTargets(t *testing.T) {
	large := strings.Repeat("x", 900<<10)
	list := make([]any, 100_000)
	of := func(clusters, operations int, at string) *shipper.ReleaseEnvironment {
		e := env()
		e.Values = &shipper.ChartValues{"large": large, "list": list, "small": map[string]any{"size": "s"}}
		for i := range clusters {
			one := shipper.ValuesFor{Name: fmt.Sprint("c", i)}
			for range operations {
				one.Patch = append(one.Patch, shipper.PatchOperation{"op": "add", "path": at, "value": "m"})
			}
			e.ValuesPerCluster = append(e.ValuesPerCluster, one)
		}
		return e
	}
	unpatched := of(1000, 0, "")
	unpatched.ValuesPerRegion = []shipper.ValuesFor{{Name: "eu", Patch: of(1, 1, "/large").ValuesPerCluster[0].Patch}}
	for sentence, tc := range map[string]struct {
		env     *shipper.ReleaseEnvironment
		refused bool
	}{
		"small parts of large values, for many clusters":     {env: of(1000, 3, "/small/size")},
		"large parts, for a few clusters":                    {env: of(3, 1, "/large")},
		"large parts, for many clusters":                     {of(100, 1, "/large"), true},
		"many operations on a large list":                    {of(1, 1000, "/list/0"), true},
		"large parts for one region, and for no cluster":     {env: unpatched},
		"values as a whole, which have a large part, for 10": {of(10, 1, ""), true},
	} {
		t.Run(sentence, func(t *testing.T) {
			errs := templatecheck.ValidatePatches(tc.env, field.NewPath("env"), nil)
			if tc.refused != (len(errs) == 1 && strings.Contains(errs[0].Error(), "env.valuesPerCluster: Invalid value: \"(patches of ")) ||
				!tc.refused && len(errs) > 0 {
				t.Errorf("refused: %v", errs)
			}
		})
	}
}

func count(n int32) *int32 { return &n }

func TestValidate(t *testing.T) {
	path := field.NewPath("env")
	chart, reqs, strategy := path.Child("chart"), path.Child("clusterRequirements"), path.Child("strategy", "steps")
	for sentence, tc := range map[string]struct {
		env  *shipper.ReleaseEnvironment
		want field.ErrorList
	}{
		"a good one": {env: env()},
		"a chart without a name": {
			env:  env(func(e *shipper.ReleaseEnvironment) { e.Chart.Name = " " }),
			want: field.ErrorList{field.Required(chart.Child("name"), "")},
		},
		"a repository that is no URL": {
			env: env(repository("%")), want: field.ErrorList{field.Invalid(chart.Child("repoUrl"), "%", "")},
		},
		"a repository that is not http": {
			env: env(repository("file://x/y")), want: field.ErrorList{field.Invalid(chart.Child("repoUrl"), "file://x/y", "")},
		},
		"a repository without a host": {
			env: env(repository("https:///x")), want: field.ErrorList{field.Invalid(chart.Child("repoUrl"), "https:///x", "")},
		},
		"a version that is not exact": {
			env:  env(func(e *shipper.ReleaseEnvironment) { e.Chart.Version = "1.2.3-4.5.6" }),
			want: field.ErrorList{field.Invalid(chart.Child("version"), "1.2.3-4.5.6", "")},
		},
		"no values": {env: env(values(nil))},
		"values that are too large": {
			env:  env(values(&shipper.ChartValues{"blob": strings.Repeat("x", templatecheck.MaxValuesBytes)})),
			want: field.ErrorList{field.Invalid(path.Child("values"), "(1048587 bytes)", "")},
		},
		"values that no JSON can hold": {
			env:  env(values(&shipper.ChartValues{"x": math.Inf(1)})),
			want: field.ErrorList{field.Invalid(path.Child("values"), "(values)", "")},
		},
		"values per region and per cluster that are good": {
			env: env(perRegion(shipper.ValuesFor{Name: "eu", Values: &shipper.ChartValues{"x": int64(1)}}),
				perCluster(shipper.ValuesFor{Name: "eu"}, patched("west", "remove", "/x"))),
		},
		"values for nowhere, and for the same place twice": {
			env: env(perRegion(shipper.ValuesFor{}, shipper.ValuesFor{Name: "eu"}, shipper.ValuesFor{Name: "eu"}),
				perCluster(shipper.ValuesFor{Name: "west"}, shipper.ValuesFor{Name: "west"})),
			want: field.ErrorList{
				field.Required(path.Child("valuesPerRegion").Index(0).Child("name"), ""),
				field.Duplicate(path.Child("valuesPerRegion").Index(2).Child("name"), "eu"),
				field.Duplicate(path.Child("valuesPerCluster").Index(1).Child("name"), "west"),
			},
		},
		"patches that are none": {
			env: env(perRegion(patched("eu", "increase", "/replicaCount")), perCluster(patched("west", "remove", "image.tag"))),
			want: field.ErrorList{
				field.Invalid(path.Child("valuesPerRegion").Index(0).Child("patch").Index(0), "increase /replicaCount", ""),
				field.Invalid(path.Child("valuesPerCluster").Index(0).Child("patch").Index(0), "remove image.tag", ""),
			},
		},
		"a patch of too many operations": {
			env:  env(perCluster(shipper.ValuesFor{Name: "west", Patch: make([]shipper.PatchOperation, 1001)})),
			want: field.ErrorList{field.TooMany(path.Child("valuesPerCluster").Index(0).Child("patch"), 1001, 1000)},
		},
		"values that are too large only all in all": {
			env: env(values(&shipper.ChartValues{"blob": strings.Repeat("x", templatecheck.MaxValuesBytes/2)}),
				perCluster(shipper.ValuesFor{Name: "w", Values: &shipper.ChartValues{"blob": strings.Repeat("x", templatecheck.MaxValuesBytes/2)}})),
			want: field.ErrorList{field.Invalid(path.Child("valuesPerCluster"), "(1048630 bytes)", "")},
		},
		"no regions": {env: env(regions()), want: field.ErrorList{field.Required(reqs.Child("regions"), "")}},
		"regions and a placement": {
			env:  env(placed(shipper.Placement{})),
			want: field.ErrorList{field.Forbidden(reqs.Child("placement"), "")},
		},
		"a placement instead of regions": {env: env(regions(), placed(shipper.Placement{Type: shipper.PickAll}))},
		"regions without a name, twice, and with impossible numbers of clusters": {
			env: env(regions(shipper.RegionRequirement{Name: "eu", Replicas: count(-1)}, shipper.RegionRequirement{Name: ""},
				shipper.RegionRequirement{Name: "eu", Replicas: count(1001)}, shipper.RegionRequirement{Name: "us", Replicas: count(0)})),
			want: field.ErrorList{
				field.Invalid(reqs.Child("regions").Index(0).Child("replicas"), int32(-1), ""),
				field.Required(reqs.Child("regions").Index(1).Child("name"), ""),
				field.Duplicate(reqs.Child("regions").Index(2).Child("name"), "eu"),
				field.Invalid(reqs.Child("regions").Index(2).Child("replicas"), int32(1001), ""),
			},
		},
		"capabilities without a name and twice": {
			env: env(func(e *shipper.ReleaseEnvironment) { e.ClusterRequirements.Capabilities = []string{"gpu", "", "gpu"} }),
			want: field.ErrorList{
				field.Required(reqs.Child("capabilities").Index(1), ""), field.Duplicate(reqs.Child("capabilities").Index(2), "gpu"),
			},
		},
		"no strategy": {
			env:  env(func(e *shipper.ReleaseEnvironment) { e.Strategy = nil }),
			want: field.ErrorList{field.Required(path.Child("strategy"), "")},
		},
		"no steps": {env: env(steps()), want: field.ErrorList{field.Required(strategy, "")}},
		"too many steps": {
			env:  env(steps(make([]shipper.RolloutStrategyStep, 101)...)),
			want: field.ErrorList{field.TooMany(strategy, 101, 100)},
		},
		"numbers out of bounds": {
			env: env(steps(ask.Step("x", 101, -1, -1, math.MinInt32))),
			want: field.ErrorList{
				field.Invalid(strategy.Index(0).Child("capacity", "incumbent"), int32(101), ""),
				field.Invalid(strategy.Index(0).Child("capacity", "contender"), int32(-1), ""),
				field.Invalid(strategy.Index(0).Child("traffic", "incumbent"), int32(-1), ""),
				field.Invalid(strategy.Index(0).Child("traffic", "contender"), int32(math.MinInt32), ""),
			},
		},
		"gates that are not another controller's conditions": {
			env: env(steps(gated("Complete", "example.com/Verified", "shipper.booking.com/Complete", "example.com/a b", "example.com/Verified"))),
			want: field.ErrorList{
				field.Invalid(strategy.Index(0).Child("readinessGates").Index(0), "Complete", ""),
				field.Invalid(strategy.Index(0).Child("readinessGates").Index(2), "shipper.booking.com/Complete", ""),
				field.Invalid(strategy.Index(0).Child("readinessGates").Index(3), "example.com/a b", ""),
				field.Duplicate(strategy.Index(0).Child("readinessGates").Index(4), "example.com/Verified"),
			},
		},
		"checks of one name": {
			env: env(steps(checked("", "errors", "smoke", "other/errors")), strategyChecks("smoke")),
			want: field.ErrorList{
				field.Invalid(strategy.Index(0).Child("checks").Index(1).Child("name"), "smoke", ""),
				field.Invalid(strategy.Index(0).Child("checks").Index(2).Child("name"), "errors", ""),
			},
		},
		"checks with names of their own": {env: env(steps(checked("first", "errors"), checked("", "errors")), strategyChecks("smoke"))},
		"a check without a Check": {
			env:  env(steps(checked("", ""))),
			want: field.ErrorList{field.Required(strategy.Index(0).Child("checks").Index(0).Child("check"), "")},
		},
		"a check of no name": {
			env:  env(steps(checked("A b", "errors"))),
			want: field.ErrorList{field.Invalid(strategy.Index(0).Child("checks").Index(0).Child("name"), "A b", "")},
		},
		"a check of a long name": {
			env:  env(steps(checked(strings.Repeat("a", 64), "errors"))),
			want: field.ErrorList{field.Invalid(strategy.Index(0).Child("checks").Index(0).Child("name"), strings.Repeat("a", 64), "")},
		},
		"a Check of a long name": {
			env:  env(steps(checked("", strings.Repeat("a", 64)))),
			want: field.ErrorList{field.Required(strategy.Index(0).Child("checks").Index(0).Child("name"), "")},
		},
		"a Check of a long name that the step shortens": {env: env(steps(checked("short", strings.Repeat("a", 64))))},
		"a shared Check of the longest name":            {env: env(steps(checked("", "shipper-checks/"+strings.Repeat("a", 63))))},
		"too many checks": {
			env:  env(steps(checked("", make([]string, 11)...))),
			want: field.ErrorList{field.TooMany(strategy.Index(0).Child("checks"), 11, 10)},
		},
		"too many checks of the strategy": {
			env:  env(strategyChecks(make([]string, 11)...)),
			want: field.ErrorList{field.TooMany(path.Child("strategy", "checks"), 11, 10)},
		},
		"too many arguments of a check": {
			env: env(steps(checked("", "errors")), func(e *shipper.ReleaseEnvironment) {
				args := map[string]string{}
				for i := range 21 {
					args[fmt.Sprint("a", i)] = ""
				}
				e.Strategy.Steps[0].Checks[0].Args = args
			}),
			want: field.ErrorList{field.TooMany(strategy.Index(0).Child("checks").Index(0).Child("args"), 21, 20)},
		},
		"too many gates": {
			env:  env(steps(gated(make([]string, 11)...))),
			want: field.ErrorList{field.TooMany(strategy.Index(0).Child("readinessGates"), 11, 10)},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := templatecheck.Validate(tc.env, path)
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(field.Error{}, "Detail", "Origin")); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			for _, err := range got {
				if err.Detail == "" && err.Type != field.ErrorTypeDuplicate {
					t.Errorf("%v does not say what to do", err)
				}
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	last := ask.Step("full on", 0, 100, 0, 100)
	for sentence, tc := range map[string]struct {
		env  *shipper.ReleaseEnvironment
		want []string
	}{
		"the usual strategy": {env: env()},
		"traffic for a contender without capacity": {
			env:  env(steps(ask.Step("a", 100, 0, 100, 1), last)),
			want: []string{"step 0 (a) gives traffic to the contender and no capacity"},
		},
		"traffic for an incumbent without capacity": {
			env:  env(steps(ask.Step("a", 0, 100, 1, 100), last)),
			want: []string{"step 0 (a) leaves traffic to the incumbent and no capacity"},
		},
		"traffic for no Release": {
			env: env(steps(ask.Step("a", 100, 1, 0, 0), last)), want: []string{"step 0 (a) gives no Release any traffic"},
		},
		"service accounts are allowed to approve nothing": {
			env: env(steps(shipper.RolloutStrategyStep{
				Name: "a", Capacity: shipper.RolloutStrategyStepValue{Incumbent: 100, Contender: 1},
				Traffic: shipper.RolloutStrategyStepValue{Incumbent: 100, Contender: 1}, Gate: &shipper.StepGate{AllowServiceAccounts: true},
			}, last)),
			want: []string{"step 0 (a): gate.allowServiceAccounts has no effect without gate.approvals"},
		},
		"a last step that leaves half": {
			env: env(steps(ask.Step("half", 50, 50, 50, 50))),
			want: []string{"the last step (half) completes the release with 50 % of capacity and leaves 50 % to its predecessor; " +
				"100 and 0 are usual"},
		},
		"a failure policy where nothing fails": {
			env: env(func(e *shipper.ReleaseEnvironment) {
				e.Strategy.OnFailure = shipper.OnFailureAbort
			}),
			want: []string{"onFailure is Abort and has no effect: nothing fails without progressDeadline"},
		},
		"a failure policy where a check fails": {
			env: env(steps(checked("", "errors"), last), func(e *shipper.ReleaseEnvironment) { e.Strategy.OnFailure = shipper.OnFailureAbort }),
		},
		"a failure policy where no check counts": {
			env: env(steps(checked("", "errors"), last), func(e *shipper.ReleaseEnvironment) {
				e.Strategy.OnFailure, e.Strategy.Steps[0].Checks[0].DryRun = shipper.OnFailureAbort, true
			}),
			want: []string{"onFailure is Abort and has no effect: nothing fails without progressDeadline"},
		},
		"a check of the strategy, which is not made at the last step": {env: env(strategyChecks("errors"))},
		"a check when the incumbent is gone": {env: env(lastChecks("errors")), want: []string{
			"step 1 (full on): its checks run when the incumbent is gone; put them in a step that leaves it its capacity"}},
		"no cluster in any region": {
			env:  env(regions(shipper.RegionRequirement{Name: "eu", Replicas: count(0)})),
			want: []string{"clusterRequirements ask for no cluster in any region: nothing will run"},
		},
		"a placement of all clusters, with values for a region": {
			env: env(regions(), placed(shipper.Placement{}), perRegion(shipper.ValuesFor{Name: "moon"})),
		},
		"a placement of named clusters": {
			env: env(regions(), placed(shipper.Placement{Type: shipper.PickFixed, Clusters: []string{"eu-1"}})),
		},
		"values for a region that it is not in": {
			env:  env(perRegion(shipper.ValuesFor{Name: "moon"})),
			want: []string{"valuesPerRegion has values for region moon, which clusterRequirements do not name"},
		},
		"clusters in one of two regions": {
			env: env(regions(shipper.RegionRequirement{Name: "eu", Replicas: count(0)}, shipper.RegionRequirement{Name: "us", Replicas: count(2)})),
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, templatecheck.Warnings(tc.env)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidateProvenance(t *testing.T) {
	at := field.NewPath("env", "chart", "provenance")
	fromArchive := func(e *shipper.ReleaseEnvironment) { e.Chart.RepoURL, e.Chart.Archive = "", "H4sI" }
	verified := func(e *shipper.ReleaseEnvironment) { e.Chart.Verify.SecretName = "keys" }
	given := func(e *shipper.ReleaseEnvironment) { e.Chart.Provenance = "-----BEGIN" }
	for sentence, tc := range map[string]struct {
		env  *shipper.ReleaseEnvironment
		want field.ErrorList
	}{
		"of an archive is given":        {env(fromArchive, verified, given), nil},
		"of a repository is there":      {env(verified), nil},
		"of an archive is missing":      {env(fromArchive, verified), field.ErrorList{field.Required(at, "")}},
		"of a repository is given":      {env(verified, given), field.ErrorList{field.Forbidden(at, "")}},
		"is given, and not verified":    {env(fromArchive, given), field.ErrorList{field.Forbidden(at, "")}},
		"is neither given nor required": {env(fromArchive), nil},
	} {
		got := templatecheck.Validate(tc.env, field.NewPath("env"))
		rest := cmpopts.IgnoreFields(field.Error{}, "BadValue", "Detail", "Origin", "CoveredByDeclarative")
		if diff := cmp.Diff(tc.want, got, rest); diff != "" {
			t.Errorf("%s (-want +got)\n%s", sentence, diff)
		}
	}
}
