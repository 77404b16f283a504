// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// LeaseName is the Lease of the leading reconciler.
const LeaseName = "shipper-reconciler"

// The times of the Lease: the defaults of controller-runtime.
const (
	// LeaseDuration is how long others wait for a leader that does not renew its Lease.
	LeaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// newLock is the Lease of a candidate named identity. A container that was killed and restarts in its Pod still holds its Lease
// and continues at once, while others wait for it to expire. Without an identity the process uses a random one and waits, too.
// Its events are sent until they are shut down.
func newLock(config *rest.Config, namespace, identity string) (resourcelock.Interface, record.EventBroadcaster, error) {
	if identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, nil, fmt.Errorf("naming this candidate: %w", err)
		}
		identity = host + "_" + string(uuid.NewUUID())
	}
	client, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("making a client: %w", err)
	}
	events := record.NewBroadcaster()
	events.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: client.Events(namespace)})
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, LeaseName, resourcelock.ResourceLockConfig{
		Identity: identity, EventRecorder: events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: identity}),
	}, rest.AddUserAgent(config, "leader-election"), renewDeadline)
	if err != nil {
		events.Shutdown()
		return nil, nil, fmt.Errorf("making the lock of the leader: %w", err)
	}
	return lock, events, nil
}

// candidate is a manager that sends the events of its lock until it has ended: its last one says that it leads no more.
type candidate struct {
	manager.Manager
	events record.EventBroadcaster
}

// Start runs the manager until ctx is done.
func (c candidate) Start(ctx context.Context) error {
	defer c.events.Shutdown()
	return c.Manager.Start(ctx)
}
