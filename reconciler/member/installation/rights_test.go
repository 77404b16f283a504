// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/reconciler/member/rights"
	"shipper.dev/shipper/reconciler/retry"
)

func TestAMissingRightIsSaidWithTheWayOut(t *testing.T) {
	forbidden := func(group, resource, why string) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: group, Resource: resource}, "x", errors.New(why))
	}
	const cannot = `User "shipper" cannot create resource "x" in API group ""`
	gateway := forbidden("gateway.networking.k8s.io", "gateways", cannot)
	role := forbidden("rbac.authorization.k8s.io", "clusterroles", cannot)
	gives := forbidden("rbac.authorization.k8s.io", "roles", `user "x" is attempting to grant RBAC permissions not currently held: nodes`)
	const check = "shipperctl chart check web --version 1.0.0 --repo https://charts.example.com/a --values VALUES.yaml --grant prints a " +
		"ClusterRole with all rights that the chart takes, for an administrator to apply in cluster eu; " + rights.Shared
	secret := shipper.InstallationTargetSpec{
		ValuesFrom: []shipper.ValuesSource{{SecretKeyRef: &shipper.ValuesKeyRef{Name: "x"}}},
	}
	const url = "https://ann:secret@charts.example.com/a"
	of := shipper.InstallationTargetSpec{Chart: &shipper.Chart{Name: "web", Version: "1.0.0", RepoURL: url}}
	for sentence, tc := range map[string]struct {
		spec shipper.InstallationTargetSpec
		errs []error
		want string
	}{
		"one right": {of, []error{gateway}, "A: Shipper's account lacks rights to gateways.gateway.networking.k8s.io; in cluster eu: " +
			"kubectl create clusterrole shipper-gateways --verb=get,list,watch,create,patch,delete " +
			"--resource=gateways.gateway.networking.k8s.io && kubectl label clusterrole shipper-gateways " +
			"shipper.booking.com/aggregate-to-application=true; " + rights.Shared},
		"no command of its own for what gives rights": {of, []error{gateway, role}, "A, B: Shipper's account lacks rights to " +
			"gateways.gateway.networking.k8s.io, clusterroles.rbac.authorization.k8s.io; " + check},
		"rights that a Role gives": {of, []error{gives}, "A: Shipper's account lacks rights that it gives; " + check},
		"kinds are withheld as secrets": {secret, []error{gateway}, "A: Shipper's account lacks rights; shipperctl chart check CHART.tgz " +
			"--values VALUES.yaml --grant prints a ClusterRole with all rights that the chart takes, for an administrator to apply in cluster eu; " +
			rights.Shared + chart.Unsaid},
	} {
		var all denials
		for n, err := range tc.errs {
			if !all.note(string(rune('A'+n)), err) {
				t.Fatalf("%s: it is no denial: %v", sentence, err)
			}
		}
		err := notGranted("eu", &shipper.InstallationTarget{Spec: tc.spec}, all)
		reason, action := retry.ClassifyInCluster(err)
		if diff := cmp.Diff(tc.want, err.Error()); diff != "" || reason != shipper.NotGranted || action != retry.Retry {
			t.Errorf("%s: %s, %d, -want +got:\n%s", sentence, reason, action, diff)
		}
	}
	policy := forbidden("", "pods", "admission webhook denied it")
	if err := granted("eu", &shipper.InstallationTarget{}, "A", policy); !errors.Is(err, policy) {
		t.Errorf("a refusal of admission is %v", err)
	}
}
