// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestFlagsThatCannotBeMeant(t *testing.T) {
	for flags, want := range map[string]string{
		"--unhealthy-after=29s":                            "--unhealthy-after=29s: must be from 30s to 24h0m0s",
		"--unhealthy-after=24h1s":                          "--unhealthy-after=24h0m1s: must be from 30s to 24h0m0s",
		"--workers=0":                                      "--workers=0: at least 1 is needed",
		"--log-format=xml":                                 "--log-format=xml: use json or text",
		"--chart-repositories=x":                           `--chart-repositories: "x" must begin with https:// or http://`,
		"--outgoing-urls=hooks.slack.com":                  `--outgoing-urls: "hooks.slack.com" must begin with https:// or http://`,
		"--outgoing-urls=https://hooks.slack.com/services": "",
		"--placeable-kinds=x": `--placeable-kinds: "x" is not a kind such as ConfigMap or Deployment.apps, ` +
			`nor a group such as *.example.com`,
		"--pprof-port=-1":    "--pprof-port=-1: the port must be a number from 1 to 65535, or 0",
		"--pprof-port=65536": "--pprof-port=65536: the port must be a number from 1 to 65535, or 0",
		"--pprof-port=65535": "",
		"reconcile":          "unexpected arguments: reconcile",
	} {
		_, err := parse(strings.Fields(flags))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", flags, got, want)
		}
	}
}

func TestProfilesAreServedWhenAskedForAndToThisMachineAlone(t *testing.T) {
	for flags, want := range map[string]string{"": "", "--pprof-port=6060": "127.0.0.1:6060"} {
		o, err := parse(strings.Fields(flags))
		if err != nil {
			t.Fatal(err)
		}
		if got := o.pprofAddr(); got != want {
			t.Errorf("%q: profiles are served on %q, want %q", flags, got, want)
		}
	}
}
