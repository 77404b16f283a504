// SPDX-License-Identifier: Apache-2.0

package lots

import (
	"cmp"
	"fmt"
	"strings"
)

// maxPortName bounds what of a port's name stays before its number: names have 63 bytes at most.
const maxPortName = 40

// MergePorts is spec.ports of a Service that incumbent and contender share: the ports of the newest chart, and those that only the
// incumbent's chart has, so that its clients keep them until the contender has all the traffic. Ports are the same if number and protocol
// are. Where both charts have a name for different ports, the newest chart's keeps it, and the other gets its number behind it; ports
// without a name get one, since Kubernetes requires names as soon as there are two.
//
// conflicts names the ports that are the same and lead elsewhere in the Pods: no Service serves both Releases then. alike reports whether
// two target ports, numbers or names, lead to the same in the Pods of both; nil compares them as texts.
func MergePorts(incumbent, newest []any, alike func(from, to string) bool) (merged []any, conflicts []string) {
	taken, names, nodes := map[string]map[string]any{}, map[string]bool{}, map[int64]bool{}
	for _, item := range newest {
		copied := map[string]any{}
		if port, ok := item.(map[string]any); ok {
			for field, value := range port {
				copied[field] = value
			}
			taken[PortKey(port)] = port
			names[text(port, "name")] = true
			if node, ok := port["nodePort"].(int64); ok {
				nodes[node] = true
			}
			item = copied
		}
		merged = append(merged, item)
	}
	for _, item := range incumbent {
		port, ok := item.(map[string]any)
		if !ok {
			continue
		}
		if same, found := taken[PortKey(port)]; found {
			if from, to := targetPort(port), targetPort(same); from != to && (alike == nil || !alike(from, to)) {
				conflicts = append(conflicts, fmt.Sprintf("port %s leads to %s in the incumbent and to %s in the newest Release: "+
					"give the port of the containers one name in both, and have the Service name it", PortKey(port), from, to))
			}
			continue
		}
		copied := map[string]any{}
		for field, value := range port {
			copied[field] = value
		}
		if name := text(port, "name"); name == "" || names[name] {
			copied["name"] = freeName(cmp.Or(name, "port"), port, names)
		}
		if node, ok := copied["nodePort"].(int64); ok && nodes[node] { // the newest chart gives it to another port
			delete(copied, "nodePort")
		}
		names[text(copied, "name")], taken[PortKey(port)] = true, port
		merged = append(merged, copied)
	}
	if len(merged) > 1 {
		for _, item := range merged {
			if port, ok := item.(map[string]any); ok && text(port, "name") == "" {
				port["name"] = freeName("port", port, names)
				names[text(port, "name")] = true
			}
		}
	}
	return merged, conflicts
}

// PortKey is number and protocol of a port, as in `53/UDP` and in the annotation of kept ports.
func PortKey(port map[string]any) string {
	return fmt.Sprint(port["port"]) + "/" + cmp.Or(text(port, "protocol"), "TCP")
}

// targetPort is where a port leads to in a Pod: a number or a name.
func targetPort(port map[string]any) string {
	if target := port["targetPort"]; target != nil && target != "" {
		return fmt.Sprint(target)
	}
	return fmt.Sprint(port["port"])
}

// freeName is a name for a port that none has: with its number, and if need be a count behind it.
func freeName(name string, port map[string]any, taken map[string]bool) string {
	numbered := fmt.Sprintf("%s-%v", strings.TrimRight(name[:min(len(name), maxPortName)], "-"), port["port"])
	free := numbered
	for n := 2; taken[free]; n++ {
		free = fmt.Sprintf("%s-%d", numbered, n)
	}
	return free
}
