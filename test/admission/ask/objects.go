// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Block returns a RolloutBlock that was created twelve minutes ago, by `namespace/name`.
func Block(key string) *shipper.RolloutBlock {
	namespace, name, _ := strings.Cut(key, "/")
	return &shipper.RolloutBlock{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, CreationTimestamp: metav1.Time{Time: Now.Add(-12 * 60 * 1e9)},
		},
		Spec: shipper.RolloutBlockSpec{
			Message: "DNS issues, troubleshooting in progress",
			Author:  shipper.RolloutBlockAuthor{Type: "user", Name: "jdoe"},
		},
	}
}

// Application returns a valid Application `default/super-server` with the chart nginx 0.0.1, changed by edits.
func Application(edits ...func(*shipper.Application)) *shipper.Application {
	limit := shipper.DefaultRevisionHistoryLimit
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "super-server", UID: "app-uid"}}
	app.Spec = shipper.ApplicationSpec{
		RevisionHistoryLimit: &limit,
		Template: shipper.ReleaseEnvironment{
			Chart:  shipper.Chart{Name: "nginx", Version: "0.0.1", RepoURL: "https://charts.example.com"},
			Values: &shipper.ChartValues{"replicaCount": int64(3)},
			ClusterRequirements: shipper.ClusterRequirements{
				Regions: []shipper.RegionRequirement{{Name: "local"}},
			},
			Strategy: &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{
				Step("staging", 100, 1, 100, 0), Step("full on", 0, 100, 0, 100),
			}},
		},
	}
	for _, edit := range edits {
		edit(app)
	}
	return app
}

// Step returns a step of a strategy.
func Step(name string, capacityIncumbent, capacityContender, trafficIncumbent, trafficContender int32) shipper.RolloutStrategyStep {
	return shipper.RolloutStrategyStep{
		Name:     name,
		Capacity: shipper.RolloutStrategyStepValue{Incumbent: capacityIncumbent, Contender: capacityContender},
		Traffic:  shipper.RolloutStrategyStepValue{Incumbent: trafficIncumbent, Contender: trafficContender},
	}
}

// Annotated sets an annotation.
func Annotated(key, value string) func(*shipper.Application) {
	return func(app *shipper.Application) { annotate(&app.ObjectMeta, key, value) }
}

// Overriding sets the override annotation.
func Overriding(value string) func(*shipper.Application) {
	return Annotated(shipper.RolloutBlockOverrideAnnotation, value)
}

// Pinned sets the annotations that the webhook writes when it resolves raw to the version in the template.
func Pinned(raw string) func(*shipper.Application) {
	return func(app *shipper.Application) {
		c := app.Spec.Template.Chart
		annotate(&app.ObjectMeta, shipper.AppChartVersionRawAnnotation, raw)
		annotate(&app.ObjectMeta, shipper.AppChartVersionResolvedAnnotation, c.Version)
		annotate(&app.ObjectMeta, shipper.AppChartNameAnnotation, c.Name)
		annotate(&app.ObjectMeta, shipper.AppChartRepoAnnotation, c.RepoURL)
		annotate(&app.ObjectMeta, shipper.AppRequestedByAnnotation, Developer)
	}
}

// Version sets the chart's version.
func Version(version string) func(*shipper.Application) {
	return func(app *shipper.Application) { app.Spec.Template.Chart.Version = version }
}

// Release returns the Release that app gets next to existing, with a UID, changed by edits. It is nil if app cannot have one.
func Release(app *shipper.Application, existing []*shipper.Release, edits ...func(*shipper.Release)) *shipper.Release {
	rel, err := stamp.Release(app, existing)
	if err != nil {
		return nil
	}
	rel.UID = types.UID(rel.Name + "-uid")
	for _, edit := range edits {
		edit(rel)
	}
	return rel
}

// ReleaseAnnotated sets an annotation of a Release.
func ReleaseAnnotated(key, value string) func(*shipper.Release) {
	return func(rel *shipper.Release) { annotate(&rel.ObjectMeta, key, value) }
}

// TargetStep sets the targetStep of a Release.
func TargetStep(step int32) func(*shipper.Release) {
	return func(rel *shipper.Release) { rel.Spec.TargetStep = step }
}

// GoingNamespace returns a namespace that is being deleted.
func GoingNamespace(name string) *metav1.PartialObjectMetadata {
	now := metav1.Time{Time: Now}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, DeletionTimestamp: &now}}
}

func annotate(meta *metav1.ObjectMeta, key, value string) {
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	meta.Annotations[key] = value
}
