// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/env"
)

// patience is how long anything may take, on a machine that is busy with other things.
const patience = env.Patience

// fixture is one test in a namespace of its own, in one management cluster, of one Application.
type fixture struct {
	*testing.T
	ctx        context.Context
	management client.Client
	namespace  string
	app        string
}

// begun counts the stories by name: a test that runs again needs another namespace.
var begun = struct {
	sync.Mutex
	times map[string]int
}{times: map[string]int{}}

// begin makes the namespace in the management cluster and in the application clusters given.
func begin(t *testing.T, clusters ...string) *fixture {
	t.Helper()
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	name = strings.Trim(name[:min(len(name), 56)], "-")
	begun.Lock()
	begun.times[name]++
	times := begun.times[name]
	begun.Unlock()
	if times > 1 {
		name = fmt.Sprintf("%s-%d", name, times)
	}
	s := &fixture{T: t, ctx: t.Context(), management: world.management, namespace: name, app: "web"}
	s.makeNamespace(world.management)
	for _, c := range clusters {
		s.makeNamespace(world.clusters[c])
	}
	return s
}

func (s *fixture) makeNamespace(c client.Client) {
	s.Helper()
	err := c.Create(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})
	if !apierrors.IsAlreadyExists(err) { // a cluster may have both parts
		s.must(err)
	}
}

func (s *fixture) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// lend makes an object of the management cluster that has no namespace of the story's, for the time of the test.
func (s *fixture) lend(object client.Object) {
	s.Helper()
	s.must(s.management.Create(s.ctx, object))
	s.Cleanup(func() {
		if err := s.management.Delete(context.Background(), object); client.IgnoreNotFound(err) != nil {
			s.Error(err)
		}
	})
}

// soon waits until wrong returns nothing that is wrong.
func (s *fixture) soon(what string, wrong func() string) {
	s.Helper()
	env.Within(s, patience, what, func(context.Context) error {
		if now := wrong(); now != "" {
			return errors.New(now)
		}
		return nil
	})
}

// key names an object in the story's namespace.
func (s *fixture) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: s.namespace, Name: name}
}

// meta is the metadata of an object of a Release of the Application.
func (s *fixture) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: s.namespace, Name: name,
		Labels: map[string]string{shipper.AppLabel: s.app, shipper.ReleaseLabel: name, shipper.ReleaseHashLabel: "cafe"},
	}
}

// install makes an InstallationTarget of a chart, and returns it.
func (s *fixture) install(
	name, chart, version string, values shipper.ChartValues, clusters ...string,
) *shipper.InstallationTarget {
	s.Helper()
	it := &shipper.InstallationTarget{ObjectMeta: s.meta(name), Spec: shipper.InstallationTargetSpec{
		Clusters: clusters, CanOverride: true, Values: &values,
		Chart: &shipper.Chart{Name: chart, Version: version, RepoURL: world.charts.URL},
	}}
	s.must(s.management.Create(s.ctx, it))
	return it
}

// installed waits until a target is Ready.
func (s *fixture) installed(name string) *shipper.InstallationTarget {
	s.Helper()
	it := &shipper.InstallationTarget{}
	s.soon("InstallationTarget "+name+" is not ready", func() string {
		s.must(s.management.Get(s.ctx, s.key(name), it))
		if it.Status.ObservedGeneration == it.Generation && shipper.ConditionTrue(it.Status.Conditions, shipper.TargetReady) {
			return ""
		}
		return fmt.Sprintf("%+v", it.Status)
	})
	return it
}

// notInstalled waits until a target says of a cluster that it is not Ready for a reason, and returns the message.
func (s *fixture) notInstalled(name, cluster, reason string) string {
	s.Helper()
	var message string
	s.soon(fmt.Sprintf("InstallationTarget %s does not say %s of %s", name, reason, cluster), func() string {
		var it shipper.InstallationTarget
		s.must(s.management.Get(s.ctx, s.key(name), &it))
		for _, c := range it.Status.Clusters {
			ready := shipper.FindCondition(c.Conditions, shipper.TargetReady)
			if c.Name == cluster && ready != nil && ready.Status != corev1.ConditionTrue && ready.Reason == reason {
				message = ready.Message
				return ""
			}
		}
		return fmt.Sprintf("%+v", it.Status)
	})
	return message
}

// scale makes a CapacityTarget, or changes it.
func (s *fixture) scale(name string, percent, total int32, clusters ...string) {
	s.Helper()
	ct := &shipper.CapacityTarget{ObjectMeta: s.meta(name)}
	for _, c := range clusters {
		ct.Spec.Clusters = append(ct.Spec.Clusters,
			shipper.ClusterCapacityTarget{Name: c, Percent: percent, TotalReplicaCount: total})
	}
	spec := ct.Spec
	s.put(ct, func(client.Object) { ct.Spec = spec })
}

// scaled waits until a CapacityTarget is Ready.
func (s *fixture) scaled(name string) *shipper.CapacityTarget {
	s.Helper()
	ct := &shipper.CapacityTarget{}
	s.soon("CapacityTarget "+name+" is not ready", func() string {
		s.must(s.management.Get(s.ctx, s.key(name), ct))
		if ct.Status.ObservedGeneration == ct.Generation && shipper.ConditionTrue(ct.Status.Conditions, shipper.TargetReady) {
			return ""
		}
		return fmt.Sprintf("%+v", ct.Status)
	})
	return ct
}

// weigh makes a TrafficTarget, or changes it.
func (s *fixture) weigh(name string, weight uint32, clusters ...string) {
	s.Helper()
	tt := &shipper.TrafficTarget{ObjectMeta: s.meta(name)}
	for _, c := range clusters {
		tt.Spec.Clusters = append(tt.Spec.Clusters, shipper.ClusterTrafficTarget{Name: c, Weight: weight})
	}
	spec := tt.Spec
	s.put(tt, func(client.Object) { tt.Spec = spec })
}

// weighed waits until a TrafficTarget is Ready.
func (s *fixture) weighed(name string) *shipper.TrafficTarget {
	s.Helper()
	tt := &shipper.TrafficTarget{}
	s.soon("TrafficTarget "+name+" is not ready", func() string {
		s.must(s.management.Get(s.ctx, s.key(name), tt))
		if tt.Status.ObservedGeneration == tt.Generation && shipper.ConditionTrue(tt.Status.Conditions, shipper.TargetReady) {
			return ""
		}
		return fmt.Sprintf("%+v", tt.Status)
	})
	return tt
}

// put creates an object, or changes the one there is.
func (s *fixture) put(object client.Object, change func(client.Object)) {
	s.Helper()
	err := s.management.Create(s.ctx, object)
	if apierrors.IsAlreadyExists(err) {
		s.change(object, change)
		return
	}
	s.must(err)
}

// change writes what change makes of an object, again after each conflict.
func (s *fixture) change(object client.Object, change func(client.Object)) {
	s.Helper()
	s.soon("changing "+object.GetName(), func() string {
		s.must(s.management.Get(s.ctx, client.ObjectKeyFromObject(object), object))
		change(object)
		if err := s.management.Update(s.ctx, object); err != nil {
			return err.Error()
		}
		return ""
	})
}

// takeOver says whether a target may take shared objects.
func (s *fixture) takeOver(name string, may bool) {
	s.Helper()
	s.change(&shipper.InstallationTarget{ObjectMeta: s.meta(name)}, func(o client.Object) {
		if it, ok := o.(*shipper.InstallationTarget); ok {
			it.Spec.CanOverride = may
		}
	})
}

// deployment reads the one of a Release of test-nginx, or nil.
func (s *fixture) deployment(cluster, release string) *appsv1.Deployment {
	s.Helper()
	d := &appsv1.Deployment{}
	if !s.find(cluster, release+"-test-nginx", d) {
		return nil
	}
	return d
}

// find reads an object of the story's namespace in a cluster and reports whether it is there.
func (s *fixture) find(cluster, name string, object client.Object) bool {
	s.Helper()
	err := world.clusters[cluster].Get(s.ctx, s.key(name), object)
	if apierrors.IsNotFound(err) {
		return false
	}
	s.must(err)
	return true
}

// endpoints counts the ready endpoints of a Service by Release.
func (s *fixture) endpoints(cluster, service string) map[string]int {
	s.Helper()
	of := client.MatchingLabels{discoveryv1.LabelServiceName: service}
	var slices discoveryv1.EndpointSliceList
	s.must(world.clusters[cluster].List(s.ctx, &slices, client.InNamespace(s.namespace), of))
	out := map[string]int{}
	for _, slice := range slices.Items {
		for _, e := range slice.Endpoints {
			var pod corev1.Pod
			ready := e.Conditions.Ready == nil || *e.Conditions.Ready
			if !ready || e.TargetRef == nil || !s.find(cluster, e.TargetRef.Name, &pod) {
				continue
			}
			out[pod.Labels[shipper.ReleaseLabel]]++
		}
	}
	return out
}

// pods lists those of a Release that are not going.
func (s *fixture) pods(cluster, release string) []corev1.Pod {
	s.Helper()
	var list corev1.PodList
	of := client.MatchingLabels{shipper.ReleaseLabel: release}
	s.must(world.clusters[cluster].List(s.ctx, &list, client.InNamespace(s.namespace), of))
	var out []corev1.Pod
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			out = append(out, pod)
		}
	}
	return out
}
