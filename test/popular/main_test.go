// SPDX-License-Identifier: Apache-2.0

// Package popular rolls out widely used charts, unedited, on real control planes: first, upgraded in three steps, rolled back, deleted.
// The charts are not part of the project: without them, the tests say that they did not run.
package popular

import (
	"context"
	"fmt"
	"os"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/test/fleet"
)

// The application cluster and its region.
const west, westRegion = "eu-west-1", "eu-west"

// world is the fleet that all tests of the package share. Each test has a namespace of its own in it.
var world *env.Env

func TestMain(m *testing.M) {
	if err := fleet.Parallel(6); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(env.Main(m, env.Options{
		Fleet: fleet.Options{Applications: []string{west}}, Binaries: env.Shipper(), SetUp: install,
	}))
}

// install sets the fleet up. The owner of the platform has granted Shipper all kinds: some charts have objects without a namespace.
func install(ctx context.Context, e *env.Env) error {
	world = e
	if err := e.Install(ctx, fmt.Sprintf("applicationClusters:\n- name: %s\n  region: %s\n", west, westRegion)); err != nil {
		return err
	}
	member := e.Clusters[west]
	err := member.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "shipper-installs-anything"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Namespace: shipper.SystemNamespace, Name: shipper.ApplicationServiceAccount,
		}},
	}, client.FieldOwner("kubectl-create"))
	if err != nil {
		return err
	}
	end, err := fleet.BindClaims(ctx, member)
	if err != nil {
		return err
	}
	e.AtEnd(func() error { end(); return nil })
	return e.StartPod(ctx)
}
