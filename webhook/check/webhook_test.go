// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/outward"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/check"
	"shipper.dev/shipper/webhook/response"
)

type edit = func(*shipper.CheckSpec)

func of(spec shipper.CheckSpec, edits ...edit) *shipper.Check {
	c := &shipper.Check{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "errors"}, Spec: spec}
	for _, edit := range edits {
		edit(&c.Spec)
	}
	return c
}

// compared is a Check by two queries, changed by edits.
func compared(edits ...edit) *shipper.Check {
	return of(shipper.CheckSpec{
		Args: []shipper.CheckArgument{{Name: "slack", Default: ptrTo("0")}},
		Prometheus: &shipper.PrometheusCheck{Queries: map[string]shipper.CheckQuery{
			"new": `sum(rate(errors{release="$(release)"}[5m])) / sum(rate(requests{release="$(release)"}[5m]))`,
			"old": `sum(rate(errors{release="$(incumbent)"}[5m])) / sum(rate(requests{release="$(incumbent)"}[5m]))`,
		}},
		Pass: "new <= old * 1.1 + double(args.slack)",
	}, edits...)
}

// requested is a Check by a request, changed by edits.
func requested(edits ...edit) *shipper.Check {
	return of(shipper.CheckSpec{HTTP: &shipper.HTTPCheck{
		URL: "https://judge.example.com/v1/$(release)?app=$(app)", Method: "POST", Body: `{"release": "$(release)"}`,
		Headers: map[string]string{"X-App": "$(app)"}, SecretName: "judge",
	}}, edits...)
}

// ran is a Check by a Job, changed by edits.
func ran(job string, edits ...edit) *shipper.Check {
	return of(shipper.CheckSpec{Job: &runtime.RawExtension{Raw: []byte(job)}}, edits...)
}

func tested(edits ...edit) *shipper.Check {
	return of(shipper.CheckSpec{Tests: &shipper.TestsCheck{Names: []string{"web-test"}}}, edits...)
}

func ptrTo[T any](v T) *T { return &v }

func query(name, text string) edit {
	return func(s *shipper.CheckSpec) { s.Prometheus.Queries[name] = shipper.CheckQuery(text) }
}

func pass(text string) edit { return func(s *shipper.CheckSpec) { s.Pass = text } }

func fail(text string) edit { return func(s *shipper.CheckSpec) { s.Fail = text } }

func fleet(s *shipper.CheckSpec) { s.Over = shipper.OverFleet }

func address(url, secret string) edit {
	return func(s *shipper.CheckSpec) { s.Prometheus.Address, s.Prometheus.SecretName = url, secret }
}

func url(text string) edit { return func(s *shipper.CheckSpec) { s.HTTP.URL = text } }

func header(name, value string) edit {
	return func(s *shipper.CheckSpec) { s.HTTP.Headers = map[string]string{name: value} }
}

func body(text string) edit { return func(s *shipper.CheckSpec) { s.HTTP.Body = text } }

func argument(arg shipper.CheckArgument) edit {
	return func(s *shipper.CheckSpec) { s.Args = append(s.Args, arg) }
}

func times(interval, timeout shipper.Duration) edit {
	return func(s *shipper.CheckSpec) { s.Interval, s.Timeout = interval, timeout }
}

const (
	ann     = "ann get secrets shop/judge"
	invalid = `Check.shipper.booking.com "errors" is invalid: `
	predef  = "app, namespace, release, incumbent, cluster, region, step, elapsed"
)

// listed lists the server of requested, one by http, and metadata services by any name but not by address.
const listed = "https://judge.example.com, http://prometheus.example.com:9090, http://*:80"

func webhookOf(t *testing.T, rights *ask.Rights, urls string, known ...client.Object) *check.Webhook {
	t.Helper()
	w := &check.Webhook{State: ask.Know(t, ask.Grant(), known...).State, Authz: rights}
	if urls != "" {
		policy, err := outward.ParsePolicy(urls)
		if err != nil {
			t.Fatal(err)
		}
		w.Outgoing = &policy
	}
	return w
}

func TestGoodChecksAreAdmitted(t *testing.T) {
	const job = `{"template":{"spec":{"containers":[{"name":"k6","image":"k6:$(vus)","args":["run","$$(FILE)","$(release)"]}]}}}`
	for sentence, c := range map[string]*shipper.Check{
		"by queries of the cluster's own server": compared(),
		"by queries of a server of the author's": compared(address("http://prometheus.example.com:9090/", "judge")),
		"over the fleet":                         compared(fleet, pass("new.max() < 0.02 && old.sum() >= 0.0")),
		"by what is bad":                         compared(pass(""), fail("new > 0.1")),
		"by both":                                compared(fail("new > 0.1")),
		"by a request":                           requested(),
		"by a request and its answer":            requested(pass(`response.status == 200 && response.json.ok == true`)),
		"by a Job":                               ran(job, argument(shipper.CheckArgument{Name: "vus", Pattern: "^[0-9]+$"})),
		"by a Job that takes a day":              ran(job, argument(shipper.CheckArgument{Name: "vus"}), times("", "24h")),
		"by tests":                               tested(),
		"with an argument in a range": compared(argument(shipper.CheckArgument{Name: "window", Default: ptrTo("5m")}),
			query("new", "rate(errors[$(window)])")),
	} {
		t.Run(sentence, func(t *testing.T) {
			err := webhookOf(t, ask.Grant(ann), listed).Validate(t.Context(), ask.Create("ann", c), &response.Response{})
			ask.CheckRefusal(t, err, "", "")
		})
	}
}

func TestBadQueriesAndExpressions(t *testing.T) {
	for sentence, tc := range map[string]struct {
		check   *shipper.Check
		message string
	}{
		"a query that does not parse": {
			compared(query("new", "sum(rate(errors[5m])))"), query("old", "1")),
			`spec.prometheus.queries[new]: Invalid value: "sum(rate(errors[5m])))": 1:23: parse error: unexpected right parenthesis ')'`,
		},
		"a query that does not parse with its arguments": {
			compared(query("new", "sum(errors{app=$(app)})"), query("old", "1")),
			`spec.prometheus.queries[new]: Invalid value: "sum(errors{app=$(app)})": 1:16: parse error: unexpected identifier "app" in ` +
				`label matching, expected string; this is of the query with its arguments: sum(errors{app=app})`,
		},
		"an argument that there is not": {
			compared(query("new", `errors{pod="$(pod)"}`), query("old", "1")),
			`spec.prometheus.queries[new]: Invalid value: "errors{pod=\"$(pod)\"}": no argument pod is declared; there are: slack, ` + predef,
		},
		"an expression about a query that there is not": {
			compared(pass("new <= ols")), `spec.pass: Invalid value: "new <= ols": does not compile: 1:8: undeclared reference to 'ols'`,
		},
		"an expression that is a number": {compared(pass("new")), `spec.pass: Invalid value: "new": must be bool, is double`},
		"a list that is used as a number": {
			compared(fleet, pass(""), fail("new < 1.0")), `spec.fail: Invalid value: "new < 1.0": does not compile: 1:5: found no matching ` +
				`overload for '_<_' applied to '(list(double), double)'; new is a list: use new.max(), new.min() or new.sum()`,
		},
		"no expression": {compared(pass("")), `spec.pass: Required value: say which values are good, by pass or by fail`},
		"an expression about an argument that there is not": {
			compared(pass("double(args.slak) > new")),
			`spec.pass: Invalid value: "double(args.slak) > new": does not compile: 1:12: undefined field 'slak'`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := webhookOf(t, ask.Grant(ann), listed).Validate(t.Context(), ask.Create("ann", tc.check), &response.Response{})
			ask.CheckRefusal(t, err, response.Invalid, invalid+tc.message)
		})
	}
}

func TestBadDefinitions(t *testing.T) {
	arg := func(name, pattern string, def *string) edit {
		return argument(shipper.CheckArgument{Name: name, Pattern: pattern, Default: def})
	}
	for sentence, tc := range map[string]struct {
		check   *shipper.Check
		message string
	}{
		"two ways to measure": {
			compared(func(s *shipper.CheckSpec) { s.Tests = &shipper.TestsCheck{} }),
			`spec: Invalid value: "(spec)": give one way to measure, not two`,
		},
		"no way to measure": {of(shipper.CheckSpec{}),
			`spec: Invalid value: "(spec)": give one way to measure: prometheus, http, tests or job`},
		"an argument that every Check has": {
			compared(arg("app", "", nil)),
			`spec.args[1].name: Invalid value: "app": every Check has this argument: use another name than ` + predef,
		},
		"an argument twice": {compared(arg("slack", "", nil)), `spec.args[1].name: Duplicate value: "slack"`},
		"a pattern that is none": {
			compared(arg("x", "(", nil)),
			`spec.args[1].pattern: Invalid value: "(": the argument's pattern is no RE2 expression: ` +
				"error parsing regexp: missing closing ): `(`",
		},
		"a default that does not match": {
			compared(arg("x", "^[a-z]+$", ptrTo("1"))),
			`spec.args[1].default: Invalid value: "1": does not match the argument's pattern ^[a-z]+$`,
		},
		"an interval that is too short": {compared(times("1s", "")), `spec.interval: Invalid value: "1s": must be from 5s to 24h`},
		"a timeout longer than the interval": {
			compared(times("10s", "11s")), `spec.timeout: Invalid value: "11s": must be at most interval, and at most 30s`,
		},
		"a timeout of more than 30s": {
			compared(times("", "31s")), `spec.timeout: Invalid value: "31s": must be at most interval, and at most 30s`,
		},
		"tests that take longer than a day": {tested(times("", "25h")), `spec.timeout: Invalid value: "25h": must be at most 24h`},
		"tests with a pass": {
			tested(pass("true")),
			`spec.pass: Forbidden: tests and job run once in each cluster, and pass when they succeed: leave pass out`,
		},
		"a request over the fleet": {
			requested(fleet), `spec.over: Forbidden: Fleet is for queries, which give a list: leave over out`,
		},
		"tests of no name": {tested(func(s *shipper.CheckSpec) { s.Tests.Names = []string{"A b"} }),
			`spec.tests.names[0]: Invalid value: "A b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, ` +
				`'-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is ` +
				`'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := webhookOf(t, ask.Grant(ann), listed).Validate(t.Context(), ask.Create("ann", tc.check), &response.Response{})
			ask.CheckRefusal(t, err, response.Invalid, invalid+tc.message)
		})
	}
}

func TestBadServersAndRequests(t *testing.T) {
	const off = "--outgoing-urls lists no URL: Checks by http and addresses of your own are off here; leave prometheus.address out to ask " +
		"the cluster's own metrics"
	method := func(m shipper.CheckMethod) edit { return func(s *shipper.CheckSpec) { s.HTTP.Method = m } }
	for sentence, tc := range map[string]struct {
		urls    string
		check   *shipper.Check
		message string
	}{
		"a server where none is listed": {
			"", requested(), `spec.http.url: Invalid value: "https://judge.example.com/v1/release?…": ` + off,
		},
		"an address where none is listed": {
			"", compared(address("https://mine.example.com", "")),
			`spec.prometheus.address: Invalid value: "https://mine.example.com": ` + off,
		},
		"a server that is not listed": {
			listed, requested(url("https://other.example.com/")), `spec.http.url: Invalid value: "https://other.example.com/": the URL is ` +
				`not in --outgoing-urls: https://other.example.com; an administrator of Shipper can add it`,
		},
		"the metadata of the machine": {
			listed, requested(url("http://169.254.169.254/")), `spec.http.url: Invalid value: "http://169.254.169.254/": 169.254.169.254 ` +
				`is a link-local address, an address of the machine's surroundings, which Checks do not ask`,
		},
		"an argument in a host": {
			listed, requested(url("https://$(cluster).evil.com/")), `spec.http.url: Invalid value: "https://$(cluster).evil.com/": has an ` +
				`argument in its host: only its path and its query may have arguments`,
		},
		"another scheme": {
			listed, requested(url("ftp://judge.example.com/")),
			`spec.http.url: Invalid value: "ftp://judge.example.com/": must be an http or https URL`,
		},
		"no host": {listed, requested(url("https:///x")), `spec.http.url: Invalid value: "https:///x": must name a host`},
		"credentials in a URL": {
			listed, requested(url("https://me:secret@judge.example.com/")), `spec.http.url: Invalid value: "https://judge.example.com/": ` +
				`must not have credentials: they belong into a Secret, which secretName names`,
		},
		"a path that leaves": {
			listed + ", https://a.example.com/in", requested(url("https://a.example.com/in/../out")),
			`spec.http.url: Invalid value: "https://a.example.com/in/../out": its path has a segment "." or "..", a \, or a %25 that ` +
				`servers may read differently; write where it leads`,
		},
		"an argument in an address": {
			listed, compared(address("https://judge.example.com/$(app)", "")),
			`spec.prometheus.address: Invalid value: "https://judge.example.com/$(app)": must not have arguments: queries may`,
		},
		"a query in an address": {
			listed, compared(address("https://judge.example.com/?a=b", "")),
			`spec.prometheus.address: Invalid value: "https://judge.example.com/?…": must not have a query`,
		},
		"a Secret without an address": {
			listed, compared(address("", "judge")), `spec.prometheus.secretName: Forbidden: is for the server at address: give an address, ` +
				`or leave secretName out; Shipper has the credentials of each cluster's own server`,
		},
		"a body that is no JSON": {
			listed, requested(body("{$(app)}")),
			`spec.http.body: Invalid value: "{$(app)}": is no JSON: invalid character '$' looking for beginning of object key string`,
		},
		"a body of a GET": {
			listed, requested(method("GET")), `spec.http.body: Forbidden: is sent by POST only: set method to POST, or leave body out`,
		},
		"credentials in a header": {
			listed, requested(header("authorization", "Bearer x")),
			`spec.http.headers[authorization]: Forbidden: belongs into a Secret: name it in secretName`,
		},
		"the host in a header": {
			listed, requested(header("Host", "x")),
			`spec.http.headers[Host]: Forbidden: is set by Shipper from url and body: leave it out`,
		},
		"a header of no name": {listed, requested(header("a b", "x")), `spec.http.headers[a b]: Invalid value: "a b": is no name of a header`},
		"a header of two lines": {
			listed, requested(header("X-A", "x\r\nHost: y")),
			`spec.http.headers[X-A]: Invalid value: "x\r\nHost: y": is no value of a header: it has control characters`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := webhookOf(t, ask.Grant(ann), tc.urls).Validate(t.Context(), ask.Create("ann", tc.check), &response.Response{})
			ask.CheckRefusal(t, err, response.Invalid, invalid+tc.message)
		})
	}
}

func TestBadJobs(t *testing.T) {
	pod := func(more string) string {
		return `{"template":{"spec":{"containers":[{"name":"a","image":"a"}]` + more + `}}}`
	}
	const none = "is no spec of a batch/v1 Job: "
	for job, message := range map[string]string{
		pod(`,"restartPolicy":"Always"`): `spec.job.template.spec.restartPolicy: Unsupported value: "Always": supported values: "Never", ` +
			`"OnFailure"`,
		pod(`,"hostNetwrk":true`):  none + `unknown field "template.spec.hostNetwrk"`,
		`{"template":{"spec":{}}}`: `spec.job.template.spec.containers: Required value: say what the Job runs`,
		`{"template":7}`:           none + "json: cannot unmarshal number into Go struct field JobSpec.template of type v1.PodTemplateSpec",
		`{"template":{"metadata":{"labels":{"shipper-release":"web-1"}},"spec":{"containers":[{"name":"a"}]}}}`: `spec.job.template.` +
			`metadata.labels[shipper-release]: Forbidden: labels of Shipper select the Pods of Releases, and Services: leave it out`,
		`{"manualSelector":true,"template":{"spec":{"containers":[{"name":"a"}]}}}`: `spec.job.manualSelector: Forbidden: Kubernetes ` +
			`writes the selector: leave manualSelector out`,
		pod(`,"nodeName":"$(node)"`):                            "no argument node is declared; there are: " + predef,
		pod(`,"nodeName":"` + strings.Repeat("x", 33000) + `"`): "a Job may have 32768 bytes as JSON: each run keeps a copy",
	} {
		if !strings.HasPrefix(message, "spec.") {
			message = fmt.Sprintf(`spec.job: Invalid value: "(%d bytes)": %s`, len(job), message)
		}
		err := webhookOf(t, ask.Grant(), "").Validate(t.Context(), ask.Create("ann", ran(job)), &response.Response{})
		ask.CheckRefusal(t, err, response.Invalid, invalid+message)
	}
}

func TestAuthorsMayGetTheSecret(t *testing.T) {
	const bob = "bob get secrets shop/judge"
	mayNot := func(path string) string {
		return invalid + path + `: Forbidden: user "bob" may not get secrets/judge in shop: the author must be allowed to get a Secret that ` +
			`the object names; ask the owner of the namespace to run: kubectl -n shop create role get-secrets-judge --verb=get ` +
			`--resource=secrets --resource-name=judge; kubectl -n shop create rolebinding get-secrets-judge-bob ` +
			`--role=get-secrets-judge --user=bob`
	}
	const own, another = "http://prometheus.example.com:9090", "https://judge.example.com"
	const ofRequest, ofQueries = "spec.http.secretName", "spec.prometheus.secretName"
	queried := compared(address(own, "judge"))
	for sentence, tc := range map[string]struct {
		req     *admission.Request
		path    string
		unasked bool
	}{
		"of a request":                     {req: ask.Create("bob", requested()), path: ofRequest},
		"of queries":                       {req: ask.Create("bob", queried), path: ofQueries},
		"again for another URL":            {req: ask.Update("bob", requested(url(another+"/")), requested()), path: ofRequest},
		"again for another body":           {req: ask.Update("bob", requested(body("{}")), requested()), path: ofRequest},
		"again for another header":         {req: ask.Update("bob", requested(header("X", "y")), requested()), path: ofRequest},
		"again for another address":        {req: ask.Update("bob", compared(address(another, "judge")), queried), path: ofQueries},
		"again where there was none":       {req: ask.Update("bob", queried, compared()), path: ofQueries},
		"before an expression is compiled": {req: ask.Create("bob", requested(pass("1"))), path: ofRequest},
		"again for another expression":     {req: ask.Update("bob", requested(pass("true")), requested()), path: ofRequest},
		"again for another argument": {
			req: ask.Update("bob", requested(func(s *shipper.CheckSpec) {
				s.Args = []shipper.CheckArgument{{Name: "guess", Default: new("A"), Pattern: ".*"}}
			}), requested()), path: ofRequest,
		},
		"again for another limit of failures": {
			req: ask.Update("bob", requested(func(s *shipper.CheckSpec) { s.FailureLimit = 9 }), requested()), path: ofRequest,
		},
		"again for another interval": {
			req: ask.Update("bob", requested(func(s *shipper.CheckSpec) { s.Interval = "24h" }), requested()), path: ofRequest,
		},
		"again for other queries": {
			req: ask.Update("bob", compared(address(own, "judge"), query("new", "1")), queried), path: ofQueries,
		},
		"not again when nothing has changed": {req: ask.Update("bob", requested(body("{")), requested(body("{"))), unasked: true},
		"not for a deletion":                 {req: ask.Delete("bob", requested()), unasked: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			rights := ask.Grant()
			err := webhookOf(t, rights, listed).Validate(t.Context(), tc.req, &response.Response{})
			if tc.unasked {
				ask.CheckRefusal(t, err, "", "")
			} else {
				ask.CheckRefusal(t, err, response.Invalid, mayNot(tc.path))
			}
			if asked := cmp.Diff([]string{bob}, rights.Asked) == ""; asked == tc.unasked {
				t.Errorf("asked for %q", rights.Asked)
			}
		})
	}
	rights := &ask.Rights{Err: errors.New("no answer")}
	err := webhookOf(t, rights, listed).Validate(t.Context(), ask.Create("ann", requested()), &response.Response{})
	ask.CheckRefusal(t, err, response.Unavailable, "no answer")
}

func TestAnExpressionThatIsNotLookedAtInTimeMayBeSentAgain(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := webhookOf(t, ask.Grant(), "").Validate(ctx, ask.Create("ann", compared()), &response.Response{})
	ask.CheckRefusal(t, err, response.Unavailable, "waited too long for other expressions to be compiled")
}

// naming are the newest Releases of n Applications in shop that name the Check errors.
func naming(n int) []client.Object {
	var out []client.Object
	for i := range n {
		app := ask.Application(func(a *shipper.Application) {
			a.Namespace, a.Name = "shop", fmt.Sprintf("web-%d", i)
			a.Spec.Template.Strategy.Steps[0].Checks = []shipper.StepCheck{{Check: "errors"}}
		})
		out = append(out, ask.Release(app, nil))
	}
	return out
}

func TestChecksInUse(t *testing.T) {
	const five = "Applications shop/web-0, shop/web-1, shop/web-2, shop/web-3, shop/web-4"
	other, owned := compared(fail("new > 1.0")), compared()
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "mine", UID: "mine"}}
	const then, first = ": their next runs use the new definition", ": take it out of their strategies first"
	for sentence, tc := range map[string]struct {
		req     *admission.Request
		known   []client.Object
		message string
		warned  []string
	}{
		"an edit": {
			req: ask.Update("ann", other, compared()), known: naming(1), warned: []string{"Application shop/web-0 names it" + then},
		},
		"an edit for many": {
			req: ask.Update("ann", other, compared()), known: naming(7), warned: []string{five + " and 2 more name it" + then},
		},
		"an edit of metadata": {req: ask.Update("ann", compared(), compared()), known: naming(1)},
		"an edit out of use":  {req: ask.Update("ann", other, compared())},
		"a deletion":          {req: ask.Delete("ann", compared()), known: naming(7), message: five + " and 2 more name it" + first},
		"a deletion for two": {
			req: ask.Delete("ann", compared()), known: naming(2), message: "Applications shop/web-0, shop/web-1 name it" + first,
		},
		"an owner, with which it would be deleted": {
			req: ask.Update("ann", owned, compared()), known: naming(2), message: "Applications shop/web-0, shop/web-1 name it" + first,
		},
		"an owner out of use":           {req: ask.Update("ann", owned, compared())},
		"a deletion out of use":         {req: ask.Delete("ann", compared())},
		"a deletion with the namespace": {req: ask.Delete("ann", compared()), known: append(naming(2), ask.GoingNamespace("shop"))},
	} {
		t.Run(sentence, func(t *testing.T) {
			a, decision := &response.Response{}, response.Decision("")
			if tc.message != "" {
				decision = response.Forbidden
			}
			ask.CheckRefusal(t, webhookOf(t, ask.Grant(), "", tc.known...).Validate(t.Context(), tc.req, a), decision, tc.message)
			if diff := cmp.Diff(tc.warned, a.Warnings()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChecksThatAreProbablyNotIntended(t *testing.T) {
	limits := func(count, failures int32) edit {
		return func(s *shipper.CheckSpec) { s.Count, s.FailureLimit = count, failures }
	}
	const goesOn = "failureLimit (3) is not less than count (3): the check passes with one good measurement of 3; after 3 bad ones it goes " +
		"on until one is good, or more than 3 are bad"
	const sent = "argument id is sent with the credentials of Secret judge and has no pattern: every user who names this Check may choose " +
		"any value that matches ^[A-Za-z0-9._:/-]{0,253}$; give it a narrow pattern"
	unused := func(name string) string {
		return "query " + name + " is not used: neither pass nor fail names it; without data for it, the measurement has no data"
	}
	for sentence, tc := range map[string]struct {
		check  *shipper.Check
		warned []string
	}{
		"a limit below count":          {check: compared(limits(3, 2))},
		"a limit as high as count":     {compared(limits(3, 3)), []string{goesOn}},
		"a limit without count":        {check: compared(limits(0, 3))},
		"a query that only fail names": {check: compared(pass("new < 1.0"), fail("old > 2.0"))},
		"a query that neither names":   {compared(pass("new < 1.0")), []string{unused("old")}},
		"a longer name is another":     {compared(query("ne", "x"), pass("new <= old")), []string{unused("ne")}},
		"an argument of the same name": {
			compared(argument(shipper.CheckArgument{Name: "old"}), pass("new < double(args.old)")), []string{unused("old")},
		},
		"a list that has a function":    {check: compared(fleet, pass("new.max() < 1.0 && !(old.sum() > 2.0)"))},
		"a request, which has no query": {check: requested()},
		"an argument that is sent with a Secret": {
			requested(argument(shipper.CheckArgument{Name: "id"}), url("https://judge.example.com/v1/$(id)")), []string{sent},
		},
		"one with a pattern":           {check: requested(argument(shipper.CheckArgument{Name: "id", Pattern: "[0-9]+"}), header("Id", "$(id)"))},
		"one that only pass reads":     {check: requested(argument(shipper.CheckArgument{Name: "id"}), pass(`args.id == "1"`))},
		"one that is sent in a header": {requested(argument(shipper.CheckArgument{Name: "id"}), header("Id", "$(id)")), []string{sent}},
	} {
		t.Run(sentence, func(t *testing.T) {
			a := &response.Response{}
			ask.CheckRefusal(t, webhookOf(t, ask.Grant(ann), listed).Validate(t.Context(), ask.Create("ann", tc.check), a), "", "")
			if diff := cmp.Diff(tc.warned, a.Warnings()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// usedBy is the newest Release of an Application that uses the Check errors so.
func usedBy(app string, uses ...shipper.StepCheck) client.Object {
	return ask.Release(ask.Application(func(a *shipper.Application) {
		a.Namespace, a.Name = "shop", app
		a.Spec.Template.Strategy.Steps[0].Checks = uses
	}), nil)
}

func TestEditsThatBreakUses(t *testing.T) {
	const named = "Application shop/web names it: their next runs use the new definition"
	quantile := func(pattern string, def *string) *shipper.Check {
		return compared(argument(shipper.CheckArgument{Name: "quantile", Pattern: pattern, Default: def}),
			query("new", "quantile($(quantile), x)"))
	}
	dry := with("errors", "quantile", "0.9, 0.8")
	dry.DryRun = true
	for sentence, tc := range map[string]struct {
		now    *shipper.Check
		use    shipper.StepCheck
		warned []string
	}{
		"an argument with a default": {quantile("", ptrTo("1")), with("errors"), nil},
		"an argument without a default": {
			quantile("", nil), with("errors"),
			[]string{"Application shop/web would hold: args[quantile]: the Check needs a value for this argument"},
		},
		"an argument that the step gives already": {quantile("", nil), with("errors", "quantile", "0.9"), nil},
		"a narrower pattern": {
			quantile("0[.][0-9]", nil), with("errors", "quantile", "0.99"),
			[]string{"Application shop/web would hold: args[quantile]: does not match the argument's pattern 0[.][0-9]"},
		},
		"an argument that is gone": {
			compared(), with("errors", "quantile", "0.9"), []string{"Application shop/web would hold: args[quantile]: no argument quantile is " +
				"declared; there are: slack, " + predef},
		},
		"a value that is too long": {
			quantile(".*", nil), with("errors", "quantile", strings.Repeat("1", 1025)),
			[]string{"Application shop/web would hold: args[quantile]: may not be more than 1024 bytes"},
		},
		"a query that does not parse with the arguments that are given": {
			quantile(".*", ptrTo("1")), with("errors", "quantile", "0.9, 0.8"),
			[]string{"Application shop/web would hold: spec.prometheus.queries[new]: 1:1: parse error: wrong number of arguments for aggregate " +
				"expression provided, expected 2, got 3; this is of the query with its arguments: quantile(0.9, 0.8, x)"},
		},
		"a query that does not parse in a dry run": {quantile(".*", ptrTo("1")), dry, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			a, w := &response.Response{}, webhookOf(t, ask.Grant(), "", usedBy("web", tc.use))
			ask.CheckRefusal(t, w.Validate(t.Context(), ask.Update("ann", tc.now, compared(pass("new < old"))), a), "", "")
			if diff := cmp.Diff(append([]string{named}, tc.warned...), a.Warnings()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUsesOfASharedCheckAreValidated(t *testing.T) {
	required := compared(argument(shipper.CheckArgument{Name: "window"}))
	required.Namespace = "shipper-checks"
	before := compared()
	before.Namespace = "shipper-checks"
	var known []client.Object
	for i := range 25 {
		// Each Application also uses a Check of its own namespace, which has the same name and does not change.
		known = append(known, usedBy(fmt.Sprintf("web-%02d", i), with("errors"), with("shipper-checks/errors")))
	}
	a, w := &response.Response{}, webhookOf(t, ask.Grant(), "", known...)
	w.Shared = "shipper-checks"
	ask.CheckRefusal(t, w.Validate(t.Context(), ask.Update("ann", required, before), a), "", "")
	warned := a.Warnings()
	if len(warned) != 21 {
		t.Fatalf("%d warnings, want one, and one for each of 20 Applications: %q", len(warned), warned)
	}
	const want = "Application shop/web-19 would hold: args[window]: the Check needs a value for this argument"
	if warned[20] != want {
		t.Errorf("the last warning is %q, want %q", warned[20], want)
	}
	a = &response.Response{}
	required.Namespace, before.Namespace = "shop", "shop"
	ask.CheckRefusal(t, webhookOf(t, ask.Grant(), "", usedBy("web", with("errors", "window", "5m"), with("shipper-checks/errors"))).
		Validate(t.Context(), ask.Update("ann", required, before), a), "", "")
	if len(a.Warnings()) != 1 {
		t.Errorf("uses of another Check were validated: %q", a.Warnings())
	}
}

func TestWhatDoesNotDecode(t *testing.T) {
	req := ask.Create("ann", compared())
	req.Object.Raw = []byte(`{"spec":7}`)
	if err := webhookOf(t, ask.Grant(), "").Validate(t.Context(), req, &response.Response{}); err == nil {
		t.Error("it passed")
	}
}

func TestACheckThatNoServerAnswersIsAdmittedWithAWarning(t *testing.T) {
	without, with := &shipper.Cluster{}, &shipper.Cluster{}
	without.Name, with.Name, with.Spec.Metrics = "eu", "us", &shipper.ClusterMetrics{Address: "https://prometheus"}
	for sentence, tc := range map[string]struct {
		known []client.Object
		want  int
	}{"a cluster has no server": {[]client.Object{without, with}, 1}, "each has one": {[]client.Object{with}, 0}} {
		a := &response.Response{}
		ask.CheckRefusal(t, webhookOf(t, ask.Grant(ann), listed, tc.known...).Validate(t.Context(), ask.Create("ann", compared()), a), "", "")
		got := a.Warnings()
		if len(got) != tc.want || tc.want > 0 && !strings.HasPrefix(got[0], "there is no Prometheus server to measure by in eu:") {
			t.Errorf("%s: it warns %q", sentence, got)
		}
	}
}
