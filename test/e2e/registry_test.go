// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	helmregistry "helm.sh/helm/v3/pkg/registry"
	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// registry is a real OCI registry in a process of its own.
type registry struct {
	host string
	cmd  *exec.Cmd
	// lives is the process's standard input: the process exits when it is closed.
	lives io.Closer
}

// serveRegistry builds and starts a registry that admits user ann by a password.
func (s *fixture) serveRegistry(password string) *registry {
	s.Helper()
	dir := s.TempDir()
	build := exec.CommandContext(s.Ctx, "go", "run", "-exec", "cp -t '"+dir+"'", "./serve") // see pod.Build
	build.Dir = "../registry"
	if out, err := build.CombinedOutput(); err != nil {
		s.Fatalf("building a registry: %v\n%s", err, out)
	}
	r := &registry{cmd: exec.Command(filepath.Join(dir, "serve"), "-password", password)}
	r.cmd.Stderr = os.Stderr
	out, err := r.cmd.StdoutPipe()
	s.Must("reading what a registry says", err)
	r.lives, err = r.cmd.StdinPipe()
	s.Must("holding on to a registry", err)
	s.Must("starting a registry", r.cmd.Start())
	s.Cleanup(r.ends)
	line, err := bufio.NewReader(out).ReadString('\n')
	s.Must("asking a registry where it is", err)
	r.host = strings.TrimSpace(line)
	return r
}

// ends stops the registry and deletes its content.
func (r *registry) ends() {
	_ = r.lives.Close()
	_ = r.cmd.Wait()
}

// pushesChart has Helm push a chart of a unique version, and returns its digest.
func (s *fixture) pushesChart(r *registry, password, version string) string {
	s.Helper()
	archive := s.repacked("test-nginx", version)
	c, err := helmregistry.NewClient(helmregistry.ClientOptPlainHTTP(), helmregistry.ClientOptBasicAuth("ann", password),
		helmregistry.ClientOptCredentialsFile(filepath.Join(s.TempDir(), "none")))
	s.Must("making a client of a registry", err)
	_, err = c.Push(archive.Bytes, r.host+"/team/charts/test-nginx:"+version)
	s.Must("pushing a chart", err)
	return archive.Digest
}

// TestAChartOfARegistryOutlivesIt rolls two versions out of a registry that requires credentials, removes the registry, and
// rolls back.
func TestAChartOfARegistryOutlivesIt(t *testing.T) {
	const password = "s3cret-of-the-registry"
	onTwoClusters(t, func(s *fixture) {
		r := s.serveRegistry(password)
		digests := []string{s.pushesChart(r, password, "0.0.1"), s.pushesChart(r, password, "0.0.2")}
		s.Must("creating the secret", world.Management.Create(s.Ctx, &corev1.Secret{
			ObjectMeta: s.forRepositories("opener", "oci://"+r.host+"/team"), Type: corev1.SecretTypeBasicAuth,
			StringData: map[string]string{"username": "ann", "password": password},
		}))
		s.letsShipperRead()
		app := s.application("0.0.1", 2, allIn)
		app.Spec.Template.Chart.RepoURL = "oci://" + r.host + "/team/charts"
		s.refused("asking a registry without credentials", s.User.Create(s.Ctx, app.DeepCopy()), "401 Unauthorized", "chart.credentials")
		app.Spec.Template.Chart.Credentials.SecretName = "opener"
		s.applies(app)
		first := s.Release(0)
		s.Completes(first)
		s.readyPods(first, 2)
		s.Edits(func(app *shipper.Application) { app.Spec.Template.Chart.Version = "~0.0.2" })
		second := s.releaseAfter(first)
		s.Completes(second)
		s.readyPods(second, 2)

		r.ends()
		s.says("rolls out the environment of release "+first, "rollout", "rollback", s.App)
		back := s.releaseAfter(second)
		s.Completes(back)
		s.readyPods(back, 2)
		s.readyPods(second, 0)
		var got []string
		for _, name := range []string{first, second, back} {
			rel, err := s.Get(name)
			s.Must("reading a release", err)
			got = append(got, rel.Spec.Environment.Chart.Version+" "+rel.Annotations[shipper.ReleaseChartDigestAnnotation])
		}
		want := []string{"0.0.1 " + digests[0], "0.0.2 " + digests[1], "0.0.1 " + digests[0]}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("versions and digests of the three releases (-want +got)\n%s", diff)
		}
	})
}
