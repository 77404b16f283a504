// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/fleet"
	"shipper.dev/shipper/test/pod"
)

// The application clusters, each in a region of its own.
var clusters = map[string]string{"eu-west-1": "eu-west", "us-east-1": "us-east"}

// restorer is the user who restores: not an administrator, but with the right to stamp.
const restorer = "restorer"

// management is a management cluster, with Shipper's Pod when it runs.
type management struct {
	*env.Env

	restorer client.Client // the client of user restorer
}

// world is what all tests share: application clusters, and the management cluster that is lost, and the one that takes its place.
var world struct {
	lost, new management
}

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "16") // tests wait most of the time; the flag belongs to package testing
	os.Exit(env.Main(m, env.Options{
		Fleet:    fleet.Options{Applications: slices.Sorted(maps.Keys(clusters)), OwnEtcd: []string{putBack, fleet.ManagementName}},
		Binaries: env.Shipper(), SetUp: install,
	}))
}

// install starts a second management cluster, and Shipper in the first.
func install(ctx context.Context, e *env.Env) error {
	world.lost.Env = e
	var err error
	if world.lost.restorer, err = asRestorer(e); err != nil {
		return err
	}
	other, err := another(ctx, "new")
	if err != nil {
		return err
	}
	world.new = *other
	file := "applicationClusters:\n"
	for name, region := range clusters {
		file += fmt.Sprintf("- name: %s\n  region: %s\n", name, region)
	}
	if err := e.Install(ctx, file); err != nil {
		return err
	}
	return e.StartPod(ctx)
}

// another starts one more management cluster.
func another(ctx context.Context, name string) (*management, error) {
	m := &management{}
	var err error
	if m.Env, err = world.lost.Another(ctx, name, fleet.Options{}); err != nil {
		return nil, err
	}
	m.restorer, err = asRestorer(m.Env)
	return m, err
}

// asRestorer is the client of user restorer.
func asRestorer(e *env.Env) (client.Client, error) {
	config := rest.CopyConfig(e.Fleet.Management.Config)
	config.Impersonate.UserName = restorer
	return pod.NewClient(config)
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
	if err := m.Management.Create(ctx, role); err != nil {
		return fmt.Errorf("making a role: %w", err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: restorer},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: restorer},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: restorer}},
	}
	if err := m.Management.Create(ctx, binding); err != nil {
		return fmt.Errorf("binding the role: %w", err)
	}
	return nil
}

// replace gives the new management cluster all that the lost one had, except users' objects and a running Shipper: it is set
// up, and has the Clusters, their Secrets, and the lost one's identity.
func replace(ctx context.Context) error {
	m := &world.new
	if err := pod.SetUpManagement(ctx, m.Fleet, m.Dir, m.PodOptions.WebhookPort); err != nil {
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
		err := world.lost.Management.Get(ctx, client.ObjectKeyFromObject(o), o)
		if client.IgnoreNotFound(err) == nil && err != nil && o == identity {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading %T %s: %w", o, o.GetName(), err)
		}
		o.SetOwnerReferences(nil) // a Secret's Cluster has another UID now: the garbage collector would delete the Secret
		if err := m.Management.Create(ctx, withoutServerFields(o)); err != nil {
			return fmt.Errorf("creating %T %s again: %w", o, o.GetName(), err)
		}
	}
	return nil
}
