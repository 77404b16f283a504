// SPDX-License-Identifier: Apache-2.0

package application

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// validateNaming refuses another naming than that of the Application's Releases: objects of both could not run beside each other.
func (w *Webhook) validateNaming(app, old *shipper.Application, specChanged bool) (field.ErrorList, error) {
	asked := app.Spec.Template.Chart.Naming
	if asked == "" || old != nil && !specChanged && old.Spec.Template.Chart.Naming == asked {
		return nil, nil
	}
	rels, err := w.State.Releases(key(app))
	if err != nil {
		return nil, err
	}
	named, known := stamp.Named(app, rels)
	if !known || named == stamp.Recorded(asked) {
		return nil, nil
	}
	return field.ErrorList{field.Invalid(chartPath.Child("naming"), asked, fmt.Sprintf(
		"this Application has Releases whose objects are named by %s, and later Releases follow them: leave the field out; to change it, "+
			"delete the Application with its Releases and create it again: kubectl delete app %s -n %s",
		cmp.Or(named, shipper.NamingByRelease), app.Name, app.Namespace))}, nil
}
