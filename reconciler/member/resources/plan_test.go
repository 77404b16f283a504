// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/member/drift"
)

// there is an object in a cluster.
func there(owner, digest string) *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "u", Annotations: map[string]string{}}}
	if owner != "" {
		out.Annotations[shipper.PlacedOwnerAnnotation], out.Annotations[shipper.InstalledDigestAnnotation] = owner, digest
		out.Labels = map[string]string{shipper.AppLabel: "web"}
	}
	return out
}

func TestEveryObjectHasOneAction(t *testing.T) {
	edited := there("team/web", "x")
	foreign := there("", "")
	going := there("team/web", "new")
	going.DeletionTimestamp = &metav1.Time{}
	foreignGoing := there("", "")
	foreignGoing.DeletionTimestamp = &metav1.Time{}
	unlabelled := there("team/web", "new")
	unlabelled.Labels = nil
	ofChart := there("team/web", "new")
	ofChart.Labels[shipper.OwnedByLabel] = "web-1"
	known := func(uid types.UID, digest string, pending bool) *entry {
		return &entry{UID: uid, Digest: digest, Pending: pending}
	}
	differs, equal := &drift.Comparison{Fields: []shipper.DriftedField{{}}}, &drift.Comparison{}
	unknown := &drift.Comparison{Problem: "refused"}
	const never, noDiff, always = shipper.TakeOverNever, shipper.TakeOverIfNoDiff, shipper.TakeOverAlways
	for sentence, tc := range map[string]struct {
		kind   string
		policy shipper.TakeOverPolicy
		halt   bool
		// namespace of the object, if any.
		namespace string
		s         item
		want      action
	}{
		"what another object owns is not taken": {policy: always, s: item{live: foreign, maker: "x"}, want: refuse},
		"a ReplicaSet has the annotations of our Deployment, and is not ours": {
			s: item{live: there("team/web", "old"), maker: "x"}, want: refuse,
		},
		"a chart's object that says it is ours is not": {policy: never, s: item{live: ofChart}, want: leave},
		"nothing is written where anchors are":         {namespace: shipper.SystemNamespace, policy: always, want: refuse},
		"what is not there is made":                    {s: item{}, want: create},
		"a kind that is not served is awaited":         {s: item{unserved: true}, want: await},
		"ours with the digest stays":                   {s: item{live: there("team/web", "new")}, want: keep},
		"ours with another digest is written":          {s: item{live: there("team/web", "old")}, want: write},
		"ours without the label is written":            {s: item{live: unlabelled}, want: write},
		"ours that goes is awaited":                    {s: item{live: going}, want: wait},
		"ours without marks is known by the anchor":    {s: item{live: foreign, known: known("u", "new", false)}, want: write},
		"a namesake of ours is not known by the anchor": {
			policy: never, s: item{live: foreign, known: known("x", "new", false)}, want: leave,
		},
		"what was to be taken is not ours yet": {policy: never, s: item{live: foreign, known: known("u", "new", true)}, want: leave},
		"Halt leaves what was written alone":   {halt: true, s: item{live: edited, known: known("u", "new", false)}, want: keep},
		"Halt writes other content":            {halt: true, s: item{live: edited, known: known("u", "old", false)}, want: write},
		"Halt writes what was not written yet": {halt: true, s: item{live: edited, known: known("u", "new", true)}, want: write},
		"Halt makes what was deleted":          {halt: true, s: item{known: known("u", "new", false)}, want: create},
		"Never leaves what is there alone":     {policy: never, s: item{live: foreign}, want: leave},
		"Never uses a Namespace as it is":      {kind: "Namespace", policy: never, s: item{live: foreign}, want: use},
		"Never uses another Application's Namespace": {
			kind: "Namespace", policy: never, s: item{live: there("a/b", ""), whose: "x"}, want: use,
		},
		"Always takes a Namespace":                      {kind: "Namespace", policy: always, s: item{live: foreign}, want: take},
		"Always takes":                                  {policy: always, s: item{live: foreign}, want: take},
		"Always takes nothing of another Application":   {policy: always, s: item{live: there("a/b", "new"), whose: "x"}, want: refuse},
		"Always takes what an Application has left":     {policy: always, s: item{live: there("a/b", "new")}, want: take},
		"what is foreign and goes is awaited":           {policy: never, s: item{live: foreignGoing}, want: wait},
		"IfNoDiff compares":                             {policy: noDiff, s: item{live: foreign}, want: compare},
		"IfNoDiff takes what is equal":                  {policy: noDiff, s: item{live: foreign, compared: equal}, want: take},
		"IfNoDiff leaves what differs alone":            {policy: noDiff, s: item{live: foreign, compared: differs}, want: leave},
		"IfNoDiff leaves what cannot be compared alone": {policy: noDiff, s: item{live: foreign, compared: unknown}, want: leave},
		"IfNoDiff leaves a Namespace that differs alone": {
			kind: "Namespace", policy: noDiff, s: item{live: foreign, compared: differs}, want: leave,
		},
	} {
		tc.s.want = entry{APIVersion: "v1", Kind: "ConfigMap", Namespace: tc.namespace, Name: "a", Digest: "new"}
		if tc.kind != "" {
			tc.s.want.Kind = tc.kind
		}
		r := rules{owner: "team/web", app: "web", takeOver: tc.policy, halt: tc.halt}
		if got := r.decide(&tc.s); got != tc.want {
			t.Errorf("%s: %s, want %s", sentence, got, tc.want)
		}
	}
}

func TestWhatEachClusterHasOfItsOwnIsRefused(t *testing.T) {
	for sentence, o := range map[string]map[string]any{
		"a ServiceAccount": {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "default"}},
		"an anchor": {
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "rival-1-anchor"},
			"data": map[string]any{shipper.AnchorTargetUIDKey: "x"},
		},
	} {
		object := fromContent(o)
		of := entry{APIVersion: "v1", Kind: object.GetKind(), Namespace: "team", Name: object.GetName(), UID: "u", Digest: "new"}
		for state, s := range map[string]*item{
			"missing": {}, "foreign": {live: there("", "")}, "taken over before": {live: there("team/web", "new"), known: &of},
		} {
			s.object, s.want = object, of
			s.action = rules{owner: "team/web", app: "web", takeOver: shipper.TakeOverAlways}.decide(s)
			if s.action != refuse || !strings.HasPrefix(s.whose, "the cluster: ") {
				t.Errorf("%s that is %s: %s, of %q", sentence, state, s.action, s.whose)
			}
			union, dropped := plan([]*item{s}, &anchor{inventory: []entry{of}})
			if len(union)+len(dropped) > 0 {
				t.Errorf("%s that is %s is still listed, and would be removed: %v, %v", sentence, state, union, dropped)
			}
		}
	}
}

func TestTheAnchorListsWhatIsAboutToBeWritten(t *testing.T) {
	e := func(name string, uid types.UID, digest string, pending bool) entry {
		return entry{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: uid, Digest: digest, Pending: pending}
	}
	s := func(name string, a action, known *entry) *item {
		out := &item{want: e(name, "", "new", false), known: known, action: a}
		if a != create {
			out.live = there("", "")
		}
		return out
	}
	old := e("kept", "u", "new", false)
	lost, gone := e("lost", "u", "old", false), e("gone", "z", "old", false)
	unread := s("unread", "", &lost)
	unread.want.Name, unread.failed = "lost", aProblem()
	all := []*item{
		s("made", create, nil), s("written", write, nil), s("taken", take, nil), s("kept", keep, &old), s("left", leave, nil),
		s("refused", refuse, nil), s("used", use, nil), unread,
	}
	union, dropped := plan(all, &anchor{inventory: []entry{old, gone, lost}})
	want := []entry{
		e("made", "", "new", true), e("written", "u", "new", true), e("taken", "u", "new", true), old, lost, gone,
	}
	if diff := cmp.Diff(want, union); diff != "" {
		t.Errorf("before the writes: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]entry{gone}, dropped); diff != "" {
		t.Errorf("dropped: -want +got:\n%s", diff)
	}
	all[0].done, all[0].want.UID = true, "m"
	all[1].failed = aProblem()
	all[2].done, all[2].want.UID = true, "u"
	inventory, whole := placed(all, 7)
	made, taken := e("made", "m", "new", false), e("taken", "u", "new", false)
	made.At, taken.At = 7, 7
	if diff := cmp.Diff([]entry{made, e("written", "u", "new", true), taken, old, lost}, inventory); diff != "" || whole {
		t.Errorf("after the writes, whole %t: -want +got:\n%s", whole, diff)
	}
	if _, whole := placed([]*item{all[0], all[2], all[3]}, 7); !whole {
		t.Error("all is written and the content is not whole")
	}
}

func aProblem() error { return waiting("x") }

func TestAnObjectOfAChartBelongsToNoApplicationWithResources(t *testing.T) {
	placed, chart := there("team/web", "d"), there("team/web", "d")
	chart.Labels[shipper.OwnedByLabel] = "rival-1"
	app := types.NamespacedName{Namespace: "team", Name: "web"}
	for sentence, tc := range map[string]struct {
		event fleet.Event
		want  types.NamespacedName
	}{
		"a placed object":                   {fleet.Event{New: placed}, app},
		"one that lost its mark":            {fleet.Event{Old: placed, New: there("", "")}, app},
		"an object of a chart":              {fleet.Event{Old: chart, New: chart}, types.NamespacedName{}},
		"a placed object that was labelled": {fleet.Event{Old: placed, New: chart}, app},
	} {
		if got, ok := Owner(tc.event); got != tc.want || ok != (tc.want != types.NamespacedName{}) {
			t.Errorf("%s: %v, %t", sentence, got, ok)
		}
	}
}
