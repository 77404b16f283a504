// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// The hosts of the releases. -mirror replaces all of them.
const (
	kubernetesReleases = "https://dl.k8s.io/release/"
	githubReleases     = "https://github.com/%s/releases/download/%s/"
	// githubRelease describes a release. kwok publishes no file of digests: GitHub computes one of each file when it is uploaded.
	githubRelease = "https://api.github.com/repos/%s/releases/tags/%s"
)

// file is the file of a release that is, or contains, a program.
type file struct {
	program, version string

	// unpublished says why there is no such file; nothing else is set then.
	unpublished string

	url     string
	digests string // URL of what has the digest
	// digest finds the digest of a file in what the URL of digests serves.
	digest func(text []byte, name string) (string, error)
	member string // path in the archive; empty if the file is the program itself
}

// name is the last part of the file's address.
func (f file) name() string { return path.Base(f.url) }

// release returns where a program's version is published for a platform, as in linux/amd64.
func release(program, version, platform string) (file, error) {
	f := file{program: program, version: version}
	if !strings.HasPrefix(version, "v") {
		return f, fmt.Errorf("%s needs a version, as in %[1]s@v1.2.3", program)
	}
	system, arch, _ := strings.Cut(platform, "/")
	if !slices.Contains([]string{"linux", "darwin"}, system) || !slices.Contains([]string{"amd64", "arm64"}, arch) {
		f.unpublished = "nothing is downloaded for " + platform
		return f, nil
	}
	switch program {
	case "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl":
		// envtest's archives for macOS would not help: the controller manager and the scheduler, which they do not contain, have
		// most packages of an API server.
		if system != "linux" && program != "kubectl" {
			f.unpublished = "Kubernetes publishes it for Linux only"
			return f, nil
		}
		f.url = kubernetesReleases + version + "/bin/" + platform + "/" + program
		f.digests, f.digest = f.url+".sha256", onlyDigest
	case "etcd":
		folder := fmt.Sprintf("etcd-%s-%s-%s", version, system, arch)
		base := fmt.Sprintf(githubReleases, "etcd-io/etcd", version)
		f.url = base + folder + map[string]string{"linux": ".tar.gz", "darwin": ".zip"}[system]
		f.digests, f.digest, f.member = base+"SHA256SUMS", listedDigest, folder+"/etcd"
	case "kwok":
		f.url = fmt.Sprintf(githubReleases+"kwok-%s-%s", "kubernetes-sigs/kwok", version, system, arch)
		f.digests, f.digest = fmt.Sprintf(githubRelease, "kubernetes-sigs/kwok", version), assetDigest
	case "prometheus":
		folder := fmt.Sprintf("prometheus-%s.%s-%s", strings.TrimPrefix(version, "v"), system, arch)
		base := fmt.Sprintf(githubReleases, "prometheus/prometheus", version)
		f.url = base + folder + ".tar.gz"
		f.digests, f.digest, f.member = base+"sha256sums.txt", listedDigest, folder+"/prometheus"
	default:
		return f, fmt.Errorf("unknown program %q", program)
	}
	return f, nil
}

// onlyDigest reads a text that is a digest. Files that name the digest's file after it are read, too.
func onlyDigest(text []byte, _ string) (string, error) {
	fields := strings.Fields(string(text))
	if len(fields) == 0 {
		return "", errors.New("the file of the digest is empty")
	}
	return checked(fields[0])
}

// listedDigest finds a file in the output of sha256sum.
func listedDigest(text []byte, name string) (string, error) {
	var digest string
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 2 || strings.TrimPrefix(fields[1], "*") != name {
			continue
		}
		if digest != "" && digest != fields[0] {
			return "", fmt.Errorf("the list of digests has two of %s", name)
		}
		digest = fields[0]
	}
	if digest == "" {
		return "", fmt.Errorf("the list of digests has no %s", name)
	}
	return checked(digest)
}

// assetDigest finds a file among the assets of a GitHub release.
func assetDigest(text []byte, name string) (string, error) {
	var release struct {
		Assets []struct{ Name, Digest string }
	}
	if err := json.Unmarshal(text, &release); err != nil {
		return "", fmt.Errorf("reading the release: %w", err)
	}
	for _, a := range release.Assets {
		if digest, ok := strings.CutPrefix(a.Digest, "sha256:"); ok && a.Name == name {
			return checked(digest)
		}
	}
	return "", fmt.Errorf("the release has no digest of %s", name)
}

// checked returns a SHA-256 digest, or an error if the text is not one.
func checked(digest string) (string, error) {
	digest = strings.ToLower(digest)
	if b, err := hex.DecodeString(digest); err != nil || len(b) != 32 {
		return "", fmt.Errorf("%.80q is no SHA-256 digest", digest)
	}
	return digest, nil
}
