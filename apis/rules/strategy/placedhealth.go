// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"fmt"
	"slices"
	"strings"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Statuses of objects that are not healthy, as kstatus has them.
const (
	healthInProgress = "InProgress"
	healthUnknown    = "Unknown"
)

// healthNotRead is the message of a cluster where Shipper has written the objects, and could not read yet how each of them is.
const healthNotRead = "the health of its objects has not been read yet"

// healthyIn reports whether a Release has placed its content in a cluster, and its objects are healthy there. With ReportDiff none is
// written. Objects whose health cannot be known hold nothing.
func healthyIn(r Release, cluster string) bool {
	if !installedIn(r, cluster) || onlyReports(&r.Release.Spec.Environment) {
		return installedIn(r, cluster)
	}
	objects := objectsIn(r, cluster)
	if objects == nil {
		return false
	}
	_, awaited := awaitedObject(objects)
	return !awaited
}

// objectsIn is what is known of the objects of a Release in a cluster; nil if nothing is.
func objectsIn(r Release, cluster string) *shipper.InstalledObjects {
	for _, c := range r.Installation.Status.Clusters {
		if c.Name == cluster {
			return c.Objects
		}
	}
	return nil
}

// awaitedObject is the worst object that is awaited. Those of unknown health come last in the list, so one that is awaited is named if
// there is any.
func awaitedObject(objects *shipper.InstalledObjects) (shipper.UnhealthyObject, bool) {
	i := slices.IndexFunc(objects.Unhealthy, func(o shipper.UnhealthyObject) bool { return o.Status != healthUnknown })
	if i < 0 {
		return shipper.UnhealthyObject{}, false
	}
	return objects.Unhealthy[i], true
}

// lacking are the clusters of the contender in which it is not placed, or its objects are not healthy.
func (p *placing) lacking() []Lack {
	out := p.contender().lackingInstallation()
	for _, cluster := range p.clusters {
		if !installedIn(p.contender(), cluster) || healthyIn(p.contender(), cluster) {
			continue
		}
		lack := Lack{Cluster: cluster, Reachable: p.reachable(cluster), Reason: shipper.ObjectsNotKnown, Message: healthNotRead}
		if objects := objectsIn(p.contender(), cluster); objects != nil {
			worst, _ := awaitedObject(objects)
			lack.Reason, lack.Message = shipper.ObjectsInProgress, describedObject(worst)
			if worst.Status != healthInProgress {
				lack.Reason = shipper.ObjectsNotHealthy
			}
		}
		out = append(out, lack)
	}
	slices.SortFunc(out, func(a, b Lack) int { return strings.Compare(a.Cluster, b.Cluster) })
	return out
}

// describedObject words what is wrong with an object.
func describedObject(o shipper.UnhealthyObject) string {
	text := fmt.Sprintf("%s %s is %s", o.Kind, o.Name, o.Status)
	if o.Reason != "" {
		text += " (" + o.Reason + ")"
	}
	return text
}
