// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const (
	pods       = "/pods"
	endpoints  = "discovery.k8s.io/endpointslices"
	services   = "/services"
	configMaps = "/configmaps"
	secrets    = "/secrets"

	statefulSets = "apps/statefulsets"
	// jobs and deployments are of applications.
	jobs        = "batch/jobs"
	deployments = "apps/deployments"
	// clusterRoles are the objects without a namespace that charts of stories have.
	clusterRoles = "rbac.authorization.k8s.io/clusterroles"
)

// compared are the kinds in the end of a part.
var compared = map[bool][]string{
	true: {
		kindOf("applications"), kindOf("releases"), kindOf("installationtargets"), kindOf("capacitytargets"), kindOf("traffictargets"),
		kindOf("checktargets"), kindOf("sequenceruns"), kindOf("rolloutblocks"), kindOf("resourcesnapshots"),
	},
	false: {deployments, statefulSets, "apps/daemonsets", services, configMaps, pods, endpoints},
}

// dump is all there is as text that is comparable between runs: without times, versions and names of Pods, with ids and digests numbered
// in order, and hashes of Releases in the order of these.
func (f *Fixture) dump() string {
	var out strings.Builder
	hashes := f.releaseHashes()
	for _, name := range slices.Sorted(maps.Keys(f.hosts)) {
		byRelease := f.selectsByRelease(f.hosts[name])
		for _, kind := range compared[name == management] {
			var parts []string
			all := f.hosts[name].all(kind)
			slices.SortFunc(all, func(a, b *unstructured.Unstructured) int {
				return strings.Compare(hashes.Replace(a.GetName()), hashes.Replace(b.GetName()))
			})
			for _, o := range all {
				if !foreign(o) && o.GetNamespace() != shipper.SystemNamespace {
					if kind == pods && len(byRelease) > 0 {
						o = o.DeepCopy()
						for _, label := range byRelease {
							unstructured.RemoveNestedField(o.Object, "metadata", "labels", label)
						}
					}
					parts = append(parts, fmt.Sprintf("--- %s %s\n%s", name, kind, plain(kind, o, hashes)))
				}
			}
			if kind == pods || kind == endpoints {
				slices.SortFunc(parts, func(a, b string) int { // without their names and ids the order would be random
					return strings.Compare(identifier.ReplaceAllString(a, ""), identifier.ReplaceAllString(b, ""))
				})
			}
			out.WriteString(strings.Join(parts, ""))
		}
	}
	return anonymous(out.String())
}

// selectsByRelease are the labels that let Pods into the traffic of those Services that select the Pods of one Release: these need none
// then, and whether they have it depends on when they came.
func (f *Fixture) selectsByRelease(h *host) (labels []string) {
	for _, name := range f.story.services() {
		var service corev1.Service
		if h.read(services, namespace, name, &service) && service.Spec.Selector[shipper.ReleaseLabel] != "" {
			labels = append(labels, shipper.TrafficStatusLabel, shipper.ServesLabel(name))
		}
	}
	return labels
}

// releaseHashes replaces the hashes of Releases by the generations of the first that have them.
func (f *Fixture) releaseHashes() *strings.Replacer {
	all := f.hosts[management].all(kindOf("releases"))
	generation := func(o *unstructured.Unstructured) string {
		return o.GetAnnotations()[shipper.ReleaseGenerationAnnotation]
	}
	slices.SortStableFunc(all, func(a, b *unstructured.Unstructured) int { return strings.Compare(generation(a), generation(b)) })
	var pairs []string
	for _, o := range all {
		pairs = append(pairs, o.GetLabels()[shipper.ReleaseHashLabel], "<hash "+generation(o)+">") // the first pair wins
	}
	return strings.NewReplacer(pairs...)
}

// plain is one object as YAML. Hashes are replaced before: YAML quotes those that look like numbers, such as 12e45678.
func plain(kind string, o *unstructured.Unstructured, hashes *strings.Replacer) string {
	switch kind {
	case pods:
		var pod corev1.Pod
		convert(o, &pod)
		return hashes.Replace(fmt.Sprintf("labels: %v\nready: %t, going: %t\nspec: %v\n", pod.Labels, ready(&pod), pod.DeletionTimestamp != nil,
			pod.Spec.Containers[0].Image))
	case endpoints:
		var slice discoveryv1.EndpointSlice
		convert(o, &slice)
		return fmt.Sprintf("service: %s\nendpoints: %d, ready: %d\n", slice.Labels[discoveryv1.LabelServiceName], len(slice.Endpoints),
			len(readyEndpoints(&slice)))
	}
	raw, err := json.Marshal(o.Object)
	if err != nil {
		panic(err) // it was read from JSON
	}
	var tree map[string]any
	if err := json.Unmarshal([]byte(hashes.Replace(string(raw))), &tree); err != nil {
		panic(err)
	}
	if status, ok := tree["status"].(map[string]any); ok && status["observedGeneration"] != nil {
		metadata, _ := tree["metadata"].(map[string]any)
		status["observed"] = status["observedGeneration"] == metadata["generation"]
	}
	var target shipper.CheckTarget
	if kind == kindOf("checktargets") && convert(o, &target) && !shipper.ConditionTrue(target.Status.Conditions, shipper.TargetReady) {
		// once a check has failed in one cluster, how far it is in others depends on who was first
		unstructured.RemoveNestedField(tree, "status", "results")
	}
	prune(tree)
	text, err := yaml.Marshal(tree)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// accidental are fields that differ between runs.
var accidental = []string{
	"resourceVersion", "creationTimestamp", "generation", "observedGeneration", "managedFields", "lastTransitionTime",
	"lastUpdateTime", "message", "clusterIP", "clusterIPs", "deployment.kubernetes.io/revision",
	"pod",      // the example in a capacity report
	"duration", // of a rollout
	"requestedTime", "convergedTime", "deadlineTime", "availablePods", "time", "lastHeartbeatTime", "startTime", "finishTime",
}

// prune removes the accidental fields.
func prune(tree any) {
	switch t := tree.(type) {
	case map[string]any:
		for _, key := range accidental {
			delete(t, key)
		}
		if t["action"] != nil || t["phase"] != nil { // of a failure, or of a check: the cluster that was first, or last
			delete(t, "cluster")
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

// moment is a time in a text, such as that of a move in the annotation release.moved.
var moment = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z?`)

// identifier is a UID, a digest, or the end of a name that has a hash of a UID: of a run that another triggered, or of the revision of a
// Shipyard.
var identifier = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|` +
	`\b[0-9a-f]{64}\b|\b[0-9a-f]{32}\b|-\w+\.[0-9a-f]{8}\b|-[0-9a-f]{10}\b`)

// failedIn is the cluster that was first to fail, in the annotation app.failed.
var failedIn = regexp.MustCompile(`"cluster":"cluster-\d"`)

// random are the digests of a Secret that each cluster renders for itself, and of an anchor's list, which has such a digest in it.
var random = regexp.MustCompile(`("name":"password","digest":|InventoryDigest: )"?[0-9a-f]+"?`)

// anonymous numbers ids and digests in the order of their appearance.
func anonymous(text string) string {
	seen := map[string]string{}
	text = random.ReplaceAllString(text, `$1""`)
	return identifier.ReplaceAllStringFunc(failedIn.ReplaceAllString(moment.ReplaceAllString(text, "<time>"), ""), func(id string) string {
		if seen[id] == "" {
			seen[id] = fmt.Sprintf("<id %d>", len(seen)+1)
		}
		return seen[id]
	})
}

// ready reports whether a Pod is ready and stays.
func ready(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// readyEndpoints are the names of the Pods that are ready endpoints.
func readyEndpoints(slice *discoveryv1.EndpointSlice) (names []string) {
	for _, e := range slice.Endpoints {
		if e.TargetRef != nil && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
			names = append(names, e.TargetRef.Name)
		}
	}
	return names
}
