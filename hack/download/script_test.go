// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// compiler is a `go` that runs programs, and logs and installs others that say "built".
const compiler = `#!/bin/sh
[ "$1" = run ] && exec "$REAL_GO" "$@"
for package; do
	case $package in
	go.etcd.io/*) name=server program=etcd ;;
	k8s.io/kubernetes/*|sigs.k8s.io/*|github.com/*) name=$(basename "$package") program=$name ;;
	*) continue ;;
	esac
	[ "$1" = install ] || continue
	echo "$program" >>"$CALLS"
	echo built >"$GOBIN/$name"
	chmod +x "$GOBIN/$name"
done
`

// scripts runs the build scripts with an empty cache, that compiler and a mirror.
type scripts struct {
	*testing.T

	cache, calls string
	environment  []string
}

// newScripts prepares to run the scripts. variables are added to the environment.
func newScripts(t *testing.T, mirror string, variables ...string) *scripts {
	t.Helper()
	for _, script := range []string{"cached.sh", "build.sh", "prepare.sh", "controlplane/build.sh", "prometheus/build.sh"} {
		if _, err := os.ReadFile(filepath.Join("..", script)); err != nil { // after a change, `go test` runs the tests again
			t.Fatal(err)
		}
	}
	goCommand, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	goCache, err := exec.CommandContext(t.Context(), goCommand, "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	tools := t.TempDir()
	if err := os.WriteFile(filepath.Join(tools, "go"), []byte(compiler), 0o755); err != nil {
		t.Fatal(err)
	}
	s := &scripts{T: t, cache: t.TempDir(), calls: filepath.Join(t.TempDir(), "calls")}
	s.environment = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"), "REAL_GO="+goCommand, "CALLS="+s.calls,
		"XDG_CACHE_HOME="+s.cache, "GOCACHE="+strings.TrimSpace(string(goCache)), "KUBEBUILDER_ASSETS=", "K8S=", "K8S_APPLICATIONS=",
		"SHIPPER_BINARIES=", "SHIPPER_MIRROR="+mirror)
	s.environment = append(s.environment, variables...)
	return s
}

// run runs a script of this repository and returns what it printed, on stdout and on stderr.
func (s *scripts) run(script string, args ...string) (out, progress string, err error) {
	s.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(s.Context(), filepath.Join("..", "..", "hack", script), args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = s.environment, &stdout, &stderr
	err = cmd.Run()
	return stdout.String(), stderr.String(), err
}

// assertPrograms compares the programs in a folder of the cache with those that were to be downloaded and built.
func (s *scripts) assertPrograms(folder string, downloaded, built []string) {
	s.Helper()
	platform := runtime.GOOS + "/" + runtime.GOARCH
	want := map[string]string{}
	for _, name := range downloaded {
		want[name] = contents(name, platform)
	}
	for _, name := range built {
		want[name] = "built\n"
	}
	folder = filepath.Join(s.cache, "shipper", folder)
	_ = os.Remove(filepath.Join(folder, ".lock"))
	if diff := cmp.Diff(want, inFolder(s.T, folder)); diff != "" {
		s.Errorf("programs in %s (-want +got):\n%s", folder, diff)
	}
}

// assertBuilt compares what the scripts have built.
func (s *scripts) assertBuilt(built []string) {
	s.Helper()
	calls, _ := os.ReadFile(s.calls) // there is none if nothing was built
	names := strings.Fields(string(calls))
	slices.Sort(names)
	built = slices.Sorted(slices.Values(built))
	if diff := cmp.Diff(built, names); diff != "" && len(built)+len(names) > 0 {
		s.Errorf("what was built (-want +got):\n%s", diff)
	}
}

// assertSays expects some lines of the progress.
func (s *scripts) assertSays(progress string, lines ...string) {
	s.Helper()
	for _, line := range lines {
		if !strings.Contains(progress, line) {
			s.Errorf("progress does not have %q:\n%s", line, progress)
		}
	}
}

const newest = "controlplane/v1.37.1"

// ofCluster are the programs that a cluster is made of, in the order in which they are built.
func ofCluster() []string {
	return []string{"etcd", "kwok", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"}
}

// forLinux skips a test on platforms for which not all programs are published.
func forLinux(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("Kubernetes publishes its servers for Linux only")
	}
	return runtime.GOOS + "/" + runtime.GOARCH
}

func TestTheScriptDownloadsOnce(t *testing.T) {
	t.Parallel()
	server := serve(t, published(t, forLinux(t)))
	s := newScripts(t, server.URL+"/mirror")
	out, progress, err := s.run("controlplane/build.sh", "missing")
	if want := "etcd\nkube-apiserver\nkube-controller-manager\nkube-scheduler\nkubectl\nkwok\n"; err != nil || out != want {
		t.Errorf("missing before: %v, %q, %s", err, out, progress)
	}
	for range 2 {
		out, progress, err = s.run("controlplane/build.sh")
		if want := filepath.Join(s.cache, "shipper", newest) + "\n"; err != nil || out != want {
			t.Fatalf("it prints %q, want %q: %v\n%s", out, want, err, progress)
		}
		server.Close()
	}
	if progress != "" {
		t.Errorf("it is not silent when all programs are there: %s", progress)
	}
	s.assertPrograms(newest, ofCluster(), nil)
	s.assertBuilt(nil)
	if out, _, err := s.run("controlplane/build.sh", "missing"); err != nil || out != "" {
		t.Errorf("missing after: %v, %q", err, out)
	}
}

func TestTheScriptBuildsWhatIsNotTheRelease(t *testing.T) {
	t.Parallel()
	platform := forLinux(t)
	served := published(t, platform)
	served["dl.k8s.io/release/v1.37.1/bin/"+platform+"/kube-scheduler"][100] ^= 1                                     // changed
	delete(served, "dl.k8s.io/release/v1.37.1/bin/"+platform+"/kubectl")                                              // absent
	kwok := "github.com/kubernetes-sigs/kwok/releases/download/v0.8.0/kwok-" + strings.ReplaceAll(platform, "/", "-") //
	served[kwok] = served[kwok][:1000]                                                                                // truncated
	server := serve(t, served)
	s := newScripts(t, server.URL+"/mirror")
	_, progress, err := s.run("controlplane/build.sh", "download")
	if err != nil {
		t.Fatalf("%v\n%s", err, progress)
	}
	s.assertPrograms(newest, []string{"etcd", "kube-apiserver", "kube-controller-manager"}, nil)
	s.assertBuilt(nil)
	s.assertSays(progress,
		"controlplane: downloading etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kwok\n",
		"download: got etcd v3.7.0 in ",
		"download: cannot download kube-scheduler: the SHA-256 digest of kube-scheduler is ",
		"download: cannot download kubectl: "+server.URL+"/mirror/dl.k8s.io/release/v1.37.1/bin/"+platform+"/kubectl answered 404 Not Found",
		"download: cannot download kwok: the SHA-256 digest of kwok-",
	)
	_, progress, err = s.run("controlplane/build.sh")
	if err != nil {
		t.Fatalf("%v\n%s", err, progress)
	}
	s.assertPrograms(newest, []string{"etcd", "kube-apiserver", "kube-controller-manager"}, []string{"kube-scheduler", "kubectl", "kwok"})
	s.assertBuilt([]string{"kube-scheduler", "kubectl", "kwok"})
	s.assertSays(progress, "controlplane: building kwok kube-scheduler kubectl\n")
}

func TestOnlyDownloadsFailWithTheReason(t *testing.T) {
	t.Parallel()
	platform := forLinux(t)
	served := published(t, platform)
	served["dl.k8s.io/release/v1.37.1/bin/"+platform+"/kube-apiserver"][100] ^= 1
	s := newScripts(t, serve(t, served).URL+"/mirror", "SHIPPER_BINARIES=download")
	out, progress, err := s.run("controlplane/build.sh")
	if err == nil || out != "" {
		t.Errorf("it succeeded: %s\n%s", out, progress)
	}
	s.assertPrograms(newest, []string{"etcd", "kwok", "kube-controller-manager", "kube-scheduler", "kubectl"}, nil)
	s.assertBuilt(nil)
	s.assertSays(progress,
		"download: cannot download kube-apiserver: the SHA-256 digest of kube-apiserver is ",
		"controlplane: SHIPPER_BINARIES=download, and a download failed: see above; SHIPPER_BINARIES=build builds from source\n")
}

func TestOnlyBuildsAskNobody(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	t.Cleanup(server.Close)
	s := newScripts(t, server.URL, "SHIPPER_BINARIES=build")
	if _, progress, err := s.run("controlplane/build.sh"); err != nil || requests.Load() > 0 {
		t.Errorf("%v, %d requests\n%s", err, requests.Load(), progress)
	}
	s.assertPrograms(newest, nil, ofCluster())
	s.assertBuilt(ofCluster())
	s.environment = append(s.environment, "SHIPPER_BINARIES=some")
	_, progress, err := s.run("prometheus/build.sh")
	if err == nil {
		t.Error("SHIPPER_BINARIES=some is no error")
	}
	s.assertSays(progress, "prometheus: SHIPPER_BINARIES is 'some': set it to build or download, or do not set it\n")
}

// TestAllIsBuiltWhereNothingAnswers has a mirror at a closed port, and two scripts that would ask it.
func TestAllIsBuiltWhereNothingAnswers(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	s := newScripts(t, server.URL)
	_, progress, err := s.run("controlplane/build.sh")
	if err != nil {
		t.Fatalf("%v\n%s", err, progress)
	}
	host := strings.TrimPrefix(server.URL, "http://")
	s.assertSays(progress, host+" did not answer: ",
		"controlplane: building etcd kwok kube-apiserver kube-controller-manager kube-scheduler kubectl\n")
	s.assertPrograms(newest, nil, ofCluster())
	s.assertBuilt(ofCluster())
	if _, progress, err = s.run("prometheus/build.sh"); err != nil {
		t.Fatalf("%v\n%s", err, progress)
	}
	s.assertSays(progress, "download: cannot download prometheus: "+host+" did not answer ", " s ago\n", "prometheus: building prometheus\n")
}

func TestTheScriptsDownloadTheirVersions(t *testing.T) {
	t.Parallel()
	platform := forLinux(t)
	served := published(t, platform)
	for name, data := range served {
		served[strings.ReplaceAll(name, "v1.37.1", "v1.30.4")] = data
	}
	s := newScripts(t, serve(t, served).URL+"/mirror", "K8S=1.30")
	for script, folder := range map[string]string{
		"controlplane/build.sh": "controlplane/v1.30.4",
		"prometheus/build.sh":   "prometheus/v0.315.0",
	} {
		out, progress, err := s.run(script)
		if want := filepath.Join(s.cache, "shipper", folder) + "\n"; err != nil || out != want {
			t.Errorf("%s prints %q, want %q: %v\n%s", script, out, want, err, progress)
		}
	}
	s.assertPrograms("controlplane/v1.30.4", ofCluster(), nil)
	s.assertPrograms("prometheus/v0.315.0", []string{"prometheus"}, nil)
}

// TestAStartSaysFirstWhatItNeeds runs what the targets for demos run.
func TestAStartSaysFirstWhatItNeeds(t *testing.T) {
	t.Parallel()
	platform := forLinux(t)
	served := published(t, platform)
	delete(served, "dl.k8s.io/release/v1.37.1/bin/"+platform+"/kubectl")
	s := newScripts(t, serve(t, served).URL+"/mirror", "BIN="+t.TempDir())
	out, progress, err := s.run("prepare.sh", "controlplane", "prometheus")
	if err != nil || out != "" {
		t.Fatalf("%v\n%s\n%s", err, out, progress)
	}
	const first = "prepare: the first start downloads etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kwok prometheus, " +
		"or builds what is not to be had within 5 s, and builds Shipper:\n"
	if !strings.HasPrefix(progress, first) {
		t.Errorf("progress does not start with %q:\n%s", first, progress)
	}
	s.assertSays(progress, "shipper: building shipper-webhook shipper-reconciler shipperctl\n", "controlplane: building kubectl\n")
	s.assertPrograms(newest, []string{"etcd", "kwok", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}, []string{"kubectl"})
	s.assertBuilt([]string{"kubectl"})
	s.assertPrograms("prometheus/v0.315.0", []string{"prometheus"}, nil)
	_, progress, err = s.run("prepare.sh", "controlplane", "prometheus")
	if err != nil {
		t.Errorf("the second start: %v\n%s", err, progress)
	}
	for _, name := range []string{"prepare:", "download:", "controlplane:", "prometheus:"} {
		if strings.Contains(progress, name) {
			t.Errorf("the second start gets programs again:\n%s", progress)
		}
	}
}
