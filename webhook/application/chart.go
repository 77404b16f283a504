// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/values"
	"shipper.dev/shipper/webhook/response"
	"shipper.dev/shipper/webhook/templatecheck"
)

// judgeTime bounds the wait for the chart to be fetched and rendered. A slower chart is admitted, and conditions of the Release
// report its faults.
const judgeTime = time.Second

// judgeChart refuses a Release that none of its chosen clusters can run, and warns of doubts. It does not know values from ConfigMaps
// and Secrets, nor, without clusters for the Release, the values that depend on them.
func (w *Webhook) judgeChart(
	ctx context.Context, req *admission.Request, a *response.Response, app *shipper.Application, rel *shipper.Release,
	chosen []string,
) error {
	template := &app.Spec.Template
	if template.Resources != nil || req.UserInfo.Username == w.Guard.Reconciler || len(template.ValuesFrom) > 0 ||
		app.DeletionTimestamp != nil || templatecheck.Wanted(template.ClusterRequirements) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, judgeTime)
	defer cancel()
	layers, choice := values.LayersOf(template), []string(nil)
	if layers.Differ() {
		choice = chosen
	}
	places := distinct(w.places(layers, choice))
	doubts, failures := remarks{of: len(places)}, remarks{of: len(places)}
	for _, place := range places {
		found, err := w.Charts.Judge(ctx, rel, place)
		if err, ok := errors.AsType[*chart.Error](err); ok && !err.Retry {
			failures.add(place, err.Message)
		}
		for _, doubt := range found {
			doubts.add(place, doubt)
		}
	}
	if failed := failures.places(); len(failed) == len(places) && (len(choice) > 0 || !layers.Differ()) {
		return response.Invalidate(kind, app.Name, field.ErrorList{
			field.Invalid(chartPath, template.Chart.Name+" "+template.Chart.Version, failures.list[0].text),
		})
	}
	for _, text := range append(failures.texts(), doubts.texts()...) { // other clusters may be chosen later, with other values
		a.Warn("%s%s", shipper.MightNotRollOut, text)
	}
	return nil
}

// remarks are findings in some of the places with different values, each once.
type remarks struct {
	// of is the number of places that were checked.
	of   int
	list []remark
}

type remark struct {
	text string
	in   []values.Place
}

func (r *remarks) add(in values.Place, text string) {
	for i := range r.list {
		if r.list[i].text == text {
			r.list[i].in = append(r.list[i].in, in)
			return
		}
	}
	r.list = append(r.list, remark{text: text, in: []values.Place{in}})
}

// places are all places with findings.
func (r *remarks) places() []values.Place {
	var out []values.Place
	for i := range r.list {
		out = append(out, r.list[i].in...)
	}
	return distinct(out)
}

// texts are the findings, with the names of their places unless all have them.
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

// nameOf names a place by the part that makes its values differ.
func nameOf(place values.Place) string {
	switch {
	case place.Cluster != "":
		return place.Cluster
	case place.Region != "":
		return "region " + place.Region
	}
	return "clusters without values of their own"
}
