// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// parse reads an object from YAML.
func parse(t *testing.T, text string, args ...any) *object {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON(fmt.Appendf(nil, strings.ReplaceAll(text, "\t", "  "), args...))
	if err != nil {
		t.Fatal(err)
	}
	o := &object{}
	if err := o.UnmarshalJSON(asJSON); err != nil {
		t.Fatal(err)
	}
	return o
}

// of is an object of one of Shipper's kinds.
func of(t *testing.T, kind, namespace, name, more string) *object {
	t.Helper()
	return parse(t, "apiVersion: shipper.booking.com/v1alpha1\nkind: %s\nmetadata: {namespace: %q, name: %s, uid: %s-uid%s}\n",
		kind, namespace, name, name, more)
}

// documented is what the documentation shows of a file, made whole.
const documented = `- application:
    apiVersion: shipper.booking.com/v1alpha1
    kind: Application
    metadata:
      name: super-server
      namespace: default
      uid: super-server-uid
  backup_releases:
  - capacity_target:
      apiVersion: shipper.booking.com/v1alpha1
      kind: CapacityTarget
      metadata:
        name: super-server-dc5bfc5a-0
        namespace: default
        uid: super-server-dc5bfc5a-0-uid
    installation_target:
      apiVersion: shipper.booking.com/v1alpha1
      kind: InstallationTarget
      metadata:
        name: super-server-dc5bfc5a-0
        namespace: default
        uid: super-server-dc5bfc5a-0-uid
    release:
      apiVersion: shipper.booking.com/v1alpha1
      kind: Release
      metadata:
        labels:
          shipper-app: super-server
        name: super-server-dc5bfc5a-0
        namespace: default
        uid: super-server-dc5bfc5a-0-uid
    traffic_target:
      apiVersion: shipper.booking.com/v1alpha1
      kind: TrafficTarget
      metadata:
        name: super-server-dc5bfc5a-0
        namespace: default
        uid: super-server-dc5bfc5a-0-uid
`

func superServer(t *testing.T) Entry {
	t.Helper()
	const release = "super-server-dc5bfc5a-0"
	return Entry{
		Application: of(t, "Application", "default", "super-server", ""),
		Releases: []Release{{
			Release:            of(t, "Release", "default", release, ", labels: {shipper-app: super-server}"),
			InstallationTarget: of(t, "InstallationTarget", "default", release, ""),
			CapacityTarget:     of(t, "CapacityTarget", "default", release, ""),
			TrafficTarget:      of(t, "TrafficTarget", "default", release, ""),
		}},
	}
}

func TestTheFileIsAsDocumented(t *testing.T) {
	b := Backup{superServer(t)}
	text, err := b.Marshal(cli.YAML)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(documented, string(text)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	release := parse(t, `
apiVersion: shipper.booking.com/v1alpha1
kind: Release
metadata: {namespace: default, name: web-0, labels: {shipper-app: web}}
spec:
	fieldOfTomorrow: kept
	environment:
		values:
			numbers: [0, 1, -7, 9007199254740993, 0.1, 1e22, 1.5e-7]
			texts: ["yes", "no", "0123", "1e3", "~", "null", "2001-01-01", "  blanks  ", "a\nb\n", "- x: y", "#", "é", "{{ .x }}"]
			nothing: null
			empty: {}
			none: []
`)
	whole := Backup{
		{Application: of(t, "Application", "default", "web", ""), Releases: []Release{{Release: release}}},
		{Check: of(t, "Check", "default", "errors", "")},
		{Notification: of(t, "Notification", "default", "slack", "")},
		{Envelope: of(t, "Envelope", "default", "network", "")},
		{Strategy: of(t, "Strategy", "default", "careful", "")},
		{
			ResourceSnapshot: of(t, "ResourceSnapshot", "default", "c-1", ""),
			ResourceParts:    []*object{of(t, "ResourceSnapshot", "default", "c-2", "")},
			ResourceSecrets: []*object{parse(t,
				"apiVersion: v1\nkind: Secret\nmetadata: {namespace: default, name: c-1}\ntype: shipper.booking.com/resources")},
		},
		{RolloutBlock: of(t, "RolloutBlock", "default", "dns", "")},
		{Cluster: of(t, "Cluster", "", "eu", ""), ClusterSecret: parse(t,
			"apiVersion: v1\nkind: Secret\nmetadata: {namespace: shipper-system, name: eu}\ndata: {token: eA==}")},
		{Identity: parse(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: shipper-system, name: shipper-identity}\ndata: {id: a}")},
	}
	for name, b := range map[string]Backup{
		"everything": whole,
		"nothing":    {},
		"a Release that has no targets, of an Application that has one": {whole[0]},
	} {
		for _, format := range []cli.Format{cli.YAML, cli.JSON} {
			t.Run(name+", as "+string(format), func(t *testing.T) {
				text, err := b.Marshal(format)
				if err != nil {
					t.Fatal(err)
				}
				got, err := parseBackup(text)
				if err != nil {
					t.Fatalf("%v\n%s", err, text)
				}
				if diff := cmp.Diff(b, got); diff != "" {
					t.Errorf("(-want +got)\n%s\n%s", diff, text)
				}
			})
		}
	}
}

func TestParseRefuses(t *testing.T) {
	const app = "application: {apiVersion: shipper.booking.com/v1alpha1, kind: Application, metadata: {namespace: default, name: web}}"
	release := func(more string) string {
		return "release: {apiVersion: shipper.booking.com/v1alpha1, kind: Release, metadata: {namespace: default, name: web-0, " +
			"labels: {shipper-app: web}}}" + more
	}
	for name, tc := range map[string]struct{ text, want string }{
		"what is no YAML":     {"- [", "it is neither YAML nor JSON"},
		"another file":        {"applicationClusters: []", "it was not written by `shipperctl backup prepare`"},
		"an unknown key":      {"- applications: {}", `unknown field "applications"`},
		"a key that is twice": {"- " + app + "\n  " + app, "already set in map"},
		"an entry of nothing": {
			"- {}", "entry 1: it must have one of application, check, notification, envelope, strategy, rollout_block, cluster, " +
				"identity, chart_snapshot and resource_snapshot",
		},
		"an entry of two": {
			"- {" + app + ", identity: {apiVersion: v1, kind: ConfigMap, metadata: {namespace: a, name: b}}}",
			"entry 1: it must have one of application, check, notification, envelope, strategy, rollout_block, cluster, " +
				"identity, chart_snapshot and resource_snapshot",
		},
		"an object of another kind": {
			"- " + strings.Replace(app, "Application", "Release", 1),
			"entry 1: application is a Release of shipper.booking.com/v1alpha1, and must be a Application of shipper.booking.com/v1alpha1",
		},
		"an object without a name": {"- " + strings.Replace(app, ", name: web", "", 1), "application has no metadata.name"},
		"a Release of another Application": {
			"- {" + app + ", backup_releases: [{" + strings.Replace(release(""), "shipper-app: web", "shipper-app: other", 1) + "}]}",
			`release "default/web-0" is of application "other", says its label shipper-app, and stands with "web"`,
		},
		"a target of another Release": {
			"- {" + app + ", backup_releases: [{" + release(", capacity_target: {apiVersion: shipper.booking.com/v1alpha1, "+
				"kind: CapacityTarget, metadata: {namespace: default, name: web-1}}") + "}]}",
			`capacity target "default/web-1" has not the name of release "default/web-0"`,
		},
		"a Release of another namespace": {
			"- {" + app + ", backup_releases: [{" + strings.Replace(release(""), "namespace: default", "namespace: kube-system", 1) + "}]}",
			`release "kube-system/web-0" is not in the namespace of application "default/web"`,
		},
		"content without its head": {
			"- {" + app + ", resource_secrets: [{apiVersion: v1, kind: Secret, metadata: {namespace: default, name: c-1}}]}",
			"resource_parts or resource_secrets are without their resource_snapshot",
		},
		"targets without their Release": {
			"- {" + app + ", backup_releases: [{}]}", "one of backup_releases has no release",
		},
		"an Application that is twice": {"- " + app + "\n- " + app, `application "default/web" is there twice`},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := parseBackup([]byte(tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is\n%v\nand should contain\n%s\n%v", err, tc.want, b)
			}
		})
	}
}

func TestAFileIsWrittenWholeAndForItsOwner(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "backup.yaml")
	if err := os.WriteFile(path, []byte("older, and longer than what comes"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(path, []byte("newer")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || string(text) != "newer" || info.Mode() != 0o600 {
		t.Errorf("%q, %s, %v", text, info.Mode(), err)
	}
	if err := writeFile(folder, []byte("x")); err == nil {
		t.Error("a folder was overwritten")
	}
	if err := writeFile(filepath.Join(folder, "nowhere", "x"), nil); err == nil {
		t.Error("a folder was made")
	}
	left, err := filepath.Glob(filepath.Join(folder, "*"))
	if diff := cmp.Diff([]string{path}, left); diff != "" || err != nil {
		t.Errorf("what is left (-want +got)\n%s%v", diff, err)
	}
	beside, err := filepath.Glob(folder + ".*")
	if len(beside) > 0 || err != nil {
		t.Errorf("left beside the folder: %v, %v", beside, err)
	}
}
