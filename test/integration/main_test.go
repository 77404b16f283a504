// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllers "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/manifests"
	"shipper.dev/shipper/outward"
	"shipper.dev/shipper/reconciler"
	"shipper.dev/shipper/reconciler/artifact"
	"shipper.dev/shipper/reconciler/cluster"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/identity"
	"shipper.dev/shipper/reconciler/member"
	"shipper.dev/shipper/reconciler/member/installation"
	"shipper.dev/shipper/reconciler/recorder"
	"shipper.dev/shipper/reconciler/renewal"
	"shipper.dev/shipper/reconciler/rolloutblock"
	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/env"
	testfleet "shipper.dev/shipper/test/fleet"
)

// The application clusters.
const (
	west = "west"
	east = "east"
	// self is the management cluster, which may be an application cluster too.
	self = testfleet.ManagementName
	// rolloutCluster is the management cluster of the rollout reconciler.
	rolloutCluster = "rollouts"

	crdFolder = "../../manifests/crd"
)

// world is what the tests of the reconcilers of application clusters share. No rollout reconciler runs in their management cluster: a test
// writes what it would write. Each test has a namespace of its own; those that keep to it run side by
// side, after those that cut clusters off, turn clocks or exchange identities.
var world struct {
	management client.Client
	clusters   map[string]client.Client
	members    map[string]*testfleet.Cluster
	access     map[string]*rest.Config // of Shipper's account in the application clusters
	wires      map[string]*wire
	fleet      *fleet.Fleet // of the management cluster
	metrics    *prometheus.Registry
	charts     *charts.Repository
	later      atomic.Int64 // how far the clock of renewals is ahead
	lost       atomic.Int64 // how many patches of Secrets are still to be lost on their way
}

func TestMain(m *testing.M) {
	logger := zap.New(zap.UseDevMode(true), zap.WriteTo(logs()))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	if err := testfleet.Parallel(8); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(env.Main(m, env.Options{
		Fleet: testfleet.Options{
			Applications: []string{west, east, rolloutCluster}, Podless: []string{rolloutCluster}, CRDs: []string{crdFolder},
		},
		SetUp: setUp, Check: quarrels,
	}))
}

func setUp(ctx context.Context, e *env.Env) error {
	world.charts = e.Charts
	if err := build(ctx, e.Fleet); err != nil {
		return err
	}
	management, another := e.Fleet.Management, e.Fleet.Applications[2]
	for _, start := range []func(context.Context) (<-chan error, error){
		func(ctx context.Context) (<-chan error, error) { return operate(ctx, management.Config) },
		func(ctx context.Context) (<-chan error, error) { return setUpRollouts(ctx, another) },
	} {
		ctx, cancel := context.WithCancel(ctx)
		ended, err := start(ctx)
		if err != nil {
			cancel()
			return err
		}
		e.AtEnd(func() error {
			cancel()
			return <-ended
		})
	}
	return nil
}

// logs is where the reconcilers' log goes: nowhere, unless RECONCILER_LOG names a file.
func logs() *os.File {
	name := os.Getenv("RECONCILER_LOG")
	if name == "" {
		name = os.DevNull
	}
	file, err := os.Create(name)
	if err != nil {
		return os.Stderr
	}
	return file
}

// build makes clients, and Shipper's account in each application cluster.
func build(ctx context.Context, f *testfleet.Fleet) error {
	scheme, err := reconciler.NewScheme()
	if err != nil {
		return err
	}
	if err := rbacv1.AddToScheme(scheme); err != nil {
		return err
	}
	if err := errors.Join(eventsv1.AddToScheme(scheme), batchv1.AddToScheme(scheme)); err != nil {
		return err
	}
	if world.management, err = f.Management.Client(scheme); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shipper.SystemNamespace}}
	if err := world.management.Create(ctx, namespace); err != nil {
		return err
	}
	world.clusters, world.access = map[string]client.Client{}, map[string]*rest.Config{}
	world.wires, world.members = map[string]*wire{}, map[string]*testfleet.Cluster{}
	for _, c := range append([]*testfleet.Cluster{f.Management}, f.Applications[:2]...) {
		if err := buildApplication(ctx, c, scheme); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		if err := join(ctx, c.Name); err != nil {
			return err
		}
	}
	return nil
}

func buildApplication(ctx context.Context, c *testfleet.Cluster, scheme *runtime.Scheme) error {
	admin, err := c.Client(scheme)
	if err != nil {
		return err
	}
	world.clusters[c.Name], world.members[c.Name] = admin, c
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shipper.SystemNamespace}}
	if err := admin.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	objects, err := manifests.Objects(manifests.RBAC)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if o.GetLabels()[shipper.RBACDomainLabel] == shipper.RBACApplication {
			if err := admin.Create(ctx, o); err != nil {
				return err
			}
		}
	}
	if err := allowMore(ctx, admin); err != nil {
		return err
	}
	path, err := c.ServiceAccountKubeconfig(ctx, shipper.SystemNamespace, shipper.ApplicationServiceAccount)
	if err != nil {
		return err
	}
	if world.access[c.Name], err = clientcmd.BuildConfigFromFlags("", path); err != nil {
		return err
	}
	world.wires[c.Name], err = stretch(world.access[c.Name].Host)
	return err
}

// allowMore is what an administrator adds to let Applications bring Namespaces, ClusterRoles, and kinds of their own.
func allowMore(ctx context.Context, admin client.Client) error {
	name := metav1.ObjectMeta{Name: "more"}
	return errors.Join(
		admin.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"", rbacv1.GroupName, "apiextensions.k8s.io", "shipper.test"},
			Resources: []string{"namespaces", "clusterroles", "customresourcedefinitions", "gizmos"},
			Verbs:     []string{"get", "list", "watch", "create", "patch", "delete"},
		}}}),
		admin.Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: name,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "more"},
			Subjects: []rbacv1.Subject{{
				Kind: "ServiceAccount", Namespace: shipper.SystemNamespace, Name: shipper.ApplicationServiceAccount,
			}},
		}),
	)
}

// join makes the Cluster and the Secret of an application cluster.
func join(ctx context.Context, name string) error {
	return errors.Join(
		world.management.Create(ctx, clusterSecret(name, name)),
		world.management.Create(ctx, aCluster(name, name)),
	)
}

// aCluster is a Cluster of that name which is really another.
func aCluster(name, really string) *shipper.Cluster {
	return &shipper.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       shipper.ClusterSpec{Region: "here", APIMaster: world.wires[really].url},
	}
}

// clusterSecret holds the credentials for a cluster that is really another.
func clusterSecret(name, really string) *corev1.Secret {
	access := world.access[really]
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: shipper.SystemNamespace, Name: name},
		Data:       map[string][]byte{"token": []byte(access.BearerToken), "ca.crt": access.CAData},
	}
}

// operate starts the reconcilers in a management cluster. They stop with ctx; then their error comes.
func operate(ctx context.Context, config *rest.Config) (<-chan error, error) {
	scheme, err := reconciler.NewScheme()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS = -1
	twice := true // two management clusters run in one process
	mgr, err := ctrl.NewManager(config, manager.Options{
		Scheme: scheme, Cache: reconciler.CacheOptions(shipper.SystemNamespace),
		NewClient:  lossy,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: controllers.Controller{SkipNameValidation: &twice},
	})
	if err != nil {
		return nil, err
	}
	if mgr, err = recorder.Manager(mgr, fleet.UserAgent, nil); err != nil {
		return nil, err
	}
	// A short heartbeat, so that a lost cluster is noticed soon.
	clusters := fleet.New(fleet.Options{Reader: mgr.GetClient(), Heartbeat: time.Second, Timeout: time.Second})
	metrics := prometheus.NewRegistry()
	if world.fleet == nil {
		world.fleet = clusters
	}
	now := clock.RealClock{}
	policy, err := outward.ParsePolicy(charts.URLs)
	if err != nil {
		return nil, err
	}
	charts := artifact.NewCharts(repository.NewCatalog(ctx, repository.Options{Repositories: policy}), mgr.GetAPIReader())
	values := artifact.NewValues(mgr.GetClient(), mgr.GetAPIReader(), shipper.SystemNamespace)
	err = errors.Join(
		mgr.Add(clusters),
		cluster.SetupWithManager(mgr, cluster.Options{
			Fleet: clusters, Namespace: shipper.SystemNamespace, Clock: now, Workers: 2,
		}),
		renewal.SetupWithManager(mgr, renewal.Options{Fleet: clusters, Namespace: shipper.SystemNamespace, Clock: ahead{}}),
		identity.SetupWithManager(mgr, identity.Options{Fleet: clusters, Namespace: shipper.SystemNamespace}),
		member.SetupWithManager(mgr, member.Options{
			Fleet: clusters, Renderer: installation.NewRenderer(charts, values, installation.LoadTimeout), Clock: now, Workers: 4,
			SelectByRelease: true, Registry: metrics, Content: snapshots,
		}),
		artifact.SetupWithManager(mgr, artifact.Options{Charts: charts, Values: values, Workers: 4}),
		rolloutblock.SetupWithManager(ctx, mgr, rolloutblock.Options{
			GlobalNamespace: shipper.GlobalBlocksNamespace, Clock: now, Workers: 2,
		}),
	)
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return ended, nil
}
