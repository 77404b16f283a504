// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/manifests"
)

// another is the same fixture in another management cluster, which has an identity of its own and west among its
// application clusters too. It lives where east does, for the time of the test.
func (s *fixture) another() *fixture {
	s.Helper()
	other := *s
	other.management = world.clusters[east]
	objects, err := manifests.Objects(manifests.CRD)
	s.must(err)
	secret := clusterSecret(west, west)
	direct := aCluster(west, west)
	direct.Spec.APIMaster = world.access[west].Host
	for _, o := range objects {
		s.must(client.IgnoreAlreadyExists(other.management.Create(s.ctx, o)))
	}
	for _, o := range objects { // one kind may be served a while before another
		kind, _, err := unstructured.NestedString(o.Object, "spec", "names", "kind")
		s.must(err)
		all := &unstructured.UnstructuredList{}
		all.SetGroupVersionKind(shipper.GroupVersion.WithKind(kind + "List"))
		s.soon("the other management cluster does not serve "+kind, func() string {
			if err := other.management.List(s.ctx, all, client.Limit(1)); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	s.must(client.IgnoreAlreadyExists(other.management.Create(s.ctx, secret)))
	s.must(client.IgnoreNotFound(other.management.Delete(s.ctx, identityOf(""))))
	s.soon("the other management cluster does not know Clusters", func() string {
		if err := other.management.Create(s.ctx, direct); client.IgnoreAlreadyExists(err) != nil {
			return err.Error()
		}
		return ""
	})
	other.makeNamespace(other.management)
	ctx, cancel := context.WithCancel(context.Background())
	ended, err := operate(ctx, world.members[east].Config)
	s.must(err)
	s.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.Error(err)
		}
	})
	other.clusterIs(west, "")
	return &other
}

// identityOf is the ConfigMap with an id.
func identityOf(id string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: shipper.SystemNamespace, Name: shipper.IdentityName},
		Data:       map[string]string{shipper.IdentityKey: id},
	}
}

// identity waits until the management cluster has one.
func (s *fixture) identity() string {
	s.Helper()
	cm := identityOf("")
	s.soon("there is no identity", func() string {
		err := s.management.Get(s.ctx, client.ObjectKeyFromObject(cm), cm)
		s.must(client.IgnoreNotFound(err))
		if err != nil {
			return err.Error()
		}
		return ""
	})
	return cm.Data[shipper.IdentityKey]
}

// become gives the management cluster another identity.
func (s *fixture) become(id string) {
	s.Helper()
	cm := identityOf("")
	s.change(cm, func(client.Object) { cm.Data[shipper.IdentityKey] = id })
}

// runs makes a Release run in west, in traffic, with so many Pods.
func (s *fixture) runs(name string, pods int32) *shipper.InstallationTarget {
	s.Helper()
	it := s.install(name, "test-nginx", "0.0.1", shipper.ChartValues{"nameOverride": s.app}, west)
	s.installed(name)
	s.scale(name, 100, pods, west)
	s.scaled(name)
	s.weigh(name, 1, west)
	s.weighed(name)
	return it
}

// asks makes the three targets of a Release in west, without waiting for anything.
func (s *fixture) asks(name string, pods int32) *shipper.InstallationTarget {
	s.Helper()
	it := s.install(name, "test-nginx", "0.0.1", shipper.ChartValues{"nameOverride": s.app}, west)
	s.scale(name, 100, pods, west)
	s.weigh(name, 1, west)
	return it
}

// versions are the resource versions of everything in west that is labelled as the Application's.
func (s *fixture) versions() map[string]string {
	s.Helper()
	out := map[string]string{}
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &appsv1.ReplicaSetList{}, &corev1.PodList{}, &corev1.ServiceList{},
		&corev1.ConfigMapList{}, &discoveryv1.EndpointSliceList{},
	} {
		of := client.MatchingLabels{shipper.AppLabel: s.app}
		s.must(world.clusters[west].List(s.ctx, list, client.InNamespace(s.namespace), of))
		s.must(meta.EachListItem(list, func(o runtime.Object) error {
			object, err := meta.Accessor(o)
			if err == nil {
				out[fmt.Sprintf("%T %s", o, object.GetName())] = object.GetResourceVersion()
			}
			return err
		}))
	}
	return out
}

// settled waits until Kubernetes' own controllers are done, and returns the versions.
func (s *fixture) settled() map[string]string {
	s.Helper()
	const enough = 20 // looks
	before, same := "", 0
	s.soon("it does not settle", func() string {
		now := fmt.Sprint(s.versions())
		if same++; now != before {
			before, same = now, 0
		}
		if same < enough {
			return now
		}
		return ""
	})
	return s.versions()
}

// without is versions without the anchor of a target.
func without(versions map[string]string, target string) map[string]string {
	out := map[string]string{}
	for key, value := range versions {
		if !strings.HasSuffix(key, " "+shipper.AnchorName(target)) {
			out[key] = value
		}
	}
	return out
}

// vanish takes the targets of a Release away as the loss of a management cluster does: nothing is cleaned in west.
func (s *fixture) vanish(name string) {
	s.Helper()
	s.outOfReach(func() {
		it := &shipper.InstallationTarget{ObjectMeta: s.meta(name)}
		s.must(s.management.Delete(s.ctx, it))
		s.soon("the target does not go", func() string {
			err := s.management.Get(s.ctx, s.key(name), it)
			if apierrors.IsNotFound(err) {
				return ""
			}
			s.must(err)
			was := it.DeepCopy()
			it.Finalizers = nil
			err = s.management.Patch(s.ctx, it, client.MergeFrom(was))
			return fmt.Sprintf("finalizers %v, %v", was.Finalizers, err)
		})
		for _, o := range []client.Object{
			&shipper.CapacityTarget{ObjectMeta: s.meta(name)}, &shipper.TrafficTarget{ObjectMeta: s.meta(name)},
		} {
			s.must(client.IgnoreNotFound(s.management.Delete(s.ctx, o)))
			s.gone(o)
		}
	})
}

// outOfReach does something while the first management cluster cannot reach west.
func (s *fixture) outOfReach(do func()) {
	s.Helper()
	world.wires[west].Cut()
	defer s.mended(west)
	s.clusterIs(west, shipper.ClusterUnreachable)
	do()
}

// anchor reads that of a Release in west.
func (s *fixture) anchor(name string) *corev1.ConfigMap {
	s.Helper()
	cm := &corev1.ConfigMap{}
	if !s.find(west, shipper.AnchorName(name), cm) {
		s.Fatalf("there is no anchor of %s", name)
	}
	return cm
}

// rewrite changes what the anchor of a Release in west says; an empty value takes a key away.
func (s *fixture) rewrite(name string, data map[string]string) *corev1.ConfigMap {
	s.Helper()
	cm := s.anchor(name)
	was := cm.DeepCopy()
	for key, value := range data {
		if cm.Data[key] = value; value == "" {
			delete(cm.Data, key)
		}
	}
	s.must(world.clusters[west].Patch(s.ctx, cm, client.MergeFrom(was)))
	return cm
}

// told waits for an event about a target, with a note, alone or among others of one moment.
func (s *fixture) told(name, reason, note string) {
	s.Helper()
	s.soon("there is no event "+reason+" "+note, func() string {
		var list corev1.EventList
		s.must(s.management.List(s.ctx, &list, client.InNamespace(s.namespace)))
		var got []string
		for _, e := range list.Items {
			if e.InvolvedObject.Name == name && e.Reason == reason && strings.Contains(e.Message, note) {
				return ""
			}
			got = append(got, e.Reason+" "+e.Message)
		}
		return strings.Join(got, "\n")
	})
}
