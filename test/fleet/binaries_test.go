// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/test/program"
)

// compiler is a `go` that logs what it installs, and installs empty programs.
const compiler = `#!/bin/sh
[ "$1" = install ] || exit 0
status=0
for package; do
	case $package in k8s.io/kubernetes/cmd/*|go.etcd.io/*|sigs.k8s.io/*) ;; *) continue ;; esac
	name=$(basename "$package")
	[ "$name" = v3 ] && name=server
	echo "$name ${GOFLAGS%% *} in $3" >>"$CALLS"
	if [ "$name" = "$BROKEN" ]; then
		echo "$package"
		echo "no such thing as $name"
		status=1
	else
		echo "#!/bin/sh" >"$GOBIN/$name"
		chmod +x "$GOBIN/$name"
	fi
done
exit $status
`

// fakeBuild gives the build script an empty cache and this compiler, whose calls are logged to a file. Nothing is downloaded:
// hack/download tests that.
func fakeBuild(t *testing.T, broken string) (cache, calls string) {
	t.Helper()
	cache, calls = t.TempDir(), filepath.Join(t.TempDir(), "calls")
	tools := t.TempDir()
	write(t, filepath.Join(tools, "go"), compiler)
	t.Setenv("PATH", tools+":"+os.Getenv("PATH"))
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("KUBEBUILDER_ASSETS", "")
	t.Setenv("SHIPPER_BINARIES", "build")
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
			folder, err := binaries(t.Context(), &progress[i], "")
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
		"server -mod=readonly in .", "kwok -mod=readonly in .", "kube-apiserver -mod=readonly in .",
		"kube-controller-manager -mod=readonly in .", "kube-scheduler -mod=readonly in .", "kubectl -mod=readonly in .",
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

func TestAnOlderKubernetesHasTheSameEtcd(t *testing.T) {
	cache, calls := fakeBuild(t, "")
	newest := filepath.Join(cache, "shipper/controlplane/v1.37.1")
	if err := os.MkdirAll(newest, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(newest, "etcd"), "#!/bin/sh\n")
	t.Setenv("KUBEBUILDER_ASSETS", newest) // the variable for K8S takes precedence
	var progress bytes.Buffer
	folder, err := binaries(t.Context(), &progress, "1.30")
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	if want := filepath.Join(cache, "shipper/controlplane/v1.30.4"); folder != want {
		t.Errorf("folder is %s, want %s", folder, want)
	}
	text, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	want := "kwok -mod=readonly in .\n"
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"} {
		want += name + " -mod=readonly in versions/1.30\n"
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Error("calls of the compiler (-want +got):\n" + diff)
	}
}

func TestAKubernetesThatCannotBeBuiltIsRefused(t *testing.T) {
	fakeBuild(t, "")
	var progress bytes.Buffer
	if folder, err := binaries(t.Context(), &progress, "1.26"); err == nil {
		t.Errorf("it was built into %s", folder)
	}
	const want = "controlplane: no Kubernetes '1.26' here: there are 1.27 1.30 1.33 and v1.37, and pin.sh makes others\n"
	if diff := cmp.Diff(want, progress.String()); diff != "" {
		t.Error("progress (-want +got):\n" + diff)
	}
}

// TestEachModuleIsForItsVersion reads what hack/controlplane/pin.sh has written: no part of an older Kubernetes is of another version.
func TestEachModuleIsForItsVersion(t *testing.T) {
	root, err := program.Checkout(buildScript)
	if err != nil {
		t.Fatal(err)
	}
	folders, err := filepath.Glob(filepath.Join(root, "hack/controlplane/versions/*"))
	if err != nil || len(folders) < 3 {
		t.Fatalf("older versions: %v %v", folders, err)
	}
	for _, folder := range append(folders, filepath.Join(root, "hack/controlplane")) {
		text, err := exec.Command("go", "mod", "edit", "-json", filepath.Join(folder, "go.mod")).Output()
		if err != nil {
			t.Fatal(err)
		}
		type module struct{ Path, Version string }
		var m struct {
			Require []module
			Replace []struct{ Old, New module }
		}
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(m.Require, func(m module) bool { return m.Path == "k8s.io/kubernetes" })
		if at < 0 {
			t.Errorf("%s requires no Kubernetes", folder)
			continue
		}
		version := m.Require[at].Version
		if minor := filepath.Base(folder); minor != "controlplane" && !strings.HasPrefix(version, "v"+minor+".") {
			t.Errorf("%s has Kubernetes %s", folder, version)
		}
		for _, r := range m.Replace {
			if want := (module{r.Old.Path, "v0." + strings.TrimPrefix(version, "v1.")}); r.New != want {
				t.Errorf("%s replaces %s by %v", folder, r.Old.Path, r.New)
			}
		}
		if len(m.Replace) < 25 {
			t.Errorf("%s has %d parts of Kubernetes", folder, len(m.Replace))
		}
	}
}

func TestControllersHaveTheNamesOfTheirTime(t *testing.T) {
	for _, programs := range []string{"/cache/v1.28.0", "/cache/v1.37.1", "/usr/local/kubebuilder/bin"} {
		if diff := cmp.Diff(controllers, controllersOf(programs)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", programs, diff)
		}
	}
	want := []string{
		"clusterrole-aggregation", "cronjob", "daemonset", "deployment", "endpoint", "endpointslice", "garbagecollector", "job",
		"namespace", "replicaset", "resourcequota", "root-ca-cert-publisher", "serviceaccount", "serviceaccount-token", "statefulset",
	}
	if diff := cmp.Diff(want, controllersOf("/cache/v1.27.4")); diff != "" {
		t.Errorf("1.27 (-want +got):\n%s", diff)
	}
}

// TestAControlPlaneSharesItsPackagesWithShipper compares the versions of modules. A package of a module in two versions, and each
// package that imports it, is compiled twice when Shipper and the control planes are built. Raise what this test names in
// hack/controlplane/go.mod to the version that Shipper has.
func TestAControlPlaneSharesItsPackagesWithShipper(t *testing.T) {
	root, err := program.Checkout(buildScript)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := requirements(t, filepath.Join(root, "go.mod")), requirements(t, filepath.Join(root, "hack/controlplane/go.mod"))
	// An API server evaluates policies as its release does. Two in a hundred packages are compiled twice for that.
	delete(ours, "github.com/google/cel-go")
	shared := 0
	for module, version := range ours {
		if there := theirs[module]; there != "" {
			shared++
			if there != version {
				t.Errorf("%s is %s for Shipper and %s for the control planes", module, version, there)
			}
		}
	}
	if shared < 50 {
		t.Errorf("%d modules are compared", shared)
	}
}

// requirements returns the versions of the modules that a go.mod requires.
func requirements(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := exec.Command("go", "mod", "edit", "-json", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, r := range m.Require {
		out[r.Path] = r.Version
	}
	return out
}

func TestAFailedBuildSaysWhyAndGoesOnLater(t *testing.T) {
	_, calls := fakeBuild(t, "kube-scheduler")
	var progress bytes.Buffer
	if _, err := binaries(t.Context(), &progress, ""); err == nil {
		t.Error("a build that failed succeeded")
	}
	if got := progress.String(); !strings.Contains(got, "\nno such thing as kube-scheduler\ncontrolplane: cannot build ") {
		t.Errorf("progress does not say why, and that alone:\n%s", got)
	}
	if err := os.Remove(calls); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BROKEN", "")
	if _, err := binaries(t.Context(), &progress, ""); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	want := "kube-scheduler -mod=readonly in .\n"
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
		got, err := binaries(t.Context(), &bytes.Buffer{}, "")
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
