// SPDX-License-Identifier: Apache-2.0

package application_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/webhook/response"
)

// packed is a chart's archive as it stands in an Application, and its digest.
func packed(t *testing.T, name, version, values string) (encoded, digest string) {
	t.Helper()
	archive, err := charts.PackFiles(name, version, map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: " + name + "\nversion: " + version + "\n", "values.yaml": values,
	})
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(archive.Bytes), archive.Digest
}

// inline has the archive in place of a repository.
func inline(name, version, encoded string) func(*shipper.Application) {
	return func(app *shipper.Application) {
		app.Spec.Template.Chart = shipper.Chart{Name: name, Version: version, Archive: encoded}
	}
}

func TestAnArchiveIsPinned(t *testing.T) {
	one, sumOfOne := packed(t, "web", "1.0.0", "")
	other, sumOfOther := packed(t, "web", "1.0.0", "a: 1")
	two, sumOfTwo := packed(t, "web", "2.0.0", "")
	noted := func(raw, version, digest string) map[string]string {
		return map[string]string{"version": version, "raw": raw, "resolved": version, "name": "web", "repo": "", "digest": digest}
	}
	// stored is an Application that was admitted with an archive.
	stored := func(raw, version, encoded, digest string) *shipper.Application {
		return ask.Application(inline("web", version, encoded), func(app *shipper.Application) {
			for key, value := range map[string]string{
				shipper.AppChartVersionRawAnnotation: raw, shipper.AppChartVersionResolvedAnnotation: version,
				shipper.AppChartNameAnnotation: "web", shipper.AppChartRepoAnnotation: "", shipper.AppChartDigestAnnotation: digest,
			} {
				ask.Annotated(key, value)(app)
			}
		})
	}
	unasked, asked := stored("", "1.0.0", one, sumOfOne), stored("1.0.0", "1.0.0", one, sumOfOne)
	merged := func(version, encoded string, from *shipper.Application) *shipper.Application {
		out := from.DeepCopy()
		out.Spec.Template.Chart = shipper.Chart{Name: "web", Version: version, Archive: encoded}
		return out
	}
	for sentence, tc := range map[string]struct {
		now, old *shipper.Application
		want     map[string]string
	}{
		"name and version are its own":  {ask.Application(inline("", "", one)), nil, noted("", "1.0.0", sumOfOne)},
		"name and version may be given": {ask.Application(inline("web", "1.0.0", one)), nil, noted("1.0.0", "1.0.0", sumOfOne)},
		"it takes a repository's place": {
			ask.Application(inline("web", "", one)), ask.Application(ask.Pinned("~0.0")), noted("", "1.0.0", sumOfOne),
		},
		"the same bytes make no new Release": {
			merged("1.0.0", one, unasked), unasked, noted("", "1.0.0", sumOfOne),
		},
		"other bytes of its version have another digest": {
			merged("1.0.0", other, asked), asked, noted("1.0.0", "1.0.0", sumOfOther),
		},
		"a version that the user did not set is replaced by that of another archive": {
			merged("1.0.0", two, unasked), unasked, noted("", "2.0.0", sumOfTwo),
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			charts := &catalog{}
			req := ask.Create(ask.Developer, tc.now)
			if tc.old != nil {
				req = ask.Update(ask.Developer, withValues(tc.now), tc.old)
			}
			a := &response.Response{}
			if err := webhookOf(t, ask.Grant(), charts).Default(t.Context(), req, a); err != nil {
				t.Fatal(err)
			}
			got := ask.Patched[shipper.Application](t, req, a)
			if diff := cmp.Diff(tc.want, pins(got)); diff != "" || got.Spec.Template.Chart.Name != "web" {
				t.Errorf("%s (-want +got)\n%s", got.Spec.Template.Chart.Name, diff)
			}
			if len(charts.asked) > 0 {
				t.Error("a repository was asked")
			}
		})
	}
}

// withValues is an edit of something else, too.
func withValues(app *shipper.Application) *shipper.Application {
	(*app.Spec.Template.Values)["edited"] = true
	return app
}

func TestAnArchiveThatIsRefused(t *testing.T) {
	whole, _ := packed(t, "web", "1.0.0", "")
	leaving, err := charts.PackFiles("web", "1.0.0", map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "../../etc/x": "",
	})
	if err != nil {
		t.Fatal(err)
	}
	path := base64.StdEncoding.EncodeToString(leaving.Bytes)
	text := base64.StdEncoding.EncodeToString([]byte("hello"))
	long := strings.Repeat("A", 700_000)
	const invalid = `Application.shipper.booking.com "super-server" is invalid: spec.template.chart.`
	unusable := func(encoded, why string) string {
		return fmt.Sprintf(`%sarchive: Invalid value: "(%d bytes)": the chart's archive %s`, invalid, len(encoded), why)
	}
	for sentence, tc := range map[string]struct {
		chart   shipper.Chart
		message string
	}{
		"a text that is not base64":      {shipper.Chart{Archive: "?"}, unusable("?", "is not base64, as `base64 -w0 chart.tgz` writes it")},
		"an archive that is not a chart": {shipper.Chart{Archive: text}, unusable(text, "cannot be used: it is not a gzip file")},
		"a path that leaves": {shipper.Chart{Archive: path}, unusable(path,
			"cannot be used: chart illegally references parent directory")},
		"an archive that is too long": {shipper.Chart{Archive: long},
			unusable(long, "is larger than the 512 KiB that are accepted here: put it into a repository, and name that by repoUrl")},
		"another name": {shipper.Chart{Name: "nginx", Archive: whole},
			invalid + `name: Invalid value: "nginx": the archive holds chart "web": name it so, or leave the name out`},
		"another version": {shipper.Chart{Version: "~1.0", Archive: whole},
			invalid + `version: Invalid value: "~1.0": the archive holds version "1.0.0": name it so, or leave the version out`},
		"a repository, too": {shipper.Chart{Name: "web", Version: "1.0.0", Archive: whole, RepoURL: repo},
			invalid + `archive: Forbidden: the chart comes from repoUrl: leave one of the two out`},
		"neither": {shipper.Chart{Name: "web", Version: "1.0.0"},
			invalid + `repoUrl: Required value: name the repository, or put the chart's archive into archive`},
	} {
		t.Run(sentence, func(t *testing.T) {
			app := ask.Application(func(app *shipper.Application) { app.Spec.Template.Chart = tc.chart })
			w := webhookOf(t, ask.Grant(), exact())
			err := w.Default(t.Context(), ask.Create(ask.Developer, app), &response.Response{})
			if err == nil {
				err = w.Validate(t.Context(), ask.Create(ask.Developer, app), &response.Response{})
			}
			ask.CheckRefusal(t, err, response.Invalid, tc.message)
		})
	}
}

// A manifest may leave out its archive's name and version. Applying it after a rollback to that archive is no edit.
func TestRepeatingAnArchiveDoesNotEndARollback(t *testing.T) {
	encoded, digest := packed(t, "web", "1.0.0", "")
	old := ask.Application(inline("web", "1.0.0", encoded))
	for key, value := range map[string]string{
		shipper.AppChartVersionRawAnnotation: "1.0.0", shipper.AppChartVersionResolvedAnnotation: "1.0.0",
		shipper.AppChartNameAnnotation: "web", shipper.AppChartRepoAnnotation: "", shipper.AppChartDigestAnnotation: digest,
		shipper.AppRolledBackToAnnotation: "super-server-0", shipper.AppRollbackStrategyAnnotation: "Immediate",
	} {
		ask.Annotated(key, value)(old)
	}
	now := old.DeepCopy()
	inline("", "", encoded)(now)
	a, req := &response.Response{}, ask.Update(ask.Developer, now, old)
	if err := webhookOf(t, ask.Grant(), exact()).Default(t.Context(), req, a); err != nil {
		t.Fatal(err)
	}
	got := ask.Patched[shipper.Application](t, req, a).Annotations
	said := got[shipper.AppRolledBackToAnnotation] + " " + got[shipper.AppRollbackStrategyAnnotation]
	if said != "super-server-0 Immediate" {
		t.Errorf("the Release to come would be that of %q", said)
	}
}
