// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestDrainTells(t *testing.T) {
	const elsewhere = "The next rollout of each of these applications goes elsewhere by itself. The commands move them without one;\n" +
		"they need the verb stamp on releases.\n"
	leaving := aCluster("eu-1", "eu", corev1.ConditionTrue, "")
	cordoned, going := aCluster("eu-4", "eu", corev1.ConditionTrue, ""), release("web", 1, "eu-1", true)
	cordoned.Spec.Scheduler.Unschedulable = true
	going.DeletionTimestamp = &metav1.Time{Time: time.Unix(1e9, 0)}
	clusters := []shipper.Cluster{
		leaving, cordoned, aCluster("us-1", "us", corev1.ConditionTrue, ""),
		aCluster("eu-5", "eu", corev1.ConditionFalse, shipper.ClusterUnreachable),
	}
	others := append(clusters, aCluster("eu-3", "eu", "", ""), aCluster("eu-2", "eu", corev1.ConditionTrue, ""))
	for sentence, tc := range map[string]struct {
		clusters []shipper.Cluster
		releases []shipper.Release
		want     string
	}{
		"nothing is placed there": {
			others, []shipper.Release{release("web", 1, "eu-10,eu-2", true), release("new", 0, "", false), going},
			"no release is placed on cluster eu-1\n",
		},
		"what has other clusters leaves this one": {
			others, []shipper.Release{release("web", 1, "us-1,eu-1,eu-2", true)}, `
release shop/web-1 of application web (contender) is placed here
  kubectl annotate rel web-1 -n shop shipper.booking.com/release.clusters=eu-2,us-1 --overwrite
` + elsewhere,
		},
		"what is complete and alone gets another cluster, waits and leaves": {
			others, []shipper.Release{release("web", 1, "eu-1", true)}, `
release shop/web-1 of application web (contender) is placed here
  kubectl annotate rel web-1 -n shop shipper.booking.com/release.clusters=eu-1,eu-2 --overwrite
  kubectl wait ct/web-1 -n shop --timeout=10m --for=jsonpath='{.status.clusters[?(@.name=="eu-2")].achievedPercent}'=100
  kubectl annotate rel web-1 -n shop shipper.booking.com/release.clusters=eu-2 --overwrite
  (or, in the place of eu-2: eu-3)
` + elsewhere,
		},
		"in the middle of a rollout both sides are listed, and old Releases counted": {
			others, []shipper.Release{release("web", 2, "eu-1,eu-2", false), release("web", 1, "eu-1", true), release("web", 0, "eu-1", true)}, `
release shop/web-1 of application web (incumbent) is placed here
  kubectl annotate rel web-1 -n shop shipper.booking.com/release.clusters=eu-1,eu-2 --overwrite
  shipperctl rollout status web -n shop, until eu-2 has what it is to have
  kubectl annotate rel web-1 -n shop shipper.booking.com/release.clusters=eu-2 --overwrite
  (or, in the place of eu-2: eu-3)
release shop/web-2 of application web (contender) is placed here
  kubectl annotate rel web-2 -n shop shipper.booking.com/release.clusters=eu-2 --overwrite
` + elsewhere + `1 old releases without pods are placed here. This takes the cluster off those that have another:
  shipperctl clean decommissioned-clusters --decommissionedClusters eu-1
`,
		},
		"a contender that is on its way has not all there that it is to have in the end": {
			others, []shipper.Release{release("web", 1, "eu-1", false)}, `
release shop/web-1 of application web (contender) is placed here
  kubectl annotate rel web-1 -n shop shipper.booking.com/release.clusters=eu-1,eu-2 --overwrite
  shipperctl rollout status web -n shop, until eu-2 has what it is to have
  kubectl annotate rel web-1 -n shop shipper.booking.com/release.clusters=eu-2 --overwrite
  (or, in the place of eu-2: eu-3)
` + elsewhere,
		},
		"neither a cordoned nor a lost cluster nor one of another region takes anything": {
			clusters, []shipper.Release{release("web", 1, "eu-1", true)}, `
release shop/web-1 of application web (contender) is placed here
  it has no other cluster, and none of this region is there to take it: join or uncordon one, then run this again
` + elsewhere,
		},
		"only old Releases are left": {
			others, []shipper.Release{release("web", 2, "eu-2", true), release("web", 1, "eu-2", true), release("web", 0, "eu-1", true)}, `
1 old releases without pods are placed here. This takes the cluster off those that have another:
  shipperctl clean decommissioned-clusters --decommissionedClusters eu-1
nothing that may have pods is placed on cluster eu-1
`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := newDraining(&leaving, tc.clusters, tc.releases).print()
			if diff := cmp.Diff(strings.TrimPrefix(tc.want, "\n"), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestOnlyWhoOffersAsMuchTakesWhatLeaves(t *testing.T) {
	leaving, other := aCluster("eu-1", "eu", "", ""), aCluster("eu-2", "eu", "", "")
	leaving.Spec.Capabilities = []string{"gpu"}
	if takesFor(&other, &leaving) {
		t.Error("a cluster without the capability is listed")
	}
	other.Spec.Capabilities = []string{"arm", "gpu"}
	if !takesFor(&other, &leaving) {
		t.Error("a cluster with the capability is not listed")
	}
}

func TestRemoveRefusesAndNames(t *testing.T) {
	const want = "6 releases are placed on cluster eu-1: a, b, c, d, e and 1 more\n" +
		"shipperctl clusters drain eu-1 lists the commands that move them; with --force their Pods keep running there, " +
		"and Shipper does not clean them up"
	if got := stillPlaced("eu-1", []string{"f", "b", "a", "d", "c", "e"}).Error(); got != want {
		t.Error(got)
	}
}

func TestRemoveSaysWhatALeavingClusterWaitsFor(t *testing.T) {
	const want = "cluster eu-1 leaves: the Cluster goes when Shipper has removed what 2 releases have there: a/b, a/c\n" +
		"Condition Leaving says what is left. To wait for the end: kubectl wait --for=delete cluster/eu-1 --timeout=10m\n" +
		"A release that has no other cluster stays there until it is moved: shipperctl clusters drain eu-1 lists the commands.\n" +
		"To let the cluster go now, with what runs there: kubectl patch cluster eu-1 --type=merge -p '{\"spec\":{\"onLeave\":\"Keep\"}}'\n"
	if diff := cmp.Diff(want, leaves("eu-1", []string{"a/c", "a/b"})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRemoveSaysWhatStaysBehind(t *testing.T) {
	c := aCluster("eu-1", "eu", "", "")
	c.UID = "u"
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shipper-system", Name: "eu-1"}}
	secret.OwnerReferences = []metav1.OwnerReference{{UID: "an earlier one's"}}
	const stays = "kubectl delete secret eu-1 -n shipper-system"
	if got := removed(&c, secret, "shipper-system", 2); !strings.Contains(got, stays) || !strings.Contains(got, "what 2 releases run there") {
		t.Errorf("a Secret of somebody else:\n%s", got)
	}
	secret.OwnerReferences = []metav1.OwnerReference{{UID: "u"}}
	if got := removed(&c, secret, "shipper-system", 0); strings.Contains(got, stays) || strings.Contains(got, "releases run there") {
		t.Errorf("a Secret that goes with its Cluster:\n%s", got)
	}
}
