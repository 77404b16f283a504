// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet"
)

func TestAnchorSaysWhatItWasWrittenWith(t *testing.T) {
	it := &shipper.InstallationTarget{ObjectMeta: metav1.ObjectMeta{UID: "this"}}
	one, two := item{Kind: "Service", Name: "one", Digest: "1"}, item{Kind: "Service", Name: "two", Digest: "2"}
	changed := one
	changed.Digest = "3"
	here := &fleet.Member{Identity: "here"}
	written := anchorFor(here, it, []item{one}, "from")
	written.UID, written.ResourceVersion = "of the ConfigMap", "7"
	earlier := anchorFor(here, &shipper.InstallationTarget{ObjectMeta: metav1.ObjectMeta{UID: "that"}}, []item{one}, "from")
	tests := map[string]struct {
		anchor    *anchor
		inventory []item
		rendered  string
		want      bool
	}{
		"there is none":                   {nil, nil, "", false},
		"as it was written":               {written, []item{one}, "from", true},
		"one object more":                 {written, []item{one, two}, "from", false},
		"another form of the same object": {written, []item{changed}, "from", false},
		"not done yet":                    {written, []item{one}, "", false},
		"written for an earlier target":   {earlier, []item{one}, "from", false},
		"written by the original":         {anchorFor(&fleet.Member{}, it, []item{one}, "from"), []item{one}, "from", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.anchor.says(anchorFor(here, it, tc.inventory, tc.rendered)); got != tc.want {
				t.Errorf("says %t, want %t", got, tc.want)
			}
		})
	}
}

func TestWhatGoesWithATarget(t *testing.T) {
	it := &shipper.InstallationTarget{ObjectMeta: metav1.ObjectMeta{UID: "this"}}
	theirs := errors.New("it is that of another management cluster")
	tests := map[string]struct {
		anchor anchor
		want   bool
	}{
		"ours, of this target":                           {anchor{identity: "here", targetUID: "this"}, true},
		"ours, of the target that this one was restored": {anchor{identity: "here", targetUID: "that"}, true},
		"another's":                              {anchor{identity: "there", targetUID: "that", claim: theirs}, false},
		"another's, with the UID of this target": {anchor{identity: "there", targetUID: "this", claim: theirs}, false},
		"the original's, of this target":         {anchor{targetUID: "this"}, true},
		"the original's, of another target":      {anchor{targetUID: "that"}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.anchor.goesWith(it); got != tc.want {
				t.Errorf("goes %t, want %t", got, tc.want)
			}
		})
	}
}

func TestAnAnchorSpeaksOfItsOwnNamespaceOnly(t *testing.T) {
	const own = `{"apiVersion":"v1","kind":"Service","namespace":"ours","name":"web"}`
	const wide = `{"apiVersion":"v1","kind":"PersistentVolume","name":"web"}`
	const theirs = `{"apiVersion":"apps/v1","kind":"Deployment","namespace":"theirs","name":"web-0"}`
	service := item{APIVersion: "v1", Kind: "Service", Namespace: "ours", Name: "web"}
	volume := item{APIVersion: "v1", Kind: "PersistentVolume", Name: "web"}
	for text, want := range map[string]struct {
		inventory []item
		rendered  string
	}{
		"[" + own + "," + wide + "]":   {[]item{service, volume}, "x"},
		"[" + own + "," + theirs + "]": {[]item{service}, ""},
		"nonsense":                     {},
	} {
		inventory, rendered := inventoryOf(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ours"},
			Data:       map[string]string{inventoryKey: text, renderedKey: "x", digestKey: digestOf(text, "x")},
		})
		if diff := cmp.Diff(want.inventory, inventory); diff != "" || rendered != want.rendered {
			t.Errorf("%s: rendered from %q (-want +got):\n%s", text, rendered, diff)
		}
	}
}

// TestAnAnchorWhoseListWasEditedIsPlannedAnew has what a user writes into an anchor, and what an earlier version has left out.
func TestAnAnchorWhoseListWasEditedIsPlannedAnew(t *testing.T) {
	it := &shipper.InstallationTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "ours", Name: "web", UID: "this"}}
	here := &fleet.Member{Identity: "here"}
	list := []item{{APIVersion: "v1", Kind: "Service", Namespace: "ours", Name: "web", Digest: "1"}}
	for name, tc := range map[string]struct {
		edit map[string]string
		want string
	}{
		"as it was written":         {nil, "from"},
		"an empty list":             {map[string]string{inventoryKey: "[]"}, ""},
		"another digest":            {map[string]string{inventoryKey: strings.ReplaceAll(textOf(t, list), "1", "2")}, ""},
		"another fingerprint":       {map[string]string{renderedKey: "other"}, ""},
		"of an earlier version":     {map[string]string{digestKey: ""}, ""},
		"not done, with an old one": {map[string]string{renderedKey: ""}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			written, err := anchorFor(here, it, list, "from").list(it)
			if err != nil {
				t.Fatal(err)
			}
			maps.Copy(written.Data, tc.edit)
			a := anchorOf(here, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ours"}, Data: written.Data})
			same := *a
			if same.unlabelled = false; a.says(&same) {
				t.Error("without its labels it is not written again")
			}
			if a.rendered != tc.want || a.done != (written.Data[renderedKey] != "") {
				t.Errorf("rendered from %q, done %t", a.rendered, a.done)
			}
		})
	}
}

func textOf(t *testing.T, list []item) string {
	t.Helper()
	raw, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
