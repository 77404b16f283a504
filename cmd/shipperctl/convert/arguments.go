// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	checkrules "shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// argument is one of a template.
type argument struct {
	// name is the template's, and as that of the Check.
	name, as string
	// value is the default; nil if there is none.
	value *string
	// secret is where Argo reads it from; nil if it is not secret.
	secret *secretKey
	// fieldPath is the field of the Rollout that has the default; empty if none has.
	fieldPath string
	// given are the values in the uses of the input. dynamic counts those that are arguments of every Check, by its name.
	given   []string
	dynamic map[string]int
}

type secretKey struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

// arguments are those of a template.
type arguments struct {
	all []*argument
	// uses is how many uses the input has.
	uses int
}

func (a *arguments) find(name string) *argument {
	for _, arg := range a.all {
		if arg.name == name {
			return arg
		}
	}
	return nil
}

// add adds an argument with a name that a Check can have.
func (a *arguments) add(arg argument) *argument {
	inUse := func(as string) bool { return slices.ContainsFunc(a.all, func(b *argument) bool { return b.as == as }) }
	arg.as = argumentName(arg.name)
	for i := 2; inUse(arg.as); i++ {
		arg.as = fmt.Sprintf("%s_%d", argumentName(arg.name), i)
	}
	arg.dynamic = map[string]int{}
	a.all = append(a.all, &arg)
	return &arg
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9_]`)

// argumentName is a name that a Check takes and that expressions can use.
func argumentName(name string) string {
	as := notInNames.ReplaceAllString(name, "_")
	reserved := append(checkrules.Predefined(), "in", "true", "false", "null")
	if as == "" || !strings.ContainsAny(as[:1], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") || slices.Contains(reserved, as) {
		as = "arg_" + as
	}
	return as[:min(len(as), 60)]
}

// predefined is the argument of every Check that all uses in the input give for this one; empty if they do not.
func (a *arguments) predefined(arg *argument) string {
	for as, n := range arg.dynamic {
		if n == a.uses {
			return as
		}
	}
	if len(arg.given) == 0 && len(arg.dynamic) == 0 && arg.value == nil {
		return ofFields[arg.fieldPath]
	}
	return ""
}

// ofFields are the arguments of every Check that fields of a Rollout become.
var ofFields = map[string]string{"metadata.name": "app", "metadata.namespace": "namespace"}

// usual is the value that an argument has if nothing else is said, or the one that all uses give; false if there is none.
func (arg *argument) usual() (string, bool) {
	switch {
	case arg == nil:
		return "", false
	case arg.value != nil:
		return *arg.value, true
	case len(arg.given) > 0 && len(slices.Compact(slices.Clone(arg.given))) == 1 && len(arg.dynamic) == 0:
		return arg.given[0], true
	}
	return "", false
}

// declared is the argument as a Check declares it.
func (arg *argument) declared(report *report) shipper.CheckArgument {
	values := slices.Clone(arg.given)
	if arg.value != nil {
		values = append(values, *arg.value)
	}
	pattern := patternFor(values)
	if slices.ContainsFunc(values, func(value string) bool { return strings.ContainsAny(value, "\"'`{}()\\") }) {
		report.add("spec.args."+arg.name, "takes %s in the Check, with which a value can change the query around it: narrow the pattern", pattern)
	}
	return shipper.CheckArgument{Name: arg.as, Default: arg.value, Pattern: pattern}
}

// patternFor is a pattern that values match; empty if they match the default.
func patternFor(values []string) string {
	var more []string
	longest := 253
	for _, value := range values {
		if checkrules.Matches(shipper.CheckArgument{}, value) == nil {
			continue
		}
		longest = max(longest, len(value))
		for _, r := range value {
			if quoted := classOf(r); quoted != "" && !slices.Contains(more, quoted) {
				more = append(more, quoted)
			}
		}
	}
	switch {
	case len(more) == 0 && longest == 253:
		return ""
	case len(more) > 50: // a pattern has 256 characters at most
		return `^[^\x00]*$`
	}
	slices.Sort(more)
	length := "*"
	if longest <= 1000 { // RE2 repeats 1000 times at most
		length = fmt.Sprintf("{0,%d}", longest)
	}
	return "^[A-Za-z0-9._:/" + strings.Join(more, "") + "-]" + length + "$"
}

// classOf is a character in a class of RE2; empty if the default pattern has it.
func classOf(r rune) string {
	switch {
	case checkrules.Matches(shipper.CheckArgument{}, string(r)) == nil:
		return ""
	case r < ' ':
		return fmt.Sprintf(`\x%02x`, r)
	case strings.ContainsRune(`\[]^`, r):
		return `\` + string(r)
	}
	return string(r)
}

// placeholder is an argument in a text of Argo; other braces are no arguments.
var placeholder = regexp.MustCompile(`\{\{\s*args\.([^\s{}]+)\s*\}\}`)

// escaped is a text in which $( does not begin an argument of a Check.
func escaped(text string) string { return strings.ReplaceAll(text, "$(", "$$(") }

// replaced is a text of Argo as Checks have it.
func replaced(text string, as func(name string) string) (string, error) {
	var out strings.Builder
	last := 0
	for _, at := range placeholder.FindAllStringSubmatchIndex(text, -1) {
		before := escaped(text[last:at[0]])
		if strings.HasSuffix(before, "$") {
			return "", fmt.Errorf("has a $ before an argument")
		}
		out.WriteString(before + "$(" + as(text[at[2]:at[3]]) + ")")
		last = at[1]
	}
	rest := escaped(text[last:])
	if strings.Contains(placeholder.ReplaceAllString(text, ""), "{{") {
		return "", fmt.Errorf("has {{ }} that is no argument")
	}
	return out.String() + rest, nil
}
