// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

func TestDataOfARun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "data.yaml")
	if err := os.WriteFile(file, []byte("deployment: {version: 1.0.0, to: first}\nlabels2: {a: b}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	values := func(v map[string]any) shipper.FreeForm {
		return shipper.FreeForm{"configurationChange": map[string]any{"values": v}}
	}
	for sentence, tc := range map[string]struct {
		starting
		in   string
		want any
	}{
		"nothing":   {starting{}, "", shipper.FreeForm(nil)},
		"a version": {starting{version: "1.4.2"}, "", shipper.FreeForm{"deployment": map[string]any{"version": "1.4.2"}}},
		"values": {
			starting{values: []string{"image.tag=1.10", "replicaCount=3", "debug=true", "old=null", `a\.b.c=d=e`, "zip=007", "e="}}, "",
			values(map[string]any{
				"image": map[string]any{"tag": "1.10"}, "replicaCount": int64(3), "debug": true, "old": nil, "a.b": map[string]any{"c": "d=e"},
				"zip": "007", "e": "",
			}),
		},
		"a file and a version": {
			starting{file: file, version: "1.4.2"}, "",
			shipper.FreeForm{"deployment": map[string]any{"version": "1.4.2", "to": "first"}, "labels2": map[string]any{"a": "b"}},
		},
		"standard input":         {starting{file: "-"}, `{"test": {}}`, shipper.FreeForm{"test": map[string]any{}}},
		"no value":               {starting{values: []string{"a"}}, "", `--values: "a" is not KEY=VALUE`},
		"no key":                 {starting{values: []string{"=a"}}, "", `--values: "=a" is not KEY=VALUE`},
		"a key that is empty":    {starting{values: []string{"a..b=c"}}, "", "--values a..b=c: a key is empty"},
		"a key below a value":    {starting{values: []string{"a=b", "a.b=c"}}, "", "--values a.b=c: a is not an object"},
		"a list":                 {starting{file: "-"}, "[a]", "reading -: it has to be an object: "},
		"a key twice":            {starting{file: "-"}, "{a: b, a: c}", "reading -: it has to be an object: "},
		"a file of another kind": {starting{file: "nowhere.yaml"}, "", "reading the data: open nowhere.yaml: "},
		"too much":               {starting{file: "-"}, strings.Repeat("#", 600<<10), "- is too large: a run has 256 KiB of data; "},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := tc.data(strings.NewReader(tc.in))
			if want, refused := tc.want.(string); refused {
				if err == nil || !strings.HasPrefix(err.Error(), want) {
					t.Errorf("%v, want\n%s", err, want)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%v, -want +got\n%s", err, diff)
			}
		})
	}
}

func TestObjectsThatAreCreated(t *testing.T) {
	shop := client.ObjectKey{Namespace: "shop", Name: "shop"}
	s := starting{stage: "production", service: "web", skipRequires: "why"}
	run := s.object(shop, nil)
	want := shipper.SequenceRunSpec{
		Shipyard: "shop", Stage: "production", Service: "web", SkipRequires: &shipper.SkipRequires{Reason: "why"},
	}
	if diff := cmp.Diff(want, run.Spec); diff != "" || run.GenerateName != "web-" || run.Namespace != "shop" {
		t.Errorf("%s/%s, -want +got\n%s", run.Namespace, run.GenerateName, diff)
	}
	again := (&starting{retryOf: "sr/web-1", from: "test#2", name: "web-2"}).object(shop, nil)
	want = shipper.SequenceRunSpec{Shipyard: "shop", RetryOf: &shipper.RetryOf{Run: "web-1", From: "test#2"}}
	if diff := cmp.Diff(want, again.Spec); diff != "" || again.Name != "web-2" || again.GenerateName != "" {
		t.Errorf("%s%s, -want +got\n%s", again.GenerateName, again.Name, diff)
	}
	a := approvalOf(client.ObjectKey{Namespace: "shop", Name: "web-1"}, "approval#2", true, "no")
	approval := shipper.ApprovalSpec{Run: "web-1", Task: "approval#2", Decision: shipper.DecisionReject, Reason: "no"}
	if diff := cmp.Diff(approval, a.Spec); diff != "" || a.GenerateName != "web-1-" {
		t.Errorf("%s, -want +got\n%s", a.GenerateName, diff)
	}
	a.Spec.By.Username = "ben"
	if got := saidOf(a); got != "ben: rejected task approval#2 of run web-1" {
		t.Error(got)
	}
}

func TestMisusesAreRefusedBeforeAClusterIsAsked(t *testing.T) {
	for args, want := range map[string]string{
		"run":                                       "accepts 1 arg(s), received 0",
		"run shop --from test":                      "--from is for --retry-of: name the run to repeat",
		"run shop --retry-of web-1 --version 1":     "--version and --retry-of exclude each other: a retry has all of the run that it repeats",
		"run shop --skip-requires=":                 "--skip-requires is missing: say why, others will read it",
		"run shop --timeout 1h":                     "--timeout is for --wait: give --wait as well",
		"run shop --wait --timeout 0s":              "--timeout is 0s: it must be more than nothing",
		"approve web-1 --reject":                    "--reason is missing: say why, others will read it",
		"pause web-1":                               "--reason is missing: say why, others will read it",
		"abort web-1 --reason " + longer(maxReason): "--reason has 257 characters: 256 are the most",
		"wait web-1 --timeout -1s":                  "--timeout is -1s: it must be more than nothing",
		"list -A -n shop":                           "--all-namespaces excludes --namespace",
	} {
		cmd := NewCommand(clock.RealClock{})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(strings.Fields(args))
		if err := cmd.ExecuteContext(t.Context()); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want\n%s", args, err, want)
		}
	}
}

func longer(than int) string { return strings.Repeat("a", than+1) }

func TestARunIsCreatedAndItsNamePrinted(t *testing.T) {
	c := clientWith(t)
	cmd := &cobra.Command{}
	var out, errs bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetContext(t.Context())
	run := running("web-1", "staging", "delivery", 0)
	o := &options{clock: clock.RealClock{}}
	if err := o.create(cmd, c, run, waiting{}); err != nil {
		t.Fatal(err)
	}
	const said = "run shop/web-1 is created, stage staging, sequence delivery, service web\n"
	if out.String() != "web-1\n" || errs.String() != said {
		t.Errorf("%q, %q", out.String(), errs.String())
	}
	errs.Reset()
	if err := rehearse(cmd, c, running("web-2", "staging", "delivery", 0)); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-2"}, &shipper.SequenceRun{}); !apierrors.IsNotFound(err) {
		t.Errorf("a dry run created a run: %v", err)
	}
	const would = "run shop/web-2 would be created, stage staging, sequence delivery, service web\n"
	if out.String() != "web-1\n" || errs.String() != would {
		t.Errorf("%q, %q", out.String(), errs.String())
	}
	run.ResourceVersion = ""
	if err := o.create(cmd, c, run, waiting{wait: true, timeout: time.Millisecond}); err == nil {
		t.Error("the same run was created twice")
	}
}

func TestKeys(t *testing.T) {
	for arg, want := range map[string]string{
		"web-1": "here/web-1", "sr/web-1": "here/web-1", "sequenceruns.shipper.booking.com/web-1": "here/web-1", "shop/web-1": "shop/web-1",
	} {
		if got := keyOf("here", arg, runKinds).String(); got != want {
			t.Errorf("%s is %s, want %s", arg, got, want)
		}
	}
}

func TestALoanIsPrintedOrMade(t *testing.T) {
	second := example()
	second.Name, second.Spec.ServiceAccountName = "other", "deployer"
	second.Spec.Stages = second.Spec.Stages[:1]
	objects := bindingsOf([]shipper.Shipyard{*example(), *second}, client.ObjectKey{Namespace: "shipper-system", Name: "shipper-mgmt-cluster"})
	var got []string
	for _, object := range objects {
		got = append(got, command(object))
	}
	want := []string{
		"kubectl create serviceaccount deployer -n shop",
		"kubectl create rolebinding shipper-runner-impersonator --clusterrole=shipper-runner-impersonator " +
			"--serviceaccount=shipper-system:shipper-mgmt-cluster -n shop",
		"kubectl create rolebinding shop-deployer --clusterrole=shipper:runner --serviceaccount=shop:deployer -n shop",
		"kubectl create serviceaccount shipper-runner -n shop",
		"kubectl create rolebinding shop-shipper-runner --clusterrole=shipper:runner --serviceaccount=shop:shipper-runner -n shop",
		"kubectl create rolebinding shop-shipper-runner --clusterrole=shipper:runner --serviceaccount=shop:shipper-runner -n shop-prod",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{shipper.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).Build()
	made := func() (string, error) {
		var out bytes.Buffer
		objects := bindingsOf([]shipper.Shipyard{*example()}, client.ObjectKey{Namespace: "shipper-system", Name: "shipper-mgmt-cluster"})
		err := create(t.Context(), c, objects, &out)
		return out.String(), err
	}
	if out, err := made(); err != nil || strings.Count(out, " is created\n") != 4 {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := made(); err != nil || strings.Count(out, " is there already\n") != 4 {
		t.Errorf("again: %v\n%s", err, out)
	}
	other := binding("shop-prod", "shop-shipper-runner", "cluster-admin", client.ObjectKey{Namespace: "shop", Name: "shipper-runner"})
	if err := c.Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	const refused = "rolebinding shop-prod/shop-shipper-runner of shipper:runner is there, and is for others: look at it, then delete it, " +
		"and run this again"
	if _, err := made(); err == nil || err.Error() != refused {
		t.Errorf("a binding of another role: %v", err)
	}
}

func TestShipyardsToLendAreFoundByNameOrNamespace(t *testing.T) {
	c := clientWith(t, example())
	for arg, want := range map[string]string{
		"shop": "shop", "shop/shop": "shop", "sy/shop": "shop",
		"bank": "there is no shipyard here/bank, and none in a namespace bank",
	} {
		namespace := "here"
		if arg == "sy/shop" {
			namespace = "shop"
		}
		got, err := shipyardsOf(t.Context(), c, namespace, arg)
		switch {
		case err != nil && err.Error() == want:
		case err != nil || len(got) != 1 || got[0].Name != want:
			t.Errorf("%s: %v %v", arg, got, err)
		}
	}
	if _, err := shipyardsOf(t.Context(), c, "here", "sy/nothing"); cli.ExitCode(err) != cli.Failed {
		t.Error(err)
	}
}
