// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

var now = time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC)

// fleet is an Application in the second step of its second rollout, in two clusters with a Prometheus each, and the Checks that it names.
type fleet struct {
	*testing.T
	// asked are the queries that each server was sent, with the user of the request.
	asked   map[string][]string
	objects []client.Object
}

func newFleet(t *testing.T) *fleet {
	f := &fleet{T: t, asked: map[string][]string{}}
	strategy := &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{
		{Name: "staging", Checks: []shipper.StepCheck{{Check: "errors", Args: map[string]string{"most": "0.5"}}}},
		{Name: "canary", Checks: []shipper.StepCheck{
			{Check: "errors", Args: map[string]string{"most": "0.1"}}, {Check: "shipper-checks/http"}, {Check: "everywhere"}, {Check: "tests"},
		}},
		{Name: "full on"},
	}}
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "app"}}
	app.Spec.Template.Strategy = strategy
	f.objects = append(f.objects, app, f.release(0, strategy), f.release(1, strategy))
	for name, value := range map[string]string{"eu": "0.04", "us": "0.2"} {
		metrics := &shipper.ClusterMetrics{Address: f.prometheus(name, value), SecretName: "metrics", TenantLabel: "namespace"}
		f.objects = append(f.objects, &shipper.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: shipper.ClusterSpec{Region: name + "-west", Metrics: metrics},
		})
	}
	f.objects = append(f.objects, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shipper-system", Name: "metrics"},
		Data:       map[string][]byte{"username": []byte("joe"), "password": []byte("secret")},
	})
	f.check("shop", "errors", shipper.CheckSpec{
		Args: []shipper.CheckArgument{{Name: "most", Default: ptr.To("0")}}, Pass: "new < double(args.most)",
		Prometheus: &shipper.PrometheusCheck{Queries: map[string]shipper.CheckQuery{
			"new": `sum(errors{release="$(release)",region="$(region)"})`,
		}},
	})
	return f
}

// release is one of the Application, complete unless it is the newest.
func (f *fleet) release(generation int, strategy *shipper.RolloutStrategy) *shipper.Release {
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: fmt.Sprintf("web-%d", generation), UID: "rel", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
		Labels: map[string]string{shipper.AppLabel: "web"}, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: shipper.GroupVersion.String(), Kind: "Application", Name: "web", UID: "app", Controller: ptr.To(true),
		}},
		Annotations: map[string]string{
			shipper.ReleaseGenerationAnnotation: fmt.Sprint(generation), shipper.ReleaseClustersAnnotation: "us,eu",
		},
	}}
	rel.Spec.Environment.Strategy, rel.Spec.TargetStep = strategy, 1
	if generation == 0 {
		rel.Spec.TargetStep = 2
		rel.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseComplete, Status: corev1.ConditionTrue}}
	} else {
		rel.Status.Progress = &shipper.ReleaseProgress{Step: 1, ConvergedTime: ptr.To(metav1.NewTime(now.Add(-time.Minute)))}
	}
	return rel
}

func (f *fleet) check(namespace, name string, spec shipper.CheckSpec) {
	f.objects = append(f.objects, &shipper.Check{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec})
}

// prometheus starts a server that answers every query with a value.
func (f *fleet) prometheus(name, value string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _, _ := r.BasicAuth()
		f.asked[name] = append(f.asked[name], strings.TrimSpace(r.FormValue("query")+" "+user))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,%q]}]}}`, value)
	}))
	f.Cleanup(server.Close)
	return server.URL
}

// try runs the command for the fleet, in a namespace that may read what forbidden does not list, and returns what it prints.
func (f *fleet) try(name string, w wanted, format cli.Format, forbidden ...string) (string, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{shipper.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			f.Fatal(err)
		}
	}
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(f.objects...).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if slices.Contains(forbidden, key.String()) {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, key.Name, nil)
			}
			return c.Get(ctx, key, o, options...)
		},
	})
	var out bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetOut(&out)
	cmd.SetContext(f.Context())
	o := &options{clock: clocktesting.NewFakePassiveClock(now), shared: "shipper-checks", format: format}
	if w.system == "" {
		w.system = "shipper-system"
	}
	err := o.try(cmd, c, client.ObjectKey{Namespace: "shop", Name: "web"}, name, w)
	return out.String(), err
}

func (f *fleet) prints(want, got string) {
	f.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("it prints (-want +got):\n%s", diff)
	}
}

// fails fails unless err has a code and a text.
func (f *fleet) fails(err error, code int, want string) {
	f.Helper()
	if cli.ExitCode(err) != code || err == nil || !strings.Contains(err.Error(), want) {
		f.Errorf("the error is %v (code %d), and should be %s (code %d)", err, cli.ExitCode(err), want, code)
	}
}

func TestACheckIsMeasuredInEachClusterAsTheReconcilerDoes(t *testing.T) {
	f := newFleet(t)
	out, err := f.try("errors", wanted{verbose: true}, cli.Table)
	f.fails(err, cli.NotPassed, "check shop/errors did not pass: 1 of 2 measurements failed or have no verdict")
	f.prints(`check shop/errors of release web-1, step 1, incumbent web-0
CLUSTER   VERDICT   VALUE        WHY
eu        Passed    new = 0.04
us        Failed    new = 0.2    new = 0.2, and pass is new < double(args.most)
eu: arguments app=web cluster=eu elapsed=60s incumbent=web-0 most=0.1 namespace=shop region=eu-west release=web-1 step=1
eu: query new: sum(errors{namespace="shop",region="eu-west",release="web-1"})
us: arguments app=web cluster=us elapsed=60s incumbent=web-0 most=0.1 namespace=shop region=us-west release=web-1 step=1
us: query new: sum(errors{namespace="shop",region="us-west",release="web-1"})
`, out)
	want := map[string][]string{
		"eu": {`sum(errors{namespace="shop",region="eu-west",release="web-1"}) joe`},
		"us": {`sum(errors{namespace="shop",region="us-west",release="web-1"}) joe`},
	}
	if diff := cmp.Diff(want, f.asked); diff != "" {
		t.Errorf("the servers were asked (-want +got):\n%s", diff)
	}
}

func TestClustersAndArgumentsAreTheUsers(t *testing.T) {
	f := newFleet(t)
	_, err := f.try("errors", wanted{clusters: []string{"us"}, args: map[string]string{"most": "0.3"}}, cli.Table)
	if err != nil {
		t.Error(err)
	}
	if got := slices.Collect(maps.Keys(f.asked)); !slices.Equal(got, []string{"us"}) {
		t.Errorf("asked: %v", got)
	}
	for sentence, tc := range map[string]struct {
		wanted
		want string
	}{
		"a cluster that the release is not in":   {wanted{clusters: []string{"asia"}}, "release web-1 is not in cluster asia, only in: eu, us"},
		"an argument that the Check has not":     {wanted{args: map[string]string{"x": "1"}}, "argument x: no argument x is declared"},
		"a value that its pattern does not have": {wanted{args: map[string]string{"most": `"`}}, "does not match the argument's pattern"},
		"an address for two clusters":            {wanted{address: "http://localhost:1"}, "--address is the server of one cluster"},
	} {
		t.Run(sentence, func(*testing.T) {
			_, err := f.try("errors", tc.wanted, cli.Table)
			f.fails(err, cli.Misused, tc.want)
		})
	}
	_, err = f.try("elsewhere/errors", wanted{}, cli.Table)
	f.fails(err, cli.Misused, "a Check of another namespace cannot be named, except those of shipper-checks")
}

// TestAnAddressGetsNoCredentials keeps the password of a cluster's metrics from what a user forwards a port to. The tenant's label is
// forced nonetheless.
func TestAnAddressGetsNoCredentials(t *testing.T) {
	f := newFleet(t)
	out, err := f.try("errors", wanted{clusters: []string{"eu"}, address: f.prometheus("forwarded", "0.01")}, cli.JSON,
		"shipper-system/metrics")
	if err != nil {
		t.Error(err)
	}
	want := map[string][]string{"forwarded": {`sum(errors{namespace="shop",region="eu-west",release="web-1"})`}}
	if diff := cmp.Diff(want, f.asked); diff != "" {
		t.Errorf("the servers were asked (-want +got):\n%s", diff)
	}
	var got tried
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]result{{"eu", shipper.VerdictPassed, "new = 0.01", ""}}, got.Results); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

func TestAServerThatCannotBeAskedIsAnErrorOfItsCluster(t *testing.T) {
	for sentence, tc := range map[string]struct {
		change    func(*shipper.Cluster)
		forbidden string
		want      string
	}{
		"a Secret that the user may not read": {func(*shipper.Cluster) {}, "shipper-system/metrics",
			"you may not read Secret shipper-system/metrics, which has the credentials: run `kubectl port-forward`"},
		"no Secret": {func(c *shipper.Cluster) { c.Spec.Metrics.SecretName = "gone" }, "", "there is no Secret shipper-system/gone"},
		"no server": {func(c *shipper.Cluster) { c.Spec.Metrics = nil }, "", `cluster "eu" has no spec.metrics`},
		"a server that is down": {func(c *shipper.Cluster) { c.Spec.Metrics.Address = "http://127.0.0.1:1" }, "",
			"query new: the server cannot be reached: dial 127.0.0.1:1"},
		"a server that redirects": {func(c *shipper.Cluster) {
			server := httptest.NewServer(http.RedirectHandler(c.Spec.Metrics.Address, http.StatusTemporaryRedirect))
			t.Cleanup(server.Close)
			c.Spec.Metrics.Address = server.URL
		}, "", "query new: "},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := newFleet(t)
			for _, o := range f.objects {
				if c, is := o.(*shipper.Cluster); is && c.Name == "eu" {
					tc.change(c)
				}
			}
			out, err := f.try("errors", wanted{clusters: []string{"eu"}}, cli.JSON, tc.forbidden)
			f.fails(err, cli.Failed, "check shop/errors could not be measured: 1 of 1 measurements gave no value")
			var got tried
			if err := json.Unmarshal([]byte(out), &got); err != nil {
				t.Fatal(err)
			}
			if len(got.Results) != 1 || got.Results[0].Verdict != shipper.VerdictError || !strings.Contains(got.Results[0].Message, tc.want) {
				t.Errorf("results: %+v", got.Results)
			}
			if len(f.asked["eu"]) > 0 {
				t.Errorf("the server was asked %v", f.asked)
			}
		})
	}
}

func TestACheckOverTheFleetIsJudgedOnce(t *testing.T) {
	f := newFleet(t)
	f.check("shop", "everywhere", shipper.CheckSpec{
		Over: shipper.OverFleet, Fail: "new.exists(n, n > 0.1)",
		Prometheus: &shipper.PrometheusCheck{Queries: map[string]shipper.CheckQuery{"new": "errors"}},
	})
	out, err := f.try("everywhere", wanted{}, cli.Table)
	f.fails(err, cli.NotPassed, "1 of 1 measurements failed")
	f.prints(`check shop/everywhere of release web-1, step 1, incumbent web-0
CLUSTER        VERDICT   VALUE               WHY
all clusters   Failed    new = [0.04, 0.2]   new = [0.04, 0.2], and fail is new.exists(n, n > 0.1)
`, out)
}

func TestWithoutAnIncumbentNothingIsCompared(t *testing.T) {
	f := newFleet(t)
	f.objects = slices.DeleteFunc(f.objects, func(o client.Object) bool { return o.GetName() == "web-0" })
	f.check("shop", "compare", shipper.CheckSpec{
		Pass: "new < 1", Prometheus: &shipper.PrometheusCheck{Queries: map[string]shipper.CheckQuery{"new": `x{release="$(incumbent)"}`}},
	})
	out, err := f.try("compare", wanted{}, cli.Table)
	if err != nil || len(f.asked) > 0 {
		t.Errorf("%v, asked: %v", err, f.asked)
	}
	const why = "there is nothing to compare with: no Release served before"
	f.prints("check shop/compare of release web-1, step 1, no incumbent\nCLUSTER   VERDICT   VALUE   WHY\n"+
		"eu        Passed    -       "+why+"\nus        Passed    -       "+why+"\n", out)
}

func TestASharedCheckAsksTheServerThatTheUserNames(t *testing.T) {
	f := newFleet(t)
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Method+" "+r.URL.String()+" "+string(body))
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	f.check("shipper-checks", "http", shipper.CheckSpec{HTTP: &shipper.HTTPCheck{
		URL: "https://score.example.com/of/$(app)?in=$(cluster)", Method: "POST", Body: `{"of":"$(release)"}`,
	}})
	out, err := f.try("shipper-checks/http", wanted{address: server.URL + "/", clusters: []string{"eu"}, verbose: true}, cli.Table)
	f.fails(err, cli.NotPassed, "check shipper-checks/http did not pass")
	if diff := cmp.Diff([]string{`POST /of/web?in=eu {"of":"web-1"}`}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if !strings.Contains(out, "eu: URL "+server.URL+"/of/web?in=eu\n") || !strings.Contains(out, "status = 418") {
		t.Errorf("it prints\n%s", out)
	}
}

func TestTestsAndJobsArePrintedAndNotRun(t *testing.T) {
	f := newFleet(t)
	f.check("shop", "tests", shipper.CheckSpec{Tests: &shipper.TestsCheck{}})
	f.check("shop", "job", shipper.CheckSpec{Job: &runtime.RawExtension{Raw: []byte(`{"template":{"spec":{"nodeName":"$(cluster)"}}}`)}})
	const nothing = "# try runs nothing: Shipper does when the step has its capacity and traffic\n"
	out, err := f.try("tests", wanted{}, cli.Table)
	if err != nil {
		t.Error(err)
	}
	f.prints("# check shop/tests of release web-1, step 1: all tests of the chart, once in each of: eu, us\n"+nothing, out)
	out, err = f.try("job", wanted{clusters: []string{"us"}}, cli.Table)
	if err != nil {
		t.Error(err)
	}
	f.prints("# check shop/job of release web-1, step 1: spec of the Job in cluster us\n---\n"+
		"template:\n  spec:\n    nodeName: us\n"+nothing, out)
}

func TestTheStepIsTheRequestedOneOrTheFirstThatNamesTheCheck(t *testing.T) {
	f := newFleet(t)
	strategy := f.objects[0].(*shipper.Application).Spec.Template.Strategy
	for sentence, tc := range map[string]struct {
		target int32
		key    client.ObjectKey
		step   int32
		most   string
	}{
		"the requested step names it":       {1, client.ObjectKey{Namespace: "shop", Name: "errors"}, 1, "0.1"},
		"another step names it":             {2, client.ObjectKey{Namespace: "shop", Name: "errors"}, 0, "0.5"},
		"a shared one is named":             {0, client.ObjectKey{Namespace: "shipper-checks", Name: "http"}, 1, ""},
		"no step names it":                  {2, client.ObjectKey{Namespace: "shop", Name: "other"}, 2, ""},
		"a wave names it":                   {1, client.ObjectKey{Namespace: "shop", Name: "after"}, 2, "0.7"},
		"one of another namespace is named": {2, client.ObjectKey{Namespace: "shipper-checks", Name: "errors"}, 2, ""},
	} {
		rel := f.release(1, strategy)
		rel.Spec.TargetStep = tc.target
		rel.Spec.Environment.Strategy.Waves = []shipper.Wave{{}, {AfterTasks: &shipper.WaveTasks{
			Checks: []shipper.StepCheck{{Check: "after", Args: map[string]string{"most": "0.7"}}},
		}}, {}}
		if step, use := useOf(rel, tc.key, "shipper-checks"); step != tc.step || use.Args["most"] != tc.most {
			t.Errorf("%s: step %d, arguments %v", sentence, step, use.Args)
		}
	}
}

// TestElapsedIsTheTimeOfTheRunUnderWay so that a query over $(elapsed) reads what the reconciler reads.
func TestElapsedIsTheTimeOfTheRunUnderWay(t *testing.T) {
	for retry, want := range map[string]string{"": "elapsed=30s", "another": "elapsed=60s"} {
		f := newFleet(t)
		f.objects = append(f.objects, &shipper.CheckTarget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", OwnerReferences: []metav1.OwnerReference{{
				APIVersion: shipper.GroupVersion.String(), Kind: "Release", Name: "web-1", UID: "rel", Controller: ptr.To(true),
			}}},
			Spec: shipper.CheckTargetSpec{
				Run: 1, Step: 1, Retry: retry, StartTime: metav1.NewTime(now.Add(-30 * time.Second)), Clusters: []string{"eu", "us"},
			},
		})
		out, _ := f.try("errors", wanted{verbose: true}, cli.Table)
		if !strings.Contains(out, want) {
			t.Errorf("with a run of retry %q it prints\n%s", retry, out)
		}
	}
}

func TestAnAddressIsTheURLOfAServer(t *testing.T) {
	for address, good := range map[string]bool{
		"http://localhost:9090": true, "https://prometheus.example.com/eu": true, "localhost:9090": false, "ftp://a": false, "http://": false,
		"http://joe:x@a": false, "http://a?b": false, "http://a#b": false, "": false,
	} {
		if err := checkAddress(address); (err == nil) != good {
			t.Errorf("%q: %v", address, err)
		}
	}
}
