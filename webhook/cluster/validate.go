// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/response"
)

// maxListed bounds the Releases that a warning lists.
const maxListed = 5

func validate(spec *shipper.ClusterSpec) field.ErrorList {
	path := field.NewPath("spec")
	var errs field.ErrorList
	if why := whyNotServer(spec.APIMaster); why != "" {
		errs = append(errs, field.Invalid(path.Child("apiMaster"), spec.APIMaster, why))
	}
	if strings.TrimSpace(spec.Region) == "" {
		errs = append(errs, field.Required(path.Child("region"), "name the region as clusterRequirements.regions will"))
	}
	seen := map[string]bool{}
	for i, capability := range spec.Capabilities {
		at := path.Child("capabilities").Index(i)
		switch {
		case strings.TrimSpace(capability) == "":
			errs = append(errs, field.Required(at, "a capability has a name"))
		case seen[capability]:
			errs = append(errs, field.Duplicate(at, capability))
		}
		seen[capability] = true
	}
	if id := spec.Scheduler.Identity; id != nil && strings.TrimSpace(*id) == "" {
		errs = append(errs, field.Invalid(path.Child("scheduler", "identity"), *id,
			"leave it out to place by the cluster's own name"))
	}
	errs = append(errs, placement.ValidateTaints(spec.Taints, path.Child("taints"))...)
	errs = append(errs, placement.ValidateProperties(spec.Properties, path.Child("properties"))...)
	if p := spec.OnLeave; p != "" && p != shipper.OnLeaveKeep && p != shipper.OnLeaveRemove {
		errs = append(errs, field.NotSupported(path.Child("onLeave"), p,
			[]shipper.ClusterLeavePolicy{shipper.OnLeaveKeep, shipper.OnLeaveRemove}))
	}
	return errs
}

func whyNotServer(apiMaster string) string {
	const like = "use the URL of the API server as in a kubeconfig, such as https://10.0.0.1:6443"
	u, err := url.Parse(apiMaster)
	switch {
	case apiMaster == "":
		return "is needed: " + like
	case err != nil, u.Hostname() == "":
		return "is not a URL: " + like
	case u.Scheme != "https":
		return "must be https: credentials are sent there; " + like
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return "must have neither credentials, query nor fragment: credentials belong into the Secret of the same name"
	}
	return ""
}

// awaitsFinalizer refuses, for a moment, the deletion of a Cluster that would go before Shipper has removed what it placed there: the
// reconciler adds its finalizer after the edit that asks for the removal.
func (w *Webhook) awaitsFinalizer(old *shipper.Cluster) error {
	if old.Spec.OnLeave != shipper.OnLeaveRemove || old.DeletionTimestamp != nil || slices.Contains(old.Finalizers, shipper.ClusterFinalizer) {
		return nil
	}
	placed, err := w.State.PlacedOn(old.Name)
	if err != nil || len(placed) == 0 {
		return err
	}
	return response.Later(fmt.Sprintf("cluster %s has onLeave: Remove, and Shipper has yet to add the finalizer %s: try again, or set "+
		"onLeave: Keep to leave there what runs", old.Name, shipper.ClusterFinalizer), time.Second)
}

// warnOfPlaced warns of what happens to Releases that are still placed on a cluster that is being deleted.
func (w *Webhook) warnOfPlaced(a *response.Response, name string, policy shipper.ClusterLeavePolicy) error {
	placed, err := w.State.PlacedOn(name)
	if err != nil || len(placed) == 0 {
		return err
	}
	if policy == shipper.OnLeaveRemove {
		a.Warn("%d Release(s) are placed on cluster %s, and Shipper removes all that they run there before the Cluster goes: %s; "+
			"it has onLeave: Remove, and waits for those that no other cluster can take", len(placed), name, listed(placed))
		return nil
	}
	a.Warn("%d Release(s) are placed on cluster %s and what they run there is left as it is: %s; those with a placement go elsewhere at "+
		"once, and what they left is not taken up again when a Cluster of this name is created", len(placed), name, listed(placed))
	return nil
}

// warnOfStaying warns that Releases stay on a cluster whose region or capabilities change, or that has a new taint.
func (w *Webhook) warnOfStaying(a *response.Response, now, old *shipper.Cluster) error {
	if old == nil {
		return nil
	}
	otherOffer := now.Spec.Region != old.Spec.Region || !offersAll(&now.Spec, old.Spec.Capabilities)
	tainted := newTaints(&now.Spec, &old.Spec)
	if !otherOffer && len(tainted) == 0 {
		return nil
	}
	placed, err := w.State.PlacedOn(now.Name)
	if err != nil || len(placed) == 0 {
		return err
	}
	if otherOffer {
		a.Warn("%d Release(s) are placed on cluster %s and stay, whatever it offers now: %s",
			len(placed), now.Name, listed(placed))
	}
	if len(tainted) > 0 {
		a.Warn("%d Release(s) are placed on cluster %s and stay, although it is tainted %s now: %s; the next Release of an Application "+
			"with regions, or with edited clusterRequirements, is not placed there", len(placed), now.Name, listed(tainted), listed(placed))
	}
	return nil
}

// newTaints are the taints that a cluster did not have before.
func newTaints(now, old *shipper.ClusterSpec) []string {
	var out []string
	for _, taint := range now.Taints {
		if !slices.ContainsFunc(old.Taints, func(before shipper.ClusterTaint) bool {
			return before.Key == taint.Key && before.Value == taint.Value
		}) {
			out = append(out, placement.DescribeTaint(taint))
		}
	}
	return out
}

func offersAll(spec *shipper.ClusterSpec, capabilities []string) bool {
	return !slices.ContainsFunc(capabilities, func(c string) bool { return !slices.Contains(spec.Capabilities, c) })
}

func listed(names []string) string {
	if len(names) <= maxListed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), len(names)-maxListed)
}
