// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	rules "shipper.dev/shipper/apis/rules/check"
	"shipper.dev/shipper/apis/rules/preview"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/response"
)

var strategyPath = field.NewPath("spec", "template", "strategy")

// validateChecks returns the errors of the checks that a new template names. The environment of an earlier Release, and an Application from
// a backup, come back although a Check is gone: the user is warned.
func (w *Webhook) validateChecks(
	ctx context.Context, a *response.Response, app, old *shipper.Application,
) (field.ErrorList, error) {
	if old != nil && stamp.SameEnvironment(&app.Spec.Template, &old.Spec.Template) {
		return nil, nil
	}
	path, taken := strategyPath, stamp.From(&app.Spec.Template) != nil
	if taken {
		path = field.NewPath("spec")
	}
	errs, err := w.Checks.Validate(ctx, app.Spec.Template.Strategy, app.Namespace, path)
	if err != nil || len(errs) == 0 {
		return nil, err
	}
	if taken {
		errs = ofStrategy(app, errs)
	}
	back := old == nil && app.Annotations[shipper.AppHighestObservedGenerationAnnotation] != ""
	if !back {
		rels, err := w.releases(app)
		if err != nil {
			return nil, err
		}
		back = slices.ContainsFunc(rels, func(rel *shipper.Release) bool {
			return stamp.SameTemplate(&app.Spec.Template, &rel.Spec.Environment)
		})
	}
	if !back {
		return errs, nil
	}
	a.Warn("this was admitted before, and its checks cannot run now: %v", errs[0])
	return nil, nil
}

// warnOfServers warns of checks that have no server to ask in some of the chosen clusters, each once.
func (w *Webhook) warnOfServers(
	ctx context.Context, a *response.Response, app *shipper.Application, chosen []string, all []shipper.Cluster,
) {
	s := app.Spec.Template.Strategy
	if s == nil {
		return
	}
	used := s.AllChecks()
	clusters := slices.DeleteFunc(slices.Clone(all), func(c shipper.Cluster) bool { return !slices.Contains(chosen, c.Name) })
	var warned []string
	for _, c := range used {
		found := w.Checks.Find(ctx, c.Check, app.Namespace)
		if found == nil || slices.Contains(warned, c.Check) {
			continue
		}
		warned = append(warned, c.Check)
		if why := rules.WithoutServer(found, clusters); why != "" {
			a.Warn("check %s: %s", c.Check, why)
		}
	}
}

// describeChecks describes the checks of each step of the plan of a new Release.
func (w *Webhook) describeChecks(ctx context.Context, rel *shipper.Release, steps []preview.Step) {
	s := rel.Spec.Environment.Strategy
	for i := range steps {
		checks := s.ChecksAt(int32(steps[i].Index))
		if steps[i].Index == int(rel.Spec.TargetStep) {
			checks = rules.Of(rel)
		}
		for _, c := range checks {
			steps[i].Checks = append(steps[i].Checks,
				preview.Check(c, w.Checks.Find(ctx, c.Check, rel.Namespace), s.Steps[steps[i].Index].After))
		}
	}
}
