// SPDX-License-Identifier: Apache-2.0

package lots

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// referring are the fields of Pod templates that name a ConfigMap or Secret which the containers see. They are those of kustomize's builtin
// configuration, which a test compares; kustomize itself is not used, because it panics on names that the API server would refuse.
// imagePullSecrets are left out: they are no configuration.
var referring = map[schema.GroupKind][]string{
	configMap: {
		"volumes/configMap/name",
		"volumes/projected/sources/configMap/name",
		"containers/env/valueFrom/configMapKeyRef/name",
		"containers/envFrom/configMapRef/name",
		"initContainers/env/valueFrom/configMapKeyRef/name",
		"initContainers/envFrom/configMapRef/name",
	},
	secret: {
		"volumes/secret/secretName",
		"volumes/projected/sources/secret/name",
		"containers/env/valueFrom/secretKeyRef/name",
		"containers/envFrom/secretRef/name",
		"initContainers/env/valueFrom/secretKeyRef/name",
		"initContainers/envFrom/secretRef/name",
	},
}

// scaledIn are the fields in spec of the objects that scale a workload. kustomize knows HorizontalPodAutoscalers alone.
var scaledIn = map[schema.GroupKind]string{
	podAutoscaler: "scaleTargetRef", scaledObject: "scaleTargetRef", verticalAutoscaler: "targetRef",
}

// visit replaces each string at a path by what replace returns for it. A path leads through lists, by each of their elements.
func visit(value any, path []string, replace func(string) string) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			visit(element, path, replace)
		}
	case map[string]any:
		if len(path) > 1 {
			visit(value[path[0]], path[1:], replace)
		} else if now, ok := value[path[0]].(string); ok {
			value[path[0]] = replace(now)
		}
	}
}

// Uses reports whether the containers of a Pod see a ConfigMap or Secret of a kind and name.
func Uses(pod *unstructured.Unstructured, kind, name string) bool {
	found := false
	eachReferenceIn(section(pod.Object, "spec"), func(of schema.GroupKind, used string) string {
		found = found || of.Kind == kind && used == name
		return used
	})
	return found
}

// eachReference replaces the names of the ConfigMaps and Secrets that the Pods of a workload use by what replace returns for them.
func eachReference(o *unstructured.Unstructured, replace func(of schema.GroupKind, name string) string) {
	eachReferenceIn(section(podTemplate(o), "spec"), replace)
}

// eachReferenceIn is eachReference for the spec of a Pod.
func eachReferenceIn(pod map[string]any, replace func(of schema.GroupKind, name string) string) {
	for _, of := range []schema.GroupKind{configMap, secret} {
		for _, field := range referring[of] {
			visit(pod, strings.Split(field, "/"), func(name string) string { return replace(of, name) })
		}
	}
}

// configuration names a ConfigMap or Secret as the chart does.
type configuration struct {
	of   schema.GroupKind
	name string
}

// InUse has what Pods in place use of the ConfigMaps and Secrets of a chart, as a Release before has written them. Nil: nothing.
type InUse map[configuration]*unstructured.Unstructured

// InUseOf is what Pods in place use of a Release. given are the objects as the chart rendered them, and written those of the Release.
// Workloads in place keep their names, so that one of given has become the one of its name in written.
func InUseOf(given, written []*unstructured.Unstructured) InUse {
	is := map[string]*unstructured.Unstructured{}
	for _, o := range written {
		is[groupKind(o).String()+" "+o.GetName()] = o
	}
	out := InUse{}
	for _, o := range given {
		now := is[groupKind(o).String()+" "+o.GetName()]
		if now == nil || !isWorkload(o) {
			continue
		}
		before, after := references(o), references(now)
		for n := range min(len(before), len(after)) {
			if used := is[after[n].of.String()+" "+after[n].name]; used != nil {
				out[before[n]] = used
			}
		}
	}
	return out
}

// references are those of the Pods of a workload, in a fixed order.
func references(o *unstructured.Unstructured) (out []configuration) {
	eachReference(o.DeepCopy(), func(of schema.GroupKind, name string) string {
		out = append(out, configuration{of, name})
		return name
	})
	return out
}

// copyConfiguration gives the Release a copy of each ConfigMap and Secret of the chart that Pods use, and has them use it. Where Pods in
// place use the same content already, the copy is the one that they use: equal configuration replaces no Pods. It notes what the Pods of
// all workloads use.
func (t *Table) copyConfiguration(suffix string, inUse InUse) {
	known := map[configuration]*Entry{}
	for i := range t.Entries {
		if e := &t.Entries[i]; groupKind(e.Object) == configMap || groupKind(e.Object) == secret {
			known[configuration{groupKind(e.Object), e.Given}] = e
		}
	}
	for i := range t.Entries {
		by := &t.Entries[i]
		if !isWorkload(by.Object) && groupKind(by.Object) != job {
			continue
		}
		eachReference(by.Object, func(of schema.GroupKind, name string) string {
			e := known[configuration{of, name}]
			if e == nil {
				return name
			}
			e.UsedBy = sortedUnique(append(e.UsedBy, by.String()))
			if !isConfiguration(e.Object) {
				return name
			}
			used := inUse[configuration{of, name}]
			same := used != nil && sameContent(used, e.Object)
			copied := same && used.GetName() != name
			if same && !copied && by.Lot == InPlace { // of a version of Shipper that made no copies for Pods in place
				return name
			}
			if e.Copy == nil && copied {
				e.Copy = copyOf(e.Object, used.GetName())
			} else if e.Copy == nil {
				e.Copy = copyOf(e.Object, Name(name, suffix, maxName))
			}
			return e.Copy.GetName()
		})
	}
}

// isConfiguration reports whether the content of a ConfigMap or Secret is the chart's. The content of an empty one, and of a token, comes
// from another process, which does not know the copy.
func isConfiguration(o *unstructured.Unstructured) bool {
	if text(o.Object, "type") == "kubernetes.io/service-account-token" {
		return false
	}
	return len(section(o.Object, "data"))+len(section(o.Object, "binaryData"))+len(section(o.Object, "stringData")) > 0
}

// sameContent reports whether two ConfigMaps or Secrets differ in nothing but their metadata.
func sameContent(a, b *unstructured.Unstructured) bool {
	one, other := maps.Clone(a.Object), maps.Clone(b.Object)
	delete(one, "metadata")
	delete(other, "metadata")
	return equality.Semantic.DeepEqual(one, other)
}

// copyOf is a ConfigMap or Secret under another name. It has the content alone, so that nothing that looks for labels or annotations finds
// two.
func copyOf(o *unstructured.Unstructured, name string) *unstructured.Unstructured {
	out := o.DeepCopy()
	metadata := map[string]any{"name": name}
	if namespace := o.GetNamespace(); namespace != "" {
		metadata["namespace"] = namespace
	}
	out.Object["metadata"] = metadata
	return out
}

// rename gives what is side by side its suffix, and what scales it the names of what it scales.
func (t *Table) rename(suffix string) {
	for i := range t.Entries {
		e := &t.Entries[i]
		if e.Lot != SideBySide {
			continue
		}
		e.Object.SetName(Name(e.Given, suffix, MaxLabel))
		rename := func(name string) string { return Name(name, suffix, MaxLabel) }
		if field, is := scaledIn[groupKind(e.Object)]; is {
			visit(e.Object.Object, []string{"spec", field, "name"}, rename)
		}
		if groupKind(e.Object) == scaledObject { // KEDA makes an autoscaler of this name
			visit(e.Object.Object, []string{"spec", "advanced", "horizontalPodAutoscalerConfig", "name"}, rename)
		}
	}
}
