// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// quantity is the capacity or the traffic of one Release in all its clusters: the wanted, the requested and the observed
// values, and the values to request next.
type quantity struct {
	// clusters in which the Release runs, sorted.
	clusters []string
	// wanted is the value that the step sets for every cluster.
	wanted int64
	// exists reports whether the target exists; the fields below have no meaning without it.
	exists bool
	// asked is the value in the target's spec, per cluster.
	asked map[string]int64
	// next is the value to write into the target's spec. It starts as asked, with 0 for new clusters.
	next map[string]int64
	// current reports whether the target's status is about its spec.
	current bool
	// ready reports whether all clusters have the requested value.
	ready bool
	// message is the target's own reason for not being ready; may be empty.
	message string
	// status of single clusters; absent when unknown.
	status map[string][]shipper.Condition
	// available Pods, and Pods at 100 %, per cluster; for capacity only.
	available, total map[string]int32
	// asFound are the clusters whose Pods stay as they were found: no value was requested yet, and next requests none.
	asFound map[string]bool
	// settling are the clusters without a requested value that this plan does not move: either the found value is unknown, or
	// it is requested first. adopts is true when any cluster is of the second kind.
	settling map[string]bool
	adopts   bool
	// marks are what the target says of traffic besides its weight, and what it is to say, per cluster; for traffic only.
	marks, nextMarks map[string]mark
}

// mark is what a TrafficTarget says of a cluster besides the weight.
type mark struct {
	sole    bool
	preview shipper.PreviewSelection
}

func newQuantity(clusters []string, wanted int64, conditions []shipper.Condition, current bool) *quantity {
	g := &quantity{
		clusters: clusters, wanted: wanted, exists: true, current: current,
		asked: map[string]int64{}, status: map[string][]shipper.Condition{},
		available: map[string]int32{}, total: map[string]int32{},
		asFound: map[string]bool{}, settling: map[string]bool{}, marks: map[string]mark{},
	}
	if c := shipper.FindCondition(conditions, shipper.TargetReady); c != nil {
		g.ready, g.message = c.Status == "True", c.Message
	}
	return g
}

func capacityQuantity(r Release, wanted int32) *quantity {
	ct := r.Capacity
	if ct == nil {
		return &quantity{clusters: stamp.Clusters(r.Release), wanted: int64(wanted)}
	}
	g := newQuantity(clustersOf(r), int64(wanted), ct.Status.Conditions, ct.Status.ObservedGeneration >= ct.Generation)
	for _, c := range ct.Spec.Clusters {
		g.asked[c.Name], g.total[c.Name], g.asFound[c.Name] = int64(c.Percent), c.TotalReplicaCount, c.AsFound
	}
	found := map[string]int64{}
	for _, c := range ct.Status.Clusters {
		g.status[c.Name], g.available[c.Name] = c.Conditions, c.AvailableReplicas
		found[c.Name] = percentage(g.total[c.Name], c.AvailableReplicas)
		if c.AvailableReplicas > 0 && Pods(g.total[c.Name], int32(g.wanted)) == c.AvailableReplicas {
			found[c.Name] = g.wanted
		}
	}
	return g.begin(found)
}

// trafficQuantity uses sum, the weights of all Releases together, to convert a found percentage to a weight.
func trafficQuantity(r Release, wanted int32, sum int64) *quantity {
	tt := r.Traffic
	if tt == nil {
		return &quantity{clusters: stamp.Clusters(r.Release), wanted: int64(wanted)}
	}
	g := newQuantity(clustersOf(r), int64(wanted), tt.Status.Conditions, tt.Status.ObservedGeneration >= tt.Generation)
	for _, c := range tt.Spec.Clusters {
		g.asked[c.Name], g.asFound[c.Name] = int64(c.Weight), c.AsFound
		if m := (mark{c.Sole, c.Preview}); m != (mark{}) {
			g.marks[c.Name] = m
		}
	}
	g.nextMarks = maps.Clone(g.marks)
	found := map[string]int64{}
	for _, c := range tt.Status.Clusters {
		g.status[c.Name] = c.Conditions
		found[c.Name] = (int64(c.AchievedTraffic)*sum + 99) / 100
	}
	return g.begin(found)
}

// clustersOf are the chosen clusters; until they are known, the clusters of its InstallationTarget. Of a Release with waves they are those
// in which a wave has begun.
func clustersOf(r Release) []string {
	chosen := chosenOf(r)
	if !position.HasWaves(r.Release) || !r.Scheduled() {
		return chosen
	}
	there := locate(r).targeted()
	return slices.DeleteFunc(slices.Clone(chosen), func(name string) bool { return !there[name] })
}

// chosenOf are the chosen clusters; until they are known, the clusters of its InstallationTarget.
func chosenOf(r Release) []string {
	if chosen := stamp.Clusters(r.Release); len(chosen) > 0 || r.Installation == nil {
		return chosen
	}
	return slices.Sorted(slices.Values(r.Installation.Spec.Clusters))
}

// begin sets next to the requested values and, in clusters left as found, to the values found there.
func (g *quantity) begin(found map[string]int64) *quantity {
	g.next = make(map[string]int64, len(g.clusters))
	for _, c := range g.clusters {
		switch known := g.current && g.operational(c); {
		case !g.asFound[c]:
		case !known:
			g.settling[c] = true
		case found[c] > 0:
			g.asked[c] = found[c]
			g.settling[c], g.adopts = true, true
			delete(g.asFound, c)
		}
		g.next[c] = g.asked[c]
	}
	return g
}

// changed reports whether next differs from the requested values.
func (g *quantity) changed() bool {
	return g.exists && (g.adopts || !maps.Equal(g.asked, g.next)) || g.remarked()
}

// remarked reports whether the target is to say something else besides weights.
func (g *quantity) remarked() bool { return g.exists && !maps.Equal(g.marks, g.nextMarks) }

// remark sets what the target is to say of a cluster besides the weight.
func (g *quantity) remark(cluster string, m mark) {
	if g.nextMarks[cluster] = m; m == (mark{}) {
		delete(g.nextMarks, cluster)
	}
}

// achieved reports whether the wanted value was requested in every cluster and is reached.
func (g *quantity) achieved() bool {
	return g.exists && !g.changed() && len(g.unequal()) == 0 && g.current && g.ready
}

// unequal are the clusters whose requested value is not the wanted one.
func (g *quantity) unequal() []string {
	return g.where(func(c string) bool { asked, ok := g.asked[c]; return !ok || asked != g.wanted })
}

func (g *quantity) below() []string {
	return g.where(func(c string) bool { return g.asked[c] < g.wanted })
}
func (g *quantity) above() []string {
	return g.where(func(c string) bool { return g.asked[c] > g.wanted })
}

func (g *quantity) where(is func(cluster string) bool) []string {
	var out []string
	for _, c := range g.clusters {
		if is(c) {
			out = append(out, c)
		}
	}
	return out
}

// readyIn reports whether one cluster has the requested value.
func (g *quantity) readyIn(cluster string) bool {
	return g.current && (g.ready || shipper.ConditionTrue(g.status[cluster], shipper.TargetReady))
}

// enough reports whether every cluster has at least the wanted value.
func (g *quantity) enough() bool {
	return g.exists && g.current && !slices.ContainsFunc(g.clusters, func(c string) bool { return !g.enoughIn(c) })
}

// enoughIn reports whether a cluster has at least the wanted value. Where more than that was requested, it is enough that the
// wanted Pods are available.
func (g *quantity) enoughIn(cluster string) bool {
	if !g.exists || !g.current || g.asked[cluster] < g.wanted {
		return false
	}
	return g.readyIn(cluster) || (g.asked[cluster] > g.wanted && g.reachable(cluster) &&
		g.available[cluster] >= Pods(g.total[cluster], int32(g.wanted)))
}

// reachable reports whether a cluster's status is recent, or says nothing of that.
func (g *quantity) reachable(cluster string) bool {
	c := shipper.FindCondition(g.status[cluster], shipper.TargetOperational)
	return c == nil || c.Status == "True"
}

// operational reports whether a cluster's status is known to be recent.
func (g *quantity) operational(cluster string) bool {
	return shipper.ConditionTrue(g.status[cluster], shipper.TargetOperational)
}

// set requests the wanted value in these clusters, except those that settle.
func (g *quantity) set(clusters []string) {
	for _, c := range clusters {
		if !g.settling[c] {
			g.next[c] = g.wanted
			delete(g.asFound, c)
		}
	}
}

// holdsBack reports whether a cluster wants less and that is not requested yet.
func (g *quantity) holdsBack() bool {
	return slices.ContainsFunc(g.above(), func(c string) bool { return g.next[c] == g.asked[c] })
}

// pending describes the awaited clusters for users: the names of clusters without a request or an answer, else the target's own
// message.
func (g *quantity) pending() string {
	if !g.exists || !g.current {
		return bracketed(g.clusters)
	}
	unequal := g.unequal()
	settling := slices.ContainsFunc(unequal, func(c string) bool { return g.settling[c] })
	if len(unequal) > 0 && (!settling || g.message == "") && (slices.ContainsFunc(unequal, g.reachable) || g.message == "") {
		return bracketed(unequal)
	}
	if g.message != "" {
		return g.message
	}
	if waiting := g.where(func(c string) bool { return !g.readyIn(c) }); len(waiting) > 0 {
		return bracketed(waiting)
	}
	return bracketed(g.clusters)
}

func bracketed(names []string) string { return fmt.Sprintf("[%s]", strings.Join(names, " ")) }

// percentage is the smallest percentage of total that makes at least so many Pods, at most 100.
func percentage(total, pods int32) int64 {
	if pods <= 0 {
		return 0
	}
	if total <= 0 {
		return 100
	}
	return min(100*(int64(pods)-1)/int64(total)+1, 100)
}

// Pods is the number of Pods that a percentage of total makes, rounded up.
func Pods(total, percent int32) int32 {
	if total <= 0 || percent <= 0 {
		return 0
	}
	return int32(min((int64(total)*int64(percent)+99)/100, math.MaxInt32))
}
