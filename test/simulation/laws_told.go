// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// toldFor is how long after a status said that a step is achieved law 17 is judged.
const toldFor = 5 * time.Second

// telling is that a Release of an Application was said to be complete, or to wait for a command.
type telling struct {
	release string
	at      time.Time
	// followed is set when the Application's status followed.
	followed bool
}

// tells is law 17. Only undisturbed runs are judged: whoever takes over writes what the life before could not.
func (l *laws) tells(c change) {
	if p := l.world.plan; !p.quiet() || p.KillKinds {
		return
	}
	app := c.any().GetLabels()[shipper.AppLabel]
	if c.kind == kindOf("applications") {
		app = c.any().GetName()
	}
	switch {
	case strings.HasPrefix(c.kind, "coordination.k8s.io/"), strings.HasPrefix(c.kind, "events.k8s.io/"):
		return
	case !isReconciler(c.by.process()): // a user, or something in a cluster
		l.told = map[string]*telling{}
		return
	case c.host != management:
		return
	case c.kind == kindOf("clusters") && c.object == nil: // one has left
		l.told = map[string]*telling{}
		return
	case c.old == nil, c.object == nil, c.old.GetGeneration() != c.object.GetGeneration():
		delete(l.told, app)
		return
	case c.kind == kindOf("releases") && isTold(c.object) && !isTold(c.old):
		l.told[app] = &telling{release: c.object.GetName(), at: c.at}
		return
	case c.kind != kindOf("releases") && c.kind != kindOf("applications"):
		return
	}
	t := l.told[app]
	if t == nil || c.at.Sub(t.at) > toldFor {
		return
	}
	if c.kind == kindOf("applications") && !t.followed {
		t.followed = true
		return
	}
	l.offend(17, "%s %s is written %s after %s was said to have achieved its step:\n%s", c.kind, c.object.GetName(), c.at.Sub(t.at), t.release,
		cmp.Diff(c.old.Object["status"], c.object.Object["status"]))
}

// isTold reports whether a Release is said to be complete and to wait for nothing, or to wait for a command. A complete one that serves
// alone again after an abort waits for its capacity until then.
func isTold(o *unstructured.Unstructured) bool {
	var rel shipper.Release
	convert(o, &rel)
	waits := rel.Status.Strategy != nil && rel.Status.Strategy.State.WaitingForCommand == shipper.StrategyStateTrue
	return waits || shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseComplete) &&
		shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseStrategyExecuted)
}
