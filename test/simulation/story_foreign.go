// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"strings"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// foreignStory rolls out a chart that has an object by the name of one that Shipper did not create, and then one that has not.
func foreignStory() Story {
	return Story{
		Name: "foreign",
		Begin: func(f *Fixture) {
			f.Bystand()
			for name, s := range f.Clusters {
				for kind, o := range strangers(foreignName+"-prod", nil) {
					group, resource, _ := strings.Cut(kind, "/")
					f.must("creating a foreign object in "+name, s.Create(group, resource, o))
				}
			}
			f.Creates(f.Application(appName, "0.0.1", replicaCount, allIn()))
			f.Completes(f.Release(0))
		},
		Parts: []Part{
			{Name: "in the way", Floor: replicaCount, Act: func(f *Fixture) {
				f.Edits(func(app *shipper.Application) { (*app.Spec.Template.Values)["nameOverride"] = foreignName })
				contender := f.Release(1)
				f.Eventually("what the InstallationTarget says", shipper.ObjectConflict, func() string { return f.installation(contender) })
			}},
			{Name: "out of the way", Floor: replicaCount, Act: func(f *Fixture) {
				f.Edits(func(app *shipper.Application) {
					app.Spec.Template.Chart.Version = "0.0.2"
					delete(*app.Spec.Template.Values, "nameOverride")
				})
				f.Eventually("generation and completion of the newest Release", "2 True", f.newestCompletes)
			}},
		},
	}
}

// newestCompletes is the generation of the newest Release, and whether it is complete.
func (f *Fixture) newestCompletes() string {
	rel := f.laws.newest()
	c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseComplete)
	if c == nil {
		return "unknown"
	}
	return rel.Annotations[shipper.ReleaseGenerationAnnotation] + " " + string(c.Status)
}

// installation is why a chart is not installed, if all clusters say the same.
func (f *Fixture) installation(release string) string {
	var it shipper.InstallationTarget
	f.hosts[management].read(kindOf("installationtargets"), namespace, release, &it)
	reasons := map[string]bool{}
	for _, c := range it.Status.Clusters {
		if ready := shipper.FindCondition(c.Conditions, shipper.TargetReady); ready != nil {
			reasons[ready.Reason] = true
		}
	}
	if len(reasons) != 1 || len(it.Status.Clusters) != len(f.Clusters) {
		return "not all say the same"
	}
	for reason := range reasons {
		return reason
	}
	return ""
}
