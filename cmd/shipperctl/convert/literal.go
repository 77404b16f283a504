// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	checkrules "shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// literal is a text with the usual values of its arguments; false if one has none.
func (c *metricConversion) literal(text string) (string, bool) {
	ok := true
	out := placeholder.ReplaceAllStringFunc(text, func(found string) string {
		value, known := c.args.find(placeholder.FindStringSubmatch(found)[1]).usual()
		ok = ok && known
		return value
	})
	return out, ok && !strings.Contains(out, "{{")
}

// fixed is literal for a field that takes no arguments in a Check; false if it has no value.
func (c *metricConversion) fixed(field, text string) (string, bool) {
	out, ok := c.literal(text)
	switch {
	case !ok:
		c.add(field, "%s has no value in the input, and a Check has no arguments here: it is left out", text)
	case out != text:
		c.add(field, "becomes %s, which %s usually is: a Check has no arguments here", out, text)
	}
	return out, ok
}

func (c *metricConversion) duration(field, text string) (time.Duration, bool) {
	if text == "" {
		return 0, false
	}
	text, ok := c.fixed(field, text)
	if !ok {
		return 0, false
	}
	out, err := time.ParseDuration(text)
	if err != nil || out < 0 {
		c.add(field, "%s is no duration such as 10m: it is left out", text)
		return 0, false
	}
	return out, true
}

// limit converts a number, which Argo also takes as a text.
func (c *metricConversion) limit(field string, from *intstr.IntOrString) (int32, bool) {
	if from == nil {
		return 0, false
	}
	text, ok := c.fixed(field, from.String())
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 32)
	switch {
	case err != nil:
		c.add(field, "%s is no number: it is left out", text)
		return 0, false
	case n == -1 && field == "failureLimit":
		c.add(field, "-1, which is no limit, becomes %d", maxLimit)
		return maxLimit, true
	case n < 0 || n > maxLimit:
		within := min(max(n, 0), maxLimit)
		c.add(field, "must be from 0 to %d in a Check: it becomes %d", maxLimit, within)
		n = within
	}
	return int32(n), true
}

// timeout converts a timeout in seconds; 0 is none.
func (c *metricConversion) timeout(spec *shipper.CheckSpec, field string, seconds int64) {
	if seconds <= 0 {
		return
	}
	timeout := time.Duration(min(seconds, math.MaxInt32)) * time.Second
	if most := min(maxTimeout, checkrules.Interval(spec)); timeout > most {
		c.add(field, "must be at most interval and 30s in a Check: it becomes %s", format(most))
		timeout = most
	}
	spec.Timeout = format(timeout)
}

// text converts a text of at most so many bytes; false if that cannot be done.
func (c *metricConversion) text(field, from string, most int) (string, bool) {
	out, err := replaced(from, func(name string) string { return c.use(field, name) })
	if err == nil && len(out) > most {
		err = fmt.Errorf("has %d characters, and a Check takes %d", len(out), most)
	}
	if err != nil {
		c.add(field, "%s", err)
		return "", false
	}
	return out, true
}

// use is the name of an argument in the Check, which a field uses.
func (c *metricConversion) use(field, name string) string {
	arg := c.args.find(name)
	if arg == nil {
		c.add(field, "the argument %s is not declared in spec.args: the Check declares it", name)
		arg = c.args.add(argument{name: name})
	}
	if arg.secret != nil {
		c.add(field, "the argument %s is read from the Secret %s: give credentials by secretName, and take the argument out", name,
			arg.secret.Name)
	} else if arg.fieldPath != "" && c.args.predefined(arg) == "" && len(arg.given) == 0 {
		c.add(field, "the argument %s is read from %s of the Rollout: give it where a step uses the Check", name, arg.fieldPath)
	}
	c.used[name] = true
	if as := c.args.predefined(arg); as != "" {
		return as
	}
	return arg.as
}
