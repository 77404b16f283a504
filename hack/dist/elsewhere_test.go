// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// listed is a package as `go list` prints it.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Module          *struct{ Main bool }
	Error           *struct{ Err string }
}

// TestShipperctlCompilesElsewhere checks the types of shipperctl, and of what it is made of, as they are on other systems. That
// takes seconds, where a compiler needs minutes.
func TestShipperctlCompilesElsewhere(t *testing.T) {
	for _, platform := range []string{"windows/amd64", "darwin/arm64"} {
		t.Run(platform, func(t *testing.T) {
			packages, err := list(t, platform, "./cmd/shipperctl")
			if err != nil {
				t.Fatal(err)
			}
			if len(packages) < 500 {
				t.Errorf("shipperctl is made of %d packages", len(packages))
			}
			for _, err := range check(t, platform, packages) {
				t.Error(err)
			}
		})
	}
}

// TestWhatDoesNotCompileIsFound: a check that finds nothing wrong with anything proves nothing.
func TestWhatDoesNotCompileIsFound(t *testing.T) {
	packages, err := list(t, "windows/amd64", "syscall")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	const text = "package wrong\n\nimport \"syscall\"\n\nfunc stop() { _ = syscall.Kill(1, syscall.SIGSTOP) }\n"
	if err := os.WriteFile(filepath.Join(folder, "wrong.go"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	wrong := listed{ImportPath: "wrong", Dir: folder, GoFiles: []string{"wrong.go"}, Module: &struct{ Main bool }{true}}
	if errs := check(t, "windows/amd64", append(packages, wrong)); len(errs) != 2 {
		t.Errorf("errors are %v, want two", errs)
	}
}

// list is a package on a platform and all that it is made of, each after what it imports.
func list(t *testing.T, platform, name string) ([]listed, error) {
	t.Helper()
	system, arch, _ := strings.Cut(platform, "/")
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-e", "-json=ImportPath,Dir,GoFiles,ImportMap,Module,Error", name)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0")
	text, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var out []listed
	for decoder := json.NewDecoder(strings.NewReader(string(text))); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
}

// check type-checks packages in order: ours whole, of others what can be seen of them.
func check(t *testing.T, platform string, packages []listed) []error {
	t.Helper()
	_, arch, _ := strings.Cut(platform, "/")
	known := map[string]*types.Package{"unsafe": types.Unsafe}
	var errs []error
	for _, p := range packages {
		ours := p.Module != nil && p.Module.Main
		if p.Error != nil {
			errs = append(errs, errors.New(p.Error.Err))
		}
		if p.ImportPath == "unsafe" {
			continue
		}
		set := token.NewFileSet()
		var parsed []*ast.File
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			parsed = append(parsed, file)
		}
		config := types.Config{
			Importer: importer(func(path string) (*types.Package, error) {
				if mapped, ok := p.ImportMap[path]; ok {
					path = mapped
				}
				if known[path] == nil {
					return nil, errors.New("not imported: " + path)
				}
				return known[path], nil
			}),
			Sizes: types.SizesFor("gc", arch), IgnoreFuncBodies: !ours, FakeImportC: true,
			Error: func(err error) {
				var e types.Error
				if ours || !errors.As(err, &e) || !e.Soft { // an import that only bodies use is a soft error
					errs = append(errs, err)
				}
			},
		}
		known[p.ImportPath], _ = config.Check(p.ImportPath, set, parsed, nil) // errors are reported one by one
	}
	return errs
}

// importer finds packages that have been checked.
type importer func(path string) (*types.Package, error)

// Import finds a package.
func (i importer) Import(path string) (*types.Package, error) { return i(path) }
