// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

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
	looks, lists                    int32 // how often it was asked for metadata, and for more
	broken                          error
	meanwhile                       func() // happens when targets have been read
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
	if _, small := list.(*metav1.PartialObjectMetadataList); small {
		atomic.AddInt32(&s.looks, 1) // kinds are asked for at the same time
	} else {
		atomic.AddInt32(&s.lists, 1)
	}
	switch l := list.(type) {
	case *metav1.PartialObjectMetadataList:
		if s.release != "" {
			l.Items = []metav1.PartialObjectMetadata{{ObjectMeta: meta("rel", s.release)}}
		}
	case *shipper.ReleaseList:
		if s.release == "" {
			return s.broken
		}
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
		if s.meanwhile != nil {
			s.meanwhile()
		}
	}
	return s.broken
}

// then is when everything was read for the first time.
var then = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func TestTheCacheIsBelievedWhenItShowsWhatIsKnown(t *testing.T) {
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "app"}}
	wrote := func(version string, err error) func(*WriteTracker) {
		return func(k *WriteTracker) {
			ct := &shipper.CapacityTarget{ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", UID: "ct", ResourceVersion: version, Labels: map[string]string{shipper.AppLabel: "web"},
			}}
			k.Wrote(ct, err)
		}
	}
	now := shown{release: "9", installation: "8", capacity: "10", percent: 50}
	for sentence, tc := range map[string]struct {
		cache     shown
		meanwhile func(*WriteTracker)
		believed  bool
	}{
		"it shows what was read":                  {now, nil, true},
		"it shows what was written since":         {shown{"9", "8", "12", 50, 0, 0, nil, nil}, wrote("12", nil), true},
		"somebody said something of it since":     {shown{"9", "8", "100", 50, 0, 0, nil, nil}, wrote("12", nil), true},
		"it does not show what was written":       {now, wrote("12", nil), false},
		"it is late, and other digits are more":   {shown{"9", "8", "9", 1, 0, 0, nil, nil}, nil, false},
		"a target that is there is missing":       {shown{"9", "8", "", 0, 0, 0, nil, nil}, nil, false},
		"it shows an earlier Release":             {shown{"7", "8", "10", 50, 0, 0, nil, nil}, nil, false},
		"nobody knows whether a write succeeded":  {now, wrote("", errors.New("no answer")), false},
		"the Application was forgotten meanwhile": {now, func(k *WriteTracker) { k.Forget(client.ObjectKeyFromObject(app)) }, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			live, known := now, NewWriteTracker()
			r := &Reader{cached: &tc.cache, live: &live}
			if _, err := r.Verified(t.Context(), app, known, then); err != nil || int(live.lists) != len(kinds()) {
				t.Fatalf("the first time %d kinds were listed: %v", live.lists, err)
			}
			live.lists = 0
			if tc.meanwhile != nil {
				tc.meanwhile(known)
			}
			got, err := r.Verified(t.Context(), app, known, then.Add(lately))
			if err != nil || (live.lists == 0) != tc.believed {
				t.Fatalf("%d kinds were listed: %v", live.lists, err)
			}
			if asked := got.Live[0].Capacity.Spec.Clusters[0].Percent; asked != 50 {
				t.Errorf("%d is asked for", asked)
			}
		})
	}
}

func TestWhatWasConfirmedLatelyIsNotAskedForAgain(t *testing.T) {
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "app"}}
	release := func(uid types.UID, version string) *shipper.Release {
		return &shipper.Release{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", UID: uid, ResourceVersion: version, Labels: map[string]string{shipper.AppLabel: "web"},
		}}
	}
	soon, late := then.Add(lately-1), then.Add(lately)
	for sentence, tc := range map[string]struct {
		meanwhile func(*WriteTracker)
		cached    string // version of the Release
		at        time.Time
		asks      bool
	}{
		"nothing has happened":                     {func(*WriteTracker) {}, "9", soon, false},
		"somebody said something of a Release":     {func(*WriteTracker) {}, "11", soon, false},
		"it has been written, and that is shown":   {func(k *WriteTracker) { k.Wrote(release("rel", "12"), nil) }, "12", soon, false},
		"a while ago":                              {func(*WriteTracker) {}, "9", late, true},
		"by a clock that was put back":             {func(*WriteTracker) {}, "9", then.Add(-1), true},
		"it has been written, and is shown before": {func(k *WriteTracker) { k.Wrote(release("rel", "12"), nil) }, "9", soon, true},
		"nobody knows whether it was written":      {func(k *WriteTracker) { k.Wrote(release("rel", ""), errors.New("no answer")) }, "9", soon, true},
		"two have written it, and who was first says so last": {func(k *WriteTracker) {
			k.Wrote(release("rel", "12"), nil)
			k.Wrote(release("rel", "11"), nil)
		}, "11", soon, true},
		"one that was made is not shown": {func(k *WriteTracker) { k.Wrote(release("next", "12"), nil) }, "9", soon, true},
		"one was deleted":                {func(k *WriteTracker) { k.Deleted(release("rel", "9")) }, "9", soon, true},
		"a target is shown as it was before": {func(k *WriteTracker) {
			ct := &shipper.CapacityTarget{ObjectMeta: release("ct", "12").ObjectMeta}
			k.Wrote(ct, nil)
		}, "9", soon, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			known := NewWriteTracker()
			live := shown{release: "9", installation: "8", capacity: "10"}
			cache := live
			r := &Reader{cached: &cache, live: &live}
			for range 2 { // the first time everything is read, and what it was then is confirmed
				if _, err := r.Verified(t.Context(), app, known, then); err != nil {
					t.Fatal(err)
				}
			}
			tc.meanwhile(known)
			cache.release, live.looks = tc.cached, 0
			if _, err := r.Verified(t.Context(), app, known, tc.at); err != nil || (live.looks > 0) != tc.asks {
				t.Errorf("it was asked %d times: %v", live.looks, err)
			}
		})
	}
}

// TestOfWhatBeginsNothingIsRead has the first Release of an Application made, and its targets, by this process.
func TestOfWhatBeginsNothingIsRead(t *testing.T) {
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "app"}}
	none, known := shown{}, NewWriteTracker()
	first := &Reader{cached: &none, live: &none}
	if h, err := first.Verified(t.Context(), app, known, then); err != nil || len(h.All) > 0 || none.looks != 1 {
		t.Fatalf("it was asked %d times: %v", none.looks, err)
	}
	made := shown{release: "9", installation: "8"}
	for uid, o := range map[types.UID]client.Object{"rel": &shipper.Release{}, "it": &shipper.InstallationTarget{}} {
		o.SetNamespace("default")
		o.SetUID(uid)
		o.SetResourceVersion("8")
		o.SetLabels(map[string]string{shipper.AppLabel: "web"})
		known.Wrote(o, nil)
	}
	live := shown{}
	next := &Reader{cached: &made, live: &live}
	if h, err := next.Verified(t.Context(), app, known, then); err != nil || len(h.All) != 1 || live.looks+live.lists > 0 {
		t.Errorf("the API server was asked for %d kinds: %v", live.looks+live.lists, err)
	}
}

// TestWhatIsWrittenWhileItIsReadIsNotForgotten has another reconciler write a target while this one reads it as it was before.
func TestWhatIsWrittenWhileItIsReadIsNotForgotten(t *testing.T) {
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "app"}}
	for sentence, wrote := range map[string]func(*WriteTracker){
		"a target": func(k *WriteTracker) {
			k.Wrote(&shipper.CapacityTarget{ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", UID: "ct", ResourceVersion: "12", Labels: map[string]string{shipper.AppLabel: "web"},
			}}, nil)
		},
		"nobody knows what": func(k *WriteTracker) { k.WroteApplication(app, errors.New("no answer")) },
	} {
		live, cache, known := shown{release: "9", installation: "8", capacity: "10"}, shown{}, NewWriteTracker()
		r := &Reader{cached: &cache, live: &live}
		live.meanwhile = func() { wrote(known) }
		if _, err := r.Verified(t.Context(), app, known, then); err != nil {
			t.Fatal(err)
		}
		cache, live.lists, live.meanwhile = shown{release: "9", installation: "8", capacity: "10"}, 0, nil
		if _, err := r.Verified(t.Context(), app, known, then); err != nil || live.lists == 0 {
			t.Errorf("%s: what may be old news was believed: %v", sentence, err)
		}
	}
}

// apps shows an Application in one version.
type apps struct {
	client.Reader

	uid     types.UID
	version string
	gets    int
	broken  error
}

func (a *apps) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	a.gets++
	o.SetNamespace(key.Namespace)
	o.SetName(key.Name)
	o.SetUID(a.uid)
	o.SetResourceVersion(a.version)
	return a.broken
}

func TestAnApplicationIsBelievedAsItWasWritten(t *testing.T) {
	key := types.NamespacedName{Namespace: "default", Name: "web"}
	wrote := func(version string, err error) func(*WriteTracker) {
		return func(k *WriteTracker) {
			k.WroteApplication(&shipper.Application{ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: "web", UID: "app", ResourceVersion: version,
			}}, err)
		}
	}
	for sentence, tc := range map[string]struct {
		meanwhile func(*WriteTracker)
		cached    apps
		believed  bool
	}{
		"it shows what was read":                 {func(*WriteTracker) {}, apps{uid: "app", version: "10"}, true},
		"it shows what was written":              {wrote("12", nil), apps{uid: "app", version: "12"}, true},
		"somebody wrote it since":                {wrote("12", nil), apps{uid: "app", version: "100"}, true},
		"it does not show what was written":      {wrote("12", nil), apps{uid: "app", version: "11"}, false},
		"nobody knows whether a write succeeded": {wrote("", errors.New("no answer")), apps{uid: "app", version: "10"}, false},
		"it is another of that name":             {func(*WriteTracker) {}, apps{uid: "another", version: "20"}, false},
		"it was forgotten":                       {func(k *WriteTracker) { k.Forget(key) }, apps{uid: "app", version: "10"}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			known, live := NewWriteTracker(), apps{uid: "app", version: "10"}
			r := &Reader{cached: &tc.cached, live: &live}
			first := &Reader{cached: &apps{uid: "app", version: "9"}, live: &live}
			if _, err := first.Application(t.Context(), key, known); err != nil || live.gets != 1 {
				t.Fatalf("the first time it was read %d times: %v", live.gets, err)
			}
			tc.meanwhile(known)
			got, err := r.Application(t.Context(), key, known)
			if err != nil || (live.gets == 1) != tc.believed {
				t.Errorf("it was read %d times: %v", live.gets, err)
			}
			if want := map[bool]string{true: tc.cached.version, false: "10"}[tc.believed]; got.ResourceVersion != want {
				t.Errorf("got version %s, want %s", got.ResourceVersion, want)
			}
		})
	}
	gone := &apps{broken: errors.New("no answer")}
	r := &Reader{cached: &apps{uid: "app", version: "10"}, live: gone}
	if _, err := r.Application(t.Context(), key, NewWriteTracker()); !errors.Is(err, gone.broken) {
		t.Errorf("got %v", err)
	}
}

func TestWhatCannotBeReadIsNotKnown(t *testing.T) {
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "app"}}
	cache := shown{release: "9", installation: "8", capacity: "10"}
	live := cache
	live.broken = errors.New("no answer")
	r := &Reader{cached: &cache, live: &live}
	if _, err := r.Verified(t.Context(), app, NewWriteTracker(), then); !errors.Is(err, live.broken) {
		t.Errorf("got %v", err)
	}
}

// TestADeletionIsDecidedByWhatIs has a user delete the newest Release, which is how one aborts, and the cache hear late of it: whoever
// deletes the Release before it because its place is taken must not do that half a minute after it was last looked.
func TestADeletionIsDecidedByWhatIs(t *testing.T) {
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "app"}}
	cache := shown{release: "9", installation: "8", capacity: "10", percent: 50}
	live, known := cache, NewWriteTracker()
	r := &Reader{cached: &cache, live: &live}
	for range 2 {
		if _, err := r.Verified(t.Context(), app, known, then); err != nil {
			t.Fatal(err)
		}
	}
	live.release = ""
	known.Distrust(client.ObjectKeyFromObject(app))
	h, err := r.Verified(t.Context(), app, known, then.Add(30*time.Second))
	if err != nil || len(h.All) > 0 {
		t.Errorf("30 s after it was deleted it is decided by %d Release that is no more: %v", len(h.All), err)
	}
}
