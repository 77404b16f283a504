// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/reconciler/fleet"
)

// TrafficTargets are written by the rollout reconciler; their status is written here, and the finalizer of those removed whose Release
// is gone.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=traffictargets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=shipper.booking.com,resources=traffictargets/status,verbs=patch
// The weight of a Release that is going counts no longer.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=releases,verbs=get;list;watch
// What of a Release is being removed shall have no traffic.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=installationtargets,verbs=get;list;watch
// A Release that is no Pods needs no Service.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=capacitytargets,verbs=get;list;watch
// Events about a Service without endpoints are recorded on the Application, too.
// +kubebuilder:rbac:groups=shipper.booking.com,resources=applications,verbs=get;list;watch
// Changed conditions are reported by events.
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Listed names the Deployments that run side by side of each Release of an Application, as its anchor in a cluster lists them.
type Listed func(ctx context.Context, m *fleet.Member, app types.NamespacedName) (map[string][]string, error)

// Worker shifts traffic in application clusters.
type Worker struct {
	client          client.Reader
	fleet           *fleet.Fleet
	listed          Listed
	selectByRelease bool
}

// NewWorker makes a Worker. With selectByRelease the Service of an Application selects by Release while exactly one weighs anything;
// otherwise it always selects by label, as other Shippers know it.
func NewWorker(reader client.Reader, clusters *fleet.Fleet, listed Listed, selectByRelease bool) *Worker {
	return &Worker{client: reader, fleet: clusters, listed: listed, selectByRelease: selectByRelease}
}
