// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllers "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"shipper.dev/shipper/apis/rules/preview"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/reconciler"
	"shipper.dev/shipper/reconciler/artifact"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/history"
	"shipper.dev/shipper/reconciler/recorder"
	"shipper.dev/shipper/reconciler/rollout"
	"shipper.dev/shipper/reconciler/selection"
	"shipper.dev/shipper/reconciler/targets"
	testfleet "shipper.dev/shipper/test/fleet"
)

// rollouts are what tests of the rollout reconciler share: a management cluster of its own, in which fakeTargets takes the place of the
// reconcilers of application clusters. No Cluster there leads to an API server.
var rollouts struct {
	admin     client.WithWatch
	client    client.Client // the manager's
	histories *history.Reader
}

// setUpRollouts starts the reconciler. It stops with ctx; then its error comes.
func setUpRollouts(ctx context.Context, in *testfleet.Cluster) (<-chan error, error) {
	crds := envtest.CRDInstallOptions{Paths: []string{crdFolder}, ErrorIfPathMissing: true}
	if _, err := envtest.InstallCRDs(in.Config, crds); err != nil {
		return nil, err
	}
	if err := in.RestartControllers(); err != nil { // for the garbage collector
		return nil, err
	}
	scheme, err := reconciler.NewScheme()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(admissionregistrationv1.AddToScheme(scheme), rbacv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	if rollouts.admin, err = client.NewWithWatch(in.Config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	for _, name := range []string{shipper.GlobalBlocksNamespace, shipper.SystemNamespace} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := rollouts.admin.Create(ctx, ns); client.IgnoreAlreadyExists(err) != nil {
			return nil, err
		}
	}
	config, err := asShipper(ctx, in.Config, rollouts.admin)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		NewClient:  reconciler.NewClient,
		Cache:      cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		Controller: controllers.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return nil, err
	}
	if mgr, err = recorder.Manager(mgr, "shipper-reconciler", nil); err != nil {
		return nil, err
	}
	rollouts.client = mgr.GetClient()
	if rollouts.histories, err = history.NewReader(ctx, mgr.GetCache(), mgr.GetClient(), mgr.GetAPIReader()); err != nil {
		return nil, err
	}
	selections.snapshots = artifact.NewResources(mgr.GetClient(), mgr.GetAPIReader())
	content, err := selection.New(mgr, selectionOptions())
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		rollout.SetupWithManager(ctx, mgr, rollout.Options{
			GlobalBlocksNamespace: shipper.GlobalBlocksNamespace, Histories: rollouts.histories, Clock: clock.RealClock{}, Charts: fakeCharts{},
			Content: content, Snapshots: selections.snapshots,
		}),
		rolloutTargets.setup(mgr),
	)
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return ended, nil
}

// fakeCharts counts what values say, and knows broken charts by their name.
type fakeCharts struct{}

func (fakeCharts) Verify(context.Context, *shipper.Release) (shipper.ChartSignature, error) {
	return shipper.ChartSignature{}, nil
}

func (fakeCharts) Workloads(context.Context, *shipper.Release, render.Cluster) ([]preview.Workload, error) {
	return nil, nil
}

func (fakeCharts) Naming(context.Context, *shipper.Release, []render.Cluster) (shipper.ChartNaming, error) {
	return shipper.NamingByRelease, nil
}

func (fakeCharts) Replicas(_ context.Context, rel *shipper.Release, _ render.Cluster) (int32, error) {
	env := rel.Spec.Environment
	if env.Chart.Name == "broken" {
		return 0, &chart.Error{Reason: shipper.WrongChartDeployments, Message: "the chart has no Deployment"}
	}
	n, _ := (*env.Values)["replicaCount"].(int64)
	return int32(n), nil
}

// fakeTargets reports every target as achieved at once, except in clusters that are down.
type fakeTargets struct {
	client client.Client
	mu     sync.Mutex
	down   map[string]bool
	pods   map[string]int32 // by target and cluster: Pods that exist, also those that no target requests any more
}

var rolloutTargets = &fakeTargets{down: map[string]bool{}, pods: map[string]int32{}}

func (f *fakeTargets) setup(mgr ctrl.Manager) error {
	f.client = mgr.GetClient()
	var errs []error
	for name, o := range map[string]client.Object{
		"fake-it": &shipper.InstallationTarget{},
		"fake-ct": &shipper.CapacityTarget{},
		"fake-tt": &shipper.TrafficTarget{},
	} {
		errs = append(errs, ctrl.NewControllerManagedBy(mgr).Named(name).For(o).Complete(
			ctrlReconciler(func(ctx context.Context, req ctrl.Request) error {
				target := o.DeepCopyObject().(client.Object)
				if err := f.client.Get(ctx, req.NamespacedName, target); err != nil {
					return client.IgnoreNotFound(err)
				}
				if ended, err := targets.End(ctx, f.client, target); err != nil || ended {
					return err
				}
				return f.work(ctx, target)
			})))
	}
	return errors.Join(errs...)
}

// ctrlReconciler tries again after 10 ms.
type ctrlReconciler func(context.Context, ctrl.Request) error

func (f ctrlReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if err := f(ctx, req); err != nil {
		return ctrl.Result{RequeueAfter: 10 * time.Millisecond}, nil
	}
	return ctrl.Result{}, nil
}

// setDown says whether clusters answer, and makes every target of a namespace be looked at again.
func (f *fakeTargets) setDown(t *testing.T, down bool, namespace string, clusters ...string) {
	t.Helper()
	f.mu.Lock()
	for _, c := range clusters {
		f.down[c] = down
	}
	f.mu.Unlock()
	for _, list := range []client.ObjectList{
		&shipper.InstallationTargetList{}, &shipper.CapacityTargetList{}, &shipper.TrafficTargetList{},
	} {
		if err := rollouts.admin.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		for _, o := range items(list) {
			if err := f.work(t.Context(), o); err != nil {
				t.Log(err)
			}
		}
	}
}

func items(list client.ObjectList) []client.Object {
	var out []client.Object
	switch list := list.(type) {
	case *shipper.InstallationTargetList:
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	case *shipper.CapacityTargetList:
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	case *shipper.TrafficTargetList:
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	}
	return out
}

func (f *fakeTargets) work(ctx context.Context, o client.Object) error {
	was := o.DeepCopyObject().(client.Object)
	var about []report.Cluster
	switch o := o.(type) {
	case *shipper.InstallationTarget:
		o.Status.ObservedGeneration, o.Status.Clusters = o.Generation, nil
		for _, name := range slices.Sorted(slices.Values(o.Spec.Clusters)) {
			about = append(about, f.cluster(name))
			s := shipper.ClusterInstallationStatus{Name: name, Conditions: f.cluster(name).Conditions}
			if o.Spec.Chart == nil && !f.isDown(name) { // all that is placed is healthy
				s.Objects = &shipper.InstalledObjects{}
			}
			o.Status.Clusters = append(o.Status.Clusters, s)
		}
		o.Status.Conditions = report.Overall(nil, about, metav1.Unix(1, 0))
	case *shipper.CapacityTarget:
		before := o.Status.Clusters
		o.Status.ObservedGeneration, o.Status.Clusters = o.Generation, nil
		for _, c := range o.Spec.Clusters {
			s := shipper.ClusterCapacityStatus{Name: c.Name, Conditions: f.cluster(c.Name).Conditions}
			s.AvailableReplicas = f.scale(o, c)
			if f.isDown(c.Name) {
				s.AvailableReplicas = 0
				for _, b := range before {
					if b.Name == c.Name {
						s.AvailableReplicas = b.AvailableReplicas
					}
				}
			}
			about = append(about, f.cluster(c.Name))
			o.Status.Clusters = append(o.Status.Clusters, s)
		}
		o.Status.Conditions = report.Overall(nil, about, metav1.Unix(1, 0))
	case *shipper.TrafficTarget:
		o.Status.ObservedGeneration, o.Status.Clusters = o.Generation, nil
		for _, c := range o.Spec.Clusters {
			about = append(about, f.cluster(c.Name))
			o.Status.Clusters = append(o.Status.Clusters, shipper.ClusterTrafficStatus{
				Name: c.Name, AchievedTraffic: c.Weight, Conditions: f.cluster(c.Name).Conditions,
			})
		}
		o.Status.Conditions = report.Overall(nil, about, metav1.Unix(1, 0))
	}
	_, err := report.PatchStatus(ctx, f.client, o, was)
	return err
}

// scale makes as many Pods as are asked for, if any number is.
func (f *fakeTargets) scale(ct *shipper.CapacityTarget, c shipper.ClusterCapacityTarget) int32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := ct.Namespace + "/" + ct.Name + " " + c.Name
	if !c.AsFound {
		f.pods[key] = (c.TotalReplicaCount*c.Percent + 99) / 100
	}
	return f.pods[key]
}

func (f *fakeTargets) isDown(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.down[name]
}

func (f *fakeTargets) cluster(name string) report.Cluster {
	up := []shipper.Condition{
		{Type: shipper.TargetOperational, Status: "True"}, {Type: shipper.TargetReady, Status: "True"},
	}
	if f.isDown(name) {
		up = []shipper.Condition{
			{Type: shipper.TargetOperational, Status: "False", Reason: shipper.ClusterUnreachable, Message: "no answer"},
			{Type: shipper.TargetReady, Status: "Unknown", Reason: shipper.ClusterUnreachable, Message: "no answer"},
		}
	}
	return report.Cluster{Name: name, Conditions: up}
}
