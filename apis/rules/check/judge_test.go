// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// runOf is a check of so many measurements.
func runOf(count int32, edit ...func(*shipper.CheckSpec)) *shipper.CheckRun {
	out := &shipper.CheckRun{Name: "errors", Count: count, Check: shipper.CheckSpec{
		Prometheus: &shipper.PrometheusCheck{Queries: map[string]shipper.CheckQuery{"new": "x"}}, Pass: "new < 1",
	}}
	for _, e := range edit {
		e(&out.Check)
	}
	return out
}

// story adds a measurement for each letter: p passed, f failed, i inconclusive, e error.
func story(run *shipper.CheckRun, letters string) shipper.CheckResult {
	verdicts := map[rune]shipper.CheckVerdict{
		'p': shipper.VerdictPassed, 'f': shipper.VerdictFailed, 'i': shipper.VerdictInconclusive, 'e': shipper.VerdictError,
	}
	r := shipper.CheckResult{Name: run.Name, Phase: shipper.CheckPending}
	for i, letter := range letters {
		m := check.Measurement{Time: noon.Add(time.Duration(i) * time.Minute), Verdict: verdicts[letter], Value: fmt.Sprintf("new = %d", i)}
		if letter == 'e' {
			m.Value, m.Message = "", "no route to host"
		}
		r = check.Add(run, r, m)
	}
	return r
}

func TestAdd(t *testing.T) {
	allow := func(f, i int32) func(*shipper.CheckSpec) {
		return func(c *shipper.CheckSpec) { c.FailureLimit, c.InconclusiveLimit = f, i }
	}
	errors := func(n int32) func(*shipper.CheckSpec) {
		return func(c *shipper.CheckSpec) { c.ConsecutiveErrorLimit = &n }
	}
	for sentence, tc := range map[string]struct {
		run     *shipper.CheckRun
		letters string
		phase   shipper.CheckPhase
		message string
	}{
		"it runs until it has enough results": {runOf(3), "pp", shipper.CheckRunning, ""},
		"it passes with enough results":       {runOf(3), "ppp", shipper.CheckPassed, ""},
		"a first failure fails it":            {runOf(3), "pf", shipper.CheckHasFailed, "new = 1 (1 of 2 measurements failed)"},
		"failures up to the limit do not":     {runOf(3, allow(1, 0)), "pfp", shipper.CheckPassed, ""},
		"one more does": {
			runOf(5, allow(1, 0)), "fpf", shipper.CheckHasFailed, "new = 2 (2 of 3 measurements failed)",
		},
		"it goes on until something was good": {runOf(1, allow(1, 1)), "f", shipper.CheckRunning, ""},
		"no verdict is undecided": {
			runOf(3), "i", shipper.CheckUndecided, "no verdict after 1 measurement, the last: new = 0",
		},
		"unless that is allowed":                       {runOf(3, allow(0, 1)), "ippp", shipper.CheckPassed, ""},
		"errors do not count":                          {runOf(2), "epep", shipper.CheckPassed, ""},
		"four errors one after another are waited out": {runOf(2), "eeee", shipper.CheckRunning, "no route to host"},
		"five are undecided": {
			runOf(2), "eeeee", shipper.CheckUndecided, "no value in 5 measurements one after another, the last: no route to host",
		},
		"a value in between begins them again": {runOf(2), "eeeepeeee", shipper.CheckRunning, "no route to host"},
		"no error may be allowed": {
			runOf(2, errors(0)), "e", shipper.CheckUndecided, "no value in 1 measurement one after another, the last: no route to host",
		},
		"what is decided stays so":   {runOf(1), "pffff", shipper.CheckPassed, ""},
		"a failure is not made good": {runOf(9), "fpppppppp", shipper.CheckHasFailed, "new = 0 (1 of 1 measurement failed)"},
	} {
		t.Run(sentence, func(t *testing.T) {
			is := story(tc.run, tc.letters)
			if is.Phase != tc.phase || is.Message != tc.message {
				t.Errorf("%s %q, not %s %q", is.Phase, is.Message, tc.phase, tc.message)
			}
		})
	}
}

func TestAResultHasTheLastThreeMeasurements(t *testing.T) {
	is := story(runOf(9), "ppep")
	at := func(minute int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(minute) * time.Minute)) }
	expected := shipper.CheckResult{
		Name: "errors", Phase: shipper.CheckRunning, Passed: 3, Errors: 1, LastTime: new(at(3)),
		Measurements: []shipper.CheckMeasurement{
			{Time: at(1), Result: shipper.VerdictPassed, Value: "new = 1"}, {Time: at(2), Result: shipper.VerdictError},
			{Time: at(3), Result: shipper.VerdictPassed, Value: "new = 3"},
		},
	}
	if diff := cmp.Diff(expected, is); diff != "" {
		t.Error(diff)
	}
}

// TestUnknownIsNeitherSuccessNorFailure tries all stories of up to six measurements.
func TestUnknownIsNeitherSuccessNorFailure(t *testing.T) {
	var try func(letters string)
	try = func(letters string) {
		for _, limit := range []int32{0, 1} {
			run := runOf(3, func(c *shipper.CheckSpec) { c.FailureLimit, c.InconclusiveLimit = limit, limit })
			is := story(run, letters)
			passed, failed := strings.Count(letters, "p"), strings.Count(letters, "f")
			switch {
			case is.Phase == shipper.CheckPassed && passed == 0:
				t.Errorf("%s passes without a good measurement", letters)
			case is.Phase == shipper.CheckHasFailed && failed <= int(limit):
				t.Errorf("%s fails by %d failures", letters, failed)
			case is.Phase != shipper.CheckHasFailed && int(is.Failed) > int(limit):
				t.Errorf("%s does not fail by %d failures", letters, is.Failed)
			}
		}
		if len(letters) == 6 {
			return
		}
		for _, next := range "pfie" {
			try(letters + string(next))
		}
	}
	try("")
}

func TestVerdict(t *testing.T) {
	yes, no := new(true), new(false)
	for sentence, tc := range map[string]struct {
		pass, fail *bool
		is         shipper.CheckVerdict
	}{
		"pass alone, good":    {yes, nil, shipper.VerdictPassed},
		"pass alone, bad":     {no, nil, shipper.VerdictFailed},
		"fail alone, good":    {nil, no, shipper.VerdictPassed},
		"fail alone, bad":     {nil, yes, shipper.VerdictFailed},
		"both, good":          {yes, no, shipper.VerdictPassed},
		"both, bad":           {no, yes, shipper.VerdictFailed},
		"both, in between":    {no, no, shipper.VerdictInconclusive},
		"both, contradictory": {yes, yes, shipper.VerdictInconclusive},
		"none":                {nil, nil, shipper.VerdictInconclusive},
	} {
		if is := check.Verdict(tc.pass, tc.fail); is != tc.is {
			t.Errorf("%s: %s", sentence, is)
		}
	}
}

func TestNext(t *testing.T) {
	spec := &shipper.CheckTargetSpec{StartTime: metav1.NewTime(noon)}
	for sentence, tc := range map[string]struct {
		run     *shipper.CheckRun
		letters string
		due     time.Time
		more    bool
	}{
		"the first is due at once":     {runOf(2), "", noon, true},
		"or after the initial delay":   {runOf(2, func(c *shipper.CheckSpec) { c.InitialDelay = "30s" }), "", noon.Add(30 * time.Second), true},
		"the next after the interval":  {runOf(2, func(c *shipper.CheckSpec) { c.Interval = "5s" }), "p", noon.Add(5 * time.Second), true},
		"none when it is decided":      {runOf(1), "p", time.Time{}, false},
		"after an error the same time": {runOf(1), "e", noon.Add(time.Minute), true},
	} {
		due, more := check.Next(spec, tc.run, story(tc.run, tc.letters))
		if !due.Equal(tc.due) || more != tc.more {
			t.Errorf("%s: %s, %t", sentence, due, more)
		}
	}
}

func TestCount(t *testing.T) {
	for sentence, tc := range map[string]struct {
		spec  shipper.CheckSpec
		after time.Duration
		is    int32
	}{
		"as many as fit":             {shipper.CheckSpec{}, 10 * time.Minute, 10},
		"at least one":               {shipper.CheckSpec{}, 0, 1},
		"after the delay":            {shipper.CheckSpec{InitialDelay: "9m30s"}, 10 * time.Minute, 1},
		"the last before the end":    {shipper.CheckSpec{Interval: "3m"}, 10 * time.Minute, 4},
		"as the Check says":          {shipper.CheckSpec{Count: 3}, 10 * time.Minute, 3},
		"tests once":                 {shipper.CheckSpec{Tests: &shipper.TestsCheck{}}, 10 * time.Minute, 1},
		"not more than there may be": {shipper.CheckSpec{Interval: "5s"}, 720 * time.Hour, 1000},
	} {
		if is := check.Count(&tc.spec, tc.after); is != tc.is {
			t.Errorf("%s: %d", sentence, is)
		}
	}
}
