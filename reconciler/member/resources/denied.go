// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/member/rights"
	"shipper.dev/shipper/reconciler/retry"
)

var namespaceKind = schema.GroupKind{Kind: "Namespace"}

// denied is the error of an object that Shipper's account in a cluster may not write.
type denied struct {
	object   string
	resource schema.GroupResource
	cluster  string
}

// Error names the right and how to grant it.
func (d *denied) Error() string { return lack([]*denied{d}) }

// Classify implements retry.Classified. No event says that a right was granted.
func (d *denied) Classify() (reason string, action retry.Action) {
	return shipper.NotGranted, retry.Retry
}

// lacking is one error about the rights that a command grants, and one about those that no command should grant.
func lacking(all []*denied) []error {
	var out []error
	for _, grants := range []bool{false, true} {
		some := slices.DeleteFunc(slices.Clone(all), func(d *denied) bool { return rights.Grants(d.resource) != grants })
		if len(some) > 0 {
			out = append(out, &problem{shipper.NotGranted, retry.Retry, lack(some)})
		}
	}
	return out
}

// lack says which rights Shipper's account lacks, with one command that grants all of them. Objects that give rights get no command.
func lack(all []*denied) string {
	var called, names []string
	var resources []schema.GroupResource
	for _, d := range all {
		called = append(called, d.object)
		if !slices.Contains(resources, d.resource) {
			resources, names = append(resources, d.resource), append(names, d.resource.String())
		}
	}
	text := fmt.Sprintf("%s: Shipper's account lacks rights to %s; ", named(called, ", "), strings.Join(names, ", "))
	if rights.Grants(all[0].resource) {
		return text + "such objects give rights, and " + rights.Shared +
			": have an administrator of the cluster write them, and leave them out here"
	}
	return text + rights.Command(all[0].cluster, resources...) + "; " + rights.Shared
}
