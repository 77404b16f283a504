// SPDX-License-Identifier: Apache-2.0

package outward

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// AnyHTTPS is the Policy that allows every https URL of a public or private address.
const AnyHTTPS = "https://*:*"

// Policy is the set of URLs that may be requested, targets of redirects included. The zero value is AnyHTTPS.
//
// Addresses of the machine itself or its surroundings, such as loopback, link-local and the metadata services of clouds, are
// refused under any name, unless a pattern names the address or localhost explicitly.
type Policy struct {
	patterns []pattern
	text     string
	wording  Wording
}

// Wording is what the errors of a Policy say.
type Wording struct {
	// NotListed says that p does not list u.
	NotListed func(p Policy, u *url.URL) string
	// NotThere follows the address that is refused, as "which … are not sent to".
	NotThere string
}

// Worded is p with errors in the words of w.
func (p Policy) Worded(w Wording) Policy {
	p.wording = w
	return p
}

// notListed is the error for a URL that no pattern allows.
func (p Policy) notListed(u *url.URL) error {
	if p.wording.NotListed == nil {
		return &Denied{fmt.Sprintf("only %s may be requested", p)}
	}
	return &Denied{p.wording.NotListed(p, u)}
}

// notThere ends the errors for an address of the machine or its surroundings.
func (p Policy) notThere() string {
	return cmp.Or(p.wording.NotThere, "which is not connected to")
}

// pattern is a set of allowed URLs.
type pattern struct {
	scheme string
	// host is a name or an address; `*.example.com` is any name below it, `*` any host.
	host string
	// port is a number, or `*` for any.
	port string
	// path is a folder, without a slash at its end; the paths below it are allowed too.
	path string
}

// ParsePolicies parses the lists of --chart-repositories and --outgoing-urls, which its errors name. outgoing is nil for an empty list.
func ParsePolicies(chartRepositories, outgoingURLs string) (repositories Policy, outgoing *Policy, err error) {
	if repositories, err = ParsePolicy(chartRepositories); err != nil {
		return Policy{}, nil, fmt.Errorf("--chart-repositories: %w", err)
	}
	if outgoingURLs == "" {
		return repositories, nil, nil
	}
	policy, err := ParsePolicy(outgoingURLs)
	if err != nil {
		return Policy{}, nil, fmt.Errorf("--outgoing-urls: %w", err)
	}
	return repositories, &policy, nil
}

// ParsePolicy parses a comma-separated list of URLs, each of which allows the URLs below it. Host and port may be `*`, a host
// may begin with `*.`, and the default port is that of the scheme.
func ParsePolicy(list string) (Policy, error) {
	var p Policy
	var texts []string
	for entry := range strings.SplitSeq(list, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		one, err := parsePattern(entry)
		if err != nil {
			return Policy{}, fmt.Errorf("%q %w", entry, err)
		}
		p.patterns, texts = append(p.patterns, one), append(texts, entry)
	}
	if len(p.patterns) == 0 {
		return Policy{}, fmt.Errorf("no URL is listed; %s allows all that are safe", AnyHTTPS)
	}
	p.text = strings.Join(texts, ", ")
	return p, nil
}

func parsePattern(entry string) (pattern, error) {
	scheme, rest, found := strings.Cut(entry, "://")
	if !found || (scheme != "http" && scheme != "https") {
		return pattern{}, errors.New("must begin with https:// or http://")
	}
	authority, path, _ := strings.Cut(rest, "/")
	// A port that is a star is not valid in a URL.
	host, anyPort := strings.CutSuffix(authority, ":*")
	u, err := url.Parse(scheme + "://" + host + "/" + path)
	switch {
	case err != nil || u.Hostname() == "":
		return pattern{}, errors.New("must name a host, or * for any")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return pattern{}, errors.New("must have neither credentials, query nor fragment")
	case strings.Contains(strings.TrimPrefix(u.Hostname(), "*."), "*") && u.Hostname() != "*":
		return pattern{}, errors.New("may have a * only in place of the host, of its first label, or of the port")
	case strings.Contains(u.Path, "*"), crooked(u):
		return pattern{}, errors.New("must have a plain path: the paths below it are allowed too")
	}
	p := pattern{scheme: scheme, host: HostOf(u), port: PortOf(u), path: strings.TrimRight(u.Path, "/")}
	if anyPort {
		p.port = "*"
	}
	return p, nil
}

// String lists the patterns.
func (p Policy) String() string {
	if len(p.patterns) == 0 {
		return AnyHTTPS
	}
	return p.text
}

func (p Policy) list() []pattern {
	if len(p.patterns) == 0 {
		return []pattern{{scheme: "https", host: "*", port: "*"}}
	}
	return p.patterns
}

// Check returns an error if u is not allowed. It does not resolve the host name.
func (p Policy) Check(u *url.URL) error {
	if crooked(u) {
		return &Denied{`its path has a segment "." or "..", a \, or a %25 that servers may read differently; write where it leads`}
	}
	allowed := slices.DeleteFunc(slices.Clone(p.list()), func(one pattern) bool { return !one.matches(u) })
	if len(allowed) == 0 {
		return p.notListed(u)
	}
	what := localName(HostOf(u))
	if addr, err := netip.ParseAddr(HostOf(u)); err == nil {
		what = special(addr)
	}
	if what == "" || slices.ContainsFunc(allowed, func(one pattern) bool { return one.host == HostOf(u) }) {
		return nil
	}
	return &Denied{fmt.Sprintf("%s is %s, %s", HostOf(u), what, p.notThere())}
}

// checkAddress returns an error if connections to addr, which host was resolved to, are not allowed.
func (p Policy) checkAddress(host string, addr netip.Addr) error {
	addr = addr.WithZone("").Unmap()
	what := special(addr)
	if what == "" {
		return nil
	}
	host = plainHost(host)
	literal, err := netip.ParseAddr(host)
	outright := err == nil && literal == addr || host == "localhost" && addr.IsLoopback()
	if outright && slices.ContainsFunc(p.list(), func(one pattern) bool { return one.host == host }) {
		return nil
	}
	return &Denied{fmt.Sprintf("%s is at %s, %s, %s", host, addr, what, p.notThere())}
}

func (one pattern) matches(u *url.URL) bool {
	host := HostOf(u)
	below, isBelow := strings.CutPrefix(one.host, "*")
	switch {
	case u.Scheme != one.scheme, one.port != "*" && one.port != PortOf(u):
		return false
	case host != one.host && (!isBelow || len(host) <= len(below) || !strings.HasSuffix(host, below)):
		return false
	}
	return one.path == "" || u.Path == one.path || strings.HasPrefix(u.Path, one.path+"/")
}

// crooked reports whether servers may read the path of u differently: some read "..;x" as "..", and some unescape a path again.
func crooked(u *url.URL) bool {
	path := u.Path
	for {
		if strings.Contains(path, `\`) || slices.ContainsFunc(strings.Split(path, "/"), isDots) {
			return true
		}
		again, err := url.PathUnescape(path)
		if err != nil {
			return true
		}
		if again == path {
			return false
		}
		path = again
	}
}

// isDots reports whether a segment, without the parameters that follow a semicolon, is "." or "..".
func isDots(segment string) bool {
	segment, _, _ = strings.Cut(segment, ";")
	return segment == "." || segment == ".."
}

// HostOf is the normalised host of u.
func HostOf(u *url.URL) string { return plainHost(u.Hostname()) }

// plainHost normalises a host.
func plainHost(host string) string {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.WithZone("").Unmap().String()
	}
	return strings.ToLower(strings.TrimRight(host, "."))
}

// PortOf is the port of u, or the default of its scheme.
func PortOf(u *url.URL) string {
	switch port := u.Port(); {
	case port == "" && u.Scheme == "http":
		return "80"
	case port == "":
		return "443"
	default:
		if n, err := strconv.ParseUint(port, 10, 16); err == nil {
			return strconv.FormatUint(n, 10)
		}
		return port
	}
}

// Denied is the error for a URL or an address that a Policy does not allow. It does not quote the URL.
type Denied struct{ Why string }

// Error says why.
func (d *Denied) Error() string { return d.Why }
