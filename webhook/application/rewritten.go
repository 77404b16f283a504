// SPDX-License-Identifier: Apache-2.0

package application

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// noteRewriter records the user who writes a template with approvals, or one that takes a Strategy, in another way, such as a default that
// is spelled out. It makes no Release, but the policy control.shipper.booking.com, which compares texts, demands the name of the user who
// changes such a template.
func (w *Webhook) noteRewriter(req *admission.Request, app *shipper.Application) {
	strategy := app.Spec.Template.Strategy
	if !strategy.AsksForApprovals() && stamp.From(&app.Spec.Template) == nil {
		return
	}
	if rewritten(req, app) {
		w.noteRequester(req, app)
	}
}

// rewritten reports whether the text of the template differs from the stored one, apart from what this webhook writes into it. app is as
// the webhook leaves it.
func rewritten(req *admission.Request, app *shipper.Application) bool {
	now, was := templateOf(req.Object.Raw), templateOf(req.OldObject.Raw)
	text, err := json.Marshal(app.Spec.Template)
	var left map[string]any
	if err != nil || json.Unmarshal(text, &left) != nil || now == nil || was == nil {
		return true
	}
	set := func(to, from map[string]any, key string) {
		if delete(to, key); from[key] != nil {
			to[key] = from[key]
		}
	}
	set(now, left, "valuesDigests")
	if now["strategy"] == nil {
		set(now, left, "strategy")
	}
	from, ok := of(now, "strategy")["from"].(map[string]any)
	if taken, is := of(left, "strategy")["from"].(map[string]any); ok && is {
		set(from, taken, "digest")
	}
	chart, ok := now["chart"].(map[string]any)
	if resolved, is := left["chart"].(map[string]any); ok && is {
		set(chart, resolved, "version")
	}
	return !equality.Semantic.DeepEqual(now, was)
}

// of is a map in another; nil if there is none.
func of(in map[string]any, key string) map[string]any {
	out, _ := in[key].(map[string]any)
	return out
}

// templateOf is the template of an Application as it was sent; nil if there is none.
func templateOf(raw []byte) map[string]any {
	var app struct {
		Spec struct {
			Template map[string]any `json:"template"`
		} `json:"spec"`
	}
	if json.Unmarshal(raw, &app) != nil {
		return nil
	}
	return app.Spec.Template
}
