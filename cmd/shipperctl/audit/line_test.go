// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

var begin = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)

func at(d time.Duration) metav1.Time { return metav1.NewTime(begin.Add(d)) }

func meta(namespace, name string, created time.Duration, annotations map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: at(created), Annotations: annotations}
}

// delivered is a delivery to production: ann started it, ben approved it, and eve overrode a block.
func delivered() *state {
	stages := map[string]shipper.Stage{
		"staging": {Name: "staging"}, "production": {Name: "production", Namespace: "shop-prod"},
	}
	run := func(name, stage string, created time.Duration) shipper.SequenceRun {
		return shipper.SequenceRun{ObjectMeta: meta("shop", name, created, nil), Spec: shipper.SequenceRunSpec{
			Shipyard: "shop", Stage: stage, Sequence: "delivery", Service: "web", RequestedBy: shipper.ApprovalUser{Username: "ann"},
		}, Status: shipper.SequenceRunStatus{Resolved: &shipper.ResolvedRun{Version: shipper.RunVersion{Version: "1.4.2"}, Stage: stages[stage]}}}
	}
	first, second, third := run("web-1", "staging", 0), run("web-2", "production", time.Hour), run("web-3", "production", 5*time.Hour)
	first.Status.Result, first.Status.FinishTime = shipper.ResultPass, ptr.To(at(time.Hour))
	second.Status.Resolved.TriggeredBy = &shipper.RunTrigger{Event: "staging.delivery.finished", Run: "web-1", Time: at(time.Hour)}
	second.Spec.Abort, second.Status.Result, second.Status.FinishTime = "=wrong\nversion", shipper.ResultFail, ptr.To(at(4*time.Hour))
	third.Spec.RetryOf, third.Spec.SkipRequires = &shipper.RetryOf{Run: "web-2"}, &shipper.SkipRequires{Reason: "the fix for the outage"}
	third.Spec.Hold, third.Status.PausedSince = "DNS", ptr.To(at(6*time.Hour))
	stamp := block.FormatRecords([]block.Record{{Block: "shop-prod/freeze", User: "eve", Time: at(3 * time.Hour), Reason: "the fix"}})
	release := shipper.Release{ObjectMeta: meta("shop-prod", "web-6f19-0", 2*time.Hour, map[string]string{
		shipper.ReleaseGenerationAnnotation: "0", shipper.ReleaseRequestedByAnnotation: "system:serviceaccount:shop:shipper-runner",
		shipper.RolloutBlockOverrideStampAnnotation: stamp,
		shipper.ReleaseRunAnnotation:                `{"namespace":"shop","run":"web-2","uid":"u"}`,
		shipper.ReleaseMovedAnnotation:              `{"by":"eve","time":"2026-11-20T11:30:00Z","from":0,"to":1,"count":1}`,
	})}
	release.Labels = map[string]string{shipper.AppLabel: "web"}
	release.Spec.Environment.Chart = shipper.Chart{Name: "nginx", Version: "1.4.2"}
	approval := func(name string, of shipper.ApprovalSpec, time time.Duration) shipper.Approval {
		return shipper.Approval{ObjectMeta: meta("shop", name, time, nil), Spec: of}
	}
	ofStep := approval("web-6f19-0-1", shipper.ApprovalSpec{
		Release: "web-6f19-0", Step: ptr.To(int32(1)), Decision: shipper.DecisionReject, By: shipper.ApprovalUser{Username: "ben"},
		Reason: "p95 is up",
	}, 210*time.Minute)
	ofStep.Namespace = "shop-prod"
	return &state{
		runs: []shipper.SequenceRun{third, second, first},
		approvals: []shipper.Approval{ofStep, approval("web-2-a", shipper.ApprovalSpec{
			Run: "web-2", Task: "approval", Decision: shipper.DecisionApprove, By: shipper.ApprovalUser{Username: "ben"},
		}, 110*time.Minute)},
		apps: []shipper.Application{{ObjectMeta: meta("shop-prod", "web", -time.Hour, map[string]string{
			shipper.RolloutBlockOverrideStampAnnotation: stamp,
		})}},
		releases: []shipper.Release{release},
		blocks: []shipper.RolloutBlock{{
			ObjectMeta: meta("shop-prod", "freeze", 150*time.Minute, map[string]string{shipper.RolloutBlockCreatedByAnnotation: "sre"}),
			Spec:       shipper.RolloutBlockSpec{Message: "year end", Author: shipper.RolloutBlockAuthor{Name: "books"}},
		}},
	}
}

func TestTheTimeLineHasWhatObjectsRecord(t *testing.T) {
	line := timeLine(delivered(), filter{})
	text, err := line.csv()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := cli.JSON.Marshal(line)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]string{"table": line.table(0), "csv": text, "json": string(raw)} {
		path := filepath.Join("testdata", name+".golden")
		if os.Getenv("UPDATE_GOLDEN") != "" {
			if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

func TestEntriesAreFiltered(t *testing.T) {
	for sentence, tc := range map[string]struct {
		of   filter
		want []string
	}{
		"a user": {filter{user: "eve"}, []string{"overrode block shop-prod/freeze: the fix", "moved it from step 0 to 1"}},
		"kinds": {filter{kinds: []string{"approval", "block"}}, []string{
			"approved task approval of run web-2", "blocked: year end", "rejected step 1 of release web-6f19-0: p95 is up",
		}},
		"an application": {filter{app: "shop/web-staging", kinds: []string{"run"}}, []string{
			"started sequence delivery of stage staging of shipyard shop for web 1.4.2", "ended with pass",
		}},
		"an application by its name": {filter{app: "web", kinds: []string{"override"}}, []string{
			"overrode block shop-prod/freeze: the fix", "overrode what stage production requires: the fix for the outage",
		}},
		"a time":  {filter{from: at(5*time.Hour + time.Minute).Time}, []string{"was held: DNS"}},
		"nothing": {filter{user: "joe"}, nil},
	} {
		var got []string
		for _, e := range timeLine(delivered(), tc.of).Entries {
			got = append(got, e.Text)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sentence, diff)
		}
	}
	nothing := timeLine(&state{}, filter{kinds: []string{"block"}}).table(0)
	if nothing != "there is nothing to list\n\nnote  block: none; a block that was lifted is gone\n" {
		t.Error(nothing)
	}
}

func TestWhatMayNotBeReadIsSaid(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := shipper.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	allowed := map[string]bool{}
	list := func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if _, are := list.(*shipper.RolloutBlockList); are || len(allowed) == 0 {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "any"}, "", errors.New("no"))
		}
		return c.List(ctx, list, options...)
	}
	refuses := interceptor.Funcs{List: list}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&delivered().runs[0]).WithInterceptorFuncs(refuses).Build()
	if _, err := read(t.Context(), c, "shop"); cli.ExitCode(err) != cli.Refused {
		t.Errorf("nothing can be read: %v", err)
	}
	allowed["most"] = true
	found, err := read(t.Context(), c, "shop")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"you may not list RolloutBlocks of namespace shop", "you may not list RolloutBlocks of namespace rollout-blocks-global"}
	if diff := cmp.Diff(want, found.unread); diff != "" || len(found.runs) != 1 {
		t.Errorf("%d runs (-want +got):\n%s", len(found.runs), diff)
	}
	var out, errs bytes.Buffer
	if err := (&options{output: "csv"}).print(&out, &errs, timeLine(found, filter{})); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(errs.String(), "Note: "+want[0]+"\n") || strings.Contains(out.String(), "Note") {
		t.Errorf("%s\n%s", out.String(), errs.String())
	}
	out.Reset()
	var line Line
	err = (&options{output: "json"}).print(&out, &errs, timeLine(found, filter{}))
	if err != nil || json.Unmarshal(out.Bytes(), &line) != nil || len(line.Unread) != 2 {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestMisusesAreRefusedBeforeAClusterIsAsked(t *testing.T) {
	for args, want := range map[string]string{
		"-A -n shop":       "--all-namespaces excludes --namespace",
		"--since 0s":       "--since is 0s: it must be more than nothing",
		"-o xml":           "--output: there are table, json, csv",
		"--kind run,merge": "--kind: there is no merge, only run, approval, override, block, move",
	} {
		cmd := NewCommand(clock.RealClock{})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(strings.Fields(args))
		if err := cmd.ExecuteContext(t.Context()); err == nil || err.Error() != want || cli.ExitCode(err) != cli.Misused {
			t.Errorf("%s: %v, want\n%s", args, err, want)
		}
	}
}
