// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// shown is what a cache or an API server shows of one Release with two targets: their versions, and of the capacity how much is
// asked for. One that has no version is not there.
type shown struct {
	release, installation, capacity string
	percent                         int32
	lists                           int // how often it was asked, and for more than metadata
	broken                          error
}

func (s *shown) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("nobody asks for one")
}

func (s *shown) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	meta := func(kind, version string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: "default", Name: "web-0", UID: types.UID(kind), ResourceVersion: version,
			Labels:          map[string]string{shipper.AppLabel: "web"},
			Annotations:     map[string]string{shipper.ReleaseGenerationAnnotation: "0"},
			OwnerReferences: []metav1.OwnerReference{{UID: "rel"}},
		}
	}
	if _, small := list.(*metav1.PartialObjectMetadataList); !small {
		s.lists++
	}
	switch l := list.(type) {
	case *metav1.PartialObjectMetadataList:
		l.Items = []metav1.PartialObjectMetadata{{ObjectMeta: meta("rel", s.release)}}
	case *shipper.ReleaseList:
		rel := shipper.Release{ObjectMeta: meta("rel", s.release)}
		rel.OwnerReferences = []metav1.OwnerReference{{Kind: "Application", UID: "app"}}
		l.Items = []shipper.Release{rel}
	case *shipper.InstallationTargetList:
		l.Items = []shipper.InstallationTarget{{ObjectMeta: meta("it", s.installation)}}
	case *shipper.CapacityTargetList:
		if s.capacity != "" {
			ct := shipper.CapacityTarget{ObjectMeta: meta("ct", s.capacity)}
			ct.Spec.Clusters = []shipper.ClusterCapacityTarget{{Percent: s.percent}}
			l.Items = []shipper.CapacityTarget{ct}
		}
	}
	return s.broken
}

func TestTheCacheIsBelievedWhenItShowsWhatIsKnown(t *testing.T) {
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "app"}}
	wrote := func(version string, err error) func(*Known) {
		return func(k *Known) {
			ct := &shipper.CapacityTarget{ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", UID: "ct", ResourceVersion: version, Labels: map[string]string{shipper.AppLabel: "web"},
			}}
			k.Wrote(ct, err)
		}
	}
	now := shown{release: "9", installation: "8", capacity: "10", percent: 50}
	for sentence, tc := range map[string]struct {
		cache     shown
		meanwhile func(*Known)
		believed  bool
	}{
		"it shows what was read":                  {now, nil, true},
		"it shows what was written since":         {shown{"9", "8", "12", 50, 0, nil}, wrote("12", nil), true},
		"somebody said something of it since":     {shown{"9", "8", "100", 50, 0, nil}, wrote("12", nil), true},
		"it does not show what was written":       {now, wrote("12", nil), false},
		"it is late, and other digits are more":   {shown{"9", "8", "9", 1, 0, nil}, nil, false},
		"a target that is there is missing":       {shown{"9", "8", "", 0, 0, nil}, nil, false},
		"it shows an earlier Release":             {shown{"7", "8", "10", 50, 0, nil}, nil, false},
		"nobody knows whether a write succeeded":  {now, wrote("", errors.New("no answer")), false},
		"the Application was forgotten meanwhile": {now, func(k *Known) { k.Forget(client.ObjectKeyFromObject(app)) }, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			live, known := now, NewKnown()
			r := &Reader{cached: &tc.cache, live: &live, index: "any"}
			if _, err := r.Confirmed(t.Context(), app, known); err != nil || live.lists != len(kinds()) {
				t.Fatalf("the first time %d kinds were listed: %v", live.lists, err)
			}
			live.lists = 0
			if tc.meanwhile != nil {
				tc.meanwhile(known)
			}
			got, err := r.Confirmed(t.Context(), app, known)
			if err != nil || (live.lists == 0) != tc.believed {
				t.Fatalf("%d kinds were listed: %v", live.lists, err)
			}
			if asked := got.Live[0].Capacity.Spec.Clusters[0].Percent; asked != 50 {
				t.Errorf("%d is asked for", asked)
			}
		})
	}
}

func TestWhatCannotBeReadIsNotKnown(t *testing.T) {
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "app"}}
	cache := shown{release: "9", installation: "8", capacity: "10"}
	live := cache
	live.broken = errors.New("no answer")
	r := &Reader{cached: &cache, live: &live, index: "any"}
	if _, err := r.Confirmed(t.Context(), app, NewKnown()); !errors.Is(err, live.broken) {
		t.Errorf("got %v", err)
	}
}
