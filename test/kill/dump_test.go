// SPDX-License-Identifier: Apache-2.0

package kill

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/fleet"
)

// dump returns all objects of a namespace in all clusters as text that is comparable between runs: without times, versions
// and names of Pods, with UIDs and digests numbered in order, and hashes of Releases in the order of these.
func dump(ctx context.Context, namespace string) (string, error) {
	var out strings.Builder
	hashes, err := hashesOf(ctx, namespace)
	if err != nil {
		return "", err
	}
	for _, list := range []client.ObjectList{
		&shipper.ApplicationList{}, &shipper.ReleaseList{}, &shipper.InstallationTargetList{}, &shipper.CapacityTargetList{},
		&shipper.TrafficTargetList{},
	} {
		if err := dumpList(ctx, &out, world.Management, namespace, list, hashes); err != nil {
			return "", err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(world.Clusters)) {
		fmt.Fprintf(&out, "## cluster %s\n", name)
		for _, list := range []client.ObjectList{
			&appsv1.DeploymentList{}, &corev1.ServiceList{}, &corev1.ConfigMapList{}, &corev1.PodList{}, &discoveryv1.EndpointSliceList{},
		} {
			if err := dumpList(ctx, &out, world.Clusters[name], namespace, list, hashes); err != nil {
				return "", err
			}
		}
	}
	return anonymous(strings.ReplaceAll(out.String(), namespace, "<namespace>")), nil
}

// hashesOf replaces the hashes of Releases by the generations of the first that have them. The hash of a Release of resources depends
// on the namespace, whose name is in the content.
func hashesOf(ctx context.Context, namespace string) (*strings.Replacer, error) {
	objects, err := objectsOf(ctx, world.Management, namespace, &shipper.ReleaseList{})
	generation := func(o client.Object) string { return o.GetAnnotations()[shipper.ReleaseGenerationAnnotation] }
	slices.SortFunc(objects, func(a, b client.Object) int { return strings.Compare(generation(a), generation(b)) })
	var pairs []string
	for _, o := range objects {
		pairs = append(pairs, o.GetLabels()[shipper.ReleaseHashLabel], "<hash "+generation(o)+">") // the first pair wins
	}
	return strings.NewReplacer(pairs...), err
}

// dumpList adds the objects of a list that belong to the Application.
func dumpList(
	ctx context.Context, out *strings.Builder, c client.Client, namespace string, list client.ObjectList, hashes *strings.Replacer,
) error {
	objects, err := objectsOf(ctx, c, namespace, list)
	if err != nil {
		return err
	}
	name := func(o client.Object) string { return hashes.Replace(o.GetName()) }
	slices.SortFunc(objects, func(a, b client.Object) int { return strings.Compare(name(a), name(b)) })
	var parts []string
	for _, o := range objects {
		if o.GetName() != appName && o.GetLabels()[shipper.AppLabel] != appName {
			continue
		}
		part, err := plain(o, hashes)
		if err != nil {
			return err
		}
		parts = append(parts, hashes.Replace(part))
	}
	switch list.(type) {
	case *corev1.PodList, *discoveryv1.EndpointSliceList:
		slices.Sort(parts) // without their names the order would be random
	}
	for _, part := range parts {
		fmt.Fprintf(out, "---\n%T\n%s", objects[0], part)
	}
	return nil
}

// plain returns one object as YAML. Hashes are replaced before: YAML quotes those that look like numbers, such as 12e45678.
func plain(o client.Object, hashes *strings.Replacer) (string, error) {
	switch o := o.(type) {
	case *corev1.Pod:
		return fmt.Sprintf("labels: %v\nready: %t, going: %t\nspec: %v\n",
			o.Labels, fleet.PodReady(o), o.DeletionTimestamp != nil, o.Spec.Containers[0].Image), nil
	case *discoveryv1.EndpointSlice:
		ready := 0
		for _, e := range o.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready++
			}
		}
		return fmt.Sprintf("service: %s\nendpoints: %d, ready: %d\n", o.Labels[discoveryv1.LabelServiceName], len(o.Endpoints), ready), nil
	}
	raw, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	var tree map[string]any
	if err := json.Unmarshal([]byte(hashes.Replace(string(raw))), &tree); err != nil {
		return "", err
	}
	if metadata, ok := tree["metadata"].(map[string]any); ok {
		generation := metadata["generation"]
		if status, ok := tree["status"].(map[string]any); ok && status["observedGeneration"] != nil {
			status["observed"] = status["observedGeneration"] == generation
		}
	}
	prune(tree)
	text, err := yaml.Marshal(tree)
	return string(text), err
}

// accidental lists fields that differ between runs.
var accidental = []string{
	"resourceVersion", "creationTimestamp", "generation", "observedGeneration", "managedFields", "lastTransitionTime",
	"lastUpdateTime", "message", "clusterIP", "clusterIPs", "deployment.kubernetes.io/revision",
	"pod",      // the example in a capacity report
	"duration", // of a rollout
	"requestedTime", "convergedTime",
}

// prune removes the accidental fields.
func prune(tree any) {
	switch t := tree.(type) {
	case map[string]any:
		for _, key := range accidental {
			delete(t, key)
		}
		for _, value := range t {
			prune(value)
		}
	case []any:
		for _, value := range t {
			prune(value)
		}
	}
}

// moment is the time of a move, in the annotation release.moved.
var moment = regexp.MustCompile(`"time":"[^"]*"`)

var identifier = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{64}\b|\b[0-9a-f]{32}\b`)

// anonymous numbers UIDs and digests in the order of their appearance.
func anonymous(text string) string {
	seen := map[string]string{}
	return identifier.ReplaceAllStringFunc(moment.ReplaceAllString(text, `"time":""`), func(id string) string {
		if seen[id] == "" {
			seen[id] = fmt.Sprintf("<id %d>", len(seen)+1)
		}
		return seen[id]
	})
}

// eachItem calls f with every object of a list.
func eachItem(list client.ObjectList, f func(client.Object)) error {
	return meta.EachListItem(list, func(item runtime.Object) error {
		o, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("%T is no object", item)
		}
		f(o)
		return nil
	})
}
