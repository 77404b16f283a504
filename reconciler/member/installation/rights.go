// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/outward"
	"shipper.dev/shipper/reconciler/member/rights"
	"shipper.dev/shipper/reconciler/retry"
)

// denial is a request about an object that an API server refused because Shipper's account lacks a right. called names the object as a
// message may.
type denial struct {
	called string
	err    error
}

// denials are those of one pass.
type denials []denial

// note notes an error if it is a denial, and reports whether it is.
func (d *denials) note(called string, err error) bool {
	if !rights.Denied(err) {
		return false
	}
	*d = append(*d, denial{called, err})
	return true
}

// mostDenied bounds the objects that a message names.
const mostDenied = 5

// notGranted says which rights Shipper's account in a cluster lacks for a chart, and how an administrator gives them. No event says that
// a right was given, so it is tried again soon.
func notGranted(cluster string, it *shipper.InstallationTarget, all denials) error {
	var called []string
	var resources []schema.GroupResource
	giving, grants := false, false
	for _, one := range all {
		of := rights.ResourceOf(one.err)
		called = append(called, one.called)
		giving, grants = giving || rights.Escalates(one.err), grants || rights.Grants(of)
		if !slices.Contains(resources, of) {
			resources = append(resources, of)
		}
	}
	if more := len(called) - mostDenied; more > 0 {
		called = append(called[:mostDenied], fmt.Sprintf("%d more", more))
	}
	text := strings.Join(called, ", ") + ": Shipper's account lacks "
	check := checkCommand(it.Spec.Chart) + " prints a ClusterRole with all rights that the chart takes, for an administrator to apply in " +
		"cluster " + cluster + "; " + rights.Shared
	switch {
	case sourcesOf(it).secret(): // the kinds are the chart's, too
		text += "rights; " + check + chart.Unsaid
	case giving:
		text += "rights that it gives; " + check
	case grants:
		text += "rights to " + joined(resources) + "; " + check
	default:
		text += "rights to " + joined(resources) + "; " + rights.Command(cluster, resources...) + "; " + rights.Shared
	}
	return &problem{shipper.NotGranted, retry.Retry, text}
}

func joined(resources []schema.GroupResource) string {
	names := make([]string, len(resources))
	for i, of := range resources {
		names[i] = of.String()
	}
	return strings.Join(names, ", ")
}

// checkCommand prints the rights that a chart takes.
func checkCommand(of *shipper.Chart) string {
	named := "CHART.tgz"
	if of != nil && of.RepoURL != "" {
		named = of.Name + " --version " + of.Version
		if u, err := url.Parse(of.RepoURL); err == nil {
			named += " --repo " + outward.Redact(u)
		}
	}
	return fmt.Sprintf("shipperctl chart check %s --values VALUES.yaml --grant", named)
}

// granted is err or, if a right is why it failed, what says so.
func granted(cluster string, it *shipper.InstallationTarget, called string, err error) error {
	if !rights.Denied(err) {
		return err
	}
	return notGranted(cluster, it, denials{{called, err}})
}

// granted is granted for an object of the chart.
func (i *installer) granted(entry item, err error) error {
	return granted(i.member.Name, i.it, i.called(entry), err)
}
