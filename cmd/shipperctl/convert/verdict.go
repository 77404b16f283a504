// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"strings"

	checkrules "shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/convert/condition"
)

// judge converts the conditions.
func (c *metricConversion) judge(spec *shipper.CheckSpec, operand condition.Operand) {
	operand.Argument = func(name string) (string, string) {
		as := c.use("successCondition", name)
		usually, _ := c.args.find(name).usual()
		return as, usually
	}
	good, ok := c.condition("successCondition", c.metric.SuccessCondition, operand)
	bad, fine := c.condition("failureCondition", c.metric.FailureCondition, operand)
	if !ok || !fine {
		undecided(spec)
		return
	}
	switch {
	case good == nil && bad == nil: // Argo takes every value for good
		spec.Pass, spec.NoData = "true", shipper.NoDataPass
	case good == nil:
		spec.Fail = bad.CEL
	case bad == nil:
		spec.Pass = good.CEL
	default:
		spec.Fail = bad.CEL
		if pass, err := condition.But(good, bad); err == nil && len(pass) <= maxExpression {
			spec.Pass = pass
		} else {
			c.add("successCondition", "is too long together with failureCondition: write pass")
			undecided(spec)
			return
		}
	}
	if operand.Sample {
		c.noData(spec, good, bad)
	}
}

// undecided gives a Check expressions with which no measurement has a verdict.
func undecided(spec *shipper.CheckSpec) { spec.Pass, spec.Fail = "false", "false" }

// condition converts a condition; nil if there is none. It returns false if that cannot be done.
func (c *metricConversion) condition(field, text string, operand condition.Operand) (*condition.Condition, bool) {
	if strings.TrimSpace(text) == "" {
		return nil, true
	}
	out, err := condition.Parse(text, operand)
	if err == nil && len(out.CEL) > maxExpression {
		err = fmt.Errorf("it has more than %d characters", maxExpression)
	}
	if err != nil {
		c.add(field, "%s is not converted (%s): write pass or fail in CEL; until then no measurement has a verdict", text, err)
		return nil, false
	}
	if out.Several {
		c.add(field, "%s is about several values, and a query has to give one: aggregate them in the query, such as max(…)", text)
	}
	return out, true
}

// noData converts what conditions say of empty answers and of NaN.
func (c *metricConversion) noData(spec *shipper.CheckSpec, good, bad *condition.Condition) {
	var asksEmpty, asksNaN bool
	empty, nan := [2]condition.Outcome{}, [2]condition.Outcome{}
	for i, one := range []*condition.Condition{good, bad} {
		if one != nil {
			asksEmpty, asksNaN = asksEmpty || one.AsksEmpty, asksNaN || one.AsksNaN
			empty[i], nan[i] = one.Empty, one.NaN
		}
	}
	ofEmpty, ofNaN := verdict(empty[0], empty[1]), verdict(nan[0], nan[1])
	switch {
	case asksEmpty:
		spec.NoData = ofEmpty
	case asksNaN:
		spec.NoData = ofNaN
	}
	if (asksEmpty || asksNaN) && ofEmpty != ofNaN {
		c.add("successCondition", "judges an empty answer and NaN differently: in the Check noData is for both")
	}
	if spec.NoData == "" && spec.InconclusiveLimit == 0 && (good == nil) != (bad == nil) {
		// An empty answer is an error in Argo, and has no verdict here.
		spec.InconclusiveLimit = checkrules.DefaultConsecutiveErrorLimit
		if limit := spec.ConsecutiveErrorLimit; limit != nil {
			spec.InconclusiveLimit = *limit
		}
	}
}

// verdict is what Argo makes of two outcomes; empty if it is an error, or depends on arguments.
func verdict(good, bad condition.Outcome) shipper.CheckNoData {
	for _, is := range []condition.Outcome{good, bad} {
		if is == condition.Fails || is == condition.Depends {
			return ""
		}
	}
	switch {
	case bad == condition.True:
		return shipper.NoDataFail
	case good == condition.True, good == "":
		return shipper.NoDataPass
	case bad == "":
		return shipper.NoDataFail
	}
	return shipper.NoDataInconclusive
}
