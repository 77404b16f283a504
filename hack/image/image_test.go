// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/x509"
	"debug/elf"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// built is the image, as a reader of the archive finds it.
var built struct {
	order    order
	folder   string // everything that the image has, as in a container's root
	files    map[string]os.FileMode
	image    v1.Image
	manifest *v1.IndexManifest
}

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	scratch, err := os.MkdirTemp("", "shipper-image-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(scratch)
	if err := prepare(scratch); err != nil {
		println("assembling the image:", err.Error())
		return 1
	}
	return m.Run()
}

// prepare assembles the image of one platform, and unpacks it again.
func prepare(scratch string) error {
	built.order = order{
		root: root, out: filepath.Join(scratch, "image.tar"), name: "registry.example.com/shipper:v1.2.3",
		platforms: []string{"linux/amd64"}, at: time.Unix(1700000000, 0).UTC(), args: map[string]string{"VERSION": "v1.2.3", "REVISION": "5f0a"},
	}
	built.order.build = built.order.programs
	if _, err := assemble(context.Background(), built.order); err != nil {
		return err
	}
	archive, err := os.Open(built.order.out)
	if err != nil {
		return err
	}
	defer archive.Close()
	unpacked := filepath.Join(scratch, "layout")
	if _, err := unpack(archive, unpacked); err != nil {
		return err
	}
	index, err := layout.ImageIndexFromPath(unpacked)
	if err != nil {
		return err
	}
	if built.manifest, err = index.IndexManifest(); err != nil {
		return err
	}
	platforms, err := index.ImageIndex(built.manifest.Manifests[0].Digest)
	if err != nil {
		return err
	}
	manifest, err := platforms.IndexManifest()
	if err != nil {
		return err
	}
	if built.image, err = platforms.Image(manifest.Manifests[0].Digest); err != nil {
		return err
	}
	content := mutate.Extract(built.image)
	defer content.Close()
	built.folder = filepath.Join(scratch, "root")
	built.files, err = unpack(content, built.folder)
	return err
}

// unpack writes the files of a tar into a folder, and reports which there are.
func unpack(in io.Reader, folder string) (map[string]os.FileMode, error) {
	out := map[string]os.FileMode{}
	for r := tar.NewReader(in); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		path := filepath.Join(folder, header.Name)
		out["/"+strings.Trim(header.Name, "/")] = header.FileInfo().Mode()
		if header.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(path, 0o755); err != nil {
				return nil, err
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, header.FileInfo().Mode())
		if err != nil {
			return nil, err
		}
		if _, err := io.Copy(file, r); err != nil {
			return nil, err
		}
		if err := file.Close(); err != nil {
			return nil, err
		}
	}
}

// TestTheImageHasThisAndNothingElse: no shell above all, and nothing that anybody but root may write.
func TestTheImageHasThisAndNothingElse(t *testing.T) {
	want := map[string]os.FileMode{
		"/etc": os.ModeDir | 0o755, "/etc/ssl": os.ModeDir | 0o755, "/etc/ssl/certs": os.ModeDir | 0o755,
		"/etc/ssl/certs/ca-certificates.crt": 0o644,
		"/shipper-reconciler":                0o755,
		"/shipper-webhook":                   0o755,
	}
	if diff := cmp.Diff(want, built.files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if err := validate.Image(built.image); err != nil {
		t.Error(err)
	}
	layers, err := built.image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for i, layer := range layers {
		in, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		for r := tar.NewReader(in); ; {
			header, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if header.Uid != 0 || header.Gid != 0 || !header.ModTime.Equal(built.order.at) {
				t.Errorf("layer %d: %s belongs to %d:%d and is from %s", i, header.Name, header.Uid, header.Gid, header.ModTime)
			}
		}
	}
}

func TestTheAuthoritiesAreThere(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(built.folder, "etc/ssl/certs/ca-certificates.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(text) {
		t.Error("no certificate can be read")
	}
}

func TestTheImageIsConfigured(t *testing.T) {
	got, err := built.image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{
		User: "65532:65532", WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":       "Shipper",
			"org.opencontainers.image.description": "Rolls applications out to fleets of Kubernetes clusters, step by step",
			"org.opencontainers.image.url":         "https://shipper.dev/shipper",
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.version":     "v1.2.3",
			"org.opencontainers.image.revision":    "5f0a",
		},
	}
	if diff := cmp.Diff(want, got.Config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if got.OS != "linux" || got.Architecture != "amd64" || !got.Created.Equal(built.order.at) {
		t.Errorf("it is for %s/%s, from %s", got.OS, got.Architecture, got.Created)
	}
	names := map[string]string{
		"io.containerd.image.name": "registry.example.com/shipper:v1.2.3", "org.opencontainers.image.ref.name": "v1.2.3",
	}
	if diff := cmp.Diff(names, built.manifest.Manifests[0].Annotations); len(built.manifest.Manifests) != 1 || diff != "" {
		t.Errorf("%d images, names (-want +got):\n%s", len(built.manifest.Manifests), diff)
	}
}

// TestTheDeploymentStartsWhatIsThere reads manifests/deploy: its commands are programs of the image, and it runs as the image does.
func TestTheDeploymentStartsWhatIsThere(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "manifests/deploy/shipper.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(text), "\n---\n") {
		var d struct {
			Kind string
			Spec struct {
				Template struct {
					Spec struct {
						SecurityContext struct{ RunAsUser, RunAsGroup int64 }
						Containers      []struct {
							Image           string
							Command         []string
							SecurityContext struct{ ReadOnlyRootFilesystem bool }
						}
					}
				}
			}
		}
		if err := yaml.Unmarshal([]byte(part), &d); err != nil {
			t.Fatal(err)
		}
		if d.Kind != "Deployment" {
			continue
		}
		var commands []string
		for _, c := range d.Spec.Template.Spec.Containers {
			commands = append(commands, c.Command...)
			if !c.SecurityContext.ReadOnlyRootFilesystem {
				t.Errorf("%v may write to its root", c.Command)
			}
		}
		if diff := cmp.Diff([]string{"/shipper-webhook", "/shipper-reconciler"}, commands); diff != "" {
			t.Errorf("commands (-want +got):\n%s", diff)
		}
		for _, command := range commands {
			if built.files[command]&0o001 == 0 {
				t.Errorf("%s cannot be executed by anybody", command)
			}
		}
		if c := d.Spec.Template.Spec.SecurityContext; c.RunAsUser != 65532 || c.RunAsGroup != 65532 {
			t.Errorf("the Deployment runs as %d:%d", c.RunAsUser, c.RunAsGroup)
		}
		return
	}
	t.Error("there is no Deployment")
}

func TestTheProgramsAreStaticAndRun(t *testing.T) {
	for _, name := range []string{"shipper-webhook", "shipper-reconciler"} {
		path := filepath.Join(built.folder, name)
		program, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer program.Close()
		if program.Machine != elf.EM_X86_64 {
			t.Errorf("%s is for %s", name, program.Machine)
		}
		for _, part := range program.Progs {
			if part.Type == elf.PT_INTERP || part.Type == elf.PT_DYNAMIC {
				t.Errorf("%s is not static: it has %s", name, part.Type)
			}
		}
		if libraries, err := program.ImportedLibraries(); len(libraries) > 0 {
			t.Errorf("%s needs %v %v", name, libraries, err)
		}
		help(t, path)
	}
}

// help has a program print its help, as an unprivileged user in an empty read-only root, where the test may do that.
func help(t *testing.T, path string) {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("what is for linux/amd64 does not run here")
	}
	cmd := exec.CommandContext(t.Context(), path, "--help")
	cmd.Dir, cmd.Env = built.folder, []string{}
	if os.Getuid() == 0 {
		for folder := built.folder; folder != os.TempDir() && folder != "/"; folder = filepath.Dir(folder) {
			if err := os.Chmod(folder, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		cmd.Path, cmd.Args[0], cmd.Dir = "/"+filepath.Base(path), "/"+filepath.Base(path), "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: built.folder, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("-chart-cache-dir")) {
		t.Errorf("%s --help: %v\n%s", filepath.Base(path), err, out)
	}
}

// TestTheSameProgramsGiveTheSameBytes leaves it to Go that the same tree gives the same programs.
func TestTheSameProgramsGiveTheSameBytes(t *testing.T) {
	again := built.order
	again.build = func(_ context.Context, _ *recipe, _ *v1.Platform, into string) error {
		return os.CopyFS(into, os.DirFS(built.folder))
	}
	again.out = filepath.Join(t.TempDir(), "image.tar")
	if _, err := assemble(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(built.order.out)
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(again.out)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("two archives of one tree differ")
	}
}

// TestTheDockerfileSaysTheSame reads the Dockerfile without its parser: what an engine copies, and who it makes the user.
func TestTheDockerfileSaysTheSame(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	_, last, found := strings.Cut(string(text), "\nFROM scratch\n")
	if !found || strings.Contains(last, "\nFROM ") {
		t.Fatal("the last stage is not from scratch")
	}
	copied := map[string]bool{}
	for line := range strings.Lines(last) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case words[0] == "COPY":
			to := words[len(words)-1]
			for _, from := range words[2 : len(words)-1] {
				if strings.HasSuffix(to, "/") {
					copied[to+filepath.Base(from)] = true
				} else {
					copied[to] = true
				}
			}
		case words[0] == "USER":
			if got, err := built.image.ConfigFile(); err != nil || got.Config.User != words[1] {
				t.Errorf("the user is %s, the image's %q %v", words[1], got.Config.User, err)
			}
		case slices.Contains([]string{"RUN", "ENTRYPOINT", "CMD", "ENV", "ADD"}, words[0]):
			t.Errorf("not in the archive: %s", line)
		}
	}
	files := maps.Clone(built.files)
	maps.DeleteFunc(files, func(_ string, mode os.FileMode) bool { return mode.IsDir() })
	if diff := cmp.Diff(slices.Sorted(maps.Keys(files)), slices.Sorted(maps.Keys(copied))); diff != "" {
		t.Errorf("files of the Dockerfile (-archive +Dockerfile):\n%s", diff)
	}
}
