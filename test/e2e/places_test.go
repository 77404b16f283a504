// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
)

// TestValuesDifferFromPlaceToPlace rolls out values that differ between the clusters: images and numbers of Pods.
func TestValuesDifferFromPlaceToPlace(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		app := s.application("0.0.1", 2, vanguard)
		app.Spec.Template.ValuesPerRegion = []shipper.ValuesFor{
			{Name: eastRegion, Values: &shipper.ChartValues{"replicaCount": int64(4), "image": map[string]any{"tag": "of-the-region"}}},
		}
		app.Spec.Template.ValuesPerCluster = []shipper.ValuesFor{
			{Name: west, Patch: []shipper.PatchOperation{{"op": "replace", "path": "/replicaCount", "value": int64(6)}}},
		}
		s.applies(app)
		first := s.Release(0)
		for step, pods := range [][2]int{{1, 1}, {3, 2}, {6, 4}} {
			if step > 0 {
				s.Steps(first, int32(step))
			}
			if step == 2 {
				s.Completes(first)
			} else {
				s.WaitsForCommand(first, int32(step))
			}
			s.runs(first, fmt.Sprintf("west: %d of nginx:stable, east: %d of nginx:of-the-region", pods[0], pods[1]))
		}
		s.installsWhatIsRendered(first)
		s.renders(first, "nginx:stable", "nginx:of-the-region", "--cluster", west)
		s.renders(first, "nginx:of-the-region", "nginx:stable", "--region", eastRegion)

		s.Edits(func(app *shipper.Application) {
			app.Spec.Template.ValuesPerCluster[0].Values = &shipper.ChartValues{"image": map[string]any{"tag": "of-west"}}
		})
		second := s.Release(1)
		s.says("+    image:", "rollout", "diff", s.App)
		s.WaitsForCommand(second, 0)
		s.Steps(second, 2)
		s.Completes(second)
		s.runs(second, "west: 6 of nginx:of-west, east: 4 of nginx:of-the-region")
		s.runs(first, "west: 0 of nginx:stable, east: 0 of nginx:of-the-region")

		s.Edits(func(app *shipper.Application) {
			app.Spec.RollbackTo = &shipper.RollbackTo{Strategy: shipper.RollbackImmediate}
		})
		third := s.Release(2)
		s.Completes(third)
		s.runs(third, "west: 6 of nginx:stable, east: 4 of nginx:of-the-region")
		s.refusesPatch()
	})
}

// TestAClusterThatIsAddedHasPodsOfItsOwn removes a cluster from a Release and adds it again: its number of Pods follows its
// own values.
func TestAClusterThatIsAddedHasPodsOfItsOwn(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		app := s.application("0.0.1", 3, allIn)
		app.Spec.Template.ValuesPerRegion = []shipper.ValuesFor{{Name: eastRegion, Values: &shipper.ChartValues{"replicaCount": int64(1)}}}
		s.applies(app)
		rel := s.Release(0)
		s.Completes(rel)
		s.runs(rel, "west: 3 of nginx:stable, east: 1 of nginx:stable")
		s.places(rel, west)
		s.runs(rel, "west: 3 of nginx:stable, east: no Deployment")
		s.places(rel, east, west)
		s.runs(rel, "west: 3 of nginx:stable, east: 1 of nginx:stable")
	})
}

// TestLargeValuesAreRolledOutOrRefused has 900 KiB of values for one cluster, and then more than the limit.
func TestLargeValuesAreRolledOutOrRefused(t *testing.T) {
	onTwoClusters(t, func(s *fixture) {
		app := s.application("0.0.1", 1, allIn)
		app.Spec.Template.ValuesPerCluster = []shipper.ValuesFor{
			{Name: west, Values: &shipper.ChartValues{"blob": strings.Repeat("x", 900<<10), "replicaCount": int64(2)}},
		}
		s.applies(app)
		rel := s.Release(0)
		s.Completes(rel)
		s.runs(rel, "west: 2 of nginx:stable, east: 1 of nginx:stable")
		err := s.TryEdit(func(app *shipper.Application) { (*app.Spec.Template.Values)["blob"] = strings.Repeat("x", 200<<10) })
		want := "values, valuesPerRegion and valuesPerCluster may have 1048576 bytes as JSON, all in all"
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			s.Errorf("values beyond the bound were answered with %.300v, want %s", err, want)
		}
	})
}

// runs waits until each cluster has these ready Pods of a Release, with the image of its Deployment.
func (s *fixture) runs(release, want string) {
	s.Helper()
	s.Eventually("what runs of "+release, want, func() (string, error) {
		var seen []string
		for word, name := range map[string]string{"west": west, "east": east} {
			ready, err := s.ready(name, release)
			if err != nil {
				return "", err
			}
			list := &appsv1.DeploymentList{}
			err = world.Clusters[name].List(s.Ctx, list, client.InNamespace(s.Namespace), client.MatchingLabels{shipper.ReleaseLabel: release})
			if err != nil {
				return "", err
			}
			if len(list.Items) != 1 {
				seen = append(seen, word+": no Deployment")
				continue
			}
			seen = append(seen, fmt.Sprintf("%s: %d of %s", word, ready, list.Items[0].Spec.Template.Spec.Containers[0].Image))
		}
		slices.SortFunc(seen, func(a, b string) int { return strings.Compare(b, a) }) // west first
		return strings.Join(seen, ", "), nil
	})
}

// renders runs `rollout render` for a Release, and requires one text in its output and the absence of another.
func (s *fixture) renders(release, there, missing string, how ...string) {
	s.Helper()
	out, err := s.administers(append([]string{"chart", "render", "release", release, "-n", s.Namespace, charts.Flag}, how...)...)
	s.Must("rendering "+release, err)
	if !strings.Contains(out, there) || strings.Contains(out, missing) {
		s.Errorf("rendered with %v is not %s, or also %s:\n%s", how, there, missing, out)
	}
}

// refusesPatch sends a patch that does not apply to the values, and expects a refusal.
func (s *fixture) refusesPatch() {
	s.Helper()
	err := s.TryEdit(func(app *shipper.Application) {
		app.Spec.Template.ValuesPerCluster[0].Patch = append(app.Spec.Template.ValuesPerCluster[0].Patch,
			shipper.PatchOperation{"op": "remove", "path": "/service/port"})
	})
	want := `spec.template.valuesPerCluster[0].patch[1]: Invalid value: "remove /service/port": (remove /service/port) does not apply: ` +
		`the merged values have no such place; the chart's own defaults are not seen`
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
		s.Errorf("the patch was answered with %v, want %s", err, want)
	}
}
