// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// marker matches comments in the code that declare the rights it needs.
var marker = regexp.MustCompile(`(?m)^\s*//\s*\+kubebuilder:rbac:(.+)$`)

// rules returns the rules of a role of the management cluster.
func rules(t *testing.T, kind string) []rbacv1.PolicyRule {
	t.Helper()
	o, err := Object(RBAC, kind, "shipper:management-cluster")
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
		t.Fatal(err)
	}
	return role.Rules
}

// grants reports whether a rule allows a verb on a resource, either for all names or for the given names.
func grants(r rbacv1.PolicyRule, group, resource, verb string, names []string) bool {
	if !slices.Contains(r.APIGroups, group) || !slices.Contains(r.Resources, resource) || !slices.Contains(r.Verbs, verb) {
		return false
	}
	for _, name := range names {
		if len(r.ResourceNames) > 0 && !slices.Contains(r.ResourceNames, name) {
			return false
		}
	}
	return len(names) > 0 || len(r.ResourceNames) == 0
}

func TestShipperIsGrantedWhatItsCodeSaysItNeeds(t *testing.T) {
	everywhere, inItsNamespace := rules(t, "ClusterRole"), rules(t, "Role")
	var seen int
	check := func(where, text string) {
		seen++
		need := map[string][]string{}
		for _, part := range strings.Split(text, ",") {
			key, values, _ := strings.Cut(part, "=")
			for _, value := range strings.Split(values, ";") {
				need[key] = append(need[key], strings.Trim(strings.TrimSpace(value), `"`))
			}
		}
		for _, group := range need["groups"] {
			if group == "core" {
				group = ""
			}
			for _, resource := range need["resources"] {
				for _, verb := range need["verbs"] {
					granted := func(r rbacv1.PolicyRule) bool { return grants(r, group, resource, verb, need["resourceNames"]) }
					if slices.ContainsFunc(everywhere, granted) {
						continue
					}
					if need["namespace"] != nil && slices.ContainsFunc(inItsNamespace, granted) {
						continue
					}
					t.Errorf("%s: nothing grants %s on %s of group %q", where, verb, resource, group)
				}
			}
		}
	}
	for _, room := range []string{"../webhook", "../reconciler", "../certs", "../cmd"} {
		err := filepath.WalkDir(room, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range marker.FindAllSubmatch(text, -1) {
				check(path, string(m[1]))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen == 0 {
		t.Error("no marker was found")
	}
}

func TestObjects(t *testing.T) {
	for folder, want := range map[string]int{CRD: 18, RBAC: 26, Webhook: 2, Deploy: 11, Guard: 15} {
		objects, err := Objects(folder)
		if err != nil {
			t.Fatal(err)
		}
		if len(objects) != want {
			t.Errorf("%s has %d objects, not %d", folder, len(objects), want)
		}
		for _, o := range objects {
			if o.GetKind() == "" || o.GetAPIVersion() == "" || o.GetName() == "" {
				t.Errorf("%s has an object that is none: %v", folder, o.Object)
			}
		}
	}
	if _, err := Objects("nothing"); err == nil {
		t.Error("a folder that is not there has objects")
	}
	if _, err := Object(CRD, "CustomResourceDefinition", "nothing"); err == nil {
		t.Error("an object that is not there was found")
	}
}
