// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// block makes a RolloutBlock.
func (s *fixture) block(namespace, name string) *shipper.RolloutBlock {
	s.Helper()
	b := &shipper.RolloutBlock{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: shipper.RolloutBlockSpec{Message: "stop"},
	}
	s.lend(b)
	return b
}

// application makes one that names blocks to override, and a Release that does too.
func (s *fixture) application(name, overrides string) {
	s.Helper()
	environment := shipper.ReleaseEnvironment{
		Chart:               shipper.Chart{Name: "test-nginx", Version: "0.0.1", RepoURL: world.charts.URL},
		ClusterRequirements: shipper.ClusterRequirements{Regions: []shipper.RegionRequirement{{Name: "here"}}},
		Strategy:            &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{{Name: "full on"}}},
	}
	meta := metav1.ObjectMeta{
		Namespace: s.namespace, Name: name,
		Annotations: map[string]string{shipper.RolloutBlockOverrideAnnotation: overrides},
	}
	s.must(s.management.Create(s.ctx, &shipper.Application{
		ObjectMeta: meta, Spec: shipper.ApplicationSpec{Template: environment},
	}))
	s.must(s.management.Create(s.ctx, &shipper.Release{
		ObjectMeta: meta, Spec: shipper.ReleaseSpec{Environment: environment},
	}))
}

// overridden waits until a block's status names its overriding objects.
func (s *fixture) overridden(b *shipper.RolloutBlock, want string) {
	s.Helper()
	s.soon("the overrides are not exact", func() string {
		s.must(s.management.Get(s.ctx, client.ObjectKeyFromObject(b), b))
		return cmp.Diff(shipper.RolloutBlockOverrides{Application: want, Release: want}, b.Status.Overrides)
	})
}

func TestBlocksTellWhoOverridesThem(t *testing.T) {
	t.Parallel()
	s := begin(t)
	global := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shipper.GlobalBlocksNamespace}}
	if err := s.management.Create(s.ctx, global); !apierrors.IsAlreadyExists(err) {
		s.must(err)
	}
	local, everywhere := s.block(s.namespace, "here"), s.block(shipper.GlobalBlocksNamespace, "everywhere")
	inHere, inEverywhere := s.namespace+"/here", shipper.GlobalBlocksNamespace+"/everywhere"
	s.application("one", inHere)
	s.application("two", inHere+","+inEverywhere)
	s.application("far", "default/nothing")

	s.overridden(local, fmt.Sprintf("%[1]s/one,%[1]s/two", s.namespace))
	s.overridden(everywhere, s.namespace+"/two")

	two := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "two"}}
	s.must(s.management.Delete(s.ctx, two))
	s.must(s.management.Delete(s.ctx, &shipper.Release{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.namespace, Name: "one",
	}}))
	s.soon("the overrides are not exact", func() string {
		s.must(s.management.Get(s.ctx, client.ObjectKeyFromObject(local), local))
		return cmp.Diff(shipper.RolloutBlockOverrides{
			Application: s.namespace + "/one", Release: s.namespace + "/two",
		}, local.Status.Overrides)
	})
}

func TestABlockThatIsGoneIsOverriddenByNobody(t *testing.T) {
	t.Parallel()
	s := begin(t)
	going, staying := s.block(s.namespace, "going"), s.block(s.namespace, "staying")
	s.application("one", s.namespace+"/going")
	s.application("two", fmt.Sprintf("%[1]s/going,%[1]s/staying", s.namespace))
	s.overridden(going, fmt.Sprintf("%[1]s/one,%[1]s/two", s.namespace))
	s.must(s.management.Delete(s.ctx, going))
	s.soon("the overrides are not cleaned", func() string {
		got := map[string]string{}
		var applications shipper.ApplicationList
		s.must(s.management.List(s.ctx, &applications, client.InNamespace(s.namespace)))
		for _, o := range applications.Items {
			got["app "+o.Name] = o.Annotations[shipper.RolloutBlockOverrideAnnotation]
		}
		var releases shipper.ReleaseList
		s.must(s.management.List(s.ctx, &releases, client.InNamespace(s.namespace)))
		for _, o := range releases.Items {
			got["rel "+o.Name] = o.Annotations[shipper.RolloutBlockOverrideAnnotation]
		}
		stays := s.namespace + "/staying"
		return cmp.Diff(map[string]string{"app one": "", "rel one": "", "app two": stays, "rel two": stays}, got)
	})
	s.overridden(staying, s.namespace+"/two")
}
