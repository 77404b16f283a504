// SPDX-License-Identifier: Apache-2.0

package shipperctl

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// cleanDecommissionedClusters goes on after a Release that may not be changed, and leaves one that has no other cluster.
func cleanDecommissionedClusters(t *testing.T) {
	c := management(t)
	names := []string{"locked", "only-there", "shop-1", "shop-2"}
	shops := map[string]shop{}
	for name, clusters := range map[string]string{
		"locked": "eu-west-1,us", "only-there": "eu-west-1", "shop-1": "eu-west-1,us", "shop-2": "us",
	} {
		shops[name] = open(t, name, clusters)
	}
	placed := func() map[string]string {
		out := map[string]string{}
		for _, name := range names {
			out[name] = get(t, c, &shipper.Release{}, name, shops[name].rel.Name).Annotations[shipper.ReleaseClustersAnnotation]
		}
		return out
	}
	version := func() string {
		return get(t, c, &shipper.Release{}, "shop-2", shops["shop-2"].rel.Name).ResourceVersion
	}
	was, untouched := placed(), version()
	allow(t, "cleaner", "", every(shipper.GroupName, []string{"list"}, "releases", "clusters"))
	for _, namespace := range []string{"only-there", "shop-1", "shop-2"} {
		allow(t, "cleaner", namespace, every(shipper.GroupName, []string{"patch", "stamp"}, "releases"))
	}
	clean := []string{"clean", "decommissioned-clusters"}
	gone := []string{"--decommissionedClusters", "eu-west-1,eu-0"}
	for _, dry := range []string{"--dryrun", "--dry-run"} {
		refuses(t, "cleaner", "1 releases that may run have nowhere else to go", append(append(clean, gone...), dry)...)
	}
	if diff := cmp.Diff(was, placed()); diff != "" {
		t.Errorf("a dry run has written (-before +after)\n%s", diff)
	}
	refuses(t, "", "name the clusters that are decommissioned", clean...)

	out := refuses(t, "cleaner", `taking clusters off release "locked/`, append(clean, gone...)...)
	for _, want := range []string{
		`no release is placed on cluster "eu-0"`, `Note: new releases may still be placed on cluster "eu-west-1"`,
		`release "shop-1/` + shops["shop-1"].rel.Name + `": eu-west-1,us -> us` + "\n",
		`release "only-there/` + shops["only-there"].rel.Name + `" is placed on no other cluster and left as it is: roll its application out`,
		"1 releases were changed, 1 left as they are, 1 failed\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it says\n%s\nand should say\n%s", out, want)
		}
	}
	want := map[string]string{"locked": "eu-west-1,us", "only-there": "eu-west-1", "shop-1": "us", "shop-2": "us"}
	if diff := cmp.Diff(want, placed()); diff != "" {
		t.Errorf("the clusters (-want +got)\n%s", diff)
	}
	if now := version(); now != untouched {
		t.Errorf("a Release that was not there was written: %s, %s", untouched, now)
	}
	refuses(t, "", "1 releases that may run have nowhere else to go", append(clean, "--decommissioned-clusters", "eu-west-1")...)
	if got := placed()["locked"]; got != "us" {
		t.Errorf("the administrator left it on %s", got)
	}
	if out := works(t, append(clean, "--decommissionedClusters", "eu-0")...); !strings.Contains(out, "0 releases were changed, 0 left") {
		t.Errorf("where there is nothing to do it says\n%s", out)
	}
}

// cleanFinalizers makes objects of Shipper go without Shipper.
func cleanFinalizers(t *testing.T) {
	c := management(t)
	s := open(t, "abandoned", "us")
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: shipper.SystemNamespace, Name: "shipper-reconciler"}}
	holder, seconds, now := "pod-1", int32(15), metav1.NowMicro()
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now}
	creates(t, lease)
	clean := []string{"clean", "finalizers", "--in", "abandoned"}
	refuses(t, "", "the reconciler pod-1 runs, and would put the finalizers back: uninstall Shipper first, or stop it: "+
		"kubectl scale deployment shipper --replicas=0 -n shipper-system", clean...)
	if err := c.Delete(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if got := works(t, append(clean, "--dry-run")...); !strings.HasSuffix(got, "would be removed, 0 failed\n") {
		t.Errorf("it says %q", got)
	}
	if rel := get(t, c, &shipper.Release{}, "abandoned", s.rel.Name); !slices.Contains(rel.Finalizers, shipper.RolloutFinalizer) {
		t.Errorf("a dry run has written: %v", rel.Finalizers)
	}
	works(t, clean...)
	if got := works(t, clean...); got != "the finalizers of 0 objects were removed, 0 failed\n" {
		t.Errorf("the second time it says %q", got)
	}
	if err := c.Delete(t.Context(), s.rel); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(s.rel), &shipper.Release{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Release is still there: %v", err)
	}
}
