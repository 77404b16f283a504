// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

func TestRulesCoverOnlyWhatTheyContain(t *testing.T) {
	const (
		nodes = `{apiGroups: [""], resources: [nodes], verbs: [get, list]}`
		watch = `{apiGroups: [""], resources: [nodes], verbs: [watch]}`
		pods  = `{apiGroups: [""], resources: [pods], verbs: [watch]}`
		a     = `{apiGroups: [""], resources: [nodes], resourceNames: [a], verbs: [get]}`
		ab    = `{apiGroups: [""], resources: [nodes], resourceNames: [a, b], verbs: [get]}`
		path  = `{nonResourceURLs: [/metrics], verbs: [get]}`
	)
	words := "[" + strings.Repeat("get, ", 200) + "get]"
	many := fmt.Sprintf(`{apiGroups: %[1]s, resources: %[1]s, resourceNames: %[1]s, verbs: %[1]s}`, words)
	for sentence, tc := range map[string]struct {
		given, wanted string
		want          int
	}{
		"the same rule":           {nodes, nodes, -1},
		"fewer verbs":             {nodes, `{apiGroups: [""], resources: [nodes], verbs: [list]}`, -1},
		"more verbs":              {nodes, `{apiGroups: [""], resources: [nodes], verbs: [list, watch]}`, 0},
		"a second rule with more": {nodes, nodes + `, ` + pods, 1},
		"another group":           {nodes, `{apiGroups: [metrics.k8s.io], resources: [nodes], verbs: [get]}`, 0},
		"a subresource":           {nodes, `{apiGroups: [""], resources: [nodes/proxy], verbs: [get]}`, 0},
		"one name of all":         {nodes, a, -1},
		"all names of one":        {a, nodes, 0},
		"another name":            {a, ab, 0},
		"verbs of two rules":      {nodes + `, ` + watch, `{apiGroups: [""], resources: [nodes], verbs: [get, watch]}`, -1},
		"a verb of one rule and a resource of another": {nodes + `, ` + pods, watch, 0},
		"a path":                        {path, path, -1},
		"another path":                  {path, `{nonResourceURLs: [/logs], verbs: [get]}`, 0},
		"a path called like a resource": {nodes, `{nonResourceURLs: [nodes], verbs: [get]}`, 0},
		"nothing of nothing":            {``, ``, -1},
		"something of nothing":          {``, nodes, 0},
		"more rights than are compared": {many, many, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			rules := func(text string) (out []rbacv1.PolicyRule) {
				if err := yaml.UnmarshalStrict([]byte("["+text+"]"), &out); err != nil {
					t.Fatal(err)
				}
				return out
			}
			if got := Uncovered(rules(tc.given), rules(tc.wanted)); got != tc.want {
				t.Errorf("rule %d is not covered, want %d", got, tc.want)
			}
		})
	}
}
