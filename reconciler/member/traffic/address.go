// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

// address is what a production Service of type LoadBalancer has of an address. The zero value is that of other Services.
type address struct {
	// reason is empty while the Service has an address; otherwise AddressAwaited or AddressMissing, and message says what to do.
	reason, message string
	// known is true of Services of type LoadBalancer.
	known bool
}

// established reports whether the Application has served in the cluster before, by what statuses say, or by the Pods that were found in
// traffic. A step must not wait there for an address that its predecessors did not have.
func (o Outcome) established(family application) bool {
	return family.established.Has(o.want.Name) || o.want.AsFound && o.plan.Achieved > 0
}

// addressOf is the address of a Service. established is true in a cluster where the Application has served before.
func addressOf(of *corev1.Service, established bool) address {
	switch {
	case of == nil || !fleet.AwaitsAddress(of):
		return address{}
	case fleet.HasAddress(of):
		return address{known: true}
	case established:
		return address{known: true, reason: shipper.AddressMissing, message: fleet.WithoutAddress(of)}
	}
	return address{known: true, reason: shipper.AddressAwaited, message: fleet.WithoutAddress(of)}
}

// worstAddress is the address of the Service that lacks one, if any does.
func worstAddress(plans []Outcome) address {
	var out address
	for _, of := range plans {
		if !of.idle && of.address.known && (!out.known || out.reason == "") {
			out = of.address
		}
	}
	return out
}

// awaitsAddress reports whether the Release is to serve by a Service that has to get an address first.
func (o Outcome) awaitsAddress() bool {
	return o.address.reason == shipper.AddressAwaited && o.want.Weight > 0 && !o.want.AsFound
}

// establishedIn adds the clusters where a TrafficTarget's status says that the Application has served, with an address or without one. A
// status without the condition is of an earlier version, or about a Service of another type.
func establishedIn(established sets.Set[string], tt *shipper.TrafficTarget) {
	for _, c := range tt.Status.Clusters {
		is := shipper.FindCondition(c.Conditions, shipper.TargetAddressed)
		if is == nil && c.AchievedTraffic > 0 || is != nil && is.Reason != shipper.AddressAwaited {
			established.Insert(c.Name)
		}
	}
}

// withAddressed sets the condition Addressed, or removes it where no Service is of type LoadBalancer. The argument is not modified.
func withAddressed(conditions []shipper.Condition, is address, now metav1.Time) []shipper.Condition {
	if !is.known {
		if shipper.FindCondition(conditions, shipper.TargetAddressed) == nil {
			return conditions
		}
		return slices.DeleteFunc(slices.Clone(conditions), func(c shipper.Condition) bool { return c.Type == shipper.TargetAddressed })
	}
	c := shipper.Condition{Type: shipper.TargetAddressed, Status: corev1.ConditionTrue, Reason: is.reason, Message: is.message}
	if is.reason != "" {
		c.Status = corev1.ConditionFalse
	}
	return shipper.SetCondition(conditions, c, now)
}
