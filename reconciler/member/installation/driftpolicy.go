// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

// Applications say what is to be done about drift.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=applications,verbs=get;list;watch

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
func (w *Worker) driftPolicy(ctx context.Context, namespace, app string) (shipper.DriftPolicy, error) {
	if app == "" {
		return shipper.DriftIgnore, nil
	}
	var of shipper.Application
	err := w.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: app}, &of)
	if apierrors.IsNotFound(err) {
		return shipper.DriftIgnore, nil
	}
	if err != nil {
		return "", fmt.Errorf("reading Application %s: %w", app, err)
	}
	return of.Spec.DriftPolicy, nil
}

// Edited reports whether an object's event may be drift from what a target in namespace installed: another writer changed it, and the
// policy is not to ignore that.
func (w *Worker) Edited(ctx context.Context, e fleet.Event, namespace string) bool {
	if !e.Edited() {
		return false
	}
	policy, err := w.driftPolicy(ctx, namespace, e.Object().GetLabels()[shipper.AppLabel])
	return err != nil || policy != shipper.DriftIgnore && (policy != driftUnset || byOthers(e))
}

// byOthers reports whether others than Shipper have written an object, or had before Shipper wrote over it.
func byOthers(e fleet.Event) bool {
	return e.Old != nil && fleet.EditedByOthers(e.Old) || e.New != nil && fleet.EditedByOthers(e.New)
}
