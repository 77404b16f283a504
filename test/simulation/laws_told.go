// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// delivered notes which blocks a process sees by a watch.
func (l *laws) delivered(process, path string, raw []byte) {
	if !strings.HasSuffix(path, "/rolloutblocks") {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen[process] == nil {
		l.seen[process] = map[string]time.Time{}
	}
	for _, o := range l.world.hosts[management].all(kindOf("rolloutblocks")) {
		name := o.GetName()
		if l.seen[process][name].IsZero() && bytes.Contains(raw, []byte(`"name":"`+name+`"`)) {
			l.seen[process][name] = time.Now()
		}
	}
}

// unblocked is law 3. Blocks that allow some changes, select some objects or are overridden are not judged.
func (l *laws) unblocked(c change, does string) {
	process := c.by.process()
	if !l.world.Network.calm(process, told) {
		return
	}
	for _, o := range l.world.hosts[management].all(kindOf("rolloutblocks")) {
		var b shipper.RolloutBlock
		convert(o, &b)
		since := l.seen[process][b.Name]
		if since.IsZero() || c.by.at.Sub(since) < told || !block.Bears(&b, namespace, shipper.GlobalBlocksNamespace) ||
			!block.Active(&b, c.by.at.Add(-told)) || !block.Active(&b, c.at) || len(b.Spec.Allow) > 0 || b.Spec.Scope != nil ||
			b.Spec.Enforcement == shipper.RolloutBlockWarn || b.Spec.Enforcement == shipper.RolloutBlockAudit ||
			c.any().GetAnnotations()[shipper.RolloutBlockOverrideAnnotation] != "" {
			continue
		}
		l.offend(3, "%s %s, %s after it saw block %s", process, does, c.by.at.Sub(since), b.Name)
	}
}

// waiting are types of conditions that are True when nothing is awaited.
var waiting = []string{
	shipper.ReleaseScheduled, shipper.ReleaseStrategyExecuted, shipper.ReleaseComplete, shipper.ReleaseAdvancing, shipper.ReleaseHealthy,
	shipper.TargetReady, shipper.TargetOperational, shipper.ApplicationReleaseSynced, shipper.ApplicationValidHistory,
	shipper.ApplicationResourcesSelected, shipper.ClusterJoined, shipper.ClusterPropertiesKnown,
	shipper.StrategyContenderAchievedInstallation, shipper.StrategyContenderAchievedCapacity, shipper.StrategyContenderAchievedTraffic,
	shipper.StrategyContenderAchievedReadiness, shipper.StrategyContenderAchievedApprovals, shipper.StrategyContenderAchievedChecks,
	shipper.StrategyIncumbentAchievedCapacity, shipper.StrategyIncumbentAchievedTraffic,
}

// explains is law 10.
func (l *laws) explains(c change) {
	if c.object == nil || !isReconciler(c.by.process()) || !strings.HasPrefix(c.kind, shipper.GroupName+"/") {
		return
	}
	for _, path := range [][]string{{"status", "conditions"}, {"status", "strategy", "conditions"}} {
		conditions, _, _ := unstructured.NestedSlice(c.object.Object, path...)
		for _, one := range conditions {
			m, _ := one.(map[string]any)
			kind, _ := m["type"].(string)
			reason, _ := m["reason"].(string)
			if m["status"] == "True" || !slices.Contains(waiting, kind) || kind == shipper.ReleaseAdvancing && reason == shipper.AdvancingComplete {
				continue
			}
			message, _ := m["message"].(string)
			if reason == "" || message == "" {
				l.offend(10, "%s %s: condition %s is %v, reason %q, message %q", c.kind, c.object.GetName(), kind, m["status"], reason, message)
			}
		}
	}
}
