// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/values"
	"shipper.dev/shipper/reconciler"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/recorder"
	"shipper.dev/shipper/reconciler/rollout"
	"shipper.dev/shipper/reconciler/rollout/history"
	"shipper.dev/shipper/reconciler/targets"
	"shipper.dev/shipper/test/fleet"
)

// global is the namespace of blocks that bear on all.
const global = "rollout-blocks-global"

// management is a real management cluster in which both reconcilers and the hands run; it starts when a test wants it.
var management = sync.OnceValues(start)

// started is what TestMain has to end.
var started struct {
	fleet     *fleet.Fleet
	histories *history.Reader
	client    client.Client // the manager's
	cancel    context.CancelFunc
	done      chan error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if started.cancel != nil {
		started.cancel()
		if err := <-started.done; err != nil {
			fmt.Fprintln(os.Stderr, "manager:", err)
			code = 1
		}
	}
	if started.fleet != nil {
		if err := started.fleet.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "fleet:", err)
			code = 1
		}
	}
	os.Exit(code)
}

func start() (client.Client, error) {
	log.SetLogger(logr.Discard())
	ctx, cancel := context.WithCancel(context.Background())
	started.cancel, started.done = cancel, make(chan error, 1)
	f, err := fleet.Start(ctx, fleet.Options{CRDs: []string{filepath.Join("..", "..", "manifests", "crd")}})
	if err != nil {
		close(started.done)
		return nil, err
	}
	started.fleet = f
	scheme := runtime.NewScheme()
	if err := errors.Join(shipper.AddToScheme(scheme), corev1.AddToScheme(scheme),
		admissionregistrationv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	c, err := f.Management.Client(scheme)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(f.Management.Config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		NewClient: reconciler.NewClient,
		Cache:     cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
	})
	if err != nil {
		return nil, err
	}
	if mgr, err = recorder.Manager(mgr, "shipper-reconciler", clock.RealClock{}, nil); err != nil {
		return nil, err
	}
	histories, err := history.NewReader(ctx, mgr.GetCache(), mgr.GetClient(), mgr.GetAPIReader())
	if err != nil {
		return nil, err
	}
	started.histories, started.client = histories, mgr.GetClient()
	err = errors.Join(
		rollout.SetupWithManager(ctx, mgr, rollout.Options{
			GlobalBlocksNamespace: global, Histories: histories, Clock: clock.RealClock{}, Charts: fakeCharts{},
		}),
		theHands.setup(mgr),
		c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: global}}),
	)
	if err != nil {
		return nil, err
	}
	go func() { started.done <- mgr.Start(ctx) }()
	return c, nil
}

// fakeCharts counts what values say, and knows broken charts by their name.
type fakeCharts struct{}

func (fakeCharts) Verify(context.Context, *shipper.Release) (shipper.ChartSignature, error) {
	return shipper.ChartSignature{}, nil
}

func (fakeCharts) Replicas(_ context.Context, rel *shipper.Release, _ values.Place) (int32, error) {
	env := rel.Spec.Environment
	if env.Chart.Name == "broken" {
		return 0, &chart.Error{Reason: shipper.WrongChartDeployments, Message: "the chart has no Deployment"}
	}
	n, _ := (*env.Values)["replicaCount"].(int64)
	return int32(n), nil
}

// hands play what installation, capacity and traffic do: all that is asked is there at once, but in clusters that are
// down.
type hands struct {
	client client.Client
	mu     sync.Mutex
	down   map[string]bool
	pods   map[string]int32 // by target and cluster: Pods that exist, also those that no target requests any more
}

var theHands = &hands{down: map[string]bool{}, pods: map[string]int32{}}

func (h *hands) setup(mgr ctrl.Manager) error {
	h.client = mgr.GetClient()
	var errs []error
	for name, o := range map[string]client.Object{
		"hands-it": &shipper.InstallationTarget{},
		"hands-ct": &shipper.CapacityTarget{},
		"hands-tt": &shipper.TrafficTarget{},
	} {
		errs = append(errs, ctrl.NewControllerManagedBy(mgr).Named(name).For(o).Complete(
			ctrlReconciler(func(ctx context.Context, req ctrl.Request) error {
				target := o.DeepCopyObject().(client.Object)
				if err := h.client.Get(ctx, req.NamespacedName, target); err != nil {
					return client.IgnoreNotFound(err)
				}
				if ended, err := targets.End(ctx, h.client, target); err != nil || ended {
					return err
				}
				return h.work(ctx, target)
			})))
	}
	return errors.Join(errs...)
}

type ctrlReconciler func(context.Context, ctrl.Request) error

func (f ctrlReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if err := f(ctx, req); err != nil {
		return ctrl.Result{RequeueAfter: 10 * time.Millisecond}, nil
	}
	return ctrl.Result{}, nil
}

// setDown says whether clusters answer, and makes every target of a namespace be looked at again.
func (h *hands) setDown(t *testing.T, down bool, namespace string, clusters ...string) {
	t.Helper()
	h.mu.Lock()
	for _, c := range clusters {
		h.down[c] = down
	}
	h.mu.Unlock()
	c, err := management()
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range []client.ObjectList{
		&shipper.InstallationTargetList{}, &shipper.CapacityTargetList{}, &shipper.TrafficTargetList{},
	} {
		if err := c.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		for _, o := range items(list) {
			if err := h.work(t.Context(), o); err != nil {
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

func (h *hands) work(ctx context.Context, o client.Object) error {
	was := o.DeepCopyObject().(client.Object)
	var about []report.Cluster
	switch o := o.(type) {
	case *shipper.InstallationTarget:
		o.Status.ObservedGeneration, o.Status.Clusters = o.Generation, nil
		for _, name := range slices.Sorted(slices.Values(o.Spec.Clusters)) {
			about = append(about, h.cluster(name))
			o.Status.Clusters = append(o.Status.Clusters,
				shipper.ClusterInstallationStatus{Name: name, Conditions: h.cluster(name).Conditions})
		}
		o.Status.Conditions = report.Overall(nil, about, metav1.Unix(1, 0))
	case *shipper.CapacityTarget:
		before := o.Status.Clusters
		o.Status.ObservedGeneration, o.Status.Clusters = o.Generation, nil
		for _, c := range o.Spec.Clusters {
			s := shipper.ClusterCapacityStatus{Name: c.Name, Conditions: h.cluster(c.Name).Conditions}
			s.AvailableReplicas = h.scale(o, c)
			if h.isDown(c.Name) {
				s.AvailableReplicas = 0
				for _, b := range before {
					if b.Name == c.Name {
						s.AvailableReplicas = b.AvailableReplicas
					}
				}
			}
			about = append(about, h.cluster(c.Name))
			o.Status.Clusters = append(o.Status.Clusters, s)
		}
		o.Status.Conditions = report.Overall(nil, about, metav1.Unix(1, 0))
	case *shipper.TrafficTarget:
		o.Status.ObservedGeneration, o.Status.Clusters = o.Generation, nil
		for _, c := range o.Spec.Clusters {
			about = append(about, h.cluster(c.Name))
			o.Status.Clusters = append(o.Status.Clusters, shipper.ClusterTrafficStatus{
				Name: c.Name, AchievedTraffic: c.Weight, Conditions: h.cluster(c.Name).Conditions,
			})
		}
		o.Status.Conditions = report.Overall(nil, about, metav1.Unix(1, 0))
	}
	_, err := report.PatchStatus(ctx, h.client, o, was)
	return err
}

// scale makes as many Pods as are asked for, if any number is.
func (h *hands) scale(ct *shipper.CapacityTarget, c shipper.ClusterCapacityTarget) int32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := ct.Namespace + "/" + ct.Name + " " + c.Name
	if !c.AsFound {
		h.pods[key] = (c.TotalReplicaCount*c.Percent + 99) / 100
	}
	return h.pods[key]
}

func (h *hands) isDown(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.down[name]
}

func (h *hands) cluster(name string) report.Cluster {
	up := []shipper.Condition{
		{Type: shipper.TargetOperational, Status: "True"}, {Type: shipper.TargetReady, Status: "True"},
	}
	if h.isDown(name) {
		up = []shipper.Condition{
			{Type: shipper.TargetOperational, Status: "False", Reason: shipper.ClusterUnreachable, Message: "no answer"},
			{Type: shipper.TargetReady, Status: "Unknown", Reason: shipper.ClusterUnreachable, Message: "no answer"},
		}
	}
	return report.Cluster{Name: name, Conditions: up}
}
