// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// Applications say what is to be done about drift.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=applications,verbs=get;list;watch

// driftCorrectedReason is that of events.
const driftCorrectedReason = "DriftCorrected"

// newDriftCounter counts what was corrected.
func newDriftCounter() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "shipper_drift_corrected_total",
		Help: "How many objects were written again because another writer had changed them, where driftPolicy is Correct. Labels " +
			"namespace and application: of the Application; cluster: the Cluster's name.",
	}, []string{"namespace", "application", "cluster"})
}

// driftUnset is the policy of an Application that names none: what others than Shipper have written is compared and reported. It
// costs nothing where no other writer has.
const driftUnset shipper.DriftPolicy = ""

// driftPolicy is what the Application of a target says; Ignore where there is none.
func (r *Reconciler) driftPolicy(ctx context.Context, namespace, app string) (shipper.DriftPolicy, error) {
	if app == "" {
		return shipper.DriftIgnore, nil
	}
	var of shipper.Application
	err := r.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: app}, &of)
	if apierrors.IsNotFound(err) {
		return shipper.DriftIgnore, nil
	}
	if err != nil {
		return "", fmt.Errorf("reading Application %s: %w", app, err)
	}
	return of.Spec.DriftPolicy, nil
}

// edited triggers the target that wrote an object, if another writer changed it and the policy is not to ignore that.
func (r *Reconciler) edited(ctx context.Context, e fleet.Event) []reconcile.Request {
	var out []reconcile.Request
	for _, request := range r.healthChanged(ctx, e) {
		policy, err := r.driftPolicy(ctx, request.Namespace, e.Object().GetLabels()[shipper.AppLabel])
		unwanted := policy == shipper.DriftIgnore || policy == driftUnset && !byOthers(e)
		if err != nil || !unwanted {
			out = append(out, request)
		}
	}
	return out
}

// byOthers reports whether others than Shipper have written an object, or had before Shipper wrote over it.
func byOthers(e fleet.Event) bool {
	return e.Old != nil && fleet.EditedByOthers(e.Old) || e.New != nil && fleet.EditedByOthers(e.New)
}

// targetsOf are those of an Application.
func (r *Reconciler) targetsOf(ctx context.Context, app client.Object) []reconcile.Request {
	var targets shipper.InstallationTargetList
	err := r.client.List(ctx, &targets, client.InNamespace(app.GetNamespace()), client.MatchingLabels{shipper.AppLabel: app.GetName()})
	if err != nil {
		return nil
	}
	var out []reconcile.Request
	for i := range targets.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&targets.Items[i])})
	}
	return out
}

// otherPolicy lets through that an Application has another driftPolicy than before.
func otherPolicy() builder.WatchesOption {
	of := func(o client.Object) shipper.DriftPolicy {
		if app, ok := o.(*shipper.Application); ok {
			return app.Spec.DriftPolicy
		}
		return ""
	}
	return builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return of(e.Object) != "" },
		UpdateFunc: func(e event.UpdateEvent) bool { return of(e.ObjectOld) != of(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool { return of(e.Object) != "" },
	})
}

// corrected is the event about an object that was written again.
func corrected(cluster, object string, fields []shipper.DriftedField) report.Event {
	first := fields[0]
	note := fmt.Sprintf("%s in cluster %q was changed, %s", object, cluster, first.Field)
	if len(fields) > 1 {
		note += fmt.Sprintf(" and %d more fields", len(fields)-1)
	}
	if first.Manager != "" {
		note += fmt.Sprintf(" by %q", first.Manager)
	}
	return report.Event{
		Type: corev1.EventTypeNormal, Reason: driftCorrectedReason, Action: "Correct in " + cluster,
		Note: note + "; it is as it was released again",
	}
}
