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
)

// judgeTime is how long a write waits for its chart to be fetched and rendered. What is not known by then is admitted, and the Release
// says later what is wrong with it.
const judgeTime = time.Second

// judgeChart refuses a Release that no cluster can run, and warns of what is doubtful. Of values from ConfigMaps and Secrets nothing is
// known here.
func (w *Webhook) judgeChart(
	ctx context.Context, req *admission.Request, a *answer.Answer, app *shipper.Application, rel *shipper.Release,
) error {
	template := &app.Spec.Template
	if req.UserInfo.Username == w.Guard.Reconciler || len(template.ValuesFrom) > 0 || app.DeletionTimestamp != nil {
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
	for _, place := range places {
		if place = layers.Distinct(place); slices.Contains(judged, place) {
			continue
		}
		judged = append(judged, place)
		doubts, err := w.Charts.Judge(ctx, rel, place)
		if told, ok := errors.AsType[*chart.Error](err); ok && !told.Retry {
			return answer.Invalidate(kind, app.Name, field.ErrorList{
				field.Invalid(chartPath, template.Chart.Name+" "+template.Chart.Version, told.Message),
			})
		}
		for _, doubt := range doubts {
			a.Warn("%s%s", shipper.MayNotRollOut, doubt)
		}
	}
	return nil
}
