// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"fmt"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/queue"
	"shipper.dev/shipper/reconciler/retry"
)

// ChartSnapshots are created, and given to further Releases. The garbage collector deletes them; adding an owner requires the right to
// delete where OwnerReferencesPermissionEnforcement is on.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=chartsnapshots,verbs=get;list;watch;create;patch;delete
// Releases say what they have values from; one without a digest is pinned to the chart that was stored for it. ConfigMaps and Secrets of
// users are read, and Secrets created, where the owner of the namespace binds the ClusterRole shipper-values-keeper; none of that is here.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=releases,verbs=get;list;watch;patch
// Charts and values that cannot be stored are reported by an event.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Options for SetupWithManager.
type Options struct {
	// Charts are where charts come from.
	Charts *Charts
	// Values store values.
	Values *Values
	// Workers is how many Releases are worked on at the same time, by each of the two controllers.
	Workers int
	// Queue makes the queue of what waits to be worked on. Nil: first come, first served.
	Queue queue.New[reconcile.Request]
}

// SetupWithManager adds the controllers that store the charts and the values of Releases as soon as they exist.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	recorder := mgr.GetEventRecorder(fleet.UserAgent)
	charts := &chartKeeper{set{chartSnapshot, mgr.GetClient()}, o.Charts, recorder, newSlowRetrier()}
	if err := charts.setup(mgr, o); err != nil {
		return fmt.Errorf("setting up what stores charts: %w", err)
	}
	values := &valuesKeeper{mgr.GetClient(), o.Values, recorder, retry.NewRetrier(retry.Limiter[reconcile.Request]())}
	if err := values.setup(mgr, o); err != nil {
		return fmt.Errorf("setting up what stores values: %w", err)
	}
	return nil
}

func (o Options) controller(limiter workqueue.TypedRateLimiter[reconcile.Request]) controller.Options {
	return controller.Options{MaxConcurrentReconciles: o.Workers, RateLimiter: limiter, NewQueue: o.Queue}
}
