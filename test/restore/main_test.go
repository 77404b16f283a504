// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/fleet"
	"shipper.dev/shipper/test/pod"
)

// The application clusters, each in a region of its own.
var clusters = map[string]string{"eu-west-1": "eu-west", "us-east-1": "us-east"}

// restorer is the user who restores: not an administrator, but with the right to stamp.
const restorer = "restorer"

// management is a management cluster with Shipper in it.
type management struct {
	client.Client               // the administrator's
	fleet         *fleet.Fleet  // the fleet with this management cluster
	pod           *pod.Pod      // nil until it is started
	options       pod.Options   // of the pod
	restorer      client.Client // the client of user restorer
}

// world has two fleets: one whose management cluster is lost, and one that has only a management cluster.
var world struct {
	charts    *charts.Repository
	lost, new management
	clusters  map[string]client.WithWatch // application clusters by name
}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	flag.Parse()
	_ = flag.Set("test.parallel", "16") // tests wait most of the time; the flag belongs to package testing
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "shipper-restore-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	err = install(ctx, dir)
	defer uninstall()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// uninstall ends what install has started.
func uninstall() {
	for _, m := range []*management{&world.lost, &world.new} {
		if m.pod != nil {
			_ = m.pod.Stop()
		}
		if m.fleet != nil {
			_ = m.fleet.Stop()
		}
	}
	if world.charts != nil {
		world.charts.Close()
	}
}

// install starts both fleets, and Shipper in the one that will be lost.
func install(ctx context.Context, dir string) error {
	var err error
	if world.charts, err = charts.Start(); err != nil {
		return err
	}
	if err := pod.Build(ctx, dir); err != nil {
		return err
	}
	var names []string
	file := "applicationClusters:\n"
	for name, region := range clusters {
		names = append(names, name)
		file += fmt.Sprintf("- name: %s\n  region: %s\n", name, region)
	}
	if err := world.lost.begin(ctx, dir, "lost", names...); err != nil {
		return err
	}
	if err := world.new.begin(ctx, dir, "new"); err != nil {
		return err
	}
	world.clusters = map[string]client.WithWatch{}
	for _, c := range world.lost.fleet.Applications {
		if world.clusters[c.Name], err = pod.NewClient(c.Config); err != nil {
			return err
		}
	}
	if err := pod.SetUp(ctx, world.lost.fleet, dir, file, world.lost.options.WebhookPort); err != nil {
		return err
	}
	world.lost.pod, err = pod.Start(ctx, world.lost.options)
	return err
}

// begin starts a fleet.
func (m *management) begin(ctx context.Context, dir, name string, applications ...string) error {
	var err error
	o := fleet.Options{Applications: applications, Dir: filepath.Join(dir, name)}
	if len(applications) > 0 {
		o.OwnEtcd = []string{putBack}
	}
	m.fleet, err = fleet.Start(ctx, o)
	if err != nil {
		return err
	}
	m.options = pod.Options{Management: m.fleet.Management, Bin: dir, Dir: filepath.Join(dir, name+"-shipper")}
	if m.options.WebhookPort, err = pod.FreePort(); err != nil {
		return err
	}
	if m.Client, err = pod.NewClient(m.fleet.Management.Config); err != nil {
		return err
	}
	config := rest.CopyConfig(m.fleet.Management.Config)
	config.Impersonate.UserName = restorer
	m.restorer, err = pod.NewClient(config)
	return err
}

// allowRestorer grants user restorer the rights that the guide lists.
func (m *management) allowRestorer(ctx context.Context) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: restorer}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{shipper.GroupName}, Resources: []string{"applications", "releases"},
		Verbs: []string{"get", "create", "stamp"},
	}, {
		APIGroups: []string{shipper.GroupName}, Resources: []string{"applications/status", "releases/status"},
		Verbs: []string{"update"},
	}}}
	if err := m.Create(ctx, role); err != nil {
		return fmt.Errorf("making a role: %w", err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: restorer},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: restorer},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: restorer}},
	}
	if err := m.Create(ctx, binding); err != nil {
		return fmt.Errorf("binding the role: %w", err)
	}
	return nil
}

// replace gives the new management cluster all that the lost one had, except users' objects and a running Shipper: it is set
// up, and has the Clusters, their Secrets, and the lost one's identity.
func replace(ctx context.Context) error {
	m := &world.new
	if err := pod.SetUpManagement(ctx, m.fleet, m.options.Bin, m.options.WebhookPort); err != nil {
		return err
	}
	if err := m.allowRestorer(ctx); err != nil {
		return err
	}
	identity := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shipper.SystemNamespace, Name: "shipper-identity"}}
	objects := []client.Object{identity}
	for name := range clusters {
		meta := metav1.ObjectMeta{Name: name}
		objects = append(objects, &shipper.Cluster{ObjectMeta: meta})
		meta.Namespace = shipper.SystemNamespace
		objects = append(objects, &corev1.Secret{ObjectMeta: meta})
	}
	for _, o := range objects {
		err := world.lost.Get(ctx, client.ObjectKeyFromObject(o), o)
		if client.IgnoreNotFound(err) == nil && err != nil && o == identity {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading %T %s: %w", o, o.GetName(), err)
		}
		o.SetOwnerReferences(nil) // a Secret's Cluster has another UID now: the garbage collector would delete the Secret
		if err := m.Create(ctx, withoutServerFields(o)); err != nil {
			return fmt.Errorf("creating %T %s again: %w", o, o.GetName(), err)
		}
	}
	return nil
}
