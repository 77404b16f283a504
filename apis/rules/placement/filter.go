// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const (
	// maxListed bounds the taints and capabilities that one message names.
	maxListed = 3
	// maxQuoted bounds, in bytes, each text of others that a message quotes.
	maxQuoted = 128
)

const (
	leaving       = "the Cluster is being deleted"
	unschedulable = "spec.scheduler.unschedulable of the Cluster is true: set it to false"
)

// filter returns the candidates that may be picked, and rejects the others. Kept ones are neither.
func (d *decider) filter() []*candidate {
	out := make([]*candidate, 0, len(d.candidates))
	for i := range d.candidates {
		c := &d.candidates[i]
		if c.verdict.Reason != "" { // kept, or more than count
			d.spread.register(c)
			continue
		}
		reason, message := d.unfit(c)
		if reason == "" {
			out = append(out, c)
		} else {
			d.reject(c, reason, message)
		}
		if d.spread.empty() || reason != "" && !d.onlyHeldOff(c, reason) {
			continue
		}
		d.spread.register(c)
	}
	return out
}

// unfit returns why the cluster may not be picked, and what would change that; an empty reason when it may.
func (d *decider) unfit(c *candidate) (shipper.PlacementReason, string) {
	if !c.DeletionTimestamp.IsZero() {
		return shipper.PlacementLeaving, leaving
	}
	if reason, message := d.unready(c.Cluster); reason != "" {
		return reason, message
	}
	if c.Spec.Scheduler.Unschedulable {
		return shipper.PlacementUnschedulable, unschedulable
	}
	if message := capabilityMissing(c.Cluster, d.in.Requirements.Capabilities); message != "" {
		return shipper.PlacementCapabilityMissing, message
	}
	if taints := untolerated(c.Spec.Taints, d.policy.Tolerations); len(taints) > 0 {
		return shipper.PlacementTainted, tainted(taints) + ": tolerate " + itOrThem(taints) + " in placement.tolerations"
	}
	return d.unmatched(c)
}

// unfitForFixed is unfit for PickFixed.
func (d *decider) unfitForFixed(c *candidate, named bool) (shipper.PlacementReason, string) {
	if !c.DeletionTimestamp.IsZero() {
		return shipper.PlacementLeaving, leaving
	}
	if !named {
		return shipper.PlacementNotNamed, "placement.clusters does not name it"
	}
	if d.in.Sticky && c.current {
		return "", ""
	}
	if message := capabilityMissing(c.Cluster, d.in.Requirements.Capabilities); message != "" {
		return shipper.PlacementCapabilityMissing, message
	}
	return "", ""
}

// onlyHeldOff reports whether a cluster that was rejected for this reason has what the policy requires. Such a cluster still counts
// as one over which clusters are spread, as a tainted Node does for Pods.
func (d *decider) onlyHeldOff(c *candidate, reason shipper.PlacementReason) bool {
	switch reason {
	case shipper.PlacementNotReady, shipper.PlacementUnschedulable, shipper.PlacementTainted:
		unmatched, _ := d.unmatched(c)
		return unmatched == "" && capabilityMissing(c.Cluster, d.in.Requirements.Capabilities) == ""
	default:
		return false
	}
}

// unready returns whether and why the cluster does not count as joined and ready. A cluster that has joined and has no condition
// Ready counts as ready: its status is about to be written.
func (d *decider) unready(c *shipper.Cluster) (shipper.PlacementReason, string) {
	joined := false
	var ready *shipper.Condition
	for i := range c.Status.Conditions {
		switch condition := &c.Status.Conditions[i]; condition.Type {
		case shipper.ClusterReady:
			ready = condition
		case shipper.ClusterJoined:
			joined = condition.Status == corev1.ConditionTrue
		}
	}
	switch {
	case ready != nil && ready.Status == corev1.ConditionTrue:
		return "", ""
	case !joined:
		return shipper.PlacementNotJoined, "it has never been ready" + because(ready) +
			"; run shipperctl clusters check " + shortened(c.Name, maxQuoted)
	case ready == nil || d.in.Now.Sub(ready.LastTransitionTime.Time) <= d.in.UnhealthyAfter:
		return "", ""
	default:
		return shipper.PlacementNotReady, fmt.Sprintf("not ready since %s, which is longer than %s%s",
			ready.LastTransitionTime.UTC().Format(time.RFC3339), d.in.UnhealthyAfter, because(ready))
	}
}

// because is the reason of the condition. Its message may say what only administrators may know: addresses, and errors of connections.
func because(c *shipper.Condition) string {
	switch {
	case c == nil || c.Reason == "":
		return ": Shipper has yet to connect to it"
	default:
		return ": " + shortened(c.Reason, maxQuoted)
	}
}

// capabilityMissing says which of the capabilities the cluster does not offer; empty when it offers all.
func capabilityMissing(c *shipper.Cluster, capabilities []string) string {
	var missing []string
	for _, capability := range capabilities {
		if !slices.Contains(c.Spec.Capabilities, capability) && !slices.Contains(missing, capability) {
			missing = append(missing, capability)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	slices.Sort(missing)
	return "does not offer " + listed(missing) + ": add it to spec.capabilities of the Cluster"
}

// listed joins the first texts by comma and counts the rest.
func listed(texts []string) string {
	more := ""
	if len(texts) > maxListed {
		more = fmt.Sprintf(" and %d more", len(texts)-maxListed)
		texts = texts[:maxListed]
	}
	short := make([]string, len(texts))
	for i, text := range texts {
		short[i] = shortened(text, maxQuoted)
	}
	return strings.Join(short, ", ") + more
}

// shortened is at most that many bytes of a text and, where it was cut, three dots. No character is cut in two.
func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// quoted is the text in quotes, shortened.
func quoted(text string) string { return fmt.Sprintf("%q", shortened(text, maxQuoted)) }
