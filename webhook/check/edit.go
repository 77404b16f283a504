// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	rules "shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/check/definition"
	"shipper.dev/shipper/webhook/response"
)

// maxTried bounds the Releases whose uses of a Check are validated when it changes.
const maxTried = 20

// warnOfUse warns of the Applications that name a Check, and of those whose arguments its new definition does not take.
func (w *Webhook) warnOfUse(ctx context.Context, a *response.Response, now *shipper.Check) error {
	newest, err := w.State.NamingCheck(keyOf(now))
	if err != nil || len(newest) == 0 {
		return err
	}
	a.Warn("%s: their next runs use the new definition", nameUsers(newest))
	e := &edited{key: keyOf(now), spec: &now.Spec, shared: w.Shared, found: map[string]string{},
		parser: definition.NewParser(now.Namespace)}
	for _, rel := range newest[:min(len(newest), maxTried)] {
		if why := e.refuses(ctx, rel); why != "" {
			a.Warn("Application %s would hold: %s", applicationOf(rel), why)
		}
	}
	return nil
}

// edited is a Check with a new definition.
type edited struct {
	key    types.NamespacedName
	spec   *shipper.CheckSpec
	shared string
	// found is the error for each use that was validated; empty if there is none.
	found  map[string]string
	parser *definition.Parser
}

// refuses is why a check of a Release cannot run with the new definition; empty if all of them can.
func (e *edited) refuses(ctx context.Context, rel *shipper.Release) string {
	for _, c := range rel.Spec.Environment.Strategy.AllChecks() {
		if key, err := rules.KeyOf(c.Check, rel.Namespace, e.shared); err != nil || key != e.key {
			continue
		}
		if why := e.validate(ctx, c); why != "" {
			return why
		}
	}
	return ""
}

// validate is the first error of a use; empty if there is none, or no time to find out. Uses with the same arguments are validated once,
// and at most maxUses different ones.
func (e *edited) validate(ctx context.Context, c shipper.StepCheck) string {
	use := fmt.Sprintf("%t %q", c.DryRun, c.Args)
	why, known := e.found[use]
	if known || len(e.found) == maxUses {
		return why
	}
	values, errs := resolve(e.spec, c.Args, field.NewPath("args"))
	// A measurement that fails holds nothing if it is a dry run. A run that cannot begin holds the step.
	if len(errs) == 0 && !c.DryRun {
		var busy error
		if errs, busy = definition.Substituted(ctx, e.spec, specPath, values, e.parser); busy != nil || e.parser.Exhausted() {
			return ""
		}
	}
	if len(errs) > 0 {
		why = errs[0].Field + ": " + errs[0].Detail
	}
	e.found[use] = why
	return why
}
