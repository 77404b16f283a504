// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"fmt"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Named is how the newest Release of app names the objects of its chart, also one that is being deleted: its objects are still there. known
// is false if app has no Release of a chart. existing are those of Next.
func Named(app *shipper.Application, existing []*shipper.Release) (naming shipper.ChartNaming, known bool) {
	ordered, broken := SortByGeneration(Own(app, existing))
	for _, rel := range append(broken, ordered...) {
		if rel.Spec.Environment.Resources == nil {
			naming, known = rel.Spec.Environment.Chart.Naming, true
		}
	}
	return Recorded(naming), known
}

// Undecided reports whether neither app's template nor a Release says how the objects of the chart are named: the first Release needs the
// chart for that.
func Undecided(app *shipper.Application, existing []*shipper.Release) bool {
	if app.Spec.Template.Resources != nil || app.Spec.Template.Chart.Naming != "" {
		return false
	}
	_, known := Named(app, existing)
	return !known
}

// Recorded is a naming as the environment of a Release has it: absent for NamingByRelease, as in Releases of the original.
func Recorded(naming shipper.ChartNaming) shipper.ChartNaming {
	if naming == shipper.NamingByRelease {
		return ""
	}
	return naming
}

// naming is that of a new Release. It fails if the template asks for another one than that of app's Releases.
func naming(app *shipper.Application, existing []*shipper.Release) (shipper.ChartNaming, error) {
	asked := app.Spec.Template.Chart.Naming
	named, known := Named(app, existing)
	switch {
	case app.Spec.Template.Resources != nil:
		return "", nil
	case known && asked != "" && Recorded(asked) != named:
		return "", fmt.Errorf("spec.template.chart.naming is %s, and its Releases are named otherwise: leave the field out", asked)
	case known:
		return named, nil
	}
	return Recorded(asked), nil
}
