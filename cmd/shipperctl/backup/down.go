// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Names in Shipper's namespace.
const (
	deploymentName = "shipper"
	leaseName      = "shipper-reconciler"
)

// down returns an error while Shipper runs, which would act on what is there of a backup before the rest is.
func down(ctx context.Context, from client.Reader, namespace string, now time.Time) error {
	var d appsv1.Deployment
	err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: deploymentName}, &d)
	if err == nil {
		if err := stopped(&d); err != nil {
			return err
		}
	} else if !apierrors.IsNotFound(err) {
		return fmt.Errorf("looking whether Shipper is down: %w", err)
	}
	var lease coordinationv1.Lease
	err = from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: leaseName}, &lease)
	if err == nil {
		return released(&lease, now)
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("looking whether Shipper is down: %w", err)
	}
	return nil
}

// stopped returns an error unless a Deployment has no Pods and is to have none.
func stopped(d *appsv1.Deployment) error {
	command := fmt.Sprintf("kubectl scale deployment %s -n %s --replicas=0", d.Name, d.Namespace)
	switch {
	case d.Spec.Replicas == nil || *d.Spec.Replicas > 0:
		return fmt.Errorf("shipper must be down while a backup is restored, and Deployment %s/%s is to have Pods: %s",
			d.Namespace, d.Name, command)
	case d.Status.Replicas > 0:
		return fmt.Errorf("shipper must be down while a backup is restored, and Deployment %s/%s still has %d Pods: "+
			"wait until they are gone", d.Namespace, d.Name, d.Status.Replicas)
	}
	return nil
}

// released returns an error while somebody holds the Lease of the reconciler.
func released(l *coordinationv1.Lease, now time.Time) error {
	holder, renewed, seconds := l.Spec.HolderIdentity, l.Spec.RenewTime, l.Spec.LeaseDurationSeconds
	if holder == nil || *holder == "" || renewed == nil || seconds == nil {
		return nil
	}
	if until := renewed.Add(time.Duration(*seconds) * time.Second); now.Before(until) {
		return fmt.Errorf("shipper must be down while a backup is restored, and the reconciler %s runs, says the Lease %s/%s: "+
			"stop it, or wait until %s if it is gone already", *holder, l.Namespace, l.Name, until.Format(time.RFC3339))
	}
	return nil
}
