// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// balanced is the Application with a Service of type LoadBalancer, in one of the clusters.
func (f *Fixture) balanced(version string, cluster int) *shipper.Application {
	app := f.Application(appName, version, replicaCount, allIn())
	(*app.Spec.Template.Values)["service"] = map[string]any{"type": string(corev1.ServiceTypeLoadBalancer)}
	app.Spec.Template.ClusterRequirements.Regions = []shipper.RegionRequirement{{Name: region(cluster)}}
	return app
}

// address is that of the Service in a cluster, as its load balancer has given it.
func (f *Fixture) address(cluster string) string {
	var service corev1.Service
	if !f.hosts[cluster].read(services, namespace, serviceName, &service) {
		return "no Service"
	}
	if at := service.Status.LoadBalancer.Ingress; len(at) > 0 {
		return at[0].IP
	}
	return "none"
}

// GivesAddress has a load balancer give the Service in a cluster its address, when the Service is there.
func (f *Fixture) GivesAddress(cluster, address string) {
	f.T.Helper()
	f.Eventually("the Service in "+cluster, "none", func() string { return f.address(cluster) })
	balancer := f.userOf(cluster)
	f.persist("giving an address in "+cluster, func() error {
		service := &corev1.Service{}
		service.Namespace, service.Name = namespace, serviceName
		if !f.hosts[cluster].read(services, namespace, serviceName, service) {
			return apierrors.NewNotFound(corev1.Resource("services"), serviceName)
		}
		service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address}}
		return balancer.Status().Update(f.Ctx, service)
	})
}

// addressed is what the TrafficTarget of a Release says of the address in a cluster.
func (f *Fixture) addressed(release, cluster string) string {
	tt := &shipper.TrafficTarget{}
	if !f.hosts[management].read(kindOf("traffictargets"), namespace, release, tt) {
		return "no TrafficTarget"
	}
	for _, c := range tt.Status.Clusters {
		if is := shipper.FindCondition(c.Conditions, shipper.TargetAddressed); c.Name == cluster && is != nil {
			return fmt.Sprintf("%s %s, %d", is.Status, is.Reason, c.AchievedTraffic)
		}
	}
	return "unknown"
}

// podsOf counts the Pods of a Release in a cluster.
func (f *Fixture) podsOf(release, cluster string) (count int) {
	for _, o := range f.hosts[cluster].all(pods) {
		if o.GetLabels()[shipper.ReleaseLabel] == release && o.GetDeletionTimestamp() == nil {
			count++
		}
	}
	return count
}

// addressStory moves an Application to another cluster, whose load balancer gives the Service its address late: until then the first
// cluster keeps its Pods, also when another Release comes meanwhile.
func addressStory() Story {
	first, second, third := "", "", ""
	keeps := func(f *Fixture) {
		if got := f.podsOf(first, clusterName(0)); got != replicaCount {
			f.laws.broken(7, "%s has %d Pods of %s before the Service in %s has an address", clusterName(0), got, first, clusterName(1))
		}
	}
	return Story{
		Name: "address",
		Begin: func(f *Fixture) {
			f.Bystand()
			f.Creates(f.balanced("0.0.1", 0))
			first = f.Release(0)
			f.GivesAddress(clusterName(0), "192.0.2.1")
			f.Completes(first)
		},
		Parts: []Part{{
			Name: "moves without an address",
			Act: func(f *Fixture) {
				next := f.balanced("0.0.2", 1)
				f.Edits(func(app *shipper.Application) { app.Spec.Template = next.Spec.Template })
				second = f.Release(1)
				f.Eventually("the address in "+clusterName(1), "False AddressAwaited, 100", func() string {
					return f.addressed(second, clusterName(1))
				})
			},
			Check: keeps,
		}, {
			Name: "is replaced without an address",
			Act: func(f *Fixture) {
				f.Edits(func(app *shipper.Application) {
					(*app.Spec.Template.Values)["image"] = map[string]any{"tag": "next"}
				})
				third = f.Release(2)
				f.Eventually("the address in "+clusterName(1), "False AddressAwaited, 100", func() string {
					return f.addressed(third, clusterName(1))
				})
			},
			Check: keeps,
		}, {
			Name: "gets its address",
			Act: func(f *Fixture) {
				f.GivesAddress(clusterName(1), "192.0.2.2")
				f.Completes(third)
			},
			Check: func(f *Fixture) {
				if got := f.podsOf(first, clusterName(0)); got != 0 {
					f.laws.broken(7, "%s keeps %d Pods of %s", clusterName(0), got, first)
				}
			},
		}},
	}
}
