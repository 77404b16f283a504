// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// compiler is a `go` that notes what it is asked and installs empty programs.
const compiler = `#!/bin/sh
for last; do :; done
name=$(basename "${last%@*}")
[ "$name" = v3 ] && name=server
echo "$name $GOFLAGS" >>"$CALLS"
[ "$name" = "$BROKEN" ] && { echo "no such thing as $name"; exit 1; }
echo "#!/bin/sh" >"$GOBIN/$name"
chmod +x "$GOBIN/$name"
`

// fakeBuild makes the build script meet an empty cache and a compiler of ours, whose calls can be read from a file.
func fakeBuild(t *testing.T, broken string) (cache, calls string) {
	t.Helper()
	cache, calls = t.TempDir(), filepath.Join(t.TempDir(), "calls")
	tools := t.TempDir()
	write(t, filepath.Join(tools, "go"), compiler)
	t.Setenv("PATH", tools+":"+os.Getenv("PATH"))
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("KUBEBUILDER_ASSETS", "")
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("CALLS", calls)
	t.Setenv("BROKEN", broken)
	return cache, calls
}

func TestProgramsAreBuiltOnce(t *testing.T) {
	cache, calls := fakeBuild(t, "")
	var wg sync.WaitGroup
	var progress [3]bytes.Buffer
	for i := range progress {
		wg.Go(func() {
			folder, err := binaries(t.Context(), &progress[i])
			if err != nil {
				t.Errorf("%v\n%s", err, &progress[i])
			}
			if want := filepath.Join(cache, "shipper/controlplane/v1.37.1"); folder != want {
				t.Errorf("folder is %s, want %s", folder, want)
			}
		})
	}
	wg.Wait()
	text, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSpace(string(text)), "\n")
	want := []string{
		"server -mod=readonly", "kube-apiserver -mod=readonly", "kube-controller-manager -mod=readonly",
		"kube-scheduler -mod=readonly", "kubectl -mod=readonly", "kwok -mod=readonly",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("calls of the compiler (-want +got):\n" + diff)
	}
	entries, err := os.ReadDir(filepath.Join(cache, "shipper/controlplane/v1.37.1"))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, entry := range entries {
		files = append(files, entry.Name())
	}
	want = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok"}
	files = slices.DeleteFunc(files, func(name string) bool { return name == ".lock" })
	if diff := cmp.Diff(want, files); diff != "" {
		t.Error("files in the cache (-want +got):\n" + diff)
	}
}

func TestAFailedBuildSaysWhyAndGoesOnLater(t *testing.T) {
	_, calls := fakeBuild(t, "kube-scheduler")
	var progress bytes.Buffer
	if _, err := binaries(t.Context(), &progress); err == nil {
		t.Error("a build that failed succeeded")
	}
	if !strings.Contains(progress.String(), "no such thing as kube-scheduler") {
		t.Errorf("progress does not say why:\n%s", &progress)
	}
	if err := os.Remove(calls); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BROKEN", "")
	if _, err := binaries(t.Context(), &progress); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	want := "kube-scheduler -mod=readonly\nkubectl -mod=readonly\nkwok -mod=readonly\n"
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Error("calls of the compiler the second time (-want +got):\n" + diff)
	}
}

func TestProgramsOfTheUserAreUsedWhenAllAreThere(t *testing.T) {
	cache, _ := fakeBuild(t, "")
	theirs := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", theirs)
	for _, program := range []string{"etcd", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok"} {
		write(t, filepath.Join(theirs, program), "#!/bin/sh\n")
	}
	assertFolder := func(want string) {
		t.Helper()
		got, err := binaries(t.Context(), &bytes.Buffer{})
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("folder is %s, want %s", got, want)
		}
	}
	assertFolder(filepath.Join(cache, "shipper/controlplane/v1.37.1"))
	write(t, filepath.Join(theirs, "kube-apiserver"), "#!/bin/sh\n")
	assertFolder(theirs)
}
