// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
)

// Names in Shipper's namespace.
const (
	deploymentName    = "shipper"
	leaseName         = "shipper-reconciler"
	certificateSecret = "shipper-webhook-cert"
)

// deploymentFindings reports whether Shipper's Pods are ready. d is nil when Shipper runs elsewhere.
func deploymentFindings(d *appsv1.Deployment) []Finding {
	if d == nil {
		return nil
	}
	wanted := int32(1)
	if d.Spec.Replicas != nil {
		wanted = *d.Spec.Replicas
	}
	f := Finding{
		Level: Broken, Why: "nobody judges what is written, and nothing is rolled out",
		Do: fmt.Sprintf("kubectl describe pods -n %s -l app.kubernetes.io/name=shipper", d.Namespace),
	}
	switch ready := d.Status.ReadyReplicas; {
	case wanted == 0:
		f.What = fmt.Sprintf("the Deployment %s/%s is to have no Pods", d.Namespace, d.Name)
		f.Do = fmt.Sprintf("kubectl scale deployment %s -n %s --replicas=2, unless that is meant", d.Name, d.Namespace)
	case ready == 0:
		f.What = fmt.Sprintf("none of %d Pods of the Deployment %s/%s is ready", wanted, d.Namespace, d.Name)
	case ready < wanted:
		f.Level = Warning
		f.What = fmt.Sprintf("%d of %d Pods of the Deployment %s/%s are ready", ready, wanted, d.Namespace, d.Name)
		f.Why = "fewer are left when one goes"
	default:
		return nil
	}
	return []Finding{f}
}

// leaseFindings reports whether a reconciler leads. l is nil when there is no Lease.
func leaseFindings(l *coordinationv1.Lease, now time.Time) []Finding {
	f := Finding{
		Level: Broken, Why: "nothing is rolled out, and no status is brought up to date; what runs, runs on",
		Do: "start the reconciler, or look at its log",
	}
	if l == nil {
		f.What = "no reconciler has ever led: there is no Lease " + leaseName
		return []Finding{f}
	}
	holder, renewed, seconds := l.Spec.HolderIdentity, l.Spec.RenewTime, l.Spec.LeaseDurationSeconds
	if holder == nil || *holder == "" || renewed == nil || seconds == nil {
		f.What = "no reconciler leads: nobody holds the Lease " + leaseName
		return []Finding{f}
	}
	if until := renewed.Add(time.Duration(*seconds) * time.Second); now.After(until) {
		f.What = fmt.Sprintf("the reconciler %s has not renewed its Lease %s since %s", *holder, leaseName, renewed.UTC().Format(time.RFC3339))
		f.Do += ". If it runs, compare the clock of this machine with its own"
		return []Finding{f}
	}
	return nil
}
