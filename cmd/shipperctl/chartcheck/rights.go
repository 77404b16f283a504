// SPDX-License-Identifier: Apache-2.0

package chartcheck

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/manifests"
)

// aggregate is the label of a ClusterRole whose rules Shipper's account in an application cluster gets.
const aggregate = shipper.AggregateLabel

// needed are the verbs that Shipper needs for a kind that it installs.
var needed = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// Right is what Shipper lacks by default to install some objects of a chart.
type Right struct {
	// Group and Resource are those of rules; a Resource that begins with a slash is a URL.
	Group    string `json:"group,omitempty"`
	Resource string `json:"resource"`
	// Verbs are those that are missing, sorted.
	Verbs []string `json:"verbs"`
	// For are the objects of the resource that the chart installs, and GrantedBy the Roles and ClusterRoles that give it to others.
	For       []string `json:"for,omitempty"`
	GrantedBy []string `json:"grantedBy,omitempty"`
}

// String is the resource with its group, as kubectl has it.
func (r Right) String() string {
	if r.Group == "" {
		return r.Resource
	}
	return r.Resource + "." + r.Group
}

// rightsFor are the rights to install objects, beyond those that Shipper's account in an application cluster has by default. An account can
// grant only what it has: so those in Roles count, too.
func rightsFor(all []unstructured.Unstructured) ([]Right, error) {
	given, err := defaultRules()
	if err != nil {
		return nil, err
	}
	lacking := map[string]*Right{}
	for i := range all {
		o := &all[i]
		plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		own := each(rbacv1.PolicyRule{APIGroups: []string{plural.Group}, Resources: []string{plural.Resource}, Verbs: needed})
		var others []Right
		for _, rule := range granted(o) {
			others = append(others, each(rule)...)
		}
		for n, r := range append(own, others...) {
			if slices.ContainsFunc(given, func(has rbacv1.PolicyRule) bool { return covers(has, r) }) {
				continue
			}
			if lacking[r.String()] == nil {
				lacking[r.String()] = &Right{Group: r.Group, Resource: r.Resource}
			}
			known := lacking[r.String()]
			known.Verbs = include(known.Verbs, r.Verbs[0])
			if n < len(own) {
				known.For = include(known.For, named(o))
			} else {
				known.GrantedBy = include(known.GrantedBy, named(o))
			}
		}
	}
	out := make([]Right, 0, len(lacking))
	for _, name := range slices.Sorted(maps.Keys(lacking)) {
		out = append(out, *lacking[name])
	}
	return out, nil
}

// NotByDefault are those of some resources that Shipper's account in an application cluster cannot write by default.
func NotByDefault(of []schema.GroupResource) ([]schema.GroupResource, error) {
	given, err := defaultRules()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(of), func(one schema.GroupResource) bool {
		return slices.ContainsFunc(given, func(has rbacv1.PolicyRule) bool {
			return covers(has, Right{Group: one.Group, Resource: one.Resource, Verbs: []string{"create"}})
		})
	}), nil
}

// each is a rule taken apart: rights with one verb each.
func each(rule rbacv1.PolicyRule) (out []Right) {
	for _, verb := range rule.Verbs {
		for _, url := range rule.NonResourceURLs {
			out = append(out, Right{Resource: url, Verbs: []string{verb}})
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				out = append(out, Right{Group: group, Resource: resource, Verbs: []string{verb}})
			}
		}
	}
	return out
}

// include adds a text to a sorted list that lacks it.
func include(list []string, text string) []string {
	at, found := slices.BinarySearch(list, text)
	if found {
		return list
	}
	return slices.Insert(list, at, text)
}

// powerful are resources with which a chart could reach all of a cluster.
var powerful = []string{
	"*.*", "clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io",
	"mutatingwebhookconfigurations.admissionregistration.k8s.io", "validatingwebhookconfigurations.admissionregistration.k8s.io",
}

// warnOfRights says what it means to give rights to Shipper; empty if they reach no further than others.
func warnOfRights(rights []Right) string {
	var found []string
	for _, r := range rights {
		if slices.Contains(powerful, r.String()) {
			found = append(found, r.String())
		}
	}
	if len(found) == 0 {
		return ""
	}
	return "It takes rights to " + strings.Join(found, ", ") +
		": with them, each user who may write an Application can reach the whole cluster"
}

// defaultRules are the rules of Shipper's account in an application cluster.
func defaultRules() ([]rbacv1.PolicyRule, error) {
	o, err := manifests.Object(manifests.RBAC, "ClusterRole", "shipper:application-cluster")
	if err != nil {
		return nil, err
	}
	role := &rbacv1.ClusterRole{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role); err != nil {
		return nil, fmt.Errorf("reading ClusterRole %s: %w", o.GetName(), err)
	}
	return role.Rules, nil
}

// granted are the rules of a Role or ClusterRole that the chart gives to others.
func granted(o *unstructured.Unstructured) []rbacv1.PolicyRule {
	if o.GroupVersionKind().Group != rbacv1.GroupName {
		return nil
	}
	role := &rbacv1.ClusterRole{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role) != nil {
		return nil
	}
	return role.Rules
}

// covers reports whether a rule, which is for all objects of its resources, has a right with one verb.
func covers(rule rbacv1.PolicyRule, r Right) bool {
	has := func(list []string, value string) bool {
		return slices.Contains(list, value) || slices.Contains(list, "*")
	}
	return len(rule.ResourceNames) == 0 && has(rule.APIGroups, r.Group) && has(rule.Resources, r.Resource) && has(rule.Verbs, r.Verbs[0])
}

// grant is the ClusterRole by which the owner of an application cluster gives rights to Shipper.
func grant(chart string, rights []Right) (string, error) {
	role := rbacv1.ClusterRole{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "shipper-" + chart, Labels: map[string]string{aggregate: "true"},
		},
	}
	for _, r := range rights {
		rule := rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Resource}, Verbs: r.Verbs}
		if strings.HasPrefix(r.Resource, "/") {
			rule = rbacv1.PolicyRule{NonResourceURLs: []string{r.Resource}, Verbs: r.Verbs}
		}
		last := len(role.Rules) - 1
		if last >= 0 && slices.Equal(role.Rules[last].APIGroups, rule.APIGroups) && slices.Equal(role.Rules[last].Verbs, rule.Verbs) {
			role.Rules[last].Resources = append(role.Rules[last].Resources, rule.Resources...)
			role.Rules[last].NonResourceURLs = append(role.Rules[last].NonResourceURLs, rule.NonResourceURLs...)
			continue
		}
		role.Rules = append(role.Rules, rule)
	}
	out, err := yaml.Marshal(role)
	if err != nil {
		return "", fmt.Errorf("writing ClusterRole %s: %w", role.Name, err)
	}
	return string(out), nil
}

// summary counts objects by kind; empty if there are none.
func summary(all []unstructured.Unstructured) string {
	if len(all) == 0 {
		return ""
	}
	return objects.Summarise(all)
}
