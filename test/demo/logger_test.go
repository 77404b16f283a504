// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// setLogger is a call of controller-runtime's SetLogger, by the names that its packages have here.
var setLogger = regexp.MustCompile(`(?m)^\s*(ctrl|ctrllog|log)\.SetLogger\(`)

// TestEachProgramSetsTheLoggerOfItsLibraries looks at the programs of this module that contain controller-runtime: after 30 s
// without a logger it prints a stack trace, "log.SetLogger(...) was never called". Programs in hack use no client.
func TestEachProgramSetsTheLoggerOfItsLibraries(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Name,Dir,GoFiles,Deps", "shipper.dev/shipper/...")
	list.Stderr = os.Stderr
	out, err := list.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := list.Start(); err != nil {
		t.Fatal(err)
	}
	programs := 0
	for decoder := json.NewDecoder(out); ; {
		var p struct {
			ImportPath, Name, Dir string
			GoFiles, Deps         []string
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if p.Name != "main" || strings.Contains(p.ImportPath, "/hack/") || !slices.Contains(p.Deps, "sigs.k8s.io/controller-runtime/pkg/log") {
			continue
		}
		programs++
		sets := slices.ContainsFunc(p.GoFiles, func(file string) bool {
			text, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				t.Fatal(err)
			}
			return setLogger.Match(text)
		})
		if !sets {
			t.Errorf("%s calls no SetLogger", p.ImportPath)
		}
	}
	if err := list.Wait(); err != nil {
		t.Fatal(err)
	}
	if programs < 6 {
		t.Errorf("%d programs contain controller-runtime", programs)
	}
}
