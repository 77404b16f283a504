// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"math"
	"slices"
	"strings"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
)

const (
	// maxBytes bounds an InstallationTarget as etcd stores it, managedFields included, as estimated here. etcd takes 1.5 MiB: a fault in
	// every cluster of a large fleet would exceed that, and then no status could be written, and no rollout could continue.
	maxBytes = 1100 << 10
	// entryBytes is what a cluster takes whatever its state, names and texts not counted: 330 B of JSON and 450 B of managedFields.
	entryBytes = 780
	// elementBytes is what an element of a list takes, texts not counted.
	elementBytes = 130
	// sinceBytes is what the time of a field takes.
	sinceBytes = 31
	// maxWithKinds is the number of clusters up to which kinds are counted where all objects are healthy.
	maxWithKinds = 100
	// messageBytes is what the messages of all clusters may take together. A failure is in two of a cluster.
	messageBytes = 256 << 10
	// maxReason bounds the reason of the one object that is named without a message. In bytes.
	maxReason = 64
)

// bounded are clusters with as many details as fit into one object: unhealthy objects, fields of drift and diff, and kinds. Clusters with
// many details lose some before others do; one unhealthy object stays in each. It copies what it shortens.
func bounded(clusters []shipper.ClusterInstallationStatus) []shipper.ClusterInstallationStatus {
	room, sizes := maxBytes, make([]int, len(clusters))
	for i := range clusters {
		c := &clusters[i]
		if o := c.Objects; len(clusters) > maxWithKinds && o != nil && o.Healthy == o.Total && len(o.Kinds) > 0 {
			told := *o
			told.Kinds = nil
			c.Objects = &told
		}
		shortenMessages(c, messageBytes/(2*len(clusters)))
		room -= baseSize(c)
		sizes[i] = sum(unhealthySizes(c.Objects)) + sum(fieldSizes(c.Drift)) + sum(fieldSizes(c.Diff)) + kindsSize(c.Objects)
	}
	most := share(sizes, max(room, 0))
	for i := range clusters {
		if sizes[i] > most {
			shorten(&clusters[i], most)
		}
	}
	return clusters
}

// shortenMessages cuts the messages of a cluster to most bytes.
func shortenMessages(c *shipper.ClusterInstallationStatus, most int) {
	c.Message = report.Shorten(c.Message, most)
	if !slices.ContainsFunc(c.Conditions, func(one shipper.Condition) bool { return len(one.Message) > most }) {
		return
	}
	c.Conditions = slices.Clone(c.Conditions)
	for i := range c.Conditions {
		c.Conditions[i].Message = report.Shorten(c.Conditions[i].Message, most)
	}
}

// share is the size to which the larger ones are cut, so that all together have at most room.
func share(sizes []int, room int) int {
	for i, size := range slices.Sorted(slices.Values(sizes)) {
		each := room / (len(sizes) - i)
		if size > each {
			return each
		}
		room -= size
	}
	return math.MaxInt
}

// shorten cuts the details of a cluster to a size: in turns, the first of each list stay. Kinds stay if there is room for all.
func shorten(c *shipper.ClusterInstallationStatus, room int) {
	counts, room := fitting(room, unhealthySizes(c.Objects), fieldSizes(c.Drift), fieldSizes(c.Diff))
	if c.Objects != nil {
		told := *c.Objects
		if kindsSize(c.Objects) > room {
			told.Kinds = nil
		}
		if told.Unhealthy = c.Objects.Unhealthy[:counts[0]]; counts[0] == 0 && len(c.Objects.Unhealthy) > 0 {
			told.Unhealthy = []shipper.UnhealthyObject{brief(c.Objects.Unhealthy[0])}
		}
		c.Objects = &told
	}
	c.Drift, c.Diff = boundedDrift(c.Drift, counts[1]), boundedDrift(c.Diff, counts[2])
}

// brief is an object with no more than what says which one it is and how.
func brief(o shipper.UnhealthyObject) shipper.UnhealthyObject {
	o.Reason, o.Message = report.Shorten(o.Reason, maxReason), ""
	return o
}

// fitting is how many elements of each list fit into room, and the room that is left.
func fitting(room int, lists ...[]int) (counts []int, left int) {
	counts = make([]int, len(lists))
	for turn, more := 0, true; more; turn++ {
		more = false
		for i, sizes := range lists {
			if counts[i] == turn && turn < len(sizes) && sizes[turn] <= room {
				counts[i]++
				room -= sizes[turn]
				more = true
			}
		}
	}
	return counts, room
}

// boundedDrift names at most so many fields.
func boundedDrift(d *shipper.InstalledDrift, most int) *shipper.InstalledDrift {
	if d == nil || len(d.Fields) <= most {
		return d
	}
	told := *d
	told.Fields, told.Omitted = d.Fields[:most], d.Omitted+int32(len(d.Fields)-most)
	return &told
}

// baseSize estimates what is not shortened of a cluster. Its name is in spec and status, and in the managedFields of each.
func baseSize(c *shipper.ClusterInstallationStatus) int {
	n := entryBytes + 4*len(c.Name) + textSize(c.Message)
	for _, condition := range c.Conditions {
		n += textSize(condition.Reason, condition.Message)
	}
	for _, d := range []*shipper.InstalledDrift{c.Drift, c.Diff} {
		if d != nil {
			n += textSize(d.Message)
		}
	}
	if c.Objects != nil && len(c.Objects.Unhealthy) > 0 {
		n += unhealthySize(brief(c.Objects.Unhealthy[0]))
	}
	for _, o := range c.ClusterScoped {
		n += elementBytes + textSize(o.APIVersion, o.Kind, o.Name, string(o.UID), o.Digest)
	}
	return n
}

func unhealthySizes(in *shipper.InstalledObjects) []int {
	if in == nil {
		return nil
	}
	out := make([]int, len(in.Unhealthy))
	for i, o := range in.Unhealthy {
		out[i] = unhealthySize(o)
	}
	return out
}

func unhealthySize(o shipper.UnhealthyObject) int {
	return elementBytes + textSize(o.APIVersion, o.Kind, o.Namespace, o.Name, o.Reason, o.Message)
}

func fieldSizes(d *shipper.InstalledDrift) []int {
	if d == nil {
		return nil
	}
	out := make([]int, len(d.Fields))
	for i, f := range d.Fields {
		out[i] = elementBytes + textSize(f.APIVersion, f.Kind, f.Namespace, f.Name, f.Field, f.Want, f.Have, f.Manager)
		if f.Since != nil {
			out[i] += sinceBytes
		}
	}
	return out
}

func kindsSize(in *shipper.InstalledObjects) int {
	if in == nil {
		return 0
	}
	n := 0
	for _, k := range in.Kinds {
		n += elementBytes/2 + textSize(k.APIVersion, k.Kind)
	}
	return n
}

// textSize estimates texts as JSON.
func textSize(texts ...string) int {
	n := 0
	for _, text := range texts {
		n += len(text) + strings.Count(text, `"`) + strings.Count(text, `\`)
	}
	return n
}

func sum(sizes []int) int {
	n := 0
	for _, size := range sizes {
		n += size
	}
	return n
}
