// SPDX-License-Identifier: Apache-2.0

package override_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/apis/rules/override"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const global = "rollout-blocks-global"

func named(namespace, name string, change func(*shipper.ResourceOverrideSpec)) shipper.ResourceOverride {
	out := shipper.ResourceOverride{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if change != nil {
		change(&out.Spec)
	}
	return out
}

func TestOverridesBearInTheirOrder(t *testing.T) {
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{
		Namespace: "work", Name: "web", Labels: map[string]string{"team": "a"},
	}}
	priority := func(n int32) func(*shipper.ResourceOverrideSpec) {
		return func(s *shipper.ResourceOverrideSpec) { s.Priority = n }
	}
	mandatory := func(s *shipper.ResourceOverrideSpec) { s.Mandatory = true }
	labels := func(team string) func(*shipper.ResourceOverrideSpec) {
		return func(s *shipper.ResourceOverrideSpec) {
			s.Applications = &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}}
		}
	}
	deleted := named("work", "deleted", nil)
	deleted.DeletionTimestamp = &metav1.Time{}
	for name, c := range map[string]struct {
		all  []shipper.ResourceOverride
		want []string
	}{
		"global, own, then mandatory ones": {
			[]shipper.ResourceOverride{named(global, "a", mandatory), named("work", "b", nil), named(global, "c", nil)},
			[]string{global + "/c", "work/b", global + "/a"},
		},
		"by priority, then by name": {
			[]shipper.ResourceOverride{named("work", "b", nil), named("work", "c", priority(-1)), named("work", "a", nil),
				named("work", "0", priority(7))},
			[]string{"work/c", "work/a", "work/b", "work/0"},
		},
		"mandatory means nothing outside the global namespace": {
			[]shipper.ResourceOverride{named("work", "a", mandatory), named("work", "b", nil)},
			[]string{"work/a", "work/b"},
		},
		"not those of other namespaces": {
			[]shipper.ResourceOverride{named("other", "a", nil), named("work", "b", nil)}, []string{"work/b"},
		},
		"those that name or select the Application": {
			[]shipper.ResourceOverride{
				named("work", "a", func(s *shipper.ResourceOverrideSpec) { s.ApplicationNames = []string{"web"} }),
				named("work", "b", func(s *shipper.ResourceOverrideSpec) { s.ApplicationNames = []string{"api"} }),
				named("work", "c", labels("a")), named("work", "d", labels("b")),
			},
			[]string{"work/a", "work/c"},
		},
		"a selector that cannot be read selects none": {
			[]shipper.ResourceOverride{named("work", "a", func(s *shipper.ResourceOverrideSpec) {
				s.Applications = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Odd"}}}
			})}, nil,
		},
		"not those that are being deleted": {[]shipper.ResourceOverride{deleted}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, o := range override.Bearing(app, c.all, global) {
				if o.Global != strings.HasPrefix(o.Name, global+"/") {
					t.Errorf("%s: global is %t", o.Name, o.Global)
				}
				got = append(got, o.Name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRulesAreResolvedForACluster(t *testing.T) {
	eu := &shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-1", Labels: map[string]string{"env": "prod"}}}
	eu.Spec.Region, eu.Spec.Properties = "eu", map[string]string{"example.com/cost": "5"}
	eu.Status.Nodes, eu.Status.Properties = new(int32), map[string]string{"example.com/cost": "7", "disks": "12"}
	rule := func(terms []shipper.OverrideClusterTerm, value any) shipper.OverrideRule {
		return shipper.OverrideRule{
			ClusterTerms: terms, Patch: []shipper.PatchOperation{{"op": "add", "path": "/data/a", "value": value}},
		}
	}
	byLabel := func(key, value string) shipper.OverrideClusterTerm {
		return shipper.OverrideClusterTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}}
	}
	inEU := []shipper.OverrideClusterTerm{{Names: []string{"eu-2"}}, {Names: []string{"eu-1"}}}
	const unset = `failed: patch[0]: ${cluster.labels['zone']} has no value: Cluster "eu-1" has no such label`
	for name, c := range map[string]struct {
		rule    shipper.OverrideRule
		cluster *shipper.Cluster
		want    []any // values of the operation; "failed: …" for a change that cannot be made
	}{
		"all variables": {
			rule(nil, map[string]any{"a": []any{"${cluster.name} ${cluster.region} ${cluster.labels['env']} ${release.name}", int64(1)}}), eu,
			[]any{map[string]any{"a": []any{"eu-1 eu prod web-1", int64(1)}}},
		},
		"an escaped variable is text":    {rule(nil, "$${cluster.name}${cluster.name}$5"), eu, []any{"${cluster.name}eu-1$5"}},
		"a label that the cluster lacks": {rule(nil, "${cluster.labels['zone']}"), eu, []any{unset}},
		"a declared property, that of the Cluster first": {
			rule(nil, "${cluster.properties['example.com/cost']} ${cluster.properties['disks']}"), eu, []any{"5 12"},
		},
		"a property that Shipper observes": {rule(nil, "${cluster.properties['nodes']}"), eu, []any{
			`failed: patch[0]: ${cluster.properties['nodes']} has no value: Cluster "eu-1" has no such property`,
		}},
		"without terms: all clusters":      {rule(nil, "x"), nil, []any{"x"}},
		"an unknown cluster has no labels": {rule([]shipper.OverrideClusterTerm{byLabel("env", "prod")}, "x"), nil, nil},
		"by name":                          {rule(inEU, "x"), eu, []any{"x"}},
		"by the labels that every cluster has": {
			rule([]shipper.OverrideClusterTerm{byLabel(shipper.RegionLabel, "eu")}, "x"), eu, []any{"x"},
		},
		"names and labels are both required": {
			rule([]shipper.OverrideClusterTerm{{Names: []string{"eu-1"}, LabelSelector: byLabel("env", "dev").LabelSelector}}, "x"), eu, nil,
		},
		"not another cluster": {rule([]shipper.OverrideClusterTerm{byLabel("env", "dev")}, "x"), eu, nil},
	} {
		t.Run(name, func(t *testing.T) {
			pinned := []shipper.ReleaseOverride{{
				Name: "work/a", Resources: []shipper.OverriddenResource{{Kind: "ConfigMap"}}, Rules: []shipper.OverrideRule{c.rule},
			}}
			before := pinned[0].DeepCopy()
			var got []any
			for _, change := range override.Resolve(pinned, "work", "web-1", c.cluster) {
				if change.Failed != "" {
					got = append(got, "failed: "+change.Failed)
				} else {
					got = append(got, change.Patch[0]["value"])
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(*before, pinned[0]); diff != "" {
				t.Errorf("the copy in the Release was changed: %s", diff)
			}
		})
	}
}

func TestReach(t *testing.T) {
	labels := map[string]string{"tier": "web"}
	select1 := func(r shipper.OverriddenResource) []shipper.OverriddenResource {
		return []shipper.OverriddenResource{r}
	}
	own := override.Object{Group: "apps", Kind: "Deployment", Namespace: "work", Name: "web-1", Labels: labels}
	role := override.Object{Group: "rbac.authorization.k8s.io", Kind: "Role", Namespace: "work", Name: "a"}
	for name, c := range map[string]struct {
		global bool
		of     []shipper.OverriddenResource
		o      override.Object
		want   bool
	}{
		"by kind":                      {false, select1(shipper.OverriddenResource{Group: "apps", Kind: "Deployment"}), own, true},
		"not by kind in another group": {false, select1(shipper.OverriddenResource{Kind: "Deployment"}), own, false},
		"by a name with the Release": {
			false, select1(shipper.OverriddenResource{Group: "apps", Kind: "Deployment", Name: "${release.name}"}), own, true,
		},
		"by labels": {false, select1(shipper.OverriddenResource{Group: "apps", Kind: "Deployment",
			LabelSelector: &metav1.LabelSelector{MatchLabels: labels}}), own, true},
		"an object of another namespace needs a global override": {
			false, select1(shipper.OverriddenResource{Kind: "ConfigMap"}), override.Object{Kind: "ConfigMap", Namespace: "other"}, false,
		},
		"a global override reaches it": {
			true, select1(shipper.OverriddenResource{Kind: "ConfigMap"}), override.Object{Kind: "ConfigMap", Namespace: "other"}, true,
		},
		"an object without a namespace needs a global override": {
			false, select1(shipper.OverriddenResource{Kind: "Namespace"}), override.Object{Kind: "Namespace", Name: "work"}, false,
		},
		"rights need a global override": {false, select1(shipper.OverriddenResource{Group: role.Group, Kind: "Role"}), role, false},
		"which reaches them":            {true, select1(shipper.OverriddenResource{Group: role.Group, Kind: "Role"}), role, true},
	} {
		t.Run(name, func(t *testing.T) {
			pinned := []shipper.ReleaseOverride{{Global: c.global, Resources: c.of, Rules: []shipper.OverrideRule{{Delete: true}}}}
			changes := override.Resolve(pinned, "work", "web-1", nil)
			if got := changes[0].Concerns(c.o); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	configMap := shipper.OverriddenResource{Kind: "ConfigMap", Name: "a"}
	operation := func(fields ...any) shipper.PatchOperation {
		out := shipper.PatchOperation{}
		for i := 0; i < len(fields); i += 2 {
			out[fields[i].(string)] = fields[i+1]
		}
		return out
	}
	patch := func(op shipper.PatchOperation) shipper.ResourceOverrideSpec {
		return shipper.ResourceOverrideSpec{
			Resources: []shipper.OverriddenResource{configMap}, Rules: []shipper.OverrideRule{{Patch: []shipper.PatchOperation{op}}},
		}
	}
	add := func(path string) shipper.ResourceOverrideSpec {
		return patch(operation("op", "add", "path", path, "value", "x"))
	}
	of := func(r shipper.OverriddenResource, deletes bool) shipper.ResourceOverrideSpec {
		out := add("/data/a")
		out.Resources = []shipper.OverriddenResource{r}
		if deletes {
			out.Rules = []shipper.OverrideRule{{Delete: true}}
		}
		return out
	}
	at := func(name string) []string { return []string{"spec.rules[0].patch[0]." + name} }
	value := func(v any) shipper.ResourceOverrideSpec {
		return patch(operation("op", "add", "path", "/data/a", "value", v))
	}
	role := shipper.OverriddenResource{Group: "rbac.authorization.k8s.io", Kind: "Role"}
	application := shipper.OverriddenResource{Group: shipper.GroupName, Kind: "Application"}
	byCluster := shipper.OverriddenResource{Kind: "ConfigMap", Name: "${cluster.name}"}
	mandatory := add("/data/a")
	mandatory.Mandatory = true
	large := patch(operation("op", "add", "path", "/data/a", "value", strings.Repeat("x", override.MaxBytes)))
	empty := add("/data/a")
	empty.Rules[0].ClusterTerms = []shipper.OverrideClusterTerm{{}}
	neither := add("/data/a")
	neither.Rules[0].Patch = nil
	long := add("/data/a")
	for range 10 {
		long.Rules = append(long.Rules, shipper.OverrideRule{Patch: slices.Repeat(long.Rules[0].Patch, 100)})
	}
	must := add("/data/a")
	must.Mandatory, must.Rules[0].Patch = true, slices.Repeat(must.Rules[0].Patch, 251)
	pairs := func(resources, rules int) shipper.ResourceOverrideSpec {
		return shipper.ResourceOverrideSpec{
			Resources: slices.Repeat([]shipper.OverriddenResource{configMap}, resources),
			Rules:     slices.Repeat([]shipper.OverrideRule{{Delete: true}}, rules),
		}
	}
	for name, c := range map[string]struct {
		spec   shipper.ResourceOverrideSpec
		global bool
		want   []string // fields
	}{
		"a field":                            {add("/data/a"), false, nil},
		"a label":                            {add("/metadata/labels/a~1b"), false, nil},
		"apiVersion":                         {add("/apiVersion"), true, at("path")},
		"kind":                               {add("/kind"), true, at("path")},
		"status":                             {add("/status/x"), true, at("path")},
		"name":                               {add("/metadata/name"), true, at("path")},
		"owners":                             {add("/metadata/ownerReferences/-"), true, at("path")},
		"all metadata":                       {add("/metadata"), true, at("path")},
		"the whole object":                   {add(""), true, at("path")},
		"an empty segment":                   {add("/data//a"), true, at("path")},
		"a label of Shipper":                 {add("/metadata/labels/shipper-app"), true, at("path")},
		"an annotation of Shipper, escaped":  {add("/metadata/annotations/shipper.booking.com~1owner"), true, at("path")},
		"a hook of Helm":                     {add("/metadata/annotations/helm.sh~1hook"), true, at("path")},
		"moving the name away":               {patch(operation("op", "move", "path", "/data/a", "from", "/metadata/name")), true, at("from")},
		"copying the name":                   {patch(operation("op", "copy", "path", "/data/a", "from", "/metadata/name")), false, nil},
		"testing the name":                   {patch(operation("op", "test", "path", "/metadata/name", "value", "a")), false, nil},
		"remove with a value":                {patch(operation("op", "remove", "path", "/data/a", "value", "x")), false, at("value")},
		"an unknown variable":                {value([]any{"${CLUSTER}"}), false, at("value")},
		"an unclosed variable":               {value("${cluster.name"), false, at("value")},
		"a variable of the cluster in names": {of(byCluster, false), false, []string{"spec.resources[0].name"}},
		"objects of Shipper":                 {of(application, false), true, []string{"spec.resources[0].group"}},
		"rights":                             {of(role, false), false, []string{"spec.resources[0].group"}},
		"rights in the global namespace":     {of(role, false), true, nil},
		"deleting a Namespace":               {of(shipper.OverriddenResource{Kind: "Namespace"}, true), true, []string{"spec.resources[0].kind"}},
		"patching a Namespace":               {of(shipper.OverriddenResource{Kind: "Namespace"}, false), true, nil},
		"mandatory":                          {mandatory, false, []string{"spec.mandatory"}},
		"mandatory in the global namespace":  {mandatory, true, nil},
		"too large":                          {large, false, []string{"spec"}},
		"1,001 operations":                   {long, false, []string{"spec.rules"}},
		"251 mandatory operations":           {must, true, []string{"spec.rules"}},
		"25 resources times 20 rules":        {pairs(25, 20), false, nil},
		"25 resources times 21 rules":        {pairs(25, 21), false, []string{"spec.rules"}},
		"an empty term":                      {empty, false, []string{"spec.rules[0].clusterTerms[0]"}},
		"neither patch nor delete":           {neither, false, []string{"spec.rules[0].patch"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range override.Validate(&c.spec, field.NewPath("spec"), c.global) {
				got = append(got, err.Field)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheCopiesOfAReleaseAreBounded(t *testing.T) {
	const fix = "that a Release may keep: delete some, or let them name fewer Applications"
	rule := shipper.OverrideRule{Patch: slices.Repeat([]shipper.PatchOperation{{"op": "remove", "path": "/a"}}, 50)}
	few := shipper.ReleaseOverride{Name: "work/a", Rules: slices.Repeat([]shipper.OverrideRule{rule}, 5)}
	must := few
	must.Mandatory = true
	kinds := []shipper.OverriddenResource{{Kind: strings.Repeat("x", 2000)}}
	large := shipper.ReleaseOverride{Name: strings.Repeat("x", 300), Resources: kinds}
	wide := shipper.ReleaseOverride{Resources: make([]shipper.OverriddenResource, 10), Rules: make([]shipper.OverrideRule, 50)}
	for sentence, c := range map[string]struct {
		pinned []shipper.ReleaseOverride
		want   string
	}{
		"400 copies":     {make([]shipper.ReleaseOverride, 400), ""},
		"one more":       {make([]shipper.ReleaseOverride, 401), "401 ResourceOverrides bear on the Application, more than the 400 " + fix},
		"750 operations": {[]shipper.ReleaseOverride{few, few, few}, ""},
		"more operations": {
			[]shipper.ReleaseOverride{few, few, few, few},
			"4 ResourceOverrides bear on the Application and have 1000 operations, more than the 750 " + fix,
		},
		"1,500 pairs": {[]shipper.ReleaseOverride{wide, wide, wide}, ""},
		"more pairs": {
			[]shipper.ReleaseOverride{wide, wide, wide, wide},
			"4 ResourceOverrides bear on the Application and have 2000 pairs of a resource and a rule, more than the 1500 " + fix,
		},
		"384 KiB": {slices.Repeat([]shipper.ReleaseOverride{large}, 160), ""},
		"more bytes": {
			slices.Repeat([]shipper.ReleaseOverride{large}, 170),
			"170 ResourceOverrides bear on the Application and have 399670 bytes, more than the 393216 " + fix,
		},
		"mandatory ones beside as many others as there may be": {[]shipper.ReleaseOverride{few, few, few, must}, ""},
		"more mandatory ones, whatever the others leave": {
			[]shipper.ReleaseOverride{must, must},
			"2 mandatory ResourceOverrides bear on the Application and have 500 operations, more than the 250 that a Release may keep: " +
				"delete some, or make some optional",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := ""
			if err := override.CheckSize(c.pinned); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRulesShareWhatTheyAreFor: each of 50 rules would copy and parse the selectors of 50 resources, in each cluster.
func TestRulesShareWhatTheyAreFor(t *testing.T) {
	o := shipper.ReleaseOverride{
		Name: "work/a", Resources: []shipper.OverriddenResource{{Kind: "ConfigMap", Name: "${release.name}"}},
		Rules: []shipper.OverrideRule{{Delete: true}, {Delete: true}},
	}
	changes := override.Resolve([]shipper.ReleaseOverride{o, o}, "work", "web-1", nil)
	if len(changes) != 4 || changes[0].Selected != changes[1].Selected || changes[0].Selected == changes[2].Selected {
		t.Errorf("%d changes: %v", len(changes), changes)
	}
}

func TestTheDigestDiffersWhereObjectsMay(t *testing.T) {
	config := override.Select([]shipper.OverriddenResource{{Kind: "ConfigMap"}})
	secret := override.Select([]shipper.OverriddenResource{{Kind: "Secret"}})
	patch := []shipper.PatchOperation{{"op": "remove", "path": "/a"}}
	seen := map[[32]byte]string{}
	for sentence, changes := range map[string][]override.Change{
		"none":                    nil,
		"one rule":                {{Override: "work/a", Selected: config, Delete: true}},
		"of other objects":        {{Override: "work/a", Selected: secret, Delete: true}},
		"of none":                 {{Override: "work/a", Delete: true}},
		"with a patch":            {{Override: "work/a", Selected: config, Patch: patch}},
		"in a namespace":          {{Override: "work/a", Selected: config, Delete: true, Namespace: "work"}},
		"that fails":              {{Override: "work/a", Selected: config, Delete: true, Failed: "no label"}},
		"two rules":               {{Selected: config, Delete: true}, {Selected: config, Delete: true}},
		"the second of others":    {{Selected: config, Delete: true}, {Selected: secret, Delete: true}},
		"the second of no object": {{Selected: config, Delete: true}, {Delete: true}},
	} {
		key := override.Digest(changes)
		if other, there := seen[key]; there {
			t.Errorf("%q has the digest of %q", sentence, other)
		}
		seen[key] = sentence
	}
}
