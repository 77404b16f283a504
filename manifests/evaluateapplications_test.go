// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestThePolicyNamesTheAuthorOfWhatIsApproved evaluates control.shipper.booking.com: the requester of a Release does not count as approver.
func TestThePolicyNamesTheAuthorOfWhatIsApproved(t *testing.T) {
	policy := policyOf(t, "control.shipper.booking.com")
	of := func(version, requester string, approvals int64) *unstructured.Unstructured {
		steps := []any{map[string]any{"name": "staging"}}
		if approvals > 0 {
			steps = append(steps, map[string]any{"name": "full on", "gate": map[string]any{"approvals": approvals}})
		}
		o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{
			"chart": map[string]any{"version": version}, "strategy": map[string]any{"steps": steps},
		}}}}
		o.SetName("web")
		o.SetNamespace("work")
		if requester != "" {
			o.SetAnnotations(map[string]string{"shipper.booking.com/app.requested-by": requester})
		}
		return o
	}
	taking := func(version, requester string) *unstructured.Unstructured {
		o := of(version, requester, 0)
		from := map[string]any{"from": map[string]any{"name": "careful", "digest": "x"}}
		if err := unstructured.SetNestedMap(o.Object, from, "spec", "template", "strategy"); err != nil {
			t.Fatal(err)
		}
		return o
	}
	for sentence, tc := range map[string]struct {
		before, after *unstructured.Unstructured
		refused       bool
	}{
		"a Strategy may ask for approvals":  {taking("1", "ann"), taking("2", "ann"), true},
		"the writer's name with a Strategy": {taking("1", "ann"), taking("2", "dev"), false},
		"a Strategy takes their place":      {of("1", "ann", 1), taking("1", "ann"), true},
		"another user's name is left":       {of("1", "ann", 1), of("2", "ann", 1), true},
		"no name is left":                   {of("1", "", 1), of("2", "", 1), true},
		"the writer's name":                 {of("1", "ann", 1), of("2", "dev", 1), false},
		"the approvals are added":           {of("1", "ann", 0), of("1", "ann", 1), true},
		"nothing changes":                   {of("1", "ann", 1), of("1", "ann", 1), false},
		"nothing is approved":               {of("1", "ann", 0), of("2", "ann", 0), false},
		"another user's name takes a place": {of("1", "dev", 0), of("1", "ann", 0), true},
	} {
		got := refusalsOf(t, policy, "applications", tc.before, tc.after, nil)
		if refused := len(got) > 0; refused != tc.refused {
			t.Errorf("%s: %q", sentence, got)
		}
	}
}

// TestThePolicyAsksForTheSecretsOfAChart evaluates credentials.shipper.booking.com, within the cost that an API server allows.
func TestThePolicyAsksForTheSecretsOfAChart(t *testing.T) {
	policy := policyOf(t, "credentials.shipper.booking.com")
	type edit = func(o *unstructured.Unstructured)
	set := func(value any, path ...string) edit {
		return func(o *unstructured.Unstructured) {
			if err := unstructured.SetNestedField(o.Object, value, append([]string{"spec", "template"}, path...)...); err != nil {
				t.Fatal(err)
			}
		}
	}
	noted := func(key, value string) edit {
		return func(o *unstructured.Unstructured) {
			notes := o.GetAnnotations()
			if notes == nil {
				notes = map[string]string{}
			}
			notes["shipper.booking.com/"+key] = value
			o.SetAnnotations(notes)
		}
	}
	from := func(names ...string) edit {
		list := []any{map[string]any{"configMapKeyRef": map[string]any{"name": "settings"}}}
		for _, name := range names {
			list = append(list, map[string]any{"secretKeyRef": map[string]any{"name": name}})
		}
		return set(list, "valuesFrom")
	}
	of := func(edits ...edit) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{
			"chart": map[string]any{"name": "nginx", "version": "1.0.0", "repoUrl": "https://charts.example.com"}, "strategy": "a",
		}}}}
		o.SetName("web")
		o.SetNamespace("work")
		for _, edit := range edits {
			edit(o)
		}
		return o
	}
	const back, values = "app.rolled-back-to", "valuesFrom[1].secretKeyRef.name"
	const credentials, verify = "chart.credentials.secretName", "chart.verify.secretName"
	observed := func(generation int64, synced string) edit {
		return func(o *unstructured.Unstructured) {
			o.SetGeneration(2)
			o.Object["status"] = map[string]any{"observedGeneration": generation, "conditions": []any{
				map[string]any{"type": "ReleaseSynced", "status": synced},
			}}
		}
	}
	stamps := granted{"stamp applications.shipper.booking.com work/web"}
	opener, keys, hidden := set("opener", "chart", "credentials", "secretName"), set("keys", "chart", "verify", "secretName"), from("hidden")
	version, elsewhere := set("2.0.0", "chart", "version"), set("https://other.example.com", "chart", "repoUrl")
	nine := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}
	var all granted
	for _, name := range append(nine, "keys", "opener") {
		all = append(all, "get secrets. work/"+name)
	}
	for sentence, tc := range map[string]struct {
		before, after *unstructured.Unstructured
		rights        granted
		asks          []string // the paths
	}{
		"credentials are named":               {before: of(), after: of(opener), asks: []string{credentials}},
		"with the right":                      {before: of(), after: of(opener), rights: granted{"get secrets. work/opener"}},
		"by a user who may stamp":             {before: of(), after: of(opener), rights: stamps},
		"credentials are sent elsewhere":      {before: of(opener), after: of(opener, elsewhere), asks: []string{credentials}},
		"another version is fetched by them":  {before: of(opener), after: of(opener, version, noted("app.chart.digest", "b"))},
		"keys are named":                      {before: of(), after: of(keys), asks: []string{verify}},
		"a Secret with values is named":       {before: of(from()), after: of(hidden), asks: []string{values}},
		"its values are rendered by another":  {before: of(hidden), after: of(hidden, version), asks: []string{values}},
		"they are rendered by another digest": {of(hidden), of(hidden, noted("app.chart.digest", "b")), nil, []string{values}},
		"a rollback to another chart":         {before: of(hidden), after: of(hidden, version, noted(back, "web-1-0"))},
		"the record of a rollback is removed": {of(hidden, noted(back, "web-1-0")), of(hidden), nil, []string{values}},
		"a rollback to other credentials":     {before: of(), after: of(opener, keys, elsewhere, noted(back, "web-1-0"))},
		"another rollback":                    {before: of(opener, noted(back, "web-1-0")), after: of(opener, noted(back, "web-2-0"))},
		"a record without a rollback is removed": {
			before: of(opener, elsewhere, noted(back, "web-1-0")), after: of(opener, elsewhere), asks: []string{credentials},
		},
		"it is removed with another edit": {
			before: of(keys, noted(back, "web-1-0"), observed(1, "True")), after: of(keys, version), asks: []string{verify},
		},
		"no Release has the template beside it": {
			before: of(opener, noted(back, "web-1-0"), observed(2, "False")), after: of(opener, version), asks: []string{credentials},
		},
		"an edit after a rollback": {
			before: of(opener, keys, noted(back, "web-1-0"), observed(2, "True")), after: of(opener, keys, version),
		},
		"an edit of the repository after a rollback": {
			before: of(opener, noted(back, "web-1-0"), observed(2, "True")), after: of(opener, elsewhere), asks: []string{credentials},
		},
		"another strategy":                 {before: of(hidden, opener, keys), after: of(hidden, opener, keys, set("b", "strategy"))},
		"another annotation":               {before: of(hidden, opener, keys), after: of(hidden, opener, keys, noted("note", "x"))},
		"as many as there may be":          {before: of(), after: of(opener, keys, from(nine...)), rights: all},
		"as many, by a user who may stamp": {before: of(), after: of(opener, keys, from(nine...)), rights: stamps},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := refusalsOf(t, policy, "applications", tc.before, tc.after, tc.rights)
			var want []string
			for _, path := range tc.asks {
				want = append(want, "spec.template."+path+": Forbidden: dev may not get Secret work/")
			}
			if len(got) != len(want) || len(want) == 1 && !strings.HasPrefix(got[0], want[0]) {
				t.Errorf("it is refused with %q, want %q", got, want)
			}
		})
	}
}
