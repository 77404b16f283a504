// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	helm "helm.sh/helm/v3/pkg/engine"

	"shipper.dev/shipper/chart/render/engine"
)

// build makes a chart of files; those of a subchart begin with charts/<name>/.
func build(name string, files map[string]string) *chart.Chart {
	c := &chart.Chart{Metadata: &chart.Metadata{
		APIVersion: "v2", Name: name, Version: "1.2.3", AppVersion: "7", Keywords: []string{"a", "b"},
		Maintainers: []*chart.Maintainer{{Name: "me"}},
	}}
	if strings.HasPrefix(name, "lib") {
		c.Metadata.Type = "library"
	}
	below := map[string]map[string]string{}
	for file, text := range files {
		switch parts := strings.SplitN(file, "/", 3); parts[0] {
		case "charts":
			if below[parts[1]] == nil {
				below[parts[1]] = map[string]string{}
			}
			below[parts[1]][parts[2]] = text
		case "templates":
			c.Templates = append(c.Templates, &chart.File{Name: file, Data: []byte(text)})
		default:
			c.Files = append(c.Files, &chart.File{Name: file, Data: []byte(text)})
		}
	}
	for child, files := range below {
		c.AddDependency(build(child, files))
	}
	c.Templates = append(c.Templates, nil)
	return c
}

// scope is the scope of the templates, a new one each time, because they can change it.
func scope(t testing.TB, c *chart.Chart) chartutil.Values {
	t.Helper()
	values := map[string]any{
		"name": "web", "empty": "", "nothing": nil, "n": int64(3), "big": int64(12345678), "f": 1.5, "yes": true,
		"list": []any{"x", int64(1), nil, map[string]any{"k": "v"}}, "map": map[string]any{"b": "2", "a": int64(1)},
		"sub": map[string]any{"color": "red", "deep": map[string]any{"er": "x"}}, "global": map[string]any{"env": "prod"},
		"tpl": "{{ .Values.name }}-{{ include \"greet\" . }}",
	}
	out, err := chartutil.ToRenderValuesWithSchemaValidation(c, values,
		chartutil.ReleaseOptions{Name: "rel", Namespace: "ns", Revision: 1, IsInstall: true}, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// lines reads a file of templates, each on a line of its own.
func lines(t testing.TB, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// shared reads the files that the lines use.
func shared(t testing.TB) map[string]string {
	t.Helper()
	root := os.DirFS(filepath.Join("testdata", "shared"))
	files := map[string]string{}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(root, name)
		files[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestRendersLikeHelm compares the engine to Helm's.
func TestRendersLikeHelm(t *testing.T) {
	works, fails := lines(t, "works.txt"), lines(t, "fails.txt")
	for i, snippet := range append(works, fails...) {
		t.Run(fmt.Sprintf("%02d %.40s", i, snippet), func(t *testing.T) {
			files := shared(t)
			files["templates/x.yaml"] = snippet
			files["templates/deeper/y.yaml"] = "{{ $_ := set .Values \"seen\" .Template.Name }}{{ .Values.seen }}"
			files["templates/later.yaml"] = "{{ .Values.seen }}"
			c := build("top", files)
			want, wantErr := helm.Engine{}.Render(c, scope(t, c))
			if shouldFail := i >= len(works); shouldFail != (wantErr != nil) {
				t.Fatalf("in Helm the error is %v", wantErr)
			}
			got, err := engine.Render(t.Context(), c, scope(t, c))
			if (err == nil) != (wantErr == nil) {
				t.Fatalf("error %v, in Helm %v", err, wantErr)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestErrorsSayWhere(t *testing.T) {
	tests := map[string]string{
		`{{ fail "on purpose" }}`:           "top/templates/x.yaml:1:3: on purpose",
		"a\n{{ required \"need it\" nil }}": "top/templates/x.yaml:2:3: need it",
		`{{ include "h" . }}`:               "top/templates/x.yaml:1:3: from a helper",
		`{{ if }}`:                          "top/templates/x.yaml:1: missing value for if",
		`{{ .Values.name.x }}`: `top/templates/x.yaml:1:10: executing "top/templates/x.yaml" at <.Values.name.x>: ` +
			`can't evaluate field x in type interface {}`,
		`{{ .Values.name | mustFromJson | len }}`: `top/templates/x.yaml:1:18: executing "top/templates/x.yaml" at <mustFromJson>: ` +
			`error calling mustFromJson: invalid character 'w' looking for beginning of value`,
		`{{ _boundedLeave }}`: "top/templates/x.yaml: templates may not use the name _bounded",
		`{{ tpl (print "{{ _bound" "edLeave }}") . }}`: `top/templates/x.yaml:1:3: executing "top/templates/x.yaml" at ` +
			`<tpl (print "{{ _bound" "edLeave }}") .>: error calling tpl: templates may not use the name _bounded`,
	}
	for text, want := range tests {
		c := build("top", map[string]string{"templates/x.yaml": text, "templates/_h.tpl": `{{ define "h" }}{{ fail "from a helper" }}{{ end }}`})
		_, err := engine.Render(t.Context(), c, scope(t, c))
		if err == nil || err.Error() != want {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// TestNothingGrowsWithoutBound lists templates of a few words that would end a process, fill its memory or never
// return.
func TestNothingGrowsWithoutBound(t *testing.T) {
	tests := map[string]string{
		"a template of too many actions": strings.Repeat("{{ 1 }}", 50_001),
		"a template nested too deep":     strings.Repeat("{{if 1}}", 50_001),
		"a template that is too long":    strings.Repeat("x", 5<<20),
		"many variables":                 `{{ $s := repeat 4000000 "x" }}` + strings.Repeat(`{{ $a := print $s "y" }}`, 100),
		"many variables of files":        strings.Repeat(`{{ $a := .Files.Lines "big" }}`, 40),
		"many variables of files within one another": strings.Repeat(`{{ with $a := $.Files.Lines "big" }}`, 40) +
			strings.Repeat(`{{ end }}`, 40),
		"a wide format":              `{{ printf "` + strings.Repeat("%1000000d", 100) + `" 1 }}`,
		"many keys":                  `{{ range until 40 }}{{ $k := genPrivateKey "ecdsa" }}{{ end }}`,
		"many passwords":             `{{ range until 40 }}{{ $k := htpasswd "a" "b" }}{{ end }}`,
		"a wide format by arguments": `{{ printf "` + strings.Repeat("%*d", 100) + `" 1000000 1 }}`,
		"an argument printed often":  `{{ $s := repeat 1000000 "x" }}{{ printf "` + strings.Repeat("%[1]s", 1000) + `" $s }}`,
	}
	for _, line := range lines(t, "bounds.txt") {
		name, text, _ := strings.Cut(line, ": ")
		tests[name] = text
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"templates/x.yaml": text}
			if strings.Contains(name, "files") {
				files["big"] = strings.Repeat("x\n", 1<<20)
			}
			c := build("top", files)
			_, err := engine.Render(t.Context(), c, scope(t, c))
			if err == nil {
				t.Fatal("no error")
			}
			if !errors.Is(err, engine.ErrBounds) {
				t.Errorf("got %v", err)
			}
			if len(err.Error()) > 1000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestLargeFilesAreNotEncoded(t *testing.T) {
	big := strings.Repeat("x", 1<<20+1)
	c := build("top", map[string]string{"a": big, "b": big, "templates/x.yaml": `{{ .Files.AsConfig }}`})
	_, err := engine.Render(t.Context(), c, scope(t, c))
	if err == nil || err.Error() != "top/templates/x.yaml:1:9: out of bounds: files of more than 2 MiB are encoded at once" {
		t.Errorf("got %v", err)
	}
}

func TestRenderStopsWithItsContext(t *testing.T) {
	for name, text := range map[string]string{
		"a long loop": `{{ range 2000000 }}{{ end }}`,
		"a key":       `{{ $k := genPrivateKey "ecdsa" }}`, // one alone takes long
	} {
		c := build("top", map[string]string{"templates/x.yaml": text})
		ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
		defer cancel()
		if _, err := engine.Render(ctx, c, scope(t, c)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestManyFilesTogetherAreBounded(t *testing.T) {
	files := map[string]string{}
	for i := range 5 {
		files[fmt.Sprintf("templates/%d.yaml", i)] = `{{ repeat 4000000 "x" }}`
	}
	c := build("top", files)
	if _, err := engine.Render(t.Context(), c, scope(t, c)); !errors.Is(err, engine.ErrBounds) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkRender(b *testing.B) {
	files := shared(b)
	for i, snippet := range lines(b, "works.txt") {
		files[fmt.Sprintf("templates/%d.yaml", i)] = snippet
	}
	c := build("top", files)
	b.Run("within bounds", func(b *testing.B) {
		for b.Loop() {
			if _, err := engine.Render(b.Context(), c, scope(b, c)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("by Helm", func(b *testing.B) {
		for b.Loop() {
			if _, err := (helm.Engine{}).Render(c, scope(b, c)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
