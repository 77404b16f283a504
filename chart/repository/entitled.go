// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/outward"
)

// prefix is the URL, with the paths below it, that the owner of a Secret permits for its credentials.
type prefix struct {
	scheme, host, port string
	segments           []string
}

// parsePrefix parses a prefix. Errors are phrases that do not quote raw, which may hold a password by mistake.
func parsePrefix(raw string) (prefix, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	switch {
	case err != nil || u.Hostname() == "":
		return prefix{}, errors.New("is not a URL such as https://charts.example.com/team")
	case u.Scheme != "https" && u.Scheme != "http" && u.Scheme != ociScheme:
		return prefix{}, errors.New("must begin with https://, http:// or oci://")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return prefix{}, errors.New("must have neither user name, password, query nor fragment")
	case strings.Contains(u.Host, "*"):
		return prefix{}, errors.New("must name one host, without *")
	}
	segments, plain := segmentsOf(u)
	if !plain {
		return prefix{}, errors.New(`must have a plain path, without ".", "..", \ or encoded slashes`)
	}
	return prefix{u.Scheme, outward.HostOf(u), outward.PortOf(u), segments}, nil
}

// covers reports whether u is the prefix or below it. A path that servers may read differently is never covered.
func (p prefix) covers(u *url.URL) bool {
	segments, plain := segmentsOf(u)
	return plain && u.Scheme == p.scheme && outward.HostOf(u) == p.host && outward.PortOf(u) == p.port &&
		len(segments) >= len(p.segments) && slices.Equal(segments[:len(p.segments)], p.segments)
}

// String differs for different prefixes.
func (p prefix) String() string {
	return fmt.Sprintf("%s %s %s %q", p.scheme, p.host, p.port, p.segments)
}

// segmentsOf splits the path of u at slashes and decodes each part once. plain is false when a server may read the
// path as another: dot segments (`..;` too, which Tomcat takes for one), backslashes, and encoded slashes or percents.
func segmentsOf(u *url.URL) (segments []string, plain bool) {
	path := strings.Trim(u.EscapedPath(), "/")
	if path == "" {
		return nil, true
	}
	for escaped := range strings.SplitSeq(path, "/") {
		segment, err := url.PathUnescape(escaped)
		name, _, _ := strings.Cut(segment, ";")
		if err != nil || name == "." || name == ".." || strings.ContainsAny(segment, `/\%`) || strings.ContainsFunc(segment, control) {
			return nil, false
		}
		segments = append(segments, segment)
	}
	return segments, true
}

func control(r rune) bool { return r < ' ' || r == 0x7f }

// entitled is the prefix that a Secret is for. It fails unless the Secret is marked for chart repositories and covers the
// repository u: the right to read a Secret is not the right to choose which server gets it.
func entitled(secret *corev1.Secret, u *url.URL) (prefix, error) {
	marked := secret.Labels[shipper.RepositoryCredentialsLabel] == "true"
	raw, named := secret.Annotations[shipper.RepositoryURLAnnotation]
	if !marked || !named {
		return prefix{}, fmt.Errorf("does not say that it is for chart repositories, and for which URL: its owner allows that by: %s",
			allowCommand(secret, u))
	}
	p, err := parsePrefix(raw)
	switch {
	case err != nil:
		return prefix{}, fmt.Errorf("has an annotation %s that %w; its owner corrects that by: %s",
			shipper.RepositoryURLAnnotation, err, allowCommand(secret, u))
	case u.User != nil:
		return prefix{}, errors.New("is not used for a repoUrl that has a user name or password itself: take that out of repoUrl")
	case !p.covers(u):
		return prefix{}, fmt.Errorf("is for another URL than %s: credentials are sent only to the URL in its annotation %s and below; "+
			"use a repository there or, if this server may have them, its owner allows that by: %s",
			outward.Redact(u), shipper.RepositoryURLAnnotation, allowCommand(secret, u))
	}
	return p, nil
}

// typed matches URLs that need no quoting in a shell.
var typed = regexp.MustCompile(`^[A-Za-z0-9:/._~%-]+$`)

// allowCommand is the command with which the owner of a Secret permits u.
func allowCommand(secret *corev1.Secret, u *url.URL) string {
	to := outward.Redact(u)
	if !typed.MatchString(to) {
		to = "URL" // it is the requester's text, which the owner must not run by copying
	}
	return fmt.Sprintf("kubectl label secret %[1]s -n %[2]s --overwrite %[3]s=true && "+
		"kubectl annotate secret %[1]s -n %[2]s --overwrite %[4]s=%[5]s",
		secret.Name, secret.Namespace, shipper.RepositoryCredentialsLabel, shipper.RepositoryURLAnnotation, to)
}
