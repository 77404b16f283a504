// SPDX-License-Identifier: Apache-2.0

package lots

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Lot is what becomes of an object. The values are shown to users.
type Lot string

const (
	// SideBySide objects exist once per Release, with the Release's suffix.
	SideBySide Lot = "side by side"
	// InPlace objects are workloads that cannot run twice. They exist once, and change at their step.
	InPlace Lot = "in place"
	// Shared objects exist once, and follow the newest Release from its installation on.
	Shared Lot = "shared"
)

// Release names what the objects are for.
type Release struct {
	// App is the name of the Application, under which the chart was rendered.
	App string
	// Name is the name of the Release.
	Name string
	// InUse is what Pods in place use now.
	InUse InUse
}

// Entry is one object of a chart.
type Entry struct {
	// Object is the object to write, without labels of Shipper. It is no part of what was rendered, and may be changed.
	Object *unstructured.Unstructured
	// Given is the name that the chart gave it. Object has another one if it is side by side.
	Given string
	// Lot is what becomes of it.
	Lot Lot
	// Reason says why, for users; empty where the lot says enough.
	Reason string
	// Copy is the copy of a ConfigMap or Secret that the Pods of the Release use: its own, or one of an earlier Release that has the same
	// content and that Pods in place use; nil where there is none.
	Copy *unstructured.Unstructured
	// UsedBy names the workloads of the chart whose Pods use a ConfigMap or Secret, by kind and given name.
	UsedBy []string
	// Replicas is the number of Pods at full capacity of a Deployment or StatefulSet; 0 for other objects.
	Replicas int32
	// Serves are the production Services that select the Pods of a workload, sorted.
	Serves []string
}

// String names the object as the chart does: `Deployment web`.
func (e *Entry) String() string { return e.Object.GetKind() + " " + e.Given }

// Table is what becomes of all objects of a chart.
type Table struct {
	// Entries are in the order of the rendered objects.
	Entries []Entry
	// Services are those of the chart, in the same order.
	Services []Service
	// Refused says what of the chart cannot be rolled out, and what to do, one sentence for each object.
	Refused []string
	// Warnings say what may surprise users.
	Warnings []string
}

// Of decides what becomes of objects rendered under the name of an Application. It does not change them. The objects have been checked by
// package render: they have names, and none of them twice.
func Of(objects []unstructured.Unstructured, of Release) Table {
	t := &Table{Entries: make([]Entry, len(objects))}
	for i := range objects {
		o := objects[i].DeepCopy()
		t.Entries[i] = Entry{Object: o, Given: o.GetName(), Lot: Shared, Reason: sharedReasons[groupKind(o)]}
	}
	t.sortWorkloads()
	t.sortScalers()
	t.sortServices()
	suffix := Suffix(of)
	t.copyConfiguration(suffix, of.InUse)
	t.rename(suffix)
	t.warn()
	t.refuseDuplicates()
	return *t
}

// Objects are all objects to write, copies directly behind their originals.
func (t *Table) Objects() []*unstructured.Unstructured {
	out := make([]*unstructured.Unstructured, 0, len(t.Entries))
	for i := range t.Entries {
		out = append(out, t.Entries[i].Object)
		if copied := t.Entries[i].Copy; copied != nil {
			out = append(out, copied)
		}
	}
	return out
}

// Workloads are the entries whose objects make Pods, Jobs among them.
func (t *Table) Workloads() (out []*Entry) {
	for i := range t.Entries {
		if e := &t.Entries[i]; isWorkload(e.Object) || groupKind(e.Object) == job {
			out = append(out, e)
		}
	}
	return out
}

// Changed names the shared objects that differ from those of an earlier Release, sorted. Labels do not count: those of charts have the
// chart's version.
func (t *Table) Changed(before *Table) (out []string) {
	was := map[string]*unstructured.Unstructured{}
	for i := range before.Entries {
		if e := &before.Entries[i]; e.Lot == Shared {
			was[identityOf(e.Object)] = e.Object
		}
	}
	for i := range t.Entries {
		e := &t.Entries[i]
		if old := was[identityOf(e.Object)]; e.Lot == Shared && old != nil && !sameWithoutLabels(old, e.Object) {
			out = append(out, e.String())
		}
	}
	return sortedUnique(out)
}

// identityOf says which object of a cluster an object is.
func identityOf(o *unstructured.Unstructured) string {
	return fmt.Sprintf("%q", []string{groupKind(o).String(), o.GetNamespace(), o.GetName()})
}

func sameWithoutLabels(a, b *unstructured.Unstructured) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	for _, o := range []*unstructured.Unstructured{a, b} {
		o.SetLabels(nil)
	}
	return equality.Semantic.DeepEqual(a.Object, b.Object)
}

// Replicas is the number of Pods of a Release at full capacity: of all Deployments and StatefulSets. The Pods of a DaemonSet depend on the
// cluster, and do not count.
func (t *Table) Replicas() int32 {
	n := int64(0)
	for i := range t.Entries {
		n += int64(t.Entries[i].Replicas)
	}
	return int32(min(n, maxReplicas))
}

// sharedReasons say why all Releases share an object of a kind, where a user may ask.
var sharedReasons = map[schema.GroupKind]string{
	podDisruptionBudget: "covers the Pods of all Releases",
	cronJob:             "one schedule for all Releases",
	claim:               "data outlives Releases",
}

var (
	deployment          = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	statefulSet         = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	daemonSet           = schema.GroupKind{Group: "apps", Kind: "DaemonSet"}
	job                 = schema.GroupKind{Group: "batch", Kind: "Job"}
	cronJob             = schema.GroupKind{Group: "batch", Kind: "CronJob"}
	configMap           = schema.GroupKind{Kind: "ConfigMap"}
	secret              = schema.GroupKind{Kind: "Secret"}
	service             = schema.GroupKind{Kind: "Service"}
	claim               = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	podDisruptionBudget = schema.GroupKind{Group: "policy", Kind: "PodDisruptionBudget"}
	podAutoscaler       = schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}
	scaledObject        = schema.GroupKind{Group: "keda.sh", Kind: "ScaledObject"}
	verticalAutoscaler  = schema.GroupKind{Group: "autoscaling.k8s.io", Kind: "VerticalPodAutoscaler"}
)

// groupKind is the group and kind of an object. Deployments and DaemonSets were in group extensions once.
func groupKind(o *unstructured.Unstructured) schema.GroupKind {
	gk := o.GroupVersionKind().GroupKind()
	if gk.Group == "extensions" && (gk.Kind == deployment.Kind || gk.Kind == daemonSet.Kind) {
		gk.Group = "apps"
	}
	return gk
}

// refuse adds a sentence to Refused.
func (t *Table) refuse(format string, args ...any) {
	t.Refused = append(t.Refused, fmt.Sprintf(format, args...))
}

// refuseDuplicates refuses a chart two of whose objects would get one name: the second would overwrite the first.
func (t *Table) refuseDuplicates() {
	type identity struct {
		schema.GroupKind
		namespace, name string
	}
	seen := map[identity]bool{}
	for _, o := range t.Objects() {
		id := identity{groupKind(o), o.GetNamespace(), o.GetName()}
		if seen[id] {
			t.refuse("two objects of the chart would be %s %q, which has the suffix of the Release: give one of them another name",
				o.GetKind(), o.GetName())
		}
		seen[id] = true
	}
}

// nested is the value of a field, nil if there is none.
func nested(object map[string]any, fields ...string) any {
	value, _, err := unstructured.NestedFieldNoCopy(object, fields...)
	if err != nil {
		return nil
	}
	return value
}

// text is the string in a field, empty if there is none.
func text(object map[string]any, fields ...string) string {
	value, _ := nested(object, fields...).(string)
	return value
}

// section is the map in a field, nil if there is none.
func section(object map[string]any, fields ...string) map[string]any {
	value, _ := nested(object, fields...).(map[string]any)
	return value
}

// elements are the maps in a list.
func elements(object map[string]any, fields ...string) (out []map[string]any) {
	list, _ := nested(object, fields...).([]any)
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// sortedUnique sorts a list and drops what is in it twice.
func sortedUnique[T cmp.Ordered](list []T) []T {
	slices.Sort(list)
	return slices.Compact(list)
}
