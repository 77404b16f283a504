// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	requestedBy    = "shipper.booking.com/override.requested-by"
	earlierWriters = "shipper.booking.com/override.earlier-writers"
)

// overrideOf is a ResourceOverride of a kind that dev wrote last, for the Applications with these names.
func overrideOf(namespace, group, kind string, names ...any) *unstructured.Unstructured {
	spec := map[string]any{
		"resources": []any{map[string]any{"group": group, "kind": kind}}, "rules": []any{map[string]any{"delete": true}},
	}
	if len(names) > 0 {
		spec["applicationNames"] = names
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetName("a")
	o.SetAnnotations(map[string]string{requestedBy: "dev"})
	o.SetNamespace(namespace)
	return o
}

// TestThePolicyAsksForTheRightsOfOverrides evaluates overrides.shipper.booking.com: without a webhook it alone keeps a user who may write
// ResourceOverrides from changing what others install.
func TestThePolicyAsksForTheRightsOfOverrides(t *testing.T) {
	policy := policyOf(t, "overrides.shipper.booking.com")
	const global = "rollout-blocks-global"
	one := []string{`a ResourceOverride changes what Applications install: user dev may not update the Applications that it names, in ` +
		`namespace work`}
	every := []string{`a ResourceOverride in the global namespace changes objects of all namespaces: user dev needs the verbs "update" on ` +
		`all Applications and "place" on all resources, in all namespaces`}
	reading := granted{"list secrets. work/", "list configmaps. work/"}
	unread := []string{`a patch can disclose what a chart renders with valuesFrom: user dev needs the verb "list" on secrets and configmaps ` +
		`in namespace work`}
	all := append(granted{"update applications.shipper.booking.com work/"}, reading...)
	web := append(granted{"update applications.shipper.booking.com work/web"}, reading...)
	mandatory := overrideOf("work", "", "ConfigMap")
	mandatory.Object["spec"].(map[string]any)["mandatory"] = true
	labelled := overrideOf("work", "", "ConfigMap")
	labelled.SetLabels(map[string]string{"a": "b"})
	by := func(user string, names ...any) *unstructured.Unstructured {
		o := overrideOf("work", "", "ConfigMap", names...)
		o.SetAnnotations(map[string]string{requestedBy: user})
		if user == "" {
			o.SetAnnotations(nil)
		}
		return o
	}
	after := func(earlier, user string, names ...any) *unstructured.Unstructured {
		o := by(user, names...)
		o.SetAnnotations(map[string]string{requestedBy: user, earlierWriters: earlier})
		return o
	}
	const writers = "annotation " + earlierWriters + " names the users who have written it before, in a line each, and whose approval does " +
		"not count, either: "
	const names = "annotation " + requestedBy + " names the user who writes the spec, and whose approval does not count then: "
	forged, changed := []string{names + "set it to dev"}, []string{names + "leave it as it is"}
	both, kept := append(forged, writers+"set it to eve"), []string{writers + "leave it as it is"}
	for sentence, tc := range map[string]struct {
		before, after *unstructured.Unstructured
		user          string // absent: dev
		rights        granted
		want          []string
	}{
		"by a user who may update none": {after: overrideOf("work", "", "ConfigMap"), rights: reading, want: one},
		"by a user who may update all":  {after: overrideOf("work", "", "ConfigMap"), rights: all},
		"by a user who may update the named one": {
			after: overrideOf("work", "", "ConfigMap", "web"), rights: web,
		},
		"by a user who may update one of two": {
			after:  overrideOf("work", "", "ConfigMap", "web", "api"),
			rights: web, want: one,
		},
		"who takes one over from another": {
			before: overrideOf("work", "", "ConfigMap", "api"), after: overrideOf("work", "", "ConfigMap", "web"),
			rights: web, want: one,
		},
		"who deletes it":                       {before: overrideOf("work", "", "ConfigMap"), rights: reading, want: one},
		"who labels it":                        {before: overrideOf("work", "", "ConfigMap"), after: labelled},
		"a controller that does":               {before: overrideOf("work", "", "ConfigMap"), user: "system:kube-controller-manager"},
		"by a user who may read no Secrets":    {after: overrideOf("work", "", "ConfigMap"), rights: granted{all[0], all[2]}, want: unread},
		"by a user who may read no ConfigMaps": {after: overrideOf("work", "", "ConfigMap"), rights: all[:2], want: unread},
		"in the name of another":               {after: by("eve"), rights: all, want: both},
		"in no name":                           {after: by(""), rights: all, want: forged},
		"with the name of the last one":        {before: by("eve", "web"), after: by("eve", "api"), rights: all, want: both},
		"who takes the name over": {
			before: by("eve", "web"), after: by("dev", "api"), rights: all, want: []string{writers + "set it to eve"},
		},
		"who keeps the last one among the writers": {before: by("eve", "web"), after: after("eve", "dev", "api"), rights: all},
		"who drops one of the writers": {
			before: after("bob\ndan", "eve", "web"), after: after("bob\neve", "dev", "api"), rights: all,
			want: []string{writers + "set it to bob, dan, eve"},
		},
		"who wrote it before, too":       {before: after("bob\ndev", "eve", "web"), after: after("bob\neve", "dev", "api"), rights: all},
		"who names more than wrote it":   {before: by("dev", "web"), after: after("bob", "dev", "api"), rights: all},
		"of the writers alone":           {before: after("bob", "eve"), after: after("bob\ndan", "eve"), rights: all, want: kept},
		"that removes the writers alone": {before: after("bob", "eve"), after: by("eve"), rights: all, want: kept},
		"after 21 others": {
			before: after(strings.Repeat("a\n", 19)+"a", "eve", "web"), after: after(strings.Repeat("a\n", 20)+"eve", "dev", "api"), rights: all,
			want: []string{"each Release copies the names of at most 20 users who have written it before, with 4096 characters: create it " +
				"anew (kubectl replace --force)"},
		},
		"in a name of two lines": {
			after: by("a\nb"), user: "a\nb", rights: all, want: []string{"the name of the author has a line break: write it as another user"},
		},
		"of the record alone":           {before: by("eve"), after: by("dev"), rights: all, want: changed},
		"that removes the record":       {before: by("eve"), after: by(""), rights: all, want: changed},
		"in a name of 1,024 characters": {after: by(strings.Repeat("ä", 1024)), user: strings.Repeat("ä", 1024), rights: all},
		"in a longer name": {after: by(strings.Repeat("ä", 1025)), user: strings.Repeat("ä", 1025), rights: all, want: []string{
			"each Release copies the name of the author, in at most 1024 characters: write it as a user with a shorter name",
		}},
		"that restores a record": {
			before: by("eve"), after: by("bob"), rights: append(granted{"stamp resourceoverrides.shipper.booking.com work/a"}, all...),
		},
		"of rights": {
			after: overrideOf("work", "rbac.authorization.k8s.io", "Role"), rights: all,
			want: []string{"only a ResourceOverride in the global namespace may change rights"},
		},
		"mandatory": {after: mandatory, rights: all, want: []string{"mandatory: only in the global namespace: leave it out"}},
		"a global one, without rights": {
			after: overrideOf(global, "", "ConfigMap"), rights: granted{"update applications.shipper.booking.com " + global + "/"}, want: every,
		},
		"a global one, without place": {
			after: overrideOf(global, "", "ConfigMap"), rights: granted{"update applications.shipper.booking.com /"}, want: every,
		},
		"a global one, with all": {
			after:  overrideOf(global, "rbac.authorization.k8s.io", "Role"),
			rights: granted{"update applications.shipper.booking.com /", "place *.* /"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			user := tc.user
			if user == "" {
				user = "dev"
			}
			before := tc.before
			if before == nil { // an edit of the rules
				before = tc.after.DeepCopy()
				before.Object["spec"].(map[string]any)["rules"] = []any{}
			}
			if diff := cmp.Diff(tc.want, refusalsTo(t, user, policy, "resourceoverrides", before, tc.after, tc.rights)); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
}
