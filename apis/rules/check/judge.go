// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const (
	// kept is how many measurements a result has.
	kept = 3
	// maxText bounds, in bytes, values and messages.
	maxText = 256
)

// Verdict is the result of a measurement by the two expressions of a Check; each is nil where the Check has none.
func Verdict(pass, fail *bool) shipper.CheckVerdict {
	good, bad := pass != nil && *pass, fail != nil && *fail
	switch {
	case good && bad:
		return shipper.VerdictInconclusive
	case good, pass == nil && fail != nil && !bad:
		return shipper.VerdictPassed
	case bad, fail == nil && pass != nil:
		return shipper.VerdictFailed
	}
	return shipper.VerdictInconclusive
}

// NoData is the result of a measurement that gave no value.
func NoData(c *shipper.CheckSpec) shipper.CheckVerdict {
	switch c.NoData {
	case shipper.NoDataPass:
		return shipper.VerdictPassed
	case shipper.NoDataFail:
		return shipper.VerdictFailed
	case shipper.NoDataInconclusive:
		return shipper.VerdictInconclusive
	}
	return shipper.VerdictError
}

// Measurement is one measurement and, where that is not its value, the reason of its result.
type Measurement struct {
	Time    time.Time
	Verdict shipper.CheckVerdict
	Value   string
	Message string
}

// Add returns a result with one more measurement. A result that is decided stays as it is.
func Add(run *shipper.CheckRun, was shipper.CheckResult, m Measurement) shipper.CheckResult {
	if was.Phase.Decided() {
		return was
	}
	is := *was.DeepCopy()
	is.Measurements = append(is.Measurements, shipper.CheckMeasurement{
		Time: metav1.NewTime(m.Time.Truncate(time.Second)), Result: m.Verdict, Value: bounded(m.Value, maxText),
	})
	is.Measurements = is.Measurements[max(0, len(is.Measurements)-kept):]
	is.LastTime = new(metav1.NewTime(m.Time.Truncate(time.Second)))
	is.ConsecutiveErrors = 0
	switch m.Verdict {
	case shipper.VerdictPassed:
		is.Passed++
	case shipper.VerdictFailed:
		is.Failed++
	case shipper.VerdictInconclusive:
		is.Inconclusive++
	case shipper.VerdictError:
		is.Errors, is.ConsecutiveErrors = is.Errors+1, was.ConsecutiveErrors+1
	}
	is.Message = bounded(m.Message, maxText)
	is.Phase, is.Message = phase(run, &is, m)
	return is
}

// phase is the phase of a result after a measurement, and the message of both.
func phase(run *shipper.CheckRun, r *shipper.CheckResult, m Measurement) (shipper.CheckPhase, string) {
	errorLimit := int32(DefaultConsecutiveErrorLimit)
	if l := run.Check.ConsecutiveErrorLimit; l != nil {
		errorLimit = *l
	}
	why := m.Message
	if why == "" {
		why = m.Value
	}
	say := func(format string, args ...any) string { return bounded(fmt.Sprintf(format, args...), maxText) }
	switch {
	case r.Failed > 0 && Once(&run.Check):
		return shipper.CheckHasFailed, say("%s", why)
	case r.Failed > run.Check.FailureLimit:
		return shipper.CheckHasFailed, say("%s (%d of %s failed)", why, r.Failed, times(Measured(r)))
	case r.Inconclusive > run.Check.InconclusiveLimit:
		return shipper.CheckUndecided, say("no verdict after %s, the last: %s", times(r.Inconclusive), why)
	case r.ConsecutiveErrors > errorLimit:
		return shipper.CheckUndecided, say("no value in %s one after another, the last: %s", times(r.ConsecutiveErrors), why)
	case Measured(r) >= run.Count && r.Passed > 0:
		return shipper.CheckPassed, ""
	}
	return shipper.CheckRunning, bounded(m.Message, maxText)
}

func times(n int32) string {
	if n == 1 {
		return "1 measurement"
	}
	return fmt.Sprintf("%d measurements", n)
}

// Measured is how many measurements gave a result: those that passed or failed.
func Measured(r *shipper.CheckResult) int32 { return r.Passed + r.Failed }

// Next is when the next measurement of a check is due; false when it is decided.
func Next(spec *shipper.CheckTargetSpec, run *shipper.CheckRun, r shipper.CheckResult) (time.Time, bool) {
	if r.Phase.Decided() {
		return time.Time{}, false
	}
	if r.LastTime != nil {
		return r.LastTime.Add(Interval(&run.Check)), true
	}
	return spec.StartTime.Add(run.Check.InitialDelay.Value()), true
}

// NothingToCompare says why a check that compares with the incumbent passes where there is none.
const NothingToCompare = "there is nothing to compare with: no Release served before"

// Start are the results of a run before its first measurement. A check that compares with the incumbent passes where there is none.
func Start(spec *shipper.CheckTargetSpec) []shipper.CheckResult {
	var out []shipper.CheckResult
	for i := range spec.Checks {
		run := &spec.Checks[i]
		r := shipper.CheckResult{Name: run.Name, Phase: shipper.CheckPending}
		if spec.Incumbent == "" && Compares(&run.Check) {
			r.Phase, r.Message = shipper.CheckPassed, NothingToCompare
		}
		for _, cluster := range JudgedIn(spec, run) {
			r.Cluster = cluster
			out = append(out, r)
		}
	}
	return out
}

// JudgedIn are the clusters in which a check is judged; one without a name for a check over the fleet.
func JudgedIn(spec *shipper.CheckTargetSpec, run *shipper.CheckRun) []string {
	if run.Check.Over == shipper.OverFleet {
		return []string{""}
	}
	return spec.Clusters
}

// bounded cuts a text to some bytes.
func bounded(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}

// ByNameAndCluster orders results.
func ByNameAndCluster(a, b shipper.CheckResult) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Cluster, b.Cluster))
}

const (
	// MaxResults bounds the results of a run, which are in one object, as the kind does.
	MaxResults = 2000
	// allTexts is how many results may have all their measurements and messages, and someTexts how many have a message where there are more.
	allTexts, someTexts = 200, 20
)

// Shortened leaves out texts where there are many results: the status of a CheckTarget has to fit into an object.
func Shortened(results []shipper.CheckResult) []shipper.CheckResult {
	if len(results) <= allTexts {
		return results
	}
	left := someTexts
	for i := range results {
		r := &results[i]
		r.Measurements = nil
		bad := r.Phase == shipper.CheckHasFailed || r.Phase == shipper.CheckUndecided
		if bad && left > 0 {
			left--
			continue
		}
		r.Message = ""
	}
	return results
}
