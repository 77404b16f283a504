// SPDX-License-Identifier: Apache-2.0

package lots

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"shipper.dev/shipper/chart"
)

// MaxInPlace bounds the workloads of a chart that change in place: each is read from what is stored whenever it changes.
const MaxInPlace = 100

// maxReplicas bounds numbers of Pods, as Kubernetes does.
const maxReplicas = math.MaxInt32

// sortWorkloads finds the lots of workloads.
func (t *Table) sortWorkloads() {
	modes, inPlace := t.claimModes(), 0
	for i := range t.Entries {
		e := &t.Entries[i]
		switch groupKind(e.Object) {
		case deployment:
			e.Lot = SideBySide
			if e.Reason = runsOnce(e.Object, modes); e.Reason != "" {
				e.Lot = InPlace
			}
		case statefulSet, daemonSet:
			e.Lot, e.Reason = InPlace, e.Object.GetKind()
		case job:
			e.Lot, e.Reason = SideBySide, "a Job cannot be changed"
			continue
		default:
			continue
		}
		if v := e.Object.GetAPIVersion(); v != "apps/v1" {
			t.refuse("%s has the apiVersion %s; Shipper rolls out %ss of apps/v1 only: change the chart", e, v, e.Object.GetKind())
		}
		if groupKind(e.Object) != daemonSet {
			t.readReplicas(e)
		}
		if e.Lot == InPlace {
			inPlace++
		}
	}
	if inPlace > MaxInPlace {
		t.refuse("%d workloads of the chart change in place, and %d at most can: make several charts of it", inPlace, MaxInPlace)
	}
}

// readReplicas reads the number of Pods at full capacity.
func (t *Table) readReplicas(e *Entry) {
	switch n := nested(e.Object.Object, "spec", "replicas").(type) {
	case nil:
		e.Replicas = 1
	case int64:
		if n >= 0 && n <= maxReplicas {
			e.Replicas = int32(n)
			return
		}
		t.refuse("%s: spec.replicas is %d, which is not a number of Pods: change it by a value of the chart", e, n)
	default:
		t.refuse("%s: spec.replicas is %q, which is not a number of Pods: change it by a value of the chart",
			e, chart.Shorten(fmt.Sprint(n)))
	}
}

// podTemplate is the template of a workload's Pods, nil if it has none.
func podTemplate(o *unstructured.Unstructured) map[string]any {
	return section(o.Object, "spec", "template")
}

// runsOnce says why a Deployment cannot run twice at the same time; empty if it can.
func runsOnce(o *unstructured.Unstructured, modes map[string][]string) string {
	var why []string
	if text(o.Object, "spec", "strategy", "type") == "Recreate" {
		why = append(why, "Recreate")
	}
	pod := section(podTemplate(o), "spec")
	if ports := hostPorts(pod); pod["hostNetwork"] == true {
		why = append(why, "host network")
	} else if len(ports) == 1 {
		why = append(why, "host port "+ports[0])
	} else if len(ports) > 1 {
		why = append(why, "host ports "+strings.Join(ports, ", "))
	}
	for _, volume := range elements(pod, "volumes") {
		if reason := attachedOnce(volume, modes); reason != "" && !slices.Contains(why, reason) {
			why = append(why, reason)
		}
	}
	return strings.Join(why, "; ")
}

// hostPorts are the ports of its node that a Pod takes, as texts.
func hostPorts(pod map[string]any) (out []string) {
	for _, list := range []string{"initContainers", "containers"} {
		for _, container := range elements(pod, list) {
			for _, port := range elements(container, "ports") {
				switch n := port["hostPort"].(type) {
				case int64, float64:
					if s := fmt.Sprint(n); s != "0" && !slices.Contains(out, s) {
						out = append(out, s)
					}
				}
			}
		}
	}
	return out
}

// disks are volumes that one node at a time can write to.
var disks = []string{
	"awsElasticBlockStore", "azureDisk", "cinder", "fc", "gcePersistentDisk", "iscsi", "photonPersistentDisk", "portworxVolume", "rbd",
	"scaleIO", "storageos", "vsphereVolume",
}

// attachedOnce says why only one node can mount a volume; empty if several can.
func attachedOnce(volume map[string]any, modes map[string][]string) string {
	for _, disk := range disks {
		if source := section(volume, disk); source != nil && source["readOnly"] != true {
			return fmt.Sprintf("volume %s can be mounted by one node", text(volume, "name"))
		}
	}
	source := section(volume, "persistentVolumeClaim")
	name := text(source, "claimName")
	if name == "" {
		return ""
	}
	has, known := modes[name]
	switch readOnly := source["readOnly"] == true; {
	case !known:
		return fmt.Sprintf("claim %s is not in the chart, and may be mountable by one node", name)
	case slices.Contains(has, "ReadWriteMany"), slices.Contains(has, "ReadOnlyMany") && (readOnly || len(has) == 1):
		return ""
	default:
		return fmt.Sprintf("claim %s can be mounted by one node", name)
	}
}

// claimModes are the access modes of the chart's claims, by name.
func (t *Table) claimModes() map[string][]string {
	out := map[string][]string{}
	for i := range t.Entries {
		if o := t.Entries[i].Object; groupKind(o) == claim {
			modes, _ := nested(o.Object, "spec", "accessModes").([]any)
			list := []string{}
			for _, mode := range modes {
				list = append(list, fmt.Sprint(mode))
			}
			out[o.GetName()] = sortedUnique(list)
		}
	}
	return out
}

// sortScalers finds the lots of objects that scale workloads: they are where what they scale is.
func (t *Table) sortScalers() {
	for i := range t.Entries {
		e := &t.Entries[i]
		field, is := scaledIn[groupKind(e.Object)]
		if !is {
			continue
		}
		name := text(e.Object.Object, "spec", field, "name")
		scaled := t.workload(cmp.Or(text(e.Object.Object, "spec", field, "kind"), deployment.Kind), name)
		if scaled == nil {
			continue
		}
		e.Reason = "scales " + scaled.String()
		if scaled.Lot == SideBySide {
			e.Lot = SideBySide
		}
		if groupKind(e.Object) != verticalAutoscaler && (scaled.Lot == SideBySide || groupKind(scaled.Object) == statefulSet) {
			t.Warnings = append(t.Warnings, fmt.Sprintf("%s scales %s, which Shipper does too, step by step: "+
				"leave it out of the chart, or disable it by a value", e, scaled))
		}
	}
}

// workload is the Deployment, StatefulSet or DaemonSet of a name, nil if there is none.
func (t *Table) workload(kind, name string) *Entry {
	for i := range t.Entries {
		if e := &t.Entries[i]; e.Given == name && e.Object.GetKind() == kind && isWorkload(e.Object) {
			return e
		}
	}
	return nil
}

// isWorkload reports whether an object is a Deployment, StatefulSet or DaemonSet.
func isWorkload(o *unstructured.Unstructured) bool {
	switch groupKind(o) {
	case deployment, statefulSet, daemonSet:
		return true
	default:
		return false
	}
}
