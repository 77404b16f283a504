// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/manifests"
	"shipper.dev/shipper/reconciler"
	"shipper.dev/shipper/reconciler/resourcesnapshot"
	"shipper.dev/shipper/reconciler/rollout/history"
	"shipper.dev/shipper/reconciler/selection"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/fleet"
	"shipper.dev/shipper/webhook/resources"
	"shipper.dev/shipper/webhook/response"
)

// world is what all tests of the package share: a management cluster where the reconciler of selections runs, and no other.
var world struct {
	client client.WithWatch
	// snapshots read what is kept, as the account of the reconciler.
	snapshots *resourcesnapshot.Snapshots
}

func TestMain(m *testing.M) {
	if err := fleet.Parallel(8); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(env.Main(m, env.Options{Fleet: fleet.Options{CRDs: []string{"../../manifests/crd"}}, SetUp: setUp}))
}

func setUp(ctx context.Context, e *env.Env) error {
	config := e.Fleet.Management.Config
	scheme, err := reconciler.NewScheme()
	if err != nil {
		return err
	}
	if err := rbacv1.AddToScheme(scheme); err != nil {
		return err
	}
	if world.client, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if err := grant(ctx); err != nil {
		return err
	}
	const account = "system:serviceaccount:" + shipper.SystemNamespace + ":" + shipper.ManagementServiceAccount
	config = env.As(config, account, "system:serviceaccounts", "system:authenticated")
	config.QPS = -1
	ctx, cancel := context.WithCancel(ctx)
	ended, err := operate(ctx, config)
	if err != nil {
		cancel()
		return err
	}
	e.AtEnd(func() error {
		cancel()
		return <-ended
	})
	return nil
}

// grant creates Shipper's account with the rights of the manifests.
func grant(ctx context.Context) error {
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shipper.SystemNamespace}}
	if err := world.client.Create(ctx, home); err != nil {
		return err
	}
	rights, err := manifests.Objects(manifests.RBAC)
	if err != nil {
		return err
	}
	for _, o := range rights {
		isGlobal := o.GetNamespace() != "" && o.GetNamespace() != shipper.SystemNamespace
		if o.GetLabels()[shipper.RBACDomainLabel] != shipper.RBACManagement || isGlobal {
			continue
		}
		if err := world.client.Create(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// operate starts the reconciler. It stops with ctx; then its error comes.
func operate(ctx context.Context, config *rest.Config) (<-chan error, error) {
	scheme, err := reconciler.NewScheme()
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, manager.Options{
		Scheme: scheme, Cache: reconciler.CacheOptions(shipper.SystemNamespace), NewClient: newPermitted,
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return nil, err
	}
	histories, err := history.NewReader(ctx, mgr.GetCache(), mgr.GetClient(), mgr.GetAPIReader())
	if err != nil {
		return nil, err
	}
	world.snapshots = resourcesnapshot.New(mgr.GetClient(), mgr.GetAPIReader())
	err = selection.SetupWithManager(mgr, selection.Options{
		Snapshots: world.snapshots, Histories: histories, Policy: objects.Policy{}, GlobalBlocksNamespace: shipper.GlobalBlocksNamespace,
		Clock: clock.RealClock{}, Workers: 4,
	})
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(mgr.Start(ctx)) }()
	return ended, nil
}

// permitted is a client that answers pins that ask as the webhook does, which does not run here: each user may place all.
type permitted struct{ client.Client }

func newPermitted(config *rest.Config, o client.Options) (client.Client, error) {
	c, err := reconciler.NewClient(config, o)
	return permitted{c}, err
}

// Patch is client.Client.
func (c permitted) Patch(ctx context.Context, o client.Object, p client.Patch, options ...client.PatchOption) error {
	err := c.Client.Patch(ctx, o, p, options...)
	app, ok := o.(*shipper.Application)
	if err != nil || !ok || app.Spec.Template.Pins == nil || app.Spec.Template.Pins.Resources != shipper.AskingPin {
		return err
	}
	var refusal *response.Refusal
	if err = resources.Allowed(app.Name); errors.As(err, &refusal) {
		return &apierrors.StatusError{ErrStatus: refusal.Status}
	}
	return err
}
