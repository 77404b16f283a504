// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// two Releases share the traffic by weight; the newer is to have all of it at once.
func switching(selects Selection, preview *ShadowService) Application {
	return Application{
		SelectByRelease: true, Selects: selects, Serving: 2, AppPods: 4, Preview: preview, Releases: []Release{
			{Name: "old", Weight: 100, Pods: pods("o", 2, Pod{Ready: true, Serving: true})},
			{Name: "new", Weight: 100, Sole: true, Pods: pods("n", 2, Pod{Ready: true})},
		},
	}
}

func previewing(release string, serves ...string) *ShadowService {
	out := &ShadowService{Selects: Selection{Release: release}, Serving: map[string]bool{}}
	for _, name := range serves {
		out.Serving[name] = true
	}
	return out
}

func TestOneReleaseGetsAllTrafficAtOnce(t *testing.T) {
	newest := switching(toOld, nil)
	newest.Releases[0].Sole = true
	byLabel := switching(toOld, nil)
	byLabel.SelectByRelease = false
	none := switching(toOld, nil)
	none.Releases[1].Weight = 0
	proved := previewing("new", "n-00", "n-01")
	for sentence, tc := range map[string]struct {
		app    Application
		leader string
		want   SelectorChange
	}{
		"proved by a shadow Service":                     {switching(toOld, nil), "new", SelectorChange{Shadow: &toNew}},
		"proved by the preview Service, without another": {switching(toOld, proved), "new", SelectorChange{Select: &toNew}},
		"not before the preview Service has all its Pods": {
			switching(toOld, previewing("new", "n-00")), "new", SelectorChange{},
		},
		"not by a preview Service that selects another": {
			switching(toOld, previewing("old", "o-00", "o-01")), "new", SelectorChange{Shadow: &toNew},
		},
		"it stays while the weight of the other is still there": {switching(toNew, nil), "new", SelectorChange{}},
		"the newest of two":          {newest, "new", SelectorChange{Shadow: &toNew}},
		"not where it asks for none": {none, "old", SelectorChange{}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.app.Next()); diff != "" {
				t.Errorf("next (-want +got):\n%s", diff)
			}
			if got := tc.app.Leader(); got != tc.leader {
				t.Errorf("leader %s, want %s", got, tc.leader)
			}
		})
	}
	if turn := byLabel.Next(); turn.Select != nil && turn.Select.Release != "" {
		t.Errorf("a Service that selects by label is to select %+v", turn.Select)
	}
	is := switching(toNew, nil).For("new")
	if is.Needed != 2 || len(is.Enable) > 0 {
		t.Errorf("all its Pods are needed, and none a label: %+v", is)
	}
	if was := switching(toOld, nil).For("old"); was.Needed != 0 || was.Moves() {
		t.Errorf("none of the others is needed, and none moved: %+v", was)
	}
}

func TestPreviewSelectsTheReleaseThatIsWishedFor(t *testing.T) {
	ready := func(preview *ShadowService) Application { return switching(toOld, preview) }
	unready := ready(previewing("old", "o-00"))
	unready.Releases[1].Pods = pods("n", 2, Pod{})
	idle := unready
	idle.Preview = previewing("old")
	nobody := Selection{Release: shipper.NoRelease}
	for sentence, tc := range map[string]struct {
		app  Application
		wish string
		want *Selection
	}{
		"when its Pods are ready":                    {ready(previewing("old", "o-00")), "new", &toNew},
		"not while none is, and others are shown":    {unready, "new", nil},
		"also while none is, where none is shown":    {idle, "new", &toNew},
		"not when it does already":                   {ready(previewing("new")), "new", nil},
		"no Pods when that is wished for":            {ready(previewing("old", "o-00")), shipper.NoRelease, &nobody},
		"as it does when nothing is wished for":      {ready(previewing("old", "o-00")), "", nil},
		"not one that is not there, if one is shown": {ready(previewing("old", "o-00")), "gone", nil},
		"nothing where there is no preview Service":  {ready(nil), "new", nil},
		"also when a user has edited its selector":   {ready(&ShadowService{Serving: map[string]bool{"x": true}}), "new", &toNew},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.app.NextPreview(tc.wish)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	for name, tc := range map[string]struct {
		app  Application
		want bool
	}{
		"all ready Pods":      {ready(previewing("new", "n-00", "n-01")), true},
		"one of two":          {ready(previewing("new", "n-00")), false},
		"those of another":    {ready(previewing("old", "n-00", "n-01")), false},
		"without the Service": {ready(nil), false},
	} {
		if got := tc.app.Previewed("new"); got != tc.want {
			t.Errorf("%s: previewed is %t", name, got)
		}
	}
}
