// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/outward"
	"shipper.dev/shipper/reconciler/artifact"
	"shipper.dev/shipper/reconciler/check"
	"shipper.dev/shipper/reconciler/cluster"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/history"
	"shipper.dev/shipper/reconciler/identity"
	"shipper.dev/shipper/reconciler/member"
	"shipper.dev/shipper/reconciler/member/installation"
	"shipper.dev/shipper/reconciler/notify"
	"shipper.dev/shipper/reconciler/queue"
	"shipper.dev/shipper/reconciler/recorder"
	"shipper.dev/shipper/reconciler/renewal"
	"shipper.dev/shipper/reconciler/rollout"
	"shipper.dev/shipper/reconciler/rolloutblock"
	"shipper.dev/shipper/reconciler/run"
	"shipper.dev/shipper/reconciler/selection"
)

// Options for Setup.
type Options struct {
	// Namespace is where Shipper, its identity and the Secrets of clusters live.
	Namespace string
	// GlobalBlocksNamespace is the one whose RolloutBlocks bear on every namespace.
	GlobalBlocksNamespace string
	// SharedChecksNamespace is the one with the Checks that all namespaces share.
	SharedChecksNamespace string
	// UnhealthyAfter is how long a cluster may be not ready and still be chosen by placements.
	UnhealthyAfter time.Duration
	// Charts are where Releases' charts come from.
	Charts *repository.Catalog
	// OutgoingURLs are those that Notifications and Checks may name. Nil: none.
	OutgoingURLs *outward.Policy
	// Outgoing makes the requests of Checks. Nil: a transport that connects to OutgoingURLs alone.
	Outgoing http.RoundTripper
	// Placeable says which objects may be placed by Applications with resources. The webhook has the same.
	Placeable objects.Policy
	// Clock is the time, everywhere.
	Clock clock.WithTicker
	// Workers is how many objects of each kind are worked on at the same time, and how many passes are made at the same time in each
	// cluster.
	Workers int
	// SelectByRelease lets Services select by Release while one alone has traffic.
	SelectByRelease bool
	// Registry is where metrics of Shipper's own go. Nil: nowhere.
	Registry prometheus.Registerer
	// Guard is put around the transport to each application cluster. Nil: none is.
	Guard transport.WrapperFunc
}

// NewScheme knows Shipper's kinds and those of Kubernetes that Shipper reads.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(shipper.AddToScheme(scheme), corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme),
		discoveryv1.AddToScheme(scheme), authorizationv1.AddToScheme(scheme))
	if err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	return scheme, nil
}

// CacheOptions keep the manager's cache small: no managedFields, Secrets of one namespace only, no ConfigMap but that of the identity, and
// runs that are done without their data.
func CacheOptions(namespace string) cache.Options {
	identity := fields.OneTermEqualSelector("metadata.name", shipper.IdentityName)
	return cache.Options{
		DefaultTransform: strip,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}:    {Namespaces: map[string]cache.Config{namespace: {}}},
			&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{namespace: {FieldSelector: identity}}},
		},
	}
}

// strip is for all kinds: options for one kind would ask the API server for it before its CustomResourceDefinition is there.
func strip(o any) (any, error) { return run.Strip(cache.TransformStripManagedFields()(o)) }

// Setup makes everything run with mgr: the one list of what there is. ctx is needed for the time of the call only.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	mgr, err := recorder.Manager(mgr, fleet.UserAgent, o.Registry)
	if err != nil {
		return err
	}
	clusters, err := newFleet(mgr, o)
	if err != nil {
		return err
	}
	histories, priorities, err := newHistories(ctx, mgr)
	if err != nil {
		return err
	}
	releases := queue.Objects(o.Workers, priorities.OfRelease)
	charts := artifact.NewCharts(o.Charts, mgr.GetAPIReader())
	snapshots := artifact.NewResources(mgr.GetClient(), mgr.GetAPIReader())
	content, err := selection.New(mgr, selection.Options{Policy: o.Placeable, Clock: o.Clock, Registry: o.Registry})
	if err != nil {
		return err
	}
	values := artifact.NewValues(mgr.GetClient(), mgr.GetAPIReader(), o.Namespace)
	return errors.Join(
		rollout.SetupWithManager(ctx, mgr, rollout.Options{
			Charts: rollout.NewCharts(charts, values), GlobalBlocksNamespace: o.GlobalBlocksNamespace,
			SharedChecksNamespace: o.SharedChecksNamespace, UnhealthyAfter: o.UnhealthyAfter,
			Histories: histories, Content: content, Snapshots: snapshots, Clock: o.Clock, Workers: o.Workers,
			Queue:    queue.Objects(o.Workers, priorities.OfApplication),
			Registry: o.Registry,
		}),
		cluster.SetupWithManager(mgr, cluster.Options{
			Fleet: clusters, Namespace: o.Namespace, Clock: o.Clock, Workers: o.Workers,
		}),
		renewal.SetupWithManager(mgr, renewal.Options{Fleet: clusters, Namespace: o.Namespace, Clock: o.Clock}),
		identity.SetupWithManager(mgr, identity.Options{Fleet: clusters, Namespace: o.Namespace}),
		artifact.SetupWithManager(mgr, artifact.Options{Charts: charts, Values: values, Workers: o.Workers, Queue: releases}),
		member.SetupWithManager(mgr, member.Options{
			Fleet: clusters, Renderer: installation.NewRenderer(charts, values, installation.LoadTimeout), Content: snapshots, Clock: o.Clock,
			Workers: o.Workers, Registry: o.Registry,
			Priority: priorities.Of, PriorityOfTarget: priorities.OfRelease, SelectByRelease: o.SelectByRelease,
		}),
		rolloutblock.SetupWithManager(ctx, mgr, rolloutblock.Options{
			GlobalNamespace: o.GlobalBlocksNamespace, Clock: o.Clock, Workers: o.Workers, Queue: queue.Objects(o.Workers, nil),
		}),
		check.SetupWithManager(mgr, check.Options{
			Fleet: clusters, Histories: histories, URLs: o.OutgoingURLs, Transport: o.Outgoing, SharedNamespace: o.SharedChecksNamespace,
			Namespace: o.Namespace, Clock: o.Clock, Registry: o.Registry,
		}),
		run.SetupWithManager(ctx, mgr, run.Options{
			Config: mgr.GetConfig(), Histories: histories, Charts: o.Charts, SharedChecksNamespace: o.SharedChecksNamespace,
			Clock: o.Clock, Workers: o.Workers, Queue: run.Queue(o.Workers),
		}),
		notify.SetupWithManager(mgr, notify.Options{
			URLs: o.OutgoingURLs, Namespace: o.Namespace, Clock: o.Clock, Workers: o.Workers, Registry: o.Registry,
			Queue: queue.Objects(o.Workers, nil),
		}),
	)
}

// newHistories read what there is of Applications, and say which of them go first.
func newHistories(ctx context.Context, mgr ctrl.Manager) (*history.Reader, *history.Priorities, error) {
	histories, err := history.NewReader(ctx, mgr.GetCache(), mgr.GetClient(), mgr.GetAPIReader())
	if err != nil {
		return nil, nil, err
	}
	priorities, err := history.NewPriorities(ctx, mgr.GetCache(), histories)
	return histories, priorities, err
}

// newFleet is the fleet that runs with mgr.
func newFleet(mgr ctrl.Manager, o Options) (*fleet.Fleet, error) {
	clusters := fleet.New(fleet.Options{Reader: mgr.GetClient(), Namespace: o.Namespace, Clock: o.Clock, Guard: o.Guard})
	if err := mgr.Add(clusters); err != nil {
		return nil, fmt.Errorf("adding the fleet: %w", err)
	}
	if o.Registry == nil {
		return clusters, nil
	}
	return clusters, clusters.Publish(o.Registry)
}
