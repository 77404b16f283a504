// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
)

// publishHooked publishes a chart whose values list Jobs that are hooks. One that is suspended runs when it is let go, one
// that is hopeless fails after a second.
func publishHooked(t *testing.T) {
	t.Helper()
	files := maps.Clone(ownKind)
	delete(files, "crds/gizmo.yaml")
	delete(files, "templates/gizmo.yaml")
	files["Chart.yaml"] = "apiVersion: v2\nname: hooked\nversion: 0.0.1\n"
	files["templates/service.yaml"] = "{{ if not .Values.alone }}\n" + files["templates/service.yaml"] + "{{ end }}"
	files["templates/hooks.yaml"] = `{{ range .Values.hooks }}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .name }}
  annotations:
    helm.sh/hook: {{ .on }}
    helm.sh/hook-weight: {{ .weight | default 0 | quote }}
    {{ with .policy }}helm.sh/hook-delete-policy: {{ . }}{{ end }}
    {{ with .timeout }}shipper.booking.com/hook-timeout: {{ . }}{{ end }}
spec:
  suspend: {{ .suspended | default false }}
  {{ if .hopeless }}activeDeadlineSeconds: 1{{ end }}
  template:
    spec:
      restartPolicy: Never
      containers: [{name: it, image: "nginx:{{ if .hopeless }}broken{{ else }}stable{{ end }}"}]
{{ end }}`
	archive, err := charts.PackFiles("hooked", "0.0.1", files)
	if err != nil {
		t.Fatal(err)
	}
	world.charts.Publish(archive)
}

// hooked makes a target with hooks.
func (s *fixture) hooked(name string, hooks ...map[string]any) *shipper.InstallationTarget {
	s.Helper()
	list := []any{}
	for _, h := range hooks {
		list = append(list, h)
	}
	return s.install(name, "hooked", "0.0.1", shipper.ChartValues{"hooks": list}, west)
}

// job reads a Job of west; nil when it is not there.
func (s *fixture) job(name string) *batchv1.Job {
	s.Helper()
	out := &batchv1.Job{}
	if !s.find(west, name, out) {
		return nil
	}
	return out
}

// awaits waits until a target says that a hook runs, and returns its Job.
func (s *fixture) awaits(target, event, job string) *batchv1.Job {
	s.Helper()
	s.soon("it is not said that the hook runs", func() string {
		message := s.notInstalled(target, west, shipper.InProgress)
		if strings.HasPrefix(message, fmt.Sprintf("hook %s: Job %q runs, until ", event, job)) {
			return ""
		}
		return message
	})
	return s.job(job)
}

// letGo has a Job run that is suspended.
func (s *fixture) letGo(name string) {
	s.Helper()
	job := s.job(name)
	was := job.DeepCopy()
	no := false
	job.Spec.Suspend = &no
	s.must(world.clusters[west].Patch(s.ctx, job, client.MergeFrom(was)))
}

// ran is what a target says of hooks in west.
func (s *fixture) ran(target string) []string {
	s.Helper()
	var it shipper.InstallationTarget
	s.must(s.management.Get(s.ctx, s.key(target), &it))
	out := []string{}
	for _, run := range it.Status.Clusters[0].Hooks {
		out = append(out, fmt.Sprintf("%s %s %d %s", run.Event, run.Name, run.Attempt, run.Phase))
	}
	return out
}

func TestHooksRunInOrderAroundTheInstallation(t *testing.T) {
	t.Parallel()
	publishHooked(t)
	s := begin(t, west)
	it := s.hooked("web-1",
		map[string]any{"name": "b", "on": "pre-install", "weight": 5, "policy": "hook-failed"},
		map[string]any{"name": "a", "on": "pre-install,pre-upgrade", "weight": 5, "policy": "hook-succeeded"},
		map[string]any{"name": "z", "on": "pre-install", "weight": -5, "suspended": true},
		map[string]any{"name": "last", "on": "post-install", "suspended": true},
		map[string]any{"name": "not", "on": "pre-upgrade,post-rollback,test"},
	)
	s.awaits("web-1", "pre-install", "z")
	if s.job("a") != nil || s.job("b") != nil || s.find(west, "gizmo", &corev1.Service{}) {
		t.Error("something was made before the first hook has ended")
	}
	s.letGo("z")
	s.awaits("web-1", "post-install", "last")
	if s.job("b") == nil || !s.find(west, "gizmo", &corev1.Service{}) {
		t.Error("before the last hook, one whose policy does not say so is gone, or the objects are missing")
	}
	s.soon("the one whose policy says so does not go", func() string {
		if s.job("a") != nil {
			return "it is there"
		}
		return ""
	})
	s.letGo("last")
	s.installed("web-1")
	want := []string{
		"pre-install z 1 Succeeded", "pre-install a 1 Succeeded", "pre-install b 1 Succeeded", "post-install last 1 Succeeded",
	}
	if diff := cmp.Diff(want, s.ran("web-1")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	s.must(s.management.Delete(s.ctx, it))
	s.gone(it)
	if s.job("z") != nil {
		t.Error("the Job of a hook did not go with its Release")
	}
}

func TestHooksOfAChartWithoutOtherObjectsRun(t *testing.T) {
	t.Parallel()
	publishHooked(t)
	s := begin(t, west)
	values := shipper.ChartValues{"alone": true, "hooks": []any{
		map[string]any{"name": "before", "on": "pre-install"}, map[string]any{"name": "after", "on": "post-install"},
	}}
	s.must(s.management.Create(s.ctx, &shipper.InstallationTarget{ObjectMeta: s.meta("web-1"), Spec: shipper.InstallationTargetSpec{
		Clusters: []string{west}, CanOverride: true, Values: &values, // named by Release, a chart needs a Service
		Chart: &shipper.Chart{Name: "hooked", Version: "0.0.1", RepoURL: world.charts.URL, Naming: shipper.NamingByApplication},
	}}))
	s.installed("web-1")
	if diff := cmp.Diff([]string{"pre-install before 1 Succeeded", "post-install after 1 Succeeded"}, s.ran("web-1")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestHooksAreThoseOfWhatAReleaseIsToTheCluster(t *testing.T) {
	t.Parallel()
	publishHooked(t)
	s := begin(t, west)
	all := []map[string]any{
		{"name": "installs", "on": "pre-install"}, {"name": "upgrades", "on": "post-upgrade"},
		{"name": "returns", "on": "pre-rollback"},
		{"name": "any", "on": "post-install,post-upgrade,post-rollback"},
	}
	s.hooked("web-1", all...)
	s.installed("web-1")
	first := s.job("any")
	s.takeOver("web-1", false)
	s.hooked("web-2", all...)
	s.installed("web-2")
	s.takeOver("web-2", false)
	s.must(s.management.Create(s.ctx, s.aRelease("web-3", map[string]string{shipper.ReleaseRollbackOfAnnotation: "web-1"})))
	s.hooked("web-3", all...)
	s.installed("web-3")

	got := map[string][]string{}
	for _, name := range []string{"web-1", "web-2", "web-3"} {
		got[name] = s.ran(name)
	}
	want := map[string][]string{
		"web-1": {"pre-install installs 1 Succeeded", "post-install any 1 Succeeded"},
		"web-2": {"post-upgrade any 1 Succeeded", "post-upgrade upgrades 1 Succeeded"},
		"web-3": {"pre-rollback returns 1 Succeeded", "post-rollback any 1 Succeeded"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if last := s.job("any"); last == nil || last.UID == first.UID {
		t.Error("the Job of the Release before was not replaced")
	}
}

// aRelease is that of a target.
func (s *fixture) aRelease(name string, annotations map[string]string) *shipper.Release {
	rel := &shipper.Release{ObjectMeta: s.meta(name), Spec: shipper.ReleaseSpec{Environment: shipper.ReleaseEnvironment{
		Chart:               shipper.Chart{Name: "hooked", Version: "0.0.1", RepoURL: world.charts.URL},
		ClusterRequirements: shipper.ClusterRequirements{Regions: []shipper.RegionRequirement{{Name: "here"}}},
		Strategy:            &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{{Name: "full on"}}},
	}}}
	rel.Annotations = annotations
	return rel
}

func TestAHookThatNeverEndsFailsAndIsTriedAgain(t *testing.T) {
	t.Parallel()
	publishHooked(t)
	s := begin(t, west)
	rel := s.aRelease("web-1", nil)
	s.must(s.management.Create(s.ctx, rel))
	s.hooked("web-1", map[string]any{"name": "endless", "on": "pre-install", "suspended": true, "timeout": "12s"})
	message := s.notInstalled("web-1", west, shipper.HookFailed)
	want := `hook pre-install: Job "endless" failed: it did not end within 12s; change the chart or its values, or have it run again: ` +
		`kubectl -n ` + s.namespace + ` annotate release web-1 shipper.booking.com/release.hooks.retry=2 --overwrite`
	if message != want {
		t.Errorf("message is %q, want %q", message, want)
	}
	if s.find(west, "gizmo", &corev1.Service{}) {
		t.Error("it was installed nonetheless")
	}
	former := s.job("endless")
	s.change(rel, func(o client.Object) {
		o.SetAnnotations(map[string]string{shipper.ReleaseHooksRetryAnnotation: "2"})
	})
	s.soon("it is not run again", func() string {
		if now := s.job("endless"); now == nil || now.UID == former.UID {
			return "it is that of the first time"
		}
		return ""
	})
	s.letGo("endless")
	s.installed("web-1")
	if diff := cmp.Diff([]string{"pre-install endless 2 Succeeded"}, s.ran("web-1")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAfterAFirstReleaseThatFailedTheNextIsTheFirst(t *testing.T) {
	t.Parallel()
	publishHooked(t)
	s := begin(t, west)
	s.hooked("web-1",
		map[string]any{"name": "ok", "on": "pre-install", "weight": -1, "policy": "hook-succeeded"},
		map[string]any{"name": "bad", "on": "pre-install", "hopeless": true, "policy": "hook-failed"},
		map[string]any{"name": "never", "on": "pre-install", "weight": 1})
	message := s.notInstalled("web-1", west, shipper.HookFailed)
	if !strings.HasPrefix(message, `hook pre-install: Job "bad" failed: DeadlineExceeded: `) {
		t.Errorf("the message does not say why: %q", message)
	}
	s.soon("the Jobs do not go", func() string {
		if s.job("ok") == nil && s.job("bad") == nil {
			return ""
		}
		return "there is one"
	})
	if s.job("never") != nil {
		t.Error("a hook ran after one that failed")
	}
	s.takeOver("web-1", false)
	s.hooked("web-2", map[string]any{"name": "good", "on": "pre-install"}, map[string]any{"name": "not", "on": "pre-upgrade"})
	s.installed("web-2")
	if diff := cmp.Diff([]string{"pre-install good 1 Succeeded"}, s.ran("web-2")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestHooksRunOnceWhateverIsLost(t *testing.T) {
	t.Parallel()
	publishHooked(t)
	s := begin(t, west)
	s.hooked("web-1", map[string]any{"name": "once", "on": "pre-install", "suspended": true})
	made := s.awaits("web-1", "pre-install", "once")

	// As a reconciler leaves it that was killed when the Job was made and nothing else written.
	anchor := &corev1.ConfigMap{}
	s.find(west, "web-1-anchor", anchor)
	var book map[string]any
	s.must(json.Unmarshal([]byte(anchor.Data["Hooks"]), &book))
	run, ok := book["runs"].([]any)[0].(map[string]any)
	if !ok || run["uid"] != string(made.UID) {
		t.Fatalf("the anchor does not remember the Job: %v", book)
	}
	delete(run, "uid")
	raw, err := json.Marshal(book)
	s.must(err)
	was := anchor.DeepCopy()
	anchor.Data["Hooks"] = string(raw)
	s.must(world.clusters[west].Patch(s.ctx, anchor, client.MergeFrom(was)))
	s.letGo("once")
	s.installed("web-1")
	if now := s.job("once"); now == nil || now.UID != made.UID {
		t.Fatalf("it was run twice: %v", now)
	}

	// The anchor that is made when a user deletes it owns all that the other one did.
	s.must(world.clusters[west].Delete(s.ctx, anchor))
	s.soon("it does not come back", func() string {
		now, service, job := &corev1.ConfigMap{}, &corev1.Service{}, s.job("once")
		if !s.find(west, anchor.Name, now) || now.UID == anchor.UID || now.Data["RenderedFrom"] == "" ||
			job == nil || len(job.OwnerReferences) != 1 || job.OwnerReferences[0].UID != now.UID ||
			!s.find(west, "gizmo", service) || len(service.OwnerReferences) != 1 || service.OwnerReferences[0].UID != now.UID {
			return fmt.Sprint(now.Data, service.OwnerReferences, job)
		}
		return ""
	})
	s.installed("web-1")
	if diff := cmp.Diff([]string{"pre-install once 1 Succeeded"}, s.ran("web-1")); diff != "" || s.job("once").UID != made.UID {
		t.Errorf("it ran again: -want +got:\n%s", diff)
	}
}

func TestAHookLeavesWhatIsAnothers(t *testing.T) {
	t.Parallel()
	publishHooked(t)
	s := begin(t, west)
	theirs := &batchv1.Job{}
	theirs.Namespace, theirs.Name = s.namespace, "migrate"
	theirs.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "it", Image: "nginx:stable"}},
	}
	s.must(world.clusters[west].Create(s.ctx, theirs))
	s.hooked("web-1", map[string]any{"name": "migrate", "on": "pre-install"})
	message := s.notInstalled("web-1", west, shipper.ObjectConflict)
	want := `hook pre-install: Job "migrate" is there already, and was not made by Shipper for this Application`
	if now := s.job("migrate"); message != want || now == nil || now.UID != theirs.UID {
		t.Errorf("message is %q, want %q; the Job is %v", message, want, now)
	}
}

func TestTestsRunOnDemand(t *testing.T) {
	t.Parallel()
	publishHooked(t)
	s := begin(t, west)
	rel := s.aRelease("web-1", nil)
	s.must(s.management.Create(s.ctx, rel))
	s.hooked("web-1",
		map[string]any{"name": "first", "on": "test", "weight": -1},
		map[string]any{"name": "second", "on": "test", "suspended": true, "timeout": "12s"})
	s.installed("web-1")
	if s.job("first") != nil {
		t.Error("a test ran without a request")
	}
	ask := func(request string) {
		s.change(rel, func(o client.Object) { o.SetAnnotations(map[string]string{shipper.ReleaseTestAnnotation: request}) })
	}
	comes := func(want shipper.TestRun) {
		s.Helper()
		var it shipper.InstallationTarget
		s.soon("the test does not end so", func() string {
			s.must(s.management.Get(s.ctx, s.key("web-1"), &it))
			if diff := cmp.Diff(&want, it.Status.Clusters[0].Test); diff != "" {
				return diff
			}
			return ""
		})
		if !shipper.ConditionTrue(it.Status.Conditions, shipper.TargetReady) {
			t.Errorf("a test changed what is installed: %+v", it.Status)
		}
	}
	ask("one")
	comes(shipper.TestRun{Request: "one", Phase: shipper.HookHasFailed, Message: `hook test: Job "second" failed: it did not end within 12s`})
	former := s.job("second")
	ask("two")
	s.soon("it does not run again", func() string {
		if now := s.job("second"); now == nil || now.UID == former.UID {
			return "it is that of the first time"
		}
		return ""
	})
	s.letGo("second")
	comes(shipper.TestRun{Request: "two", Phase: shipper.HookSucceeded})
	if diff := cmp.Diff([]string{"test first 2 Succeeded", "test second 2 Succeeded"}, s.ran("web-1")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
