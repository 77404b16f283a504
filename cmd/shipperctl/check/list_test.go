// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// namedChecks are Checks of two namespaces, and the Applications that name them, one of which rolls out.
func namedChecks(t *testing.T) *found {
	f := newFleet(t)
	out := &found{targets: map[types.NamespacedName]*shipper.CheckTarget{}}
	f.check("shipper-checks", "http", shipper.CheckSpec{HTTP: &shipper.HTTPCheck{URL: "https://score.test"}, Interval: "5m"})
	f.check("shop", "tests", shipper.CheckSpec{Tests: &shipper.TestsCheck{Names: []string{"smoke", "load"}}})
	f.check("shop", "everywhere", shipper.CheckSpec{Over: shipper.OverFleet, Prometheus: &shipper.PrometheusCheck{
		Address: "https://thanos.test", Queries: map[string]shipper.CheckQuery{"old": "a", "new": "b"},
	}})
	f.check("shop", "unused", shipper.CheckSpec{Job: &runtime.RawExtension{Raw: []byte("{}")}})
	for _, o := range f.objects {
		switch o := o.(type) {
		case *shipper.Check:
			out.checks = append(out.checks, *o)
		case *shipper.Application:
			out.apps = append(out.apps, *o)
		case *shipper.Release:
			out.releases = append(out.releases, *o)
		}
	}
	other := shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api", UID: "api"}}
	other.Spec.Template.Strategy = &shipper.RolloutStrategy{
		Checks: []shipper.StepCheck{{Check: "shipper-checks/http"}, {Check: "elsewhere/errors"}},
		Steps:  []shipper.RolloutStrategyStep{{Name: "full on"}},
	}
	elsewhere := shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "web", UID: "bank"}}
	elsewhere.Spec.Template.Strategy = &shipper.RolloutStrategy{Checks: []shipper.StepCheck{{Check: "errors"}}}
	out.apps = append(out.apps, other, elsewhere)
	run := func(name, from string, dry bool) shipper.CheckRun {
		return shipper.CheckRun{Name: name, From: from, Count: 10, DryRun: dry}
	}
	out.targets[types.NamespacedName{Namespace: "shop", Name: "web-1"}] = &shipper.CheckTarget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: shipper.GroupVersion.String(), Kind: "Release", Name: "web-1", UID: "rel", Controller: ptr.To(true),
		}}},
		Spec: shipper.CheckTargetSpec{Run: 3, Step: 1, Clusters: []string{"eu", "us"}, Checks: []shipper.CheckRun{
			run("errors", "shop/errors", false), run("http", "shipper-checks/http", true),
		}},
		Status: shipper.CheckTargetStatus{Run: 3, Results: []shipper.CheckResult{
			{Name: "errors", Cluster: "eu", Phase: shipper.CheckPassed, Passed: 10},
			{Name: "errors", Cluster: "us", Phase: shipper.CheckRunning, Passed: 7},
		}},
	}
	return out
}

func TestChecksAreListedWithTheirUsersAndWhatIsMade(t *testing.T) {
	const want = `CHECK                 MEASURES                                      EVERY                USED BY              RUNNING
shipper-checks/http   GET https://score.test                        5m                   shop/api, shop/web   web (dry): Pending 0/10 in eu
shop/errors           Prometheus: new                               1m                   shop/web             web: Running 7/10 in us
shop/everywhere       Prometheus: new, old at https://thanos.test   1m, over the fleet   shop/web             -
shop/tests            tests of the chart: smoke, load               once                 shop/web             -
shop/unused           a Job                                         once                 -                    -
`
	if diff := cmp.Diff(want, table(namedChecks(t).listed("shipper-checks"), 0)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := table(nil, 0); got != "there are no Checks\n" {
		t.Errorf("without any: %q", got)
	}
}

// TestListForPrograms holds the names that programs read.
func TestListForPrograms(t *testing.T) {
	raw, err := cli.YAML.Marshal(namedChecks(t).listed("shipper-checks")[1:3])
	if err != nil {
		t.Fatal(err)
	}
	var want, got any
	for text, into := range map[string]*any{string(raw): &got, `
- namespace: shop
  name: errors
  measures: 'Prometheus: new'
  interval: 1m
  over: Cluster
  pass: new < double(args.most)
  usedBy: [shop/web]
  running:
  - {namespace: shop, application: web, release: web-1, step: 1, name: errors, phase: Running, cluster: us, measured: 7, count: 10}
- namespace: shop
  name: everywhere
  measures: 'Prometheus: new, old at https://thanos.test'
  interval: 1m
  over: Fleet
  usedBy: [shop/web]
  running: []
`: &want} {
		if err := yaml.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestACompleteReleaseMakesNoChecks(t *testing.T) {
	for sentence, change := range map[string]func(*found){
		"its release is complete": func(f *found) {
			rel := &f.releases[1]
			rel.Spec.TargetStep = 2
			rel.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseComplete, Status: corev1.ConditionTrue}}
		},
		"the run is of an earlier step": func(f *found) { f.releases[1].Spec.TargetStep = 0 },
		"it has no release":             func(f *found) { f.releases = nil },
	} {
		f := namedChecks(t)
		change(f)
		if got := f.running(); len(got) > 0 {
			t.Errorf("%s: %v", sentence, got)
		}
	}
}

func TestSharedChecksThatMayNotBeReadAreLeftOut(t *testing.T) {
	f := newFleet(t)
	f.check("shipper-checks", "http", shipper.CheckSpec{})
	scheme := runtime.NewScheme()
	if err := shipper.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var objects []client.Object
	for _, o := range f.objects {
		if _, is := o.(*corev1.Secret); !is {
			objects = append(objects, o)
		}
	}
	forbidden := false
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, options ...client.ListOption) error {
			o := (&client.ListOptions{}).ApplyOptions(options)
			if forbidden && o.Namespace == "shipper-checks" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "checks"}, "", nil)
			}
			return c.List(ctx, l, options...)
		},
	})
	o := &options{shared: "shipper-checks"}
	for _, tc := range []struct {
		namespace string
		forbidden bool
		checks    int
		unread    string
	}{
		{"shop", false, 2, ""}, {"", false, 2, ""}, {"shipper-checks", false, 1, ""},
		{"shop", true, 1, "you may not list the Checks of namespace shipper-checks, which all share"},
	} {
		forbidden = tc.forbidden
		got, err := o.list(t.Context(), c, tc.namespace)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.checks) != tc.checks || got.unread != tc.unread {
			t.Errorf("namespace %q, forbidden %t: %d checks, %q", tc.namespace, tc.forbidden, len(got.checks), got.unread)
		}
	}
}

func TestIntervalsAreAsUsersWriteThem(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"10s": 10 * time.Second, "1m": time.Minute, "10m": 10 * time.Minute, "1m30s": 90 * time.Second, "24h": 24 * time.Hour,
		"1h30m": 90 * time.Minute,
	} {
		if got := brief(d); got != want {
			t.Errorf("%s is written %s", want, got)
		}
	}
}
