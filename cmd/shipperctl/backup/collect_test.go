// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bufio"
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"shipper.dev/shipper/cmd/shipperctl/cli"
)

func TestCollect(t *testing.T) {
	const going = `, deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [x/y]`
	rel := func(namespace, app, name, generation, more string) object {
		return *of(t, "Release", namespace, name, ", labels: {shipper-app: "+app+
			"}, annotations: {shipper.booking.com/release.generation: \""+generation+"\"}"+more)
	}
	target := func(kind, namespace, name, more string) object {
		return *of(t, kind, namespace, name, ", ownerReferences: [{apiVersion: a/b, kind: Release, name: "+name+", uid: "+name+"-uid}]"+more)
	}
	f := contents{
		applications: []object{
			*of(t, "Application", "b", "web", ", managedFields: [{manager: kubectl}]"), *of(t, "Application", "a", "web", ""),
			*of(t, "Application", "a", "leaving", going), *of(t, "Application", "a", "new", ""),
		},
		releases: []object{
			rel("b", "web", "web-z", "9", ""), rel("b", "web", "web-a", "10", ""), rel("a", "web", "web-0", "0", ""),
			rel("a", "web", "web-1", "1", going), rel("a", "leaving", "leaving-0", "0", ""), rel("a", "nobody", "orphan-0", "0", ""),
		},
		installations: []object{target("InstallationTarget", "b", "web-z", ""), target("InstallationTarget", "a", "web-0", "")},
		capacities: []object{
			target("CapacityTarget", "b", "web-z", going), *of(t, "CapacityTarget", "a", "web-0", ""), target("CapacityTarget", "a", "late-0", ""),
		},
		traffics: []object{target("TrafficTarget", "b", "web-a", "")},
		notifications: []object{
			*of(t, "Notification", "b", "slack", ", managedFields: [{manager: kubectl}]"), *of(t, "Notification", "a", "leaving", going),
		},
		checks: []object{
			*of(t, "Check", "b", "errors", ", managedFields: [{manager: kubectl}]"), *of(t, "Check", "a", "leaving", going),
		},
		strategies: []object{
			*of(t, "Strategy", "b", "careful", ", managedFields: [{manager: kubectl}]"), *of(t, "Strategy", "a", "leaving", going),
		},
		blocks:   []object{*of(t, "RolloutBlock", "a", "dns", "")},
		clusters: []object{*of(t, "Cluster", "", "us", ""), *of(t, "Cluster", "", "eu", "")},
		secrets:  map[string]*object{"eu": of(t, "Secret", "shipper-system", "eu", "")},
		identity: of(t, "ConfigMap", "shipper-system", "shipper-identity", ""),
		charts: []object{
			kept(t, "whole", 2, 0, ""), kept(t, "whole-1", 2, 1, "whole-uid"), kept(t, "whole-2", 2, 2, "whole-uid"),
			kept(t, "torn", 2, 0, ""), kept(t, "torn-1", 2, 1, "torn-uid"),
		},
	}
	b, notes := collect(f)
	var got []string
	for _, e := range b {
		for _, s := range e.slots() {
			if s.have != nil {
				got = append(got, describe(s.have))
			}
		}
		for _, r := range e.Releases {
			line := " "
			for _, s := range r.slots() {
				if s.have != nil {
					line += " " + describe(s.have)
				}
			}
			got = append(got, line)
		}
	}
	want := []string{
		`application "a/new"`, `application "a/web"`, `  release "a/web-0" installation target "a/web-0"`,
		`application "b/web"`, `  release "b/web-z" installation target "b/web-z"`, `  release "b/web-a" traffic target "b/web-a"`,
		`check "b/errors"`, `notification "b/slack"`, `strategy "b/careful"`,
		`rollout block "a/dns"`, `cluster "eu"`, `secret "shipper-system/eu"`, `cluster "us"`, `config map "shipper-system/shipper-identity"`,
		`chart snapshot "a/whole"`, `chart snapshot "a/whole-1"`, `chart snapshot "a/whole-2"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the backup (-want +got)\n%s", diff)
	}
	wantNotes := []string{
		`application "a/leaving" is being deleted: it is left out, with its releases`,
		`chart snapshot "a/torn" is not whole: it is left out`,
		`release "a/orphan-0" is left out: there is no application "a/nobody"`,
		`release "a/web-1" is being deleted: it is left out`,
	}
	if diff := cmp.Diff(wantNotes, notes); diff != "" {
		t.Errorf("what is said of it (-want +got)\n%s", diff)
	}
	if len(b[2].Application.GetManagedFields()) > 0 {
		t.Error("it says who wrote which field")
	}
}

func TestApprovalsThatCountAreNoted(t *testing.T) {
	release := func(name, more string) object {
		return *parse(t, "apiVersion: shipper.booking.com/v1alpha1\nkind: Release\nmetadata: {namespace: a, name: %s, "+
			"labels: {shipper-app: web}, annotations: {shipper.booking.com/release.moved: '{\"count\": 3}'}}\nspec: {targetStep: 1}\n%s", name, more)
	}
	count := 0
	approval := func(release, more, metadata string) object {
		count++
		return *parse(t, "apiVersion: shipper.booking.com/v1alpha1\nkind: Approval\nmetadata: {namespace: a, name: a%d%s}\n"+
			"spec: {release: %s, %s}", count, metadata, release, more)
	}
	const ann, bob = "step: 1, move: 3, by: {username: ann}", "step: 1, move: 3, decision: Reject, by: {username: bob}"
	_, notes := collect(contents{
		applications: []object{*of(t, "Application", "a", "web", "")},
		releases: []object{
			release("web-0", "status: {conditions: [{type: Complete, status: 'True'}]}"), release("web-1", ""), release("web-2", ""),
		},
		approvals: []object{
			approval("web-0", ann, ""), approval("web-1", ann, ""), approval("web-1", bob, ""),
			approval("web-2", "step: 0, move: 3", ""), approval("web-2", "step: 1, move: 2", ""),
			approval("web-2", ann, `, deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [x/y]`), approval("gone", ann, ""),
		},
	})
	want := []string{`release "a/web-1" has Approvals of step 1 (2), which are left out: after a restore the gate is closed until users ` +
		"approve or refuse the step again"}
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Errorf("notes (-want +got)\n%s", diff)
	}
}

func TestResultsOfChecksThatAreLeftOutAreNoted(t *testing.T) {
	release := func(name, more string) object {
		return *parse(t, "apiVersion: shipper.booking.com/v1alpha1\nkind: Release\nmetadata: {namespace: a, name: %s, uid: %s-uid, "+
			"labels: {shipper-app: web}}\nspec: {targetStep: 1}\n%s", name, name, more)
	}
	target := func(release, owner string, step int) object {
		return *parse(t, "apiVersion: shipper.booking.com/v1alpha1\nkind: CheckTarget\nmetadata: {namespace: a, name: %s, ownerReferences: "+
			"[{apiVersion: a/b, kind: Release, name: x, uid: %s, controller: true}]}\nspec: {run: 1, step: %d}", release, owner, step)
	}
	b, notes := collect(contents{
		applications: []object{*of(t, "Application", "a", "web", "")},
		releases: []object{
			release("web-0", "status: {conditions: [{type: Complete, status: 'True'}]}"), release("web-1", ""), release("web-2", ""),
			release("web-3", ""), release("web-4", ""),
		},
		checkTargets: []object{
			target("web-0", "web-0-uid", 1), target("web-1", "web-1-uid", 0), target("web-2", "another", 1), target("web-4", "web-4-uid", 1),
		},
	})
	want := []string{
		`release "a/web-4" has results of the checks of step 1, which are left out: after a restore the checks are made again, ` +
			"from the beginning",
	}
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Errorf("notes (-want +got)\n%s", diff)
	}
	if len(b) != 1 {
		t.Errorf("the backup has %d entries", len(b))
	}
}

func TestAnOlderVersionHasNoneOfTheNewerKinds(t *testing.T) {
	for kind, known := range map[string]bool{
		"Approval": false, "Notification": false, "Check": false, "CheckTarget": false,
		"Envelope": false, "ResourceSnapshot": false, "Strategy": false, "Release": true,
	} {
		c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
			List: func(_ context.Context, _ client.WithWatch, l client.ObjectList, _ ...client.ListOption) error {
				if of := l.GetObjectKind().GroupVersionKind(); of.Kind == kind+"List" {
					return &meta.NoKindMatchError{GroupKind: of.GroupKind()}
				}
				return nil
			},
		})
		if _, err := read(t.Context(), c, selection{}); (err != nil) != known {
			t.Errorf("without %ss: %v", kind, err)
		}
	}
}

// kept is a ChartSnapshot, or a part of the one of a UID.
func kept(t *testing.T, name string, parts, part int64, of types.UID) object {
	t.Helper()
	o := object{Object: map[string]any{"spec": map[string]any{"parts": parts, "part": part}}}
	o.SetGroupVersionKind(snapshotKind)
	o.SetNamespace("a")
	o.SetName(name)
	o.SetUID(types.UID(name + "-uid"))
	if part > 0 {
		o.SetOwnerReferences([]metav1.OwnerReference{{Kind: snapshotKind.Kind, UID: of}})
		o.Object["spec"].(map[string]any)["data"] = "Y2hhcnQ="
	}
	return o
}

func TestChartsAreNotShown(t *testing.T) {
	head, part := kept(t, "one", 1, 0, ""), kept(t, "one-1", 1, 1, "one-uid")
	b := Backup{{ChartSnapshot: &head, ChartParts: []*object{&part}}}
	text, err := b.redacted().Marshal(cli.YAML)
	if err != nil || strings.Contains(string(text), "Y2hhcnQ=") {
		t.Errorf("%v\n%s", err, text)
	}
	if kept, _ := b.Marshal(cli.YAML); !strings.Contains(string(kept), "Y2hhcnQ=") {
		t.Errorf("what is shown was taken out of the backup:\n%s", kept)
	}
}

func TestOverview(t *testing.T) {
	b := Backup{superServer(t), {RolloutBlock: of(t, "RolloutBlock", "a", "dns", "")}}
	var out bytes.Buffer
	b.overview(&out)
	want := `
NAMESPACE   RELEASE NAME              OWNING APPLICATION
default     super-server-dc5bfc5a-0   super-server
`
	if diff := cmp.Diff(want[1:], out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	secret := parse(t, "apiVersion: v1\nkind: Secret\nmetadata: {namespace: shipper-system, name: eu}\ndata: {token: c2VjcmV0}")
	b := Backup{{Cluster: of(t, "Cluster", "", "eu", ""), ClusterSecret: secret}}
	text, err := b.redacted().Marshal(cli.YAML)
	if err != nil || strings.Contains(string(text), "c2VjcmV0") || !strings.Contains(string(text), "token: (not shown)") {
		t.Errorf("%v\n%s", err, text)
	}
	if kept, _ := b.Marshal(cli.YAML); !strings.Contains(string(kept), "c2VjcmV0") {
		t.Errorf("what is shown was taken out of the backup:\n%s", kept)
	}
}

func TestAnswers(t *testing.T) {
	for typed, want := range map[string]string{
		"y\n": "true", "YES\n": "true", "n\n": "false", "no": "false", "what?\n\ny\n": "true",
		"":        "the input ended without an answer: give --yes to restore without questions; nothing was written",
		"maybe\n": "the input ended without an answer: give --yes to restore without questions; nothing was written",
	} {
		var out bytes.Buffer
		yes, err := prompter{in: bufio.NewReader(strings.NewReader(typed)), out: &out}.confirm("Really?")
		got := map[bool]string{true: "true", false: "false"}[yes]
		if err != nil {
			got = err.Error()
		}
		if got != want || !strings.HasPrefix(out.String(), "Really? [y/n]: ") {
			t.Errorf("%q: %s, want %s\n%s", typed, got, want, out.String())
		}
	}
}
