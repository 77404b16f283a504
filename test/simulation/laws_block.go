// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"strings"
	"time"

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
	if !l.world.Network.calm(process, mostStale) {
		return
	}
	for _, o := range l.world.hosts[management].all(kindOf("rolloutblocks")) {
		var b shipper.RolloutBlock
		convert(o, &b)
		since := l.seen[process][b.Name]
		if since.IsZero() || c.by.at.Sub(since) < mostStale || !block.Bears(&b, namespace, shipper.GlobalBlocksNamespace) ||
			!block.Active(&b, c.by.at.Add(-mostStale)) || !block.Active(&b, c.at) || len(b.Spec.Allow) > 0 || b.Spec.Scope != nil ||
			b.Spec.Enforcement == shipper.RolloutBlockWarn || b.Spec.Enforcement == shipper.RolloutBlockAudit ||
			c.any().GetAnnotations()[shipper.RolloutBlockOverrideAnnotation] != "" {
			continue
		}
		l.offend(3, "%s %s, %s after it saw block %s", process, does, c.by.at.Sub(since), b.Name)
	}
}
