// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/placement"
)

// Bounds of what is taken from a cluster.
const (
	// maxResources is how many resources are summed: the usual ones, then the first extended ones by name.
	maxResources = 30
	// maxDeclared is how many properties are taken from ConfigMaps, the first by name.
	maxDeclared = 100
	// maxKept is how many bytes of a value are kept: more than a property may have.
	maxKept = 128
	// maxShown is how many bytes of a name messages have.
	maxShown = 63
	// maxNamedProperties is how many properties that were left out a message names.
	maxNamedProperties = 10
)

// usual are the resources that are always summed.
var usual = []corev1.ResourceName{
	corev1.ResourceCPU, corev1.ResourceEphemeralStorage, corev1.ResourceMemory, corev1.ResourcePods,
}

// NodeTotals are sums over the Nodes of a cluster.
type NodeTotals struct {
	// Count is how many Nodes there are, cordoned ones too.
	Count int32
	// Capacity and Allocatable are sums by resource: cpu, memory, pods, ephemeral-storage and extended resources, 30 at most.
	Capacity, Allocatable corev1.ResourceList
}

// Declared are the properties that ConfigMaps in a cluster declare.
type Declared struct {
	// Properties are the valid ones by name, 100 at most.
	Properties map[string]string
	// LeftOut says for users which were left out and why; empty when none were.
	LeftOut string
}

// counted reports whether a resource is summed: one that every Node has, or an extended resource.
func counted(name corev1.ResourceName) bool {
	if slices.Contains(usual, name) {
		return true
	}
	domain, _, extended := strings.Cut(string(name), "/")
	return extended && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}

// stripNode leaves of a Node what is summed. Two updates that differ in nothing else are equal but for the resource version.
func stripNode(in any) (any, error) {
	node, ok := in.(*corev1.Node)
	if !ok {
		return in, nil
	}
	other := func(name corev1.ResourceName, _ resource.Quantity) bool { return !counted(name) }
	maps.DeleteFunc(node.Status.Capacity, other)
	maps.DeleteFunc(node.Status.Allocatable, other)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion},
		Status:     corev1.NodeStatus{Capacity: node.Status.Capacity, Allocatable: node.Status.Allocatable},
	}, nil
}

// stripConfigMap keeps the name of a ConfigMap and as much of its data as can be properties, so that users of a cluster cannot fill the
// memory of this process. A value that is too long stays too long.
func stripConfigMap(in any) (any, error) {
	cm, ok := in.(*corev1.ConfigMap)
	if !ok {
		return in, nil
	}
	data := map[string]string{}
	keys := slices.Sorted(maps.Keys(cm.Data))
	for _, key := range keys[:min(len(keys), maxDeclared+maxNamedProperties)] {
		value := cm.Data[key]
		data[key] = strings.Clone(value[:min(len(value), maxKept)])
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: cm.Namespace, Name: cm.Name, UID: cm.UID, ResourceVersion: cm.ResourceVersion},
		Data:       data,
	}, nil
}

// totalsOf sums Nodes as stripNode leaves them. The result does not depend on their order.
func totalsOf(nodes []*corev1.Node) *NodeTotals {
	nodes = slices.SortedFunc(slices.Values(nodes), func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	out := &NodeTotals{Count: int32(len(nodes))}
	capacity, allocatable := corev1.ResourceList{}, corev1.ResourceList{}
	for _, node := range nodes {
		add(capacity, node.Status.Capacity)
		add(allocatable, node.Status.Allocatable)
	}
	out.Capacity, out.Allocatable = bounded(capacity), bounded(allocatable)
	return out
}

func add(to, more corev1.ResourceList) {
	for name, quantity := range more {
		sum := to[name]
		sum.Add(quantity)
		to[name] = sum
	}
}

// bounded keeps the usual resources and the first of the others by name. It is nil when there are none.
func bounded(list corev1.ResourceList) corev1.ResourceList {
	if len(list) == 0 {
		return nil
	}
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(list)), func(name corev1.ResourceName) bool { return slices.Contains(usual, name) })
	if room := maxResources - len(usual); len(others) > room {
		for _, name := range others[room:] {
			delete(list, name)
		}
	}
	return list
}

// declaredIn judges the data of ConfigMaps. Of two that declare one property the first by name of ConfigMap counts.
func declaredIn(configMaps []*corev1.ConfigMap) *Declared {
	configMaps = slices.SortedFunc(slices.Values(configMaps), func(a, b *corev1.ConfigMap) int { return cmp.Compare(a.Name, b.Name) })
	out := &Declared{}
	from := map[string]string{}
	var problems []string
	for _, cm := range configMaps {
		for _, name := range slices.Sorted(maps.Keys(cm.Data)) {
			why := placement.PropertyProblem(name, cm.Data[name])
			if other, twice := from[name]; twice {
				why = fmt.Sprintf("ConfigMap %s has it already", other)
			}
			if why != "" {
				problems = append(problems, fmt.Sprintf("%s of ConfigMap %s: %s", shown(name), cm.Name, why))
				continue
			}
			from[name] = cm.Name
			if out.Properties == nil {
				out.Properties = map[string]string{}
			}
			out.Properties[name] = cm.Data[name]
		}
	}
	if names := slices.Sorted(maps.Keys(out.Properties)); len(names) > maxDeclared {
		for _, name := range names[maxDeclared:] {
			delete(out.Properties, name)
			problems = append(problems, fmt.Sprintf("%s of ConfigMap %s: a cluster has at most %d", shown(name), from[name], maxDeclared))
		}
	}
	if len(problems) > 0 {
		text := strings.Join(problems[:min(len(problems), maxNamedProperties)], "; ")
		if more := len(problems) - maxNamedProperties; more > 0 {
			text += fmt.Sprintf("; and %d more", more)
		}
		out.LeftOut = "these properties are left out: " + text
	}
	return out
}

// shown is a name as messages have it.
func shown(name string) string {
	if len(name) > maxShown {
		return name[:maxShown] + "…"
	}
	return name
}
