// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/placement"
	"shipper.dev/shipper/apis/rules/preview"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/response"
)

// countTimeout bounds a dry run's wait for a chart to be fetched and rendered, to count its Pods. After that the plan shows
// percentages; the next dry run has the chart.
const countTimeout = 2 * time.Second

// maxClustersNamed is how many clusters a plan names; API servers shorten long warnings.
const maxClustersNamed = 8

// plan is the Release that an edit creates, beside the existing ones, oldest first, and its clusters.
type plan struct {
	next     *shipper.Release
	existing []*shipper.Release
	choice   placement.Decision
	// unplaced says why no clusters can be chosen for regions; nil when they can.
	unplaced error
	// undecided is true if the chart of next decides how its objects are named.
	undecided bool
}

// preview describes the result of a dry run: the new Release if it has a name, its clusters, its steps, and the blocks that may stop it.
// old is app before, or nil.
func (w *Webhook) preview(
	ctx context.Context, req *admission.Request, a *response.Response, app, old *shipper.Application, p plan,
) error {
	env := &app.Spec.Template
	if !awaitsContent(&p.next.Spec.Environment) {
		a.Warn(shipper.PlannedRelease+"%s of %s", p.next.Name, describePinned(app, p.next))
	}
	if from := stamp.From(env); from != nil {
		a.Warn(shipper.Planned+"its strategy is that of Strategy %s, sha256 %s", strategyKey(app), from.Digest)
	}
	if p.unplaced == nil {
		for _, line := range describeChoice(env.ClusterRequirements.Placement, p.choice) {
			a.Warn(shipper.Planned+"%s", line)
		}
	}
	if line := w.planOverrides(ctx, app, p); line != "" {
		a.Warn(shipper.Planned+"%s", line)
	}
	incumbent := strategy.LastComplete(p.existing)
	var lines []string
	if p.next.Spec.Environment.Chart.Naming == shipper.NamingByApplication {
		lines = w.stepsOfLots(ctx, env, p.next, incumbent, p.choice.Chosen)
	} else if env.Resources == nil {
		lines = w.steps(ctx, env, p.next, incumbent, p.choice.Chosen)
	} else if line := describeRolling(env, p.existing, len(p.choice.Chosen)); line != "" {
		lines = append(lines, line)
	}
	for _, line := range lines {
		a.Warn(shipper.Planned+"%s", line)
	}
	if incumbent != nil {
		a.Warn(shipper.Planned+"the incumbent is Release %s", incumbent.Name)
	}
	return w.previewBlocks(ctx, req, a, app, old)
}

// describeRolling describes how many clusters a Release with resources changes at the same time; empty when it has none yet.
func describeRolling(env *shipper.ReleaseEnvironment, existing []*shipper.Release, clusters int) string {
	switch {
	case clusters == 0, env.Strategy != nil && len(env.Strategy.Waves) > 0: // the waves are described beside it
		return ""
	case env.Apply != nil && env.Apply.Type == shipper.ApplyReportDiff:
		return fmt.Sprintf("of %s, all are compared at the same time, and nothing is written", count(clusters, "cluster"))
	case len(existing) == 0:
		return fmt.Sprintf("of %s, all are written at the same time: none has an earlier version", count(clusters, "cluster"))
	}
	return fmt.Sprintf("of %s, at most %d may be without a ready version at the same time; while clusters leave, at most %d more may have one",
		count(clusters, "cluster"), strategy.Slots(env, clusters), strategy.Surge(env, clusters))
}

// describePinned describes the pinned chart, or the content of resources, of the next Release.
func describePinned(app *shipper.Application, next *shipper.Release) string {
	if next.Spec.Environment.Resources != nil {
		return "resources, sha256 " + next.Spec.Environment.ResourcesDigest
	}
	c := app.Spec.Template.Chart
	out := fmt.Sprintf("chart %s %s", c.Name, c.Version)
	if raw := app.Annotations[shipper.AppChartVersionRawAnnotation]; raw != "" && raw != c.Version {
		out += fmt.Sprintf(" (%s)", raw)
	}
	if digest := app.Annotations[shipper.AppChartDigestAnnotation]; digest != "" {
		out += ", sha256 " + digest
	}
	return out
}

// steps describes the steps of a strategy; incumbent is nil when there is none. If clusters have different numbers of Pods, it
// shows percentages.
func (w *Webhook) steps(
	ctx context.Context, env *shipper.ReleaseEnvironment, rel, incumbent *shipper.Release, clusters []string,
) []string {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	counts, same, err := w.pods(ctx, rel, clusters)
	var differing []string
	if !same {
		differing = append(differing, perCluster(rel, clusters, counts))
	}
	var before []int32
	if incumbent != nil {
		n, same, failed := w.pods(ctx, incumbent, clusters)
		if before = n[:1]; err == nil {
			err = failed
		}
		if !same {
			differing = append(differing, perCluster(incumbent, clusters, n))
		}
	}
	out := w.describeSteps(ctx, rel, preview.Steps(env.Strategy, counts[:1], before), err == nil && len(differing) == 0)
	if failure := preview.Failure(env.Strategy, incumbent == nil); failure != "" {
		out = append(out, failure)
	}
	out = append(out, differing...)
	if err != nil {
		out = append(out, "Pods cannot be counted: "+err.Error())
	}
	return out
}

// describeSteps describes the steps of a Release, with percentages unless the numbers of Pods are the same in each cluster.
func (w *Webhook) describeSteps(ctx context.Context, rel *shipper.Release, steps []preview.Step, counted bool) []string {
	var out []string
	if first := int(rel.Spec.TargetStep); first > 0 && first < len(steps) {
		out = append(out, fmt.Sprintf("the first Release begins at step %d (firstRelease: %s)",
			first, rel.Spec.Environment.Strategy.FirstRelease))
		steps = steps[first:]
	}
	w.describeChecks(ctx, rel, steps)
	for _, step := range steps {
		if counted {
			out = append(out, step.String()+", in each cluster"+requests(rel, step)+step.Awaited())
		} else {
			out = append(out, step.Shares()+step.Awaited())
		}
	}
	return out
}

// requests is the share of the requests that Pods give the contender. Where objects are named by Application, each Service has its own.
func requests(rel *shipper.Release, step preview.Step) string {
	if rel.Spec.Environment.Chart.Naming == shipper.NamingByApplication {
		return ""
	}
	return step.Requests()
}

// previewBlocks warns of the next block that will stop the rollout.
func (w *Webhook) previewBlocks(
	ctx context.Context, req *admission.Request, a *response.Response, app, old *shipper.Application,
) error {
	c, err := w.change(ctx, req, app, old)
	if err != nil {
		return err
	}
	return w.BlockCheck.Preview(a, app.Namespace, block.Overrides(app.Annotations), c)
}

// warnOfUnneededOverrides warns of overrides without effect: their blocks do not stop this change.
func (w *Webhook) warnOfUnneededOverrides(
	ctx context.Context, req *admission.Request, a *response.Response, app, old *shipper.Application,
) error {
	overrides := block.Overrides(app.Annotations)
	if len(overrides) == 0 {
		return nil
	}
	c, err := w.change(ctx, req, app, old)
	if err != nil {
		return err
	}
	v, err := w.BlockCheck.Verdict(app.Namespace, overrides, c)
	if err != nil {
		return err
	}
	var vain []types.NamespacedName
	for _, o := range overrides {
		if !slices.Contains(block.Names(v.Overridden), o.Name) {
			vain = append(vain, o.Name)
		}
	}
	if len(vain) > 0 {
		a.Warn("the override of %s covers nothing now: what it names does not stop this change", block.FormatOverrides(vain))
	}
	return nil
}

func abridged(names []string) string {
	sorted := slices.Sorted(slices.Values(names))
	if len(sorted) > maxClustersNamed {
		return fmt.Sprintf("%s and %d more", strings.Join(sorted[:maxClustersNamed], ", "), len(sorted)-maxClustersNamed)
	}
	return strings.Join(sorted, ", ")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
