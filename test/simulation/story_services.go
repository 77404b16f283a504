// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// shop is the Application whose chart has two Deployments behind three Services, and whose objects are named by it.
func (f *Fixture) shop(version string) *shipper.Application {
	app := f.Application(appName, version, replicaCount, vanguard())
	app.Spec.Template.Chart.Name, app.Spec.Template.Chart.Naming = "shop", shipper.NamingByApplication
	app.Spec.Template.Strategy.FirstRelease = shipper.FirstReleaseImmediate
	return app
}

// HasPorts waits until Service front has ports in every cluster.
func (f *Fixture) HasPorts(want string) {
	f.T.Helper()
	for name := range f.Clusters {
		f.Eventually("ports of Service front in "+name, want, func() string {
			var service corev1.Service
			f.hosts[name].read(services, namespace, "front", &service)
			var ports []int32
			for _, port := range service.Spec.Ports {
				ports = append(ports, port.Port)
			}
			return fmt.Sprint(ports)
		})
	}
}

// orphansPods has a user delete all Deployments and leave their Pods, and waits until other Deployments have these.
func (f *Fixture) orphansPods() {
	f.T.Helper()
	for name := range f.Clusters {
		user := f.userOf(name)
		for _, o := range f.hosts[name].all(deployments) {
			if o.GetLabels()[shipper.AppLabel] != appName {
				continue
			}
			f.persist("deleting a Deployment in "+name, func() error {
				err := user.Delete(f.Ctx, o, client.PropagationPolicy(metav1.DeletePropagationOrphan),
					client.Preconditions{UID: ptr.To(o.GetUID())})
				if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
					return nil // the answer was lost
				}
				return err
			})
			f.Eventually("another Deployment "+o.GetName()+" in "+name, fmt.Sprint("is there with ", replicaCount), func() string {
				var now appsv1.Deployment
				if !f.hosts[name].read(deployments, namespace, o.GetName(), &now) || now.UID == o.GetUID() {
					return "is not there"
				}
				return fmt.Sprint("is there with ", now.Status.AvailableReplicas)
			})
		}
	}
}

// servicesStory takes three Services, one of which is in front of both Deployments, through an upgrade that changes the labels of their
// Pods and drops a port, an abort half way, and a rollback.
func servicesStory() Story {
	first, second := "", ""
	upgrade := func(f *Fixture) {
		next := f.shop("0.0.2")
		f.Edits(func(app *shipper.Application) { app.Spec.Template = next.Spec.Template })
	}
	return Story{
		Name: "services", Services: []string{"front", "back", "all"},
		Begin: func(f *Fixture) {
			f.Bystand()
			f.Creates(f.shop("0.0.1"))
			first = f.Release(0)
			f.Completes(first)
		},
		Parts: []Part{
			{Name: "aborted half way", Floor: replicaCount, Act: func(f *Fixture) {
				upgrade(f)
				contender := f.Release(1)
				f.WaitsForCommand(contender, 0)
				f.Steps(contender, 1)
				f.WaitsForCommand(contender, 1)
				f.HasPorts("[80 8081]")
				f.Deletes(&shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: contender}})
				f.IsGone("releases", contender)
				f.Settles(first)
			}},
			{Name: "Deployments deleted without their Pods", Floor: replicaCount, Act: func(f *Fixture) {
				f.orphansPods()
				f.Settles(first)
			}},
			{Name: "upgraded", Floor: replicaCount, Act: func(f *Fixture) {
				upgrade(f)
				second = f.Release(1)
				f.WaitsForCommand(second, 0)
				f.Steps(second, 1)
				f.WaitsForCommand(second, 1)
				f.HasPorts("[80 8081]")
				f.Steps(second, 2)
				f.Completes(second)
				f.HasPorts("[80]")
			}},
			{Name: "rolled back", Floor: replicaCount, Act: func(f *Fixture) {
				f.Edits(func(app *shipper.Application) { app.Spec.RollbackTo = &shipper.RollbackTo{Release: first} })
				third := f.Release(2)
				f.WaitsForCommand(third, 0)
				f.Steps(third, 2)
				f.Completes(third)
			}},
		},
	}
}
