// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
