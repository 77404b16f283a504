// SPDX-License-Identifier: Apache-2.0

package outward

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func mustPolicy(t testing.TB, list string) Policy {
	t.Helper()
	p, err := ParsePolicy(list)
	if err != nil {
		t.Fatal(err)
	}
	return p.Worded(Wording{
		NotListed: func(p Policy, _ *url.URL) string {
			return fmt.Sprintf("charts may be fetched only from %s; use such a URL, "+
				"or ask an administrator of Shipper to add this one (--chart-repositories)", p)
		},
		NotThere: "which charts are not fetched from",
	})
}

func TestParsePolicy(t *testing.T) {
	for list, want := range map[string]string{
		"":                                  "no URL is listed; https://*:* allows all that are safe",
		" , ":                               "no URL is listed; https://*:* allows all that are safe",
		"charts.example.com":                `"charts.example.com" must begin with https:// or http://`,
		"oci://charts.example.com":          `"oci://charts.example.com" must begin with https:// or http://`,
		"https://":                          `"https://" must name a host, or * for any`,
		"https://:8443/x":                   `"https://:8443/x" must name a host, or * for any`,
		"https://a b":                       `"https://a b" must name a host, or * for any`,
		"https://me:secret@charts":          `"https://me:secret@charts" must have neither credentials, query nor fragment`,
		"https://charts?x=y":                `"https://charts?x=y" must have neither credentials, query nor fragment`,
		"https://charts.*.com":              `"https://charts.*.com" may have a * only in place of the host, of its first label, or of the port`,
		"https://*charts.com":               `"https://*charts.com" may have a * only in place of the host, of its first label, or of the port`,
		"https://charts/a/*":                `"https://charts/a/*" must have a plain path: the paths below it are allowed too`,
		"https://charts/a/../b":             `"https://charts/a/../b" must have a plain path: the paths below it are allowed too`,
		"https://a.example, http://b:*/x/ ": "",
		"https://*:*":                       "",
		"http://[::1]:8080":                 "",
	} {
		got := ""
		if _, err := ParsePolicy(list); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q gives %q, want %q", list, got, want)
		}
	}
	if got := mustPolicy(t, " https://a , http://b:* ").String(); got != "https://a, http://b:*" {
		t.Errorf("it prints as %q", got)
	}
	if got := (Policy{}).String(); got != AnyHTTPS {
		t.Errorf("the zero value prints as %q", got)
	}
}

func TestPolicyOfURLs(t *testing.T) {
	const only = "charts may be fetched only from "
	const crooked = `its path has a segment "." or "..", a \, or a %25 that servers may read differently; write where it leads`
	const (
		notFrom   = ", which charts are not fetched from"
		machine   = " is a name of the machine itself" + notFrom
		loopback  = " is a loopback address" + notFrom
		linkLocal = " is a link-local address" + notFrom
		metadata  = " is the address of a metadata service" + notFrom
	)
	for policy, urls := range map[string]map[string]string{
		AnyHTTPS: {
			"https://charts.example.com":            "",
			"https://charts.example.com:8443/a?b#c": "",
			"https://me:secret@charts.example.com":  "",
			"https://10.0.0.1":                      "",
			"https://[2001:db8::1]":                 "",
			"http://charts.example.com":             only,
			"https://charts.example.com/a/../b":     crooked,
			"https://charts.example.com/a%2f..%2fb": crooked,
			`https://charts.example.com/a/..\b`:     crooked,
			"https://localhost":                     "localhost" + machine,
			"https://LOCALHOST.:443":                "localhost" + machine,
			"https://x.localhost":                   "x.localhost" + machine,
			"https://127.0.0.1":                     "127.0.0.1" + loopback,
			"https://127.1.2.3:8443":                "127.1.2.3" + loopback,
			"https://0.0.0.0":                       "0.0.0.0" + loopback,
			"https://[::1]":                         "::1" + loopback,
			"https://[::]":                          "::" + loopback,
			"https://[::ffff:127.0.0.1]":            "127.0.0.1" + loopback,
			"https://[::127.0.0.1]":                 "::7f00:1" + loopback,
			"https://[64:ff9b::7f00:1]":             "64:ff9b::7f00:1" + loopback,
			"https://169.254.169.254/latest":        "169.254.169.254" + linkLocal,
			"https://[fe80::1%25eth0]":              "fe80::1" + linkLocal,
			"https://[64:ff9b::a9fe:a9fe]":          "64:ff9b::a9fe:a9fe" + linkLocal,
			"https://[2002:a9fe:a9fe::]":            "2002:a9fe:a9fe::" + linkLocal,
			"https://[2001:0:7f00:1::]":             "2001:0:7f00:1::" + loopback,
			"https://[2001:0:808:808::5601:5601]":   "2001:0:808:808::5601:5601" + linkLocal,
			"https://[2001:0:808:808::f7f7:f7f7]":   "",
			"https://[fd00:ec2::254]":               "fd00:ec2::254" + metadata,
			"https://[fd00:ec2::23]":                "fd00:ec2::23" + metadata,
			"https://100.100.100.200":               "100.100.100.200" + metadata,
			"https://168.63.129.16":                 "168.63.129.16" + metadata,
			"https://224.0.0.1":                     "224.0.0.1 is a multicast address, which charts are not fetched from",
			"https://255.255.255.255":               "255.255.255.255 is a multicast address, which charts are not fetched from",
		},
		"https://charts.example.com/stable": {
			"https://charts.example.com/stable":                       "",
			"https://CHARTS.example.com./stable/index":                "",
			"https://charts.example.com:443/stable/a":                 "",
			"https://charts.example.com:0443/stable/a":                "",
			"https://charts.example.com:8443/stable":                  only,
			"https://charts.example.com/stable2":                      only,
			"https://charts.example.com/":                             only,
			"https://charts.example.com/stable/../other":              crooked,
			"https://charts.example.com/stable/./a":                   crooked,
			"https://charts.example.com/stable/..;/a":                 crooked,
			"https://charts.example.com/stable/.;x=y/a":               crooked,
			"https://charts.example.com/stable/%2e%2e;x":              crooked,
			"https://charts.example.com/stable/%2E%2e%3b":             crooked,
			"https://charts.example.com/stable/%252e%252e/a":          crooked,
			"https://charts.example.com/stable/%25252e%25252e%253b":   crooked,
			"https://charts.example.com/stable/a%252f..%252f..%252fb": crooked,
			"https://charts.example.com/stable/..%255cb":              crooked,
			"https://charts.example.com/stable/%25zz":                 crooked,
			"https://charts.example.com/stable/a;v=1/..a":             "",
			"https://charts.example.com/stable/a%20b%2fc":             "",
			"https://charts.example.com/stable/a%2520b":               "",
			"https://charts.example.com.evil.com/stable":              only,
			"https://charts.example.com@evil.com/stable":              only,
			"https://evil.com/https://charts.example.com":             only,
			"http://charts.example.com/stable":                        only,
		},
		"https://*.example.com, http://*.internal:*": {
			"https://a.example.com":     "",
			"https://a.b.example.com":   "",
			"https://example.com":       only,
			"https://.example.com":      only,
			"https://aexample.com":      only,
			"http://charts.internal:81": "",
			"http://a.example.com":      only,
		},
		"https://*:*, http://127.0.0.1:*, http://localhost:8080": {
			"http://127.0.0.1:4711/charts": "",
			"http://127.0.0.2:4711":        only,
			"http://localhost:8080":        "",
			"http://localhost:8081":        only,
			"https://127.0.0.1":            "127.0.0.1" + loopback,
		},
	} {
		p := mustPolicy(t, policy)
		for text, want := range urls {
			u, err := url.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := p.Check(u); err != nil {
				got = err.Error()
			}
			if want == only {
				want = only + p.String() + "; use such a URL, or ask an administrator of Shipper to add this one (--chart-repositories)"
			}
			if got != want {
				t.Errorf("%s: %s gives %q, want %q", policy, text, got, want)
			}
		}
	}
}

func TestPolicyOfAddresses(t *testing.T) {
	p := mustPolicy(t, "https://*:*, http://127.0.0.1:*, http://localhost:*, http://[fe80::1]:*, http://charts.internal")
	for address, want := range map[[2]string]bool{
		{"charts.example.com", "93.184.216.34"}:    true,
		{"charts.example.com", "10.0.0.1"}:         true,
		{"charts.example.com", "fd12::1"}:          true,
		{"charts.example.com", "127.0.0.1"}:        false,
		{"charts.example.com", "::ffff:127.0.0.1"}: false,
		{"charts.example.com", "::1"}:              false,
		{"charts.example.com", "169.254.169.254"}:  false,
		{"charts.example.com", "fe80::2%eth0"}:     false,
		{"charts.internal", "127.0.0.1"}:           false, // a name that is allowed is no address that is
		{"127.0.0.1", "127.0.0.1"}:                 true,
		{"127.0.0.1", "127.0.0.2"}:                 false,
		{"127.0.0.2", "127.0.0.2"}:                 false,
		{"localhost", "127.0.0.1"}:                 true,
		{"localhost", "::1"}:                       true,
		{"localhost", "169.254.1.1"}:               false,
		{"fe80::1", "fe80::1%eth0"}:                true,
	} {
		if err := p.checkAddress(address[0], netip.MustParseAddr(address[1])); (err == nil) != want {
			t.Errorf("%s at %s: %v", address[0], address[1], err)
		}
	}
}

// FuzzPolicy looks for a URL of the machine's own surroundings, or one that is not https, that the default lets pass.
func FuzzPolicy(f *testing.F) {
	for _, seed := range []string{
		"https://charts.example.com", "https://127.0.0.1", "https://[::ffff:127.0.0.1]", "http://x", "https://0177.0.0.1",
		"https://2130706433", "https://127.1", "https://[fe80::1%25eth0]", "https://localhost.", "https://１２７.0.0.1", `https://a\@b/..`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.Parse(strings.TrimSpace(text))
		if err != nil || (Policy{}).Check(u) != nil {
			return
		}
		if u.Scheme != "https" {
			t.Fatalf("%s may be fetched from", u)
		}
		addr, err := netip.ParseAddr(u.Hostname())
		if err != nil {
			return
		}
		if addr = addr.Unmap(); addr.IsLoopback() || addr.IsLinkLocalUnicast() || addr.IsMulticast() || addr.IsUnspecified() {
			t.Fatalf("%s may be fetched from", u)
		}
		if (Policy{}).checkAddress(u.Hostname(), addr) != nil {
			t.Fatalf("%s passes, but not its address", u)
		}
	})
}
