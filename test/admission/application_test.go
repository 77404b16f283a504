// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
)

// application is a valid Application in namespace, whose chart is in r.
func application(namespace string, r *repository, edits ...func(*shipper.Application)) *shipper.Application {
	app := ask.Application(edits...)
	app.Namespace, app.UID = namespace, ""
	app.Spec.Template.Chart.RepoURL = r.URL
	return app
}

func TestAnApplicationIsCompleted(t *testing.T) {
	ns, repo, dev := namespace(t), startRepository(t, "0.0.1", "0.0.2", "1.0.0"), as(t, "dev")
	app := application(ns, repo, ask.Version("~0.0"))
	app.Spec.RevisionHistoryLimit = nil
	create(t, dev, app)
	t.Log(app.Annotations, app.Spec, dev.warnings())
}
