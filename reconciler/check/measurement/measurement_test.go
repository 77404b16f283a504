// SPDX-License-Identifier: Apache-2.0

package measurement_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/check/measurement"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func prometheus(pass, fail string, queries ...string) shipper.CheckSpec {
	out := shipper.CheckSpec{Pass: pass, Fail: fail, Prometheus: &shipper.PrometheusCheck{Queries: map[string]shipper.CheckQuery{}}}
	for _, name := range queries {
		out.Prometheus.Queries[name] = "x"
	}
	out.Args = []shipper.CheckArgument{{Name: "slack"}}
	return out
}

func numbers(pairs ...any) measurement.Values {
	out := measurement.Values{Numbers: map[string]float64{}}
	for i := 0; i < len(pairs); i += 2 {
		out.Numbers[pairs[i].(string)] = pairs[i+1].(float64)
	}
	return out
}

func TestJudge(t *testing.T) {
	const compare = "new <= old * 1.1 + double(args.slack)"
	fleet := prometheus("new.max() < 0.02", "", "new")
	fleet.Over = shipper.OverFleet
	lenient := prometheus("new < 1.0", "", "new")
	lenient.NoData = shipper.NoDataPass
	answer := shipper.CheckSpec{HTTP: &shipper.HTTPCheck{URL: "https://x"}}
	judged := answer
	judged.Pass = `response.status == 200 && response.json.ok == true`
	for sentence, tc := range map[string]struct {
		spec   shipper.CheckSpec
		values []measurement.Values
		is     check.Measurement
	}{
		"a good value passes": {prometheus(compare, "", "new", "old"), []measurement.Values{numbers("new", 0.01, "old", 0.01)},
			check.Measurement{Verdict: shipper.VerdictPassed, Value: "new = 0.01, old = 0.01"}},
		"a bad one fails, and says why": {prometheus(compare, "", "new", "old"), []measurement.Values{numbers("new", 0.041, "old", 0.003)},
			check.Measurement{Verdict: shipper.VerdictFailed, Value: "new = 0.041, old = 0.003",
				Message: "new = 0.041, old = 0.003, and pass is " + compare}},
		"so does one that fail is true for": {prometheus("", "new > 5.0", "new"), []measurement.Values{numbers("new", 6.0)},
			check.Measurement{Verdict: shipper.VerdictFailed, Value: "new = 6", Message: "new = 6, and fail is new > 5.0"}},
		"one in between has no verdict": {prometheus("new < 1.0", "new > 5.0", "new"), []measurement.Values{numbers("new", 3.0)},
			check.Measurement{Verdict: shipper.VerdictInconclusive, Value: "new = 3", Message: "new = 3, for which neither pass nor fail is true"}},
		"no data is no value": {prometheus("new < 1.0", "", "new"), []measurement.Values{{Missing: []string{"new"}}},
			check.Measurement{Verdict: shipper.VerdictError, Value: "new = none", Message: "no data of new"}},
		"unless the Check says so": {lenient, []measurement.Values{{Missing: []string{"new"}}},
			check.Measurement{Verdict: shipper.VerdictPassed, Value: "new = none", Message: "no data of new"}},
		"a fleet is judged at once": {fleet, []measurement.Values{numbers("new", 0.01), numbers("new", 0.03)},
			check.Measurement{Verdict: shipper.VerdictFailed, Value: "new = [0.01, 0.03]",
				Message: "new = [0.01, 0.03], and pass is new.max() < 0.02"}},
		"a request passes by its status": {answer, []measurement.Values{{Status: 204}},
			check.Measurement{Verdict: shipper.VerdictPassed, Value: "status = 204"}},
		"and fails by it": {answer, []measurement.Values{{Status: 302}}, check.Measurement{Verdict: shipper.VerdictFailed, Value: "status = 302",
			Message: "status = 302, and pass is a status from 200 to 299"}},
		"or by what it says": {judged, []measurement.Values{{Status: 200, JSON: map[string]any{"ok": true}}},
			check.Measurement{Verdict: shipper.VerdictPassed, Value: "status = 200"}},
		"what an expression cannot read is no verdict about the Release": {judged, []measurement.Values{{Status: 200}},
			check.Measurement{Verdict: shipper.VerdictError, Value: "status = 200", Message: judged.Pass + ": "}},
	} {
		t.Run(sentence, func(t *testing.T) {
			tc.is.Time = noon
			is := measurement.New().Judge(t.Context(), &tc.spec, map[string]string{"slack": "0.001"}, tc.values, noon)
			if tc.is.Verdict == shipper.VerdictError && strings.HasPrefix(is.Message, tc.is.Message) {
				is.Message = tc.is.Message
			}
			if diff := cmp.Diff(tc.is, is); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestATenantIsForcedIntoEveryQuery asks a server that records queries.
func TestATenantIsForcedIntoEveryQuery(t *testing.T) {
	asked := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.FormValue("query")
		_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}`))
	}))
	defer server.Close()
	spec := prometheus("new < 5.0", "", "new")
	spec.Prometheus.Queries["new"] = `sum(up{release="$(release)"}) or max(down)`
	is, err := measurement.New().Measure(t.Context(), &spec, measurement.Input{
		Now: noon, Args: map[string]string{"release": "web-1"}, Client: server.Client(), Address: server.URL,
		TenantLabel: "namespace", Tenant: "shop",
	})
	if diff := cmp.Diff(numbers("new", 2.0), is); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if want := `sum(up{namespace="shop",release="web-1"}) or max(down{namespace="shop"})`; asked != want {
		t.Errorf("%s, not %s", asked, want)
	}
	spec.Prometheus.Queries["new"] = `up{namespace="other"}`
	asked = ""
	_, err = measurement.New().Measure(t.Context(), &spec, measurement.Input{
		Now: noon, Client: server.Client(), Address: server.URL, TenantLabel: "namespace", Tenant: "shop",
	})
	if err == nil || asked != "" {
		t.Errorf("the series of another tenant were asked for: %s", asked)
	}
}
