// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// from has values from a Secret with the content of a digest; an empty digest is unknown.
func from(env *shipper.ReleaseEnvironment, digest string) {
	source := shipper.ValuesSource{SecretKeyRef: &shipper.ValuesKeyRef{Name: "hidden"}}
	env.ValuesFrom = []shipper.ValuesSource{source}
	if digest != "" {
		env.ValuesDigests = map[string]string{source.String(): digest}
	}
}

// TestWhatIsGoneBackToIsTrimmedOnceItsValuesAreKept has a history with room for one, and goes back to the oldest.
func TestWhatIsGoneBackToIsTrimmedOnceItsValuesAreKept(t *testing.T) {
	for sentence, tc := range map[string]struct {
		newest  *shipper.Release
		digest  string
		removed []string
	}{
		"while it is on its way it may need them":    {rel(2, 2), "x", nil},
		"when it is complete it has them":            {complete(2, 2), "x", []string{"one"}},
		"what held something else gives it nothing":  {rel(2, 2), "y", []string{"one"}},
		"without values from elsewhere nothing does": {rel(2, 2), "", []string{"one"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			one, two := complete(0, 0), complete(1, 1)
			one.Name, two.Name = "one", "two"
			if tc.digest != "" {
				from(&one.Spec.Environment, "x")
				from(&tc.newest.Spec.Environment, tc.digest)
			}
			app := web(2, "2", 2)
			app.Spec.RevisionHistoryLimit = ptr.To[int32](1)
			app.Spec.Template = tc.newest.Spec.Environment
			var got []string
			for _, r := range surplus(seen(app, one, two, tc.newest), metav1.Time{}) {
				got = append(got, r.Name)
			}
			if diff := cmp.Diff(tc.removed, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestValuesThatWereNeverReadMakeNoRelease meets an Application that was written while the gate was not asked.
func TestValuesThatWereNeverReadMakeNoRelease(t *testing.T) {
	app := web(1, "", 0)
	from(&app.Spec.Template, "")
	p := planTemplate(seen(app), metav1.Time{})
	reason, message := failure(p, applied{})
	want := "what valuesFrom names was never read: kubectl annotate app web shipper.booking.com/app.values.refresh=<anything new> " +
		"--overwrite -n default"
	if p.create != nil || reason != shipper.ValuesFetchFailure || message != want {
		t.Errorf("it makes %v and says %s: %s", p.create, reason, message)
	}
	from(&app.Spec.Template, "x")
	if p := planTemplate(seen(app), metav1.Time{}); p.create == nil || !stamp.SameSources(&p.create.Spec.Environment, &app.Spec.Template) {
		t.Errorf("once they are, it makes %v", p.create)
	}
}
