// SPDX-License-Identifier: Apache-2.0

// Package measurement makes one measurement of a Check, by Prometheus or by a request, and judges it. It has no state but compiled
// expressions, and reads nothing of a cluster: shipperctl uses it, too.
package measurement

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/outward/expression"
	"shipper.dev/shipper/outward/prometheus"
	"shipper.dev/shipper/outward/promql"
	"shipper.dev/shipper/outward/request"
)

// behind is how long before now Prometheus is asked for values: those of the last seconds may not be scraped yet.
const behind = 5 * time.Second

// Input is where, when and with which arguments a Check is measured.
type Input struct {
	Now time.Time
	// Args are the values of all arguments, predefined ones too.
	Args map[string]string
	// Client connects to the server.
	Client *http.Client
	// Address is that of Prometheus.
	Address string
	// TenantLabel and Tenant are a label that all selectors are forced to have, and its value. Empty: none.
	TenantLabel, Tenant string
}

// Values are what was measured in one cluster.
type Values struct {
	// Numbers are the values of queries, and Missing the names of those that have none.
	Numbers map[string]float64
	Missing []string
	// Status and JSON are those of a response.
	Status int
	JSON   any
}

// Measurer measures Checks. It is safe for concurrent use.
type Measurer struct{ expressions *expression.Cache }

// New returns a Measurer.
func New() *Measurer { return &Measurer{expressions: expression.NewCache()} }

// Measure measures a Check. An error means that there is no value.
func (m *Measurer) Measure(ctx context.Context, spec *shipper.CheckSpec, at Input) (Values, error) {
	if spec.HTTP != nil {
		return respond(ctx, spec.HTTP, at)
	}
	out := Values{Numbers: map[string]float64{}}
	for _, name := range slices.Sorted(maps.Keys(spec.Prometheus.Queries)) {
		query, err := Query(string(spec.Prometheus.Queries[name]), at)
		if err != nil {
			return out, fmt.Errorf("query %s %w", name, err)
		}
		value, found, err := prometheus.Query(ctx, at.Client, at.Address, query, at.Now.Add(-behind))
		switch {
		case err != nil:
			return out, fmt.Errorf("query %s: %w", name, err)
		case !found:
			out.Missing = append(out.Missing, name)
		default:
			out.Numbers[name] = value
		}
	}
	return out, nil
}

// enforcing bounds the queries that are parsed at the same time, each with some MB of memory.
var enforcing = make(chan struct{}, 4)

// Query is a query as it is sent.
func Query(text string, at Input) (string, error) {
	query, err := check.Substitute(text, at.Args)
	if err != nil || at.TenantLabel == "" {
		return query, err
	}
	enforcing <- struct{}{}
	defer func() { <-enforcing }()
	return promql.Enforce(query, at.TenantLabel, at.Tenant)
}

func respond(ctx context.Context, spec *shipper.HTTPCheck, at Input) (Values, error) {
	url, err := check.SubstituteURL(spec.URL, at.Args)
	if err != nil {
		return Values{}, fmt.Errorf("url %w", err)
	}
	body := ""
	if spec.Body != "" {
		text, err := check.SubstituteJSON([]byte(spec.Body), at.Args)
		if err != nil {
			return Values{}, fmt.Errorf("body %w", err)
		}
		body = string(text)
	}
	headers := map[string]string{}
	for name, value := range spec.Headers {
		if headers[name], err = check.Substitute(value, at.Args); err != nil {
			return Values{}, fmt.Errorf("header %s %w", name, err)
		}
	}
	response, err := request.Do(ctx, at.Client, request.Request{Method: string(spec.Method), URL: url, Headers: headers, Body: body})
	return Values{Status: response.Status, JSON: response.JSON}, err
}

// Judge judges what was measured: in one cluster or, over the fleet, in each.
func (m *Measurer) Judge(
	ctx context.Context, spec *shipper.CheckSpec, args map[string]string, values []Values, at time.Time,
) check.Measurement {
	out := check.Measurement{Time: at, Value: describe(spec, values)}
	for _, v := range values {
		if len(v.Missing) > 0 {
			out.Verdict, out.Message = check.NoData(spec), "no data of "+strings.Join(v.Missing, ", ")
			return out
		}
	}
	if spec.HTTP != nil && spec.Pass == "" && spec.Fail == "" {
		good := values[0].Status >= 200 && values[0].Status < 300
		if out.Verdict = check.Verdict(&good, nil); !good {
			out.Message = out.Value + ", and pass is a status from 200 to 299"
		}
		return out
	}
	in := expression.Values{Args: args, Status: values[0].Status, JSON: values[0].JSON}
	if check.VariablesOf(spec).List {
		in.Lists = lists(spec, values)
	} else {
		in.Numbers = values[0].Numbers
	}
	pass, err := m.eval(ctx, spec, spec.Pass, in)
	if err == nil {
		var fail *bool
		if fail, err = m.eval(ctx, spec, spec.Fail, in); err == nil {
			out.Verdict = check.Verdict(pass, fail)
			out.Message = why(spec, out, pass, fail)
			return out
		}
	}
	out.Verdict, out.Message = shipper.VerdictError, err.Error()
	return out
}

// eval evaluates an expression; nil when there is none.
func (m *Measurer) eval(ctx context.Context, spec *shipper.CheckSpec, text string, in expression.Values) (*bool, error) {
	if text == "" {
		return nil, nil
	}
	program, err := m.expressions.Compile(ctx, text, expression.Inputs(check.VariablesOf(spec)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	is, err := program.Eval(ctx, in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	return &is, nil
}

// why says why a measurement is not good.
func why(spec *shipper.CheckSpec, m check.Measurement, pass, fail *bool) string {
	switch {
	case m.Verdict == shipper.VerdictFailed && fail != nil && *fail:
		return m.Value + ", and fail is " + spec.Fail
	case m.Verdict == shipper.VerdictFailed:
		return m.Value + ", and pass is " + spec.Pass
	case m.Verdict == shipper.VerdictInconclusive && pass != nil && *pass:
		return m.Value + ", for which both pass and fail are true"
	case m.Verdict == shipper.VerdictInconclusive:
		return m.Value + ", for which neither pass nor fail is true"
	}
	return ""
}

// lists are the values of each query in all clusters.
func lists(spec *shipper.CheckSpec, values []Values) map[string][]float64 {
	out := map[string][]float64{}
	for name := range spec.Prometheus.Queries {
		for _, v := range values {
			out[name] = append(out[name], v.Numbers[name])
		}
	}
	return out
}

// describe formats values for people.
func describe(spec *shipper.CheckSpec, values []Values) string {
	if spec.HTTP != nil {
		return fmt.Sprintf("status = %d", values[0].Status)
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(spec.Prometheus.Queries)) {
		var texts []string
		for _, v := range values {
			text := "none"
			if number, is := v.Numbers[name]; is {
				text = strconv.FormatFloat(number, 'g', 4, 64)
			}
			texts = append(texts, text)
		}
		text := strings.Join(texts, ", ")
		if spec.Over == shipper.OverFleet {
			text = "[" + text + "]"
		}
		out = append(out, name+" = "+text)
	}
	return strings.Join(out, ", ")
}
