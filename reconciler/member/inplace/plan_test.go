// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/member/installation"
)

var key = types.NamespacedName{Namespace: "shop", Name: "db"}

// has is a Release that has the workload db, of so many Pods, and asks for a percentage of them.
func has(name string, percent, replicas int32) *release {
	gvk := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: statefulSet}
	return &release{
		name: name, last: true, want: shipper.ClusterCapacityTarget{Percent: percent, TotalReplicaCount: replicas},
		installed: &installation.Installed{Release: name, InPlace: []installation.InPlace{
			{GVK: gvk, Key: key, Digest: "digest of " + name, Replicas: replicas},
		}},
	}
}

// passOf is a pass over db of a kind, which is as said. Releases come with the newest first.
func passOf(kind string, is live, known facts, releases ...*release) *pass {
	for _, r := range releases {
		if r.installed != nil {
			for i := range r.installed.InPlace {
				r.installed.InPlace[i].GVK.Kind = kind
			}
		}
	}
	p := &pass{workload: workloads(releases)[0], is: is, byUser: known.onDelete}
	p.decide(known)
	return p
}

// set is a StatefulSet of a Release whose controller is done: of its Pods so many are of its template.
func set(owner string, replicas, partition, updated int32) live {
	return live{
		there: true, owner: owner, digest: "digest of " + owner, replicas: replicas, partition: partition, observed: true,
		total: replicas, updated: updated, available: replicas, one: updated == replicas,
	}
}

// plain is what is done: whose template, replicas/partition, and the shares.
func plain(p *pass) (out string) {
	switch {
	case p.choice.holder < 0:
		out = "nothing is written"
	case !p.differs(p.choice, p.is):
		out = "stays " + p.sides[p.choice.holder].name
	default:
		out = fmt.Sprintf("writes %s %d/%d", p.sides[p.choice.holder].name, p.choice.goal.Replicas, p.choice.goal.Partition)
	}
	if p.choice.inverted {
		out += " above " + p.base(p.choice)
	}
	if p.choice.holder >= 0 && !p.differs(p.choice, p.is) && p.stale() {
		out += ", evicts"
	}
	for i, s := range p.sides {
		share := p.share(i)
		out += fmt.Sprintf("; %s has %d", s.name, share.Have)
		if share.Reason != "" {
			out += " and waits"
		}
	}
	return out
}

func TestStatefulSets(t *testing.T) {
	asFound := has("a", 0, 4)
	asFound.want.AsFound = true
	stepping := has("a", 50, 4)
	stepping.last = false
	emptied := has("a", 0, 4)
	emptied.last = false
	without := &release{name: "c", last: true, installed: &installation.Installed{Release: "c"}}
	without.want.Percent = 100
	half := set("b", 4, 2, 2)
	rolling := half
	rolling.available, rolling.updated, rolling.total = 3, 1, 3
	evicted := half
	evicted.leaving = 1
	unseen := set("b", 4, 2, 4)
	unseen.observed = false
	inverted := set("a", 4, 2, 2)
	inverted.base = "b"
	identical := set("a", 4, 2, 4)
	identical.base = "b"
	broken := set("a", 4, 0, 2)
	broken.available = 3
	tests := map[string]struct {
		is       live
		known    facts
		releases []*release
		want     string
	}{
		"the first Release asks for nothing": {
			live{}, facts{}, []*release{has("a", 0, 4)}, "nothing is written; a has 0",
		},
		"the first Release asks for a quarter": {
			live{}, facts{}, []*release{has("a", 25, 4)}, "writes a 1/0; a has 0 and waits",
		},
		"the first Release asks for all": {
			set("a", 1, 0, 1), facts{}, []*release{has("a", 100, 4)}, "writes a 4/0; a has 1 and waits",
		},
		"the only Release is complete": {
			set("a", 4, 0, 4), facts{}, []*release{has("a", 100, 4)}, "stays a; a has 4",
		},
		"the chart keeps Pods at an earlier template": {
			set("a", 4, 3, 1), facts{partition: 3}, []*release{has("a", 100, 4)}, "stays a; a has 4",
		},
		"the chart keeps more Pods than a step": {
			set("b", 4, 3, 1), facts{partition: 3}, []*release{has("b", 50, 4), has("a", 50, 4)}, "stays b; b has 1; a has 2",
		},
		"a user has scaled it": {
			set("a", 3, 0, 3), facts{}, []*release{has("a", 100, 4)}, "writes a 4/0; a has 3 and waits",
		},
		"a contender asks for nothing": {
			set("a", 4, 0, 4), facts{}, []*release{has("b", 0, 4), has("a", 100, 4)}, "stays a; b has 0; a has 4",
		},
		"a contender asks for half": {
			set("a", 4, 0, 4), facts{}, []*release{has("b", 50, 4), has("a", 100, 4)}, "writes b 4/2; b has 0 and waits; a has 4",
		},
		"the controller has not seen a contender": {
			unseen, facts{}, []*release{has("b", 50, 4), has("a", 100, 4)}, "stays b; b has 0 and waits; a has 4",
		},
		"a contender's Pods are being replaced": {
			rolling, facts{}, []*release{has("b", 50, 4), has("a", 100, 4)}, "stays b; b has 0 and waits; a has 3",
		},
		"a contender has half, and the incumbent all else": {
			half, facts{}, []*release{has("b", 50, 4), has("a", 100, 4)}, "stays b; b has 2; a has 2",
		},
		"a Pod that was evicted is still there": {
			evicted, facts{}, []*release{has("b", 50, 4), has("a", 50, 4)}, "stays b; b has 2 and waits; a has 1 and waits",
		},
		"a contender of more Pods keeps those of the other": {
			set("a", 3, 0, 3), facts{}, []*release{has("b", 50, 6), has("a", 100, 3)}, "writes b 6/3; b has 0 and waits; a has 3",
		},
		"a contender of fewer Pods keeps those of the other": {
			set("a", 4, 0, 4), facts{}, []*release{has("b", 50, 2), has("a", 100, 4)}, "writes b 4/3; b has 0 and waits; a has 4",
		},
		"a contender asks for all": {
			half, facts{}, []*release{has("b", 100, 4), has("a", 50, 4)}, "writes b 4/0; b has 2 and waits; a has 2",
		},
		"a contender goes back from half to a quarter": {
			half, facts{}, []*release{has("b", 25, 4), has("a", 100, 4)}, "writes b 4/3; b has 2 and waits; a has 2 and waits",
		},
		"a contender has a Pod too many": {
			set("b", 4, 3, 2), facts{}, []*release{has("b", 25, 4), has("a", 75, 4)}, "stays b, evicts; b has 2 and waits; a has 2 and waits",
		},
		"a contender goes back from half to nothing": {
			half, facts{}, []*release{has("b", 0, 4), has("a", 100, 4)}, "writes a 4/0; b has 2; a has 2 and waits",
		},
		"a contender is gone at half": {
			half, facts{}, []*release{has("a", 50, 4)}, "writes a 4/0; a has 2 and waits",
		},
		"a contender is gone that had all": {
			set("b", 4, 0, 4), facts{}, []*release{has("a", 0, 4)}, "nothing is written; a has 0",
		},
		"a Pod of the contender stops its controller on the way back": {
			broken, facts{}, []*release{has("b", 0, 4), has("a", 100, 4)}, "stays a, evicts; b has 0; a has 1 and waits",
		},
		"a contender that had all goes back to half": {
			set("b", 4, 0, 4), facts{}, []*release{has("b", 50, 4), has("a", 50, 4)}, "writes a 4/2 above b; b has 4 and waits; a has 0 and waits",
		},
		"a contender that had all has half": {
			inverted, facts{}, []*release{has("b", 50, 4), has("a", 50, 4)}, "stays a above b; b has 2; a has 2",
		},
		"a contender that had all goes to a quarter": {
			inverted, facts{}, []*release{has("b", 25, 4), has("a", 100, 4)}, "writes a 4/1 above b; b has 2 and waits; a has 2 and waits",
		},
		"a contender that had all goes forward again": {
			set("a", 4, 1, 3), facts{}, []*release{has("b", 50, 4), has("a", 50, 4)}, "writes b 4/2; b has 0 and waits; a has 2",
		},
		"both templates are the same": {
			identical, facts{}, []*release{has("b", 50, 4), has("a", 50, 4)}, "stays a above b; b has 2; a has 2",
		},
		"a step of the only Release goes back": {
			set("a", 4, 0, 4), facts{}, []*release{stepping}, "writes a 2/0; a has 4 and waits",
		},
		"the only Release goes back to nothing": {
			set("a", 4, 0, 4), facts{}, []*release{emptied}, "writes a 0/0; a has 4 and waits",
		},
		"a newer chart has dropped it": {
			set("a", 4, 0, 4), facts{}, []*release{without, has("a", 50, 4)}, "writes a 2/0; a has 4 and waits",
		},
		"it was dropped, and nothing needs it": {
			set("a", 2, 0, 2), facts{}, []*release{without, has("a", 0, 4)}, "writes a 0/0; a has 2 and waits",
		},
		"it is as it was found": {
			set("a", 3, 0, 3), facts{}, []*release{has("b", 50, 4), asFound}, "nothing is written; b has 0; a has 3",
		},
		"users replace its Pods, and a contender has half": {
			set("a", 4, 0, 4), facts{onDelete: true}, []*release{has("b", 50, 4), has("a", 50, 4)}, "stays a; b has 0; a has 4",
		},
		"users replace its Pods, and a contender has all": {
			set("b", 4, 0, 0), facts{onDelete: true}, []*release{has("b", 100, 4), has("a", 50, 4)}, "stays b; b has 4; a has 0",
		},
		"three Releases have Pods": {half, facts{}, []*release{has("c", 25, 4), has("b", 50, 4), has("a", 50, 4)},
			"writes c 4/3; c has 0 and waits; b has 2; a has 2"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, plain(passOf(statefulSet, tc.is, tc.known, tc.releases...))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDeploymentsAndDaemonSets(t *testing.T) {
	tests := map[string]struct {
		kind     string
		is       live
		releases []*release
		want     string
	}{
		"the first Release asks for half": {deployment, live{}, []*release{has("a", 50, 4)}, "writes a 2/0; a has 0 and waits"},
		"a contender has half": {
			deployment, set("a", 4, 0, 4), []*release{has("b", 50, 4), has("a", 50, 4)}, "stays a; b has 0; a has 4",
		},
		"a contender has all": {
			deployment, set("a", 4, 0, 4), []*release{has("b", 100, 3), has("a", 50, 4)}, "writes b 3/0; b has 0 and waits; a has 4",
		},
		"a contender goes back": {
			deployment, set("b", 3, 0, 3), []*release{has("b", 50, 3), has("a", 50, 4)}, "writes a 4/0; b has 3; a has 0 and waits",
		},
		"no Release has capacity": {
			deployment, set("a", 4, 0, 4), []*release{has("b", 0, 4), has("a", 0, 4)}, "nothing is written; b has 0; a has 4",
		},
		"the first Release has a node": {daemonSet, live{}, []*release{has("a", 1, 0)}, "writes a 0/0; a has 0 and waits"},
		"nodes of a contender wait": {
			daemonSet, set("a", 3, 0, 3), []*release{has("b", 50, 0), has("a", 50, 0)}, "stays a; b has 0; a has 0",
		},
		"nodes of a contender": {
			daemonSet, set("a", 3, 0, 3), []*release{has("b", 100, 0), has("a", 50, 0)}, "writes b 0/0; b has 0 and waits; a has 0",
		},
		"nodes of a contender are changed": {
			daemonSet, set("b", 3, 0, 2), []*release{has("b", 100, 0), has("a", 50, 0)}, "stays b; b has 0 and waits; a has 0",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, plain(passOf(tc.kind, tc.is, facts{}, tc.releases...))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
