// SPDX-License-Identifier: Apache-2.0

package stamp_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// ofResources is an Application that selects a ConfigMap.
func ofResources(name string) *shipper.Application {
	app := quickStart()
	app.Spec.Template = shipper.ReleaseEnvironment{
		Resources: &shipper.Resources{Select: []shipper.ResourceSelector{{Kind: "ConfigMap", Name: name}}}, Strategy: &shipper.RolloutStrategy{},
	}
	return app
}

// releaseOf is the next Release of an Application with content of which all characters of the digest are c.
func releaseOf(t *testing.T, app *shipper.Application, c string, existing ...*shipper.Release) *shipper.Release {
	t.Helper()
	rel, err := stamp.Release(stamp.WithContent(app, existing, strings.Repeat(c, 64)), existing)
	if err != nil {
		t.Fatal(err)
	}
	return rel
}

func TestTheDigestOfContentIsOfTheReleaseAlone(t *testing.T) {
	app := ofResources("a")
	one := releaseOf(t, app, "a")
	two := releaseOf(t, app, "b", one)
	if one.Labels[shipper.ReleaseHashLabel] == two.Labels[shipper.ReleaseHashLabel] || one.Name == two.Name {
		t.Errorf("other content has the names %s and %s", one.Name, two.Name)
	}
	if app.Spec.Template.ResourcesDigest != "" {
		t.Error("the template has the digest")
	}
	a, b := &one.Spec.Environment, &two.Spec.Environment
	if stamp.SameEnvironment(a, b) || !stamp.SameTemplate(a, b) || !stamp.SameTemplate(a, &app.Spec.Template) || stamp.SameTemplate(a, nil) {
		t.Error("templates are compared with their content, or environments without")
	}
	if mustHash(t, stamp.Template(*a)) != mustHash(t, app.Spec.Template) {
		t.Error("a Release has the hash of another template")
	}
}

func TestWhichContentIsNext(t *testing.T) {
	app := ofResources("a")
	one := releaseOf(t, app, "a")
	two := releaseOf(t, app, "b", one)
	app.Annotations = map[string]string{shipper.AppRolledBackToAnnotation: one.Name}
	back := releaseOf(t, app, "a", one, two)
	elsewhere := ofResources("a")
	elsewhere.Annotations = map[string]string{shipper.AppRolledBackToAnnotation: "gone"}
	for sentence, tc := range map[string]struct {
		app      *shipper.Application
		existing []*shipper.Release
		want     string
		rollback bool
	}{
		"none without a Release":                {ofResources("a"), nil, "", false},
		"that of the newest Release":            {ofResources("a"), []*shipper.Release{one, two}, "b", false},
		"none of other selectors":               {ofResources("z"), []*shipper.Release{one, two}, "", false},
		"that of the goal of a rollback":        {app, []*shipper.Release{one, two}, "a", true},
		"that of the Release of a rollback":     {app, []*shipper.Release{one, two, back}, "a", false},
		"that of the newest without the goal":   {elsewhere, []*shipper.Release{one, two}, "b", false},
		"none of a chart":                       {quickStart(), []*shipper.Release{one}, "", false},
		"that of the Release before an aborted": {app, []*shipper.Release{one, two, deleted(back)}, "b", false},
	} {
		digest, rollback := stamp.NextContent(tc.app, tc.existing)
		if digest != strings.Repeat(tc.want, 64) || rollback != tc.rollback {
			t.Errorf("%s: it is %.1q, a rollback: %t", sentence, digest, rollback)
		}
	}
}

// deleted is a Release that is being deleted.
func deleted(rel *shipper.Release) *shipper.Release {
	out := rel.DeepCopy()
	out.DeletionTimestamp = new(metav1.Unix(1, 0))
	return out
}
