// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/retry"
)

// anAnchor is that of web-1, written by a management cluster.
func anAnchor(by string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-1-anchor", Labels: map[string]string{shipper.AppLabel: "web"},
		},
		Data: map[string]string{shipper.AnchorTargetUIDKey: "uid"},
	}
	if by != "" {
		cm.Data[shipper.AnchorIdentityKey] = by
	}
	return cm
}

func TestClaim(t *testing.T) {
	none := anAnchor("there")
	delete(none.Data, shipper.AnchorTargetUIDKey)
	ofUser := anAnchor("there")
	ofUser.Annotations = map[string]string{shipper.PlacedOwnerAnnotation: "shop/rival", shipper.InstalledDigestAnnotation: "d"}
	const says = `the Application "web" in namespace "shop" of this cluster is that of the management cluster "there", ` +
		`says ConfigMap "web-1-anchor", and this one is "here"; use another name or namespace, or, if this management ` +
		`cluster replaces that one, give it its id: kubectl -n ship patch configmap shipper-identity --type=merge ` +
		`-p '{"data":{"id":"there"}}'`
	const evil = `the Application "web" in namespace "shop" of this cluster is that of the management cluster "'; reboot #", ` +
		`says ConfigMap "web-1-anchor", and this one is "here"; use another name or namespace`
	tests := map[string]struct {
		anchor *corev1.ConfigMap
		want   string
	}{
		"ours":                              {anAnchor("here"), ""},
		"the original's":                    {anAnchor(""), ""},
		"a ConfigMap that is no anchor":     {none, ""},
		"what a manifest of a user says":    {ofUser, ""},
		"another's":                         {anAnchor("there"), says},
		"one that would have us run things": {anAnchor("'; reboot #"), evil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := (&Member{Identity: "here", home: "ship"}).Claim(tc.anchor)
			var got string
			if err != nil {
				got = err.Error()
				if reason, remedy := retry.ClassifyInCluster(err); reason != shipper.ObjectConflict || remedy != retry.Wait {
					t.Errorf("it is %s, remedy %d", reason, remedy)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestClaimant(t *testing.T) {
	f := New(Options{})
	f.Identify("here", nil)
	for name, tc := range map[string]struct {
		object client.Object
		want   string
	}{
		"none":           {nil, ""},
		"something else": {&corev1.Pod{}, ""},
		"ours":           {anAnchor("here"), ""},
		"the original's": {anAnchor(""), ""},
		"another's":      {anAnchor("there"), "there"},
	} {
		if got := f.claimant(tc.object); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestNobodyWorksBeforeItIsKnownWhoItIs(t *testing.T) {
	f := New(Options{Reader: oneCluster{}})
	f.connections["c"] = &connection{fleet: f, name: "c", state: State{Ready: true}, member: &Member{Name: "c"}}
	next := listen(t, f)
	var unknown *Error
	if _, err := f.Get(t.Context(), "c"); !errors.As(err, &unknown) || !unknown.Pending {
		t.Errorf("before it is known: %v", err)
	}
	f.Identify("", errors.New("the ConfigMap is empty"))
	next()
	if _, err := f.Get(t.Context(), "c"); !errors.As(err, &unknown) || unknown.Pending || unknown.Message != "the ConfigMap is empty" {
		t.Errorf("when it cannot be known: %v", err)
	}
	f.Identify("here", nil)
	next()
	m, err := f.Get(t.Context(), "c")
	if err != nil {
		t.Fatal(err)
	}
	f.Identify("there", nil)
	next()
	if now, err := f.Get(t.Context(), "c"); err != nil || now.Identity != "there" || m.Identity != "here" {
		t.Errorf("a pass began as %s and the next as %s, %v", m.Identity, now.Identity, err)
	}
	if state, _ := f.State("c"); !state.Ready {
		t.Errorf("the connection is %+v", state)
	}
}

func TestValidIdentity(t *testing.T) {
	for id, want := range map[string]bool{
		"5f0a3b9e-7c1d-4e55-9a41-0d6d2f3c8b77": true, "eu.prod": true, "": false, "two words": false, "'": false,
	} {
		if got := ValidIdentity(id); got != want {
			t.Errorf("%q is valid: %t", id, got)
		}
	}
}
