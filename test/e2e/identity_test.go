// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
)

// TestAKindOrNameFromASecretReachesNoStatus publishes charts that take a kind, and then a name, from a Secret. Neither
// installs, and the conditions name the object by its position, not by the secret.
func TestAKindOrNameFromASecretReachesNoStatus(t *testing.T) {
	t.Parallel()
	s := begin(t, []string{west}, []string{westRegion})
	repository, err := charts.Start()
	s.Must("starting a repository", err)
	t.Cleanup(repository.Close)
	s.publishesIdentity(repository, "0.0.11", "apiVersion: example.com/v1\nkind: {{ .Values.message }}\nmetadata:\n  name: gadget\n")
	s.publishesIdentity(repository, "0.0.12", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Values.message }}_\n")
	owner, _, heard := s.keepsValues()
	app := s.fromSources()
	app.Spec.Template.Chart.RepoURL, app.Spec.Template.Chart.Version = repository.URL, "0.0.11"
	owner.applies(app)
	s.complains(s.App, shipper.ChartError, "object 3 is of a kind the cluster does not know")
	owner.Edits(func(app *shipper.Application) { app.Spec.Template.Chart.Version = "0.0.12" })
	s.complains(s.App, "installing object 1: the API server answers Invalid, for metadata.name (FieldValueInvalid)")
	said := heard.about()
	for _, list := range []client.ObjectList{
		&shipper.ApplicationList{}, &shipper.ReleaseList{}, &shipper.InstallationTargetList{}, &shipper.CapacityTargetList{},
		&shipper.TrafficTargetList{}, &eventsv1.EventList{},
	} {
		said = append(said, s.texts(world.Management, list))
	}
	for _, text := range said {
		if at := strings.Index(text, canary); at >= 0 {
			s.Errorf("a secret value was disclosed: %s", text[max(0, at-600):min(len(text), at+200)])
		}
	}
}

// publishesIdentity publishes a version of the chart configmap whose ConfigMap is replaced by object.
func (s *fixture) publishesIdentity(repository *charts.Repository, version, object string) {
	s.Helper()
	files := map[string]string{}
	from := os.DirFS("../charts/configmap-0.0.1")
	s.Must("reading a chart", fs.WalkDir(from, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(from, path)
		files[path] = string(text)
		return err
	}))
	files["Chart.yaml"] = strings.Replace(files["Chart.yaml"], "0.0.1", version, 1)
	files["templates/configmap.yaml"] = object
	archive, err := charts.PackFiles("configmap", version, files)
	s.Must("packing a chart", err)
	repository.Publish(archive)
}
