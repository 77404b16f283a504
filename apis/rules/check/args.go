// SPDX-License-Identifier: Apache-2.0

package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// DefaultPattern is what the value of an argument has to match if its Check names no pattern. Such a value cannot leave its place in a
// query, a URL or a text.
const DefaultPattern = `^[A-Za-z0-9._:/-]{0,253}$`

// Incumbent is the predefined argument with the Release that a contender is compared with.
const Incumbent = "incumbent"

// Predefined are the arguments that every Check has: app, namespace, release and incumbent are names of objects, cluster and region say
// where it is measured, step is the index of the step, and elapsed the time since the run began, in seconds with an s.
func Predefined() []string {
	return []string{"app", "namespace", "release", Incumbent, "cluster", "region", "step", "elapsed"}
}

// Arguments are the values of all arguments of a check in a cluster at a time: the predefined ones, and those of its run.
func Arguments(target *shipper.CheckTarget, run *shipper.CheckRun, cluster *shipper.Cluster, now time.Time) map[string]string {
	elapsed := max(1, int(now.Sub(target.Spec.StartTime.Time).Seconds()))
	values := map[string]string{
		"app": target.Labels[shipper.AppLabel], "namespace": target.Namespace, "release": ReleaseOf(target), Incumbent: target.Spec.Incumbent,
		"cluster": cluster.Name, "region": cluster.Spec.Region, "step": strconv.Itoa(int(target.Spec.Step)),
		"elapsed": strconv.Itoa(elapsed) + "s",
	}
	maps.Copy(values, run.Args)
	return values
}

// ArgumentError is an argument that a step gives wrongly, or not.
type ArgumentError struct {
	Name, Message string
	// Missing is true if the step gives none.
	Missing bool
}

// Error names the argument.
func (e ArgumentError) Error() string { return e.Name + ": " + e.Message }

// Resolve returns the values of the arguments that a Check declares: those given, and defaults.
func Resolve(declared []shipper.CheckArgument, given map[string]string) (map[string]string, []ArgumentError) {
	values, errs := map[string]string{}, []ArgumentError{}
	for _, arg := range declared {
		value, is := given[arg.Name]
		switch {
		case !is && arg.Default == nil:
			errs = append(errs, ArgumentError{Name: arg.Name, Message: "the Check needs a value for this argument", Missing: true})
			continue
		case !is:
			value = *arg.Default
		}
		if err := Matches(arg, value); err != nil {
			errs = append(errs, ArgumentError{Name: arg.Name, Message: err.Error()})
			continue
		}
		values[arg.Name] = value
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.ContainsFunc(declared, func(a shipper.CheckArgument) bool { return a.Name == name }) {
			errs = append(errs, ArgumentError{Name: name, Message: unknown(name, namesOf(declared))})
		}
	}
	return values, errs
}

const (
	// maxPattern bounds the characters of a pattern after its repetitions are written out, and maxMatched the bytes of a value: matching takes
	// time in proportion to both.
	maxPattern = 600
	maxMatched = 256
)

// Matches returns an error if a value does not match the pattern of an argument as a whole.
func Matches(arg shipper.CheckArgument, value string) error {
	pattern, whole := DefaultPattern, defaultPattern
	if arg.Pattern != "" {
		pattern = arg.Pattern
		var err error
		if whole, err = Pattern(pattern); err != nil {
			return err
		}
	}
	if len(value) > maxMatched {
		return fmt.Errorf("has more than %d bytes", maxMatched)
	}
	if !whole.MatchString(value) {
		return fmt.Errorf("does not match the argument's pattern %s", pattern)
	}
	return nil
}

var defaultPattern = regexp.MustCompile(`\A(?:` + DefaultPattern + `)\z`)

// Pattern compiles the pattern of an argument for the whole value. One that is too large is an error.
func Pattern(pattern string) (*regexp.Regexp, error) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("the argument's pattern is no RE2 expression: %w", err)
	}
	if patternSize(tree) > maxPattern {
		return nil, fmt.Errorf("the argument's pattern has more than %d characters with its repetitions", maxPattern)
	}
	whole, err := regexp.Compile(`\A(?:` + pattern + `)\z`)
	if err != nil {
		return nil, fmt.Errorf("the argument's pattern is no RE2 expression: %w", err)
	}
	return whole, nil
}

// patternSize is the size of a pattern with its repetitions written out; more than maxPattern is not counted further.
func patternSize(tree *syntax.Regexp) int {
	size := 1
	if tree.Op == syntax.OpLiteral {
		size = len(tree.Rune)
	}
	for _, sub := range tree.Sub {
		size += patternSize(sub)
	}
	if tree.Op == syntax.OpRepeat {
		size *= max(tree.Min, tree.Max, 1)
	}
	return min(size, maxPattern+1)
}

func namesOf(declared []shipper.CheckArgument) []string {
	out := make([]string, len(declared))
	for i, arg := range declared {
		out[i] = arg.Name
	}
	return out
}

func unknown(name string, declared []string) string {
	return fmt.Sprintf("no argument %s is declared; there are: %s", name, strings.Join(append(slices.Sorted(slices.Values(declared)),
		Predefined()...), ", "))
}

// maxSubstituted bounds, in bytes, a text after its arguments are filled in: values may be in it many times.
const maxSubstituted = 64 << 10

// Substitute replaces each $(NAME) in a text by the value of the argument, as Kubernetes does in the args of a container; $$( stands for
// $(. A name that values does not have is an error, and so is a text of more than 64 KiB.
func Substitute(text string, values map[string]string) (string, error) {
	return substitute(text, values, func(value string) string { return value })
}

var errTooLong = fmt.Errorf("has more than %d bytes with its arguments", maxSubstituted)

func substitute(text string, values map[string]string, escape func(string) string) (string, error) {
	var out strings.Builder
	for {
		if out.Len()+len(text) > maxSubstituted {
			return "", errTooLong
		}
		i := strings.Index(text, "$(")
		if i < 0 {
			out.WriteString(text)
			return out.String(), nil
		}
		if i > 0 && text[i-1] == '$' {
			out.WriteString(text[:i-1] + "$(")
			text = text[i+2:]
			continue
		}
		name, rest, closed := strings.Cut(text[i+2:], ")")
		value, known := values[name]
		switch {
		case !closed:
			return "", fmt.Errorf("$(%s is not closed by )", shortened(name))
		case !known:
			declared := slices.DeleteFunc(slices.Collect(maps.Keys(values)), func(n string) bool { return slices.Contains(Predefined(), n) })
			return "", fmt.Errorf("%s", unknown(shortened(name), declared))
		}
		out.WriteString(text[:i] + escape(value))
		text = rest
	}
}

// maxQuoted bounds, in bytes, how much of a text an error repeats.
const maxQuoted = 32

func shortened(text string) string {
	if len(text) <= maxQuoted {
		return text
	}
	return strings.ToValidUTF8(text[:maxQuoted], "") + "…"
}

// Names reports whether a text contains $(NAME).
func Names(text, name string) bool {
	for rest := text; ; {
		i := strings.Index(rest, "$("+name+")")
		if i < 0 {
			return false
		}
		if i == 0 || rest[i-1] != '$' {
			return true
		}
		rest = rest[i+2:]
	}
}

// SubstituteURL is Substitute for a URL: values are escaped as its path or its query requires. An argument in the scheme or the host is an
// error, and so is one that makes the path another one than its author wrote.
func SubstituteURL(text string, values map[string]string) (string, error) {
	head, rest := text, ""
	if scheme, after, found := strings.Cut(text, "://"); found {
		if i := strings.IndexAny(after, "/?#"); i >= 0 {
			head, rest = scheme+"://"+after[:i], after[i:]
		}
	}
	if strings.Contains(head, "$(") {
		return "", fmt.Errorf("has an argument in its host: only its path and its query may have arguments")
	}
	template, query, asks := strings.Cut(rest, "?")
	path, err := substitute(template, values, url.PathEscape)
	if err == nil && path != template && leaves(path) {
		return "", errors.New("has . or .. between slashes with its arguments: the server would read another path")
	}
	if err != nil || !asks {
		return head + path, err
	}
	query, err = substitute(query, values, url.QueryEscape)
	return head + path + "?" + query, err
}

// leaves reports whether a path has a segment . or .., also where servers unescape slashes.
func leaves(path string) bool {
	plain, err := url.PathUnescape(path)
	return err != nil || slices.ContainsFunc(strings.FieldsFunc(plain, func(r rune) bool { return r == '/' || r == '\\' }),
		func(segment string) bool { return segment == "." || segment == ".." })
}

// SubstituteJSON is Substitute for the strings of a JSON text, names of fields not included.
func SubstituteJSON(text []byte, values map[string]string) ([]byte, error) {
	var content any
	if err := json.Unmarshal(text, &content); err != nil {
		return nil, fmt.Errorf("is no JSON: %w", err)
	}
	left := maxSubstituted
	content, err := substituteIn(content, values, &left)
	if err != nil {
		return nil, err
	}
	out, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("cannot be written as JSON: %w", err)
	}
	if len(out) > maxSubstituted {
		return nil, errTooLong
	}
	return out, nil
}

// substituteIn fills arguments into the strings of a JSON value. left is how many bytes they may have together.
func substituteIn(content any, values map[string]string, left *int) (any, error) {
	var err error
	switch content := content.(type) {
	case string:
		text, err := Substitute(content, values)
		if *left -= len(text); err == nil && *left < 0 {
			return nil, errTooLong
		}
		return text, err
	case []any:
		for i := range content {
			if content[i], err = substituteIn(content[i], values, left); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for key := range content {
			if content[key], err = substituteIn(content[key], values, left); err != nil {
				return nil, err
			}
		}
	}
	return content, nil
}

// Samples are values of all arguments with which a Check can be validated before it is used: defaults, and otherwise texts that match the
// default pattern.
func Samples(declared []shipper.CheckArgument) map[string]string {
	out := map[string]string{}
	for _, name := range Predefined() {
		out[name] = name
	}
	out["step"], out["elapsed"] = "0", "60s"
	for _, arg := range declared {
		out[arg.Name] = "1"
		if arg.Default != nil {
			out[arg.Name] = *arg.Default
		}
	}
	return out
}
