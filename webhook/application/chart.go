// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/webhook/response"
	"shipper.dev/shipper/webhook/templatecheck"
)

// judgeTime is how long a write waits for its chart to be fetched and rendered. A chart that takes longer is admitted, and conditions
// of the Release report its faults.
const judgeTime = time.Second

// judgeChart refuses a Release that none of its clusters can run, and warns of what is doubtful. Of values from ConfigMaps and Secrets
// nothing is known here; nor is it known which values a Release will have while there are no clusters for it.
func (w *Webhook) judgeChart(
	ctx context.Context, req *admission.Request, a *response.Response, app *shipper.Application, rel *shipper.Release,
) error {
	template := &app.Spec.Template
	if req.UserInfo.Username == w.Guard.Reconciler || len(template.ValuesFrom) > 0 || app.DeletionTimestamp != nil ||
		templatecheck.Wanted(template.ClusterRequirements) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, judgeTime)
	defer cancel()
	layers, choice := chart.LayersOf(template), []string(nil)
	if layers.Differ() {
		choice, _ = placement.Choose(app.Name, template.ClusterRequirements, w.State.Clusters()) // the Release will say why there is none
	}
	places := distinct(w.places(layers, choice))
	doubts, failures := remarks{of: len(places)}, remarks{of: len(places)}
	for _, place := range places {
		told, err := w.Charts.Judge(ctx, rel, place)
		if err, ok := errors.AsType[*chart.Error](err); ok && !err.Retry {
			failures.add(place, err.Message)
		}
		for _, doubt := range told {
			doubts.add(place, doubt)
		}
	}
	if failed := failures.places(); len(failed) == len(places) && (len(choice) > 0 || !layers.Differ()) {
		return response.Invalidate(kind, app.Name, field.ErrorList{
			field.Invalid(chartPath, template.Chart.Name+" "+template.Chart.Version, failures.list[0].text),
		})
	}
	for _, text := range append(failures.texts(), doubts.texts()...) { // other clusters may be chosen later, with other values
		a.Warn("%s%s", shipper.MayNotRollOut, text)
	}
	return nil
}

// remarks are what was found in some of the places that a Release has different values in, each once.
type remarks struct {
	// of is how many places were looked at.
	of   int
	list []remark
}

type remark struct {
	text string
	in   []chart.Place
}

func (r *remarks) add(in chart.Place, text string) {
	for i := range r.list {
		if r.list[i].text == text {
			r.list[i].in = append(r.list[i].in, in)
			return
		}
	}
	r.list = append(r.list, remark{text: text, in: []chart.Place{in}})
}

// places are all that something was found in.
func (r *remarks) places() []chart.Place {
	var out []chart.Place
	for i := range r.list {
		out = append(out, r.list[i].in...)
	}
	return distinct(out)
}

// texts names the places of what was not found in all of them.
func (r *remarks) texts() []string {
	var out []string
	for i := range r.list {
		text := r.list[i].text
		if len(r.list[i].in) < r.of {
			var names []string
			for _, place := range r.list[i].in {
				names = append(names, nameOf(place))
			}
			text = "in " + abridged(names) + ": " + text
		}
		out = append(out, text)
	}
	return out
}

// nameOf names a place by what makes its values differ from those of others.
func nameOf(place chart.Place) string {
	switch {
	case place.Cluster != "":
		return place.Cluster
	case place.Region != "":
		return "region " + place.Region
	}
	return "clusters without values of their own"
}
