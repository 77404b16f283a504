// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/webhook/answer"
	"shipper.dev/shipper/webhook/environment"
)

// judgeTime is how long a write waits for its chart to be fetched and rendered. A chart that takes longer is admitted, and conditions
// of the Release report its faults.
const judgeTime = time.Second

// judgeChart refuses a Release that none of its clusters can run, and warns of what is doubtful. Of values from ConfigMaps and Secrets
// nothing is known here.
func (w *Webhook) judgeChart(
	ctx context.Context, req *admission.Request, a *answer.Answer, app *shipper.Application, rel *shipper.Release,
) error {
	template := &app.Spec.Template
	if req.UserInfo.Username == w.Guard.Reconciler || len(template.ValuesFrom) > 0 || app.DeletionTimestamp != nil ||
		environment.Wanted(template.ClusterRequirements) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, judgeTime)
	defer cancel()
	layers, places := chart.LayersOf(template), []chart.Place{{}}
	if layers.Differ() {
		if choice, err := placement.Choose(app.Name, template.ClusterRequirements, w.Facts.Clusters()); err == nil && len(choice) > 0 {
			places = w.places(choice)
		}
	}
	var judged []chart.Place
	var failures []string
	for _, place := range places {
		if place = layers.Distinct(place); slices.Contains(judged, place) {
			continue
		}
		judged = append(judged, place)
		doubts, err := w.Charts.Judge(ctx, rel, place)
		if told, ok := errors.AsType[*chart.Error](err); ok && !told.Retry {
			failures = append(failures, told.Message)
		}
		for _, doubt := range doubts {
			a.Warn("%s%s", shipper.MayNotRollOut, doubt)
		}
	}
	if len(failures) > 0 && len(failures) == len(judged) {
		return answer.Invalidate(kind, app.Name, field.ErrorList{
			field.Invalid(chartPath, template.Chart.Name+" "+template.Chart.Version, failures[0]),
		})
	}
	for _, failure := range failures { // other clusters may be chosen later, with other values
		a.Warn("%s%s", shipper.MayNotRollOut, failure)
	}
	return nil
}
