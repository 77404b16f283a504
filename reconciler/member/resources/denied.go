// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/reconciler/member/rights"
	"shipper.dev/shipper/reconciler/retry"
)

var namespaceKind = schema.GroupKind{Kind: "Namespace"}

// denied is the error of an object that Shipper's account in a cluster may not write.
type denied struct {
	object   string
	resource schema.GroupResource
	cluster  string
	// name is that of an object without a namespace, which administrators can grant; empty for others.
	name string
	// escalates means that the object is a role or binding that gives more rights than its writer has, or may give.
	escalates bool
}

// grantableName is the name of an object that can be granted by name; empty for none.
func grantableName(key objects.Key) string {
	if key.Namespace != "" {
		return ""
	}
	return key.Name
}

// Error names the right and how to grant it.
func (d *denied) Error() string { return lack([]*denied{d}) }

// Classify implements retry.Classified. No event says that a right was granted.
func (d *denied) Classify() (reason string, action retry.Action) {
	return shipper.NotGranted, retry.Retry
}

// The ways to a right that is missing.
const (
	forAll = iota // a right to the kind, for all tenants
	byName        // a grant of the name
	byHand        // none: an administrator writes the object
)

// way is how an administrator grants a right. Objects that give rights in a whole cluster are granted by name alone.
func (d *denied) way() int {
	switch {
	case !rights.Grants(d.resource):
		return forAll
	case d.name != "":
		return byName
	default:
		return byHand
	}
}

// lacking is one error for each way to rights that are missing.
func lacking(all []*denied) []error {
	var out []error
	for _, way := range []int{forAll, byName, byHand} {
		some := slices.DeleteFunc(slices.Clone(all), func(d *denied) bool { return d.way() != way })
		if len(some) > 0 {
			out = append(out, &problem{shipper.NotGranted, retry.Retry, lack(some)})
		}
	}
	return out
}

// lack says which rights Shipper's account lacks, with one command that grants all of them. They have one way.
func lack(all []*denied) string {
	var called, names []string
	var resources []schema.GroupResource
	escalates := false
	for _, d := range all {
		called = append(called, d.object)
		escalates = escalates || d.escalates
		if !slices.Contains(resources, d.resource) {
			resources, names = append(resources, d.resource), append(names, d.resource.String())
		}
	}
	text := fmt.Sprintf("%s: Shipper's account lacks rights to %s; ", named(called, ", "), strings.Join(names, ", "))
	switch way := all[0].way(); {
	case way == byName && escalates:
		return text + "some of them give rights that the grants of the cluster lack, so an administrator grants each name, with " +
			"these rights in FILE: " + grantCommand(all)
	case way == byName:
		return text + "such objects give rights in the whole cluster, so an administrator grants each name: " + grantCommand(all)
	case way == byHand:
		return text + "such objects give rights, and " + rights.Shared +
			": have an administrator of the cluster write them, and leave them out here"
	}
	return text + rights.Command(all[0].cluster, resources...) + "; " + rights.Shared
}

// grantCommand grants objects by name in their cluster. FILE bounds the rights that roles and bindings may give.
func grantCommand(all []*denied) string {
	var names []string
	roles := false
	for _, d := range all {
		names = append(names, rights.GrantName(d.resource, d.name))
		roles = roles || rights.GivesRights(d.resource)
	}
	return rights.ByName(all[0].cluster, roles, names...)
}
