// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// achieved is the step that a Release has achieved.
func (f *Fixture) achieved(release string) string {
	if a := f.Get(release).Status.AchievedStep; a != nil {
		return fmt.Sprint(a.Step)
	}
	return "none"
}

// deletionStory deletes an Application in the middle of a rollout: nothing of it stays in any cluster. Its Releases and their targets have
// lost their owners before, as in a restore that drops them.
func deletionStory() Story {
	return Story{
		Name: "deletion",
		Begin: func(f *Fixture) {
			f.Bystand()
			f.Creates(f.Application(appName, "0.0.1", replicaCount, allIn()))
			f.Completes(f.Release(0))
			f.Upgrades("0.0.2", vanguard())
			contender := f.Release(1)
			f.WaitsForCommand(contender, 0)
			f.Steps(contender, 1)
			f.WaitsForCommand(contender, 1)
		},
		Parts: []Part{{
			Name: "owned again", Floor: replicaCount,
			Act: func(f *Fixture) {
				f.losesOwners()
				f.Eventually("objects without an owner", "", func() string { return strings.Join(f.ownerless(), " ") })
			},
		}, {
			Name: "deleted",
			Act: func(f *Fixture) {
				f.Deletes(&shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: appName}})
				f.IsGone("applications", appName)
			},
			Check: func(f *Fixture) {
				for name, h := range f.hosts {
					for _, kind := range compared[name == management] {
						for _, o := range h.all(kind) {
							if o.GetLabels()[shipper.AppLabel] == appName {
								f.laws.broken(7, "%s %s is left in %s", kind, o.GetName(), name)
							}
						}
					}
				}
			},
		}},
	}
}

// ofRollouts are what Applications and Releases own.
var ofRollouts = []string{"releases", "installationtargets", "capacitytargets", "traffictargets"}

// losesOwners takes the owners off all Releases and targets of the Application.
func (f *Fixture) losesOwners() {
	f.T.Helper()
	for _, resource := range ofRollouts {
		for _, o := range f.hosts[management].all(kindOf(resource)) {
			if o.GetLabels()[shipper.AppLabel] != appName {
				continue
			}
			err := f.Management.Edit(shipper.GroupName, resource, namespace, o.GetName(), func(u *unstructured.Unstructured) error {
				u.SetOwnerReferences(nil)
				return nil
			})
			f.must("taking an owner", err)
		}
	}
}

// ownerless are the Releases and targets of the Application that nothing owns.
func (f *Fixture) ownerless() (out []string) {
	for _, resource := range ofRollouts {
		for _, o := range f.hosts[management].all(kindOf(resource)) {
			if o.GetLabels()[shipper.AppLabel] == appName && len(o.GetOwnerReferences()) == 0 {
				out = append(out, resource+"/"+o.GetName())
			}
		}
	}
	return out
}
