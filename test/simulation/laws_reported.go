// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// reportedFor is how long after a status reported that a step is achieved law 17 is judged.
const reportedFor = 5 * time.Second

// reported is that a Release of an Application was reported as complete, or as waiting for a command.
type reported struct {
	release string
	at      time.Time
	// followed is set when the Application's status followed.
	followed bool
}

// reports is law 17. Only undisturbed runs are judged: a process that takes over writes what the one before it could not. A status that
// follows soon after a user's write to an application cluster may report the state before it: it is not judged.
func (l *laws) reports(c change) {
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
		if l.reported = map[string]*reported{}; c.host != management && c.by.process() == userName {
			l.touched = c.at
		}
		return
	case c.host != management:
		return
	case c.kind == kindOf("clusters") && c.object == nil: // one has left
		l.reported = map[string]*reported{}
		return
	case c.old == nil, c.object == nil, c.old.GetGeneration() != c.object.GetGeneration():
		delete(l.reported, app)
		return
	case c.kind == kindOf("releases") && reportsAchieved(c.object) && !reportsAchieved(c.old):
		if c.at.Sub(l.touched) > mostStale {
			l.reported[app] = &reported{release: c.object.GetName(), at: c.at}
		}
		return
	case c.kind != kindOf("releases") && c.kind != kindOf("applications"):
		return
	}
	t := l.reported[app]
	if t == nil || c.at.Sub(t.at) > reportedFor {
		return
	}
	if c.kind == kindOf("applications") && !t.followed {
		t.followed = true
		return
	}
	l.offend(17, "%s %s is written %s after %s was reported to have achieved its step:\n%s",
		c.kind, c.object.GetName(), c.at.Sub(t.at), t.release, cmp.Diff(c.old.Object["status"], c.object.Object["status"]))
}

// reportsAchieved tells whether a status reports a Release as complete and waiting for nothing, or as waiting for a command. A complete one
// that serves alone again after an abort waits for its capacity until then.
func reportsAchieved(o *unstructured.Unstructured) bool {
	var rel shipper.Release
	convert(o, &rel)
	waits := rel.Status.Strategy != nil && rel.Status.Strategy.State.WaitingForCommand == shipper.StrategyStateTrue
	return waits || shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseComplete) &&
		shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseStrategyExecuted)
}
