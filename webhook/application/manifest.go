// SPDX-License-Identifier: Apache-2.0

package application

import (
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/response"
)

// warnOfCopy warns, and reports it, if an Application that is created waits for Releases as one that is restored from a backup: a copy of
// one for another namespace has the same annotation. own are its Releases, oldest first.
func warnOfCopy(a *response.Response, app *shipper.Application, own []*shipper.Release) bool {
	created := &shipper.Application{ObjectMeta: app.ObjectMeta} // the API server drops the status
	var newest *shipper.Release
	if len(own) > 0 {
		newest = own[len(own)-1]
	}
	if !stamp.Restoring(created, newest) {
		return false
	}
	highest := shipper.AppHighestObservedGenerationAnnotation
	a.Warn("the annotation %s is %q: the Application waits until its Release of this generation is restored from a backup, and nothing is "+
		"rolled out before; if this is a copy of another Application, delete it, and create it without the annotation",
		highest, app.Annotations[highest])
	return true
}
