// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// clustersOf are the clusters of both Releases, by name. incumbent may be nil.
func clustersOf(o *observed, newest, incumbent *shipper.Release) []Cluster {
	names := map[string]bool{}
	contender, before := sides(o, newest, names), map[string]*clusterSide(nil)
	if incumbent != nil {
		before = sides(o, incumbent, names)
	}
	var out []Cluster
	for _, name := range slices.Sorted(maps.Keys(names)) {
		c := Cluster{Name: name, Incumbent: before[name], Objects: objectsOf(o, newest.Name, name), Notes: notes(o, newest.Name, name)}
		c.Notes = addNote(addNote(c.Notes, unhealthyNote(o, newest.Name, name)), driftNote(o, newest.Name, name))
		if side := contender[name]; side != nil {
			c.Contender = *side
		}
		if incumbent != nil {
			for _, note := range append(notes(o, incumbent.Name, name), driftNote(o, incumbent.Name, name)) {
				c.Notes = addNote(c.Notes, note)
			}
		}
		c.Moving = moving(o, newest, incumbent, name)
		out = append(out, c)
	}
	return out
}

func addNote(notes []string, note string) []string {
	if note == "" || slices.Contains(notes, note) {
		return notes
	}
	return append(notes, note)
}

// sides are the Pods and traffic of a Release by cluster; it adds the clusters to names.
func sides(o *observed, rel *shipper.Release, names map[string]bool) map[string]*clusterSide {
	out := map[string]*clusterSide{}
	at := func(cluster string) *clusterSide {
		names[cluster] = true
		if out[cluster] == nil {
			out[cluster] = &clusterSide{}
		}
		return out[cluster]
	}
	for _, name := range stamp.Clusters(rel) {
		at(name)
	}
	if ct := o.capacity[rel.Name]; ct != nil {
		for _, c := range ct.Spec.Clusters {
			s := at(c.Name)
			s.All, s.Wanted, s.asFound = c.TotalReplicaCount, strategy.Pods(c.TotalReplicaCount, c.Percent), c.AsFound
		}
		for _, c := range ct.Status.Clusters {
			at(c.Name).Ready = c.AvailableReplicas
		}
	}
	if tt := o.traffic[rel.Name]; tt != nil {
		for _, c := range tt.Status.Clusters {
			at(c.Name).Weight = c.AchievedTraffic
		}
	}
	return out
}

// notes are the problems of a Release in a cluster.
func notes(o *observed, release, cluster string) []string {
	var out []string
	add := func(text string) { out = addNote(out, text) }
	ct, tt := cmp.Or(o.capacity[release], &shipper.CapacityTarget{}), cmp.Or(o.traffic[release], &shipper.TrafficTarget{})
	found := slices.ContainsFunc(ct.Status.Clusters, func(c shipper.ClusterCapacityStatus) bool {
		return c.Name == cluster && c.AvailableReplicas > 0
	})
	for _, c := range ct.Spec.Clusters {
		if c.Name == cluster && c.AsFound && found && !waitsForItsTurn(o, release, cluster) { // a Release that was just made has none
			add("pods of " + release + " are as they were found: Shipper looks at them before it asks for any number")
		}
	}
	for _, c := range ct.Status.Clusters {
		if c.Name == cluster {
			add(inoperative(c.Conditions))
			add(podsNote(c.SadPods))
		}
	}
	for _, c := range tt.Status.Clusters {
		if c.Name == cluster {
			add(inoperative(c.Conditions))
			add(withoutEndpoints(c.Conditions))
		}
	}
	in := installedIn(o, release, cluster).Conditions
	add(inoperative(in))
	add(notInstalled(in))
	return out
}

// waitsForItsTurn reports whether nothing of a Release was requested in a cluster because others of its wave come first.
func waitsForItsTurn(o *observed, release, cluster string) bool {
	i := slices.IndexFunc(o.releases, func(rel *shipper.Release) bool { return rel.Name == release })
	it := o.installed[release]
	return i >= 0 && position.HasWaves(o.releases[i]) && it != nil && !slices.Contains(it.Spec.Clusters, cluster)
}

// notInstalled is why a Release is not installed in a cluster, beyond that it is in progress; empty if nothing is wrong.
func notInstalled(conditions []shipper.Condition) string {
	c := shipper.FindCondition(conditions, shipper.TargetReady)
	if c == nil || c.Status != corev1.ConditionFalse || c.Reason == "" || c.Reason == shipper.InProgress {
		return ""
	}
	return strings.TrimSuffix(c.Reason+": "+c.Message, ": ")
}

// withoutEndpoints is a TrafficTarget's message about a Service without endpoints.
func withoutEndpoints(conditions []shipper.Condition) string {
	if c := shipper.FindCondition(conditions, shipper.TargetReady); c != nil && c.Reason == shipper.ServiceWithoutEndpoints {
		return c.Message
	}
	return ""
}

func inoperative(conditions []shipper.Condition) string {
	if c := shipper.FindCondition(conditions, shipper.TargetOperational); c != nil && c.Status == corev1.ConditionFalse {
		return cmp.Or(c.Message, c.Reason)
	}
	return ""
}

// podsNote counts unready Pods, with the reason of the first.
func podsNote(pods []shipper.PodStatus) string {
	if len(pods) == 0 {
		return ""
	}
	noun := "pods"
	if len(pods) == 1 {
		noun = "pod"
	}
	return fmt.Sprintf("%d %s %s", len(pods), noun, podReason(pods[0]))
}

// podReason is why a Pod is not ready.
func podReason(pod shipper.PodStatus) string {
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "" && c.State.Waiting.Reason != "ContainerCreating":
			return fmt.Sprintf("%s %q", c.State.Waiting.Reason, c.Image)
		case c.State.Terminated != nil && c.State.Terminated.ExitCode != 0:
			return fmt.Sprintf("%s (exit code %d) %q", cmp.Or(c.State.Terminated.Reason, "ended"), c.State.Terminated.ExitCode, c.Image)
		}
	}
	return cmp.Or(pod.Condition.Reason, string(pod.Phase), "not ready")
}

// maxNamed is how many objects a note names.
const maxNamed = 3

// objectCount counts installed objects.
type objectCount struct {
	Total   int32 `json:"total"`
	Healthy int32 `json:"healthy"`
}

// installedIn is a cluster's status in a Release's InstallationTarget; empty if it has none.
func installedIn(o *observed, release, cluster string) (in shipper.ClusterInstallationStatus) {
	if it := o.installed[release]; it != nil {
		for _, c := range it.Status.Clusters {
			if c.Name == cluster {
				return c
			}
		}
	}
	return in
}

func objectsOf(o *observed, release, cluster string) *objectCount {
	in := installedIn(o, release, cluster).Objects
	if in == nil {
		return nil
	}
	return &objectCount{Total: in.Total, Healthy: in.Healthy}
}

// unhealthyNote names some objects of a Release in a cluster that are not healthy. Deployments in progress are left to notes about Pods.
func unhealthyNote(o *observed, release, cluster string) string {
	in := installedIn(o, release, cluster).Objects
	if in == nil {
		return ""
	}
	var named []string
	silent := int32(0)
	for _, u := range in.Unhealthy {
		if u.Kind == "Deployment" && u.Status == "InProgress" {
			silent++
			continue
		}
		text := fmt.Sprintf("%s %s %s", u.Kind, u.Name, u.Status)
		if u.Reason != "" {
			text += " (" + u.Reason + ")"
		}
		named = append(named, text)
	}
	if len(named) == 0 {
		return ""
	}
	bad := in.Total - in.Healthy - silent
	text := strings.Join(named[:min(len(named), maxNamed)], ", ")
	if more := int(bad) - min(len(named), maxNamed); more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return fmt.Sprintf("%d of %d objects not healthy: %s", bad, in.Total, text)
}
