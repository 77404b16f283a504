// SPDX-License-Identifier: Apache-2.0

// Package promql checks queries of users with the parser of Prometheus, and restricts them to the series of one tenant.
package promql

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/strutil"
	"k8s.io/utils/lru"
)

const (
	// maxBytes bounds a query.
	maxBytes = 16 << 10
	// maxRegexp bounds the regular expressions of a query together, in characters and classes after repetition. The parser compiles
	// them: some(400 bytes){1000} would take 100 MB.
	maxRegexp = 20_000
	// maxOperators bounds the operators and left parentheses of a query: the time of the parser grows with their square.
	maxOperators = 500
	// maxMessage bounds the bytes of an error: the parser quotes what it does not expect.
	maxMessage = 256
	// kept is how many queries are cached.
	kept = 4096
)

var (
	// valid has the SHA-256 of queries that Parse has accepted.
	valid = lru.New(kept)
	// queries excludes experimental syntax, which a server may not have. It makes a parser for each query, and has no lock.
	queries = parser.NewParser(parser.Options{})
)

// Parse returns an error if a query is not valid, or gives neither a scalar nor an instant vector.
func Parse(query string) error {
	key := sha256.Sum256([]byte(query))
	if _, ok := valid.Get(key); ok {
		return nil
	}
	if _, err := parse(query); err != nil {
		return err
	}
	valid.Add(key, nil)
	return nil
}

func parse(query string) (parser.Expr, error) {
	if len(query) > maxBytes {
		return nil, fmt.Errorf("is longer than %d KiB", maxBytes>>10)
	}
	if err := measure(query); err != nil {
		return nil, shorten(err)
	}
	expr, err := queries.ParseExpr(query)
	if err != nil {
		return nil, shorten(err)
	}
	switch expr.Type() {
	case parser.ValueTypeScalar, parser.ValueTypeVector:
		return expr, nil
	case parser.ValueTypeMatrix:
		return nil, errors.New("gives a range vector: wrap it, as in rate(…)")
	default:
		return nil, fmt.Errorf("gives a %s: a query must give a number", parser.DocumentedType(expr.Type()))
	}
}

// measure returns an error if a query has too many operators to be parsed, or too large regular expressions to be compiled. It ignores
// other errors: the parser reports them.
func measure(query string) error {
	operators, total, regexpFollows := 0, 0, false
	lexer := parser.Lex(query)
	for item := (parser.Item{}); item.Typ != parser.EOF && item.Typ != parser.ERROR; {
		lexer.NextItem(&item)
		if item.Typ.IsOperator() || item.Typ == parser.LEFT_PAREN {
			if operators++; operators > maxOperators {
				return &parser.ParseErr{PositionRange: item.PositionRange(), Query: query, Err: errOperators}
			}
		}
		switch {
		case item.Typ == parser.COMMENT:
		case item.Typ == parser.STRING && regexpFollows:
			text, err := strutil.Unquote(item.Val)
			if err != nil {
				return nil
			}
			if re, err := syntax.Parse(text, syntax.Perl); err == nil {
				total += size(re)
			}
			if total > maxRegexp {
				return &parser.ParseErr{
					PositionRange: item.PositionRange(), Query: query, Err: errors.New("the regular expressions are too large"),
				}
			}
		default:
			regexpFollows = item.Typ == parser.EQL_REGEX || item.Typ == parser.NEQ_REGEX
		}
	}
	return nil
}

var errOperators = fmt.Errorf("a query may have %d operators and parentheses", maxOperators)

// size is the number of characters and classes of re after repetition.
func size(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n += size(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return n
}

// Enforce returns the query with label="value" in each of its selectors. A selector that excludes the value is an error.
func Enforce(query, label, value string) (string, error) {
	if label == model.MetricNameLabel || !model.LegacyValidation.IsValidLabelName(label) || value == "" {
		return "", fmt.Errorf("%s=%q selects no tenant", label, value)
	}
	expr, err := parse(query)
	if err != nil {
		return "", err
	}
	tenant, err := labels.NewMatcher(labels.MatchEqual, label, value)
	if err != nil {
		return "", fmt.Errorf("selecting a tenant: %w", err)
	}
	for selector := range selectors(expr) {
		var others []*labels.Matcher
		for _, m := range selector.LabelMatchers {
			switch {
			case m.Name != label:
				others = append(others, m)
			case !m.Matches(value):
				return "", shorten(fmt.Errorf("selects %s, and may select only %s", m, tenant))
			}
		}
		selector.LabelMatchers = append(others, tenant)
	}
	out := expr.String()
	if err := verify(out, tenant); err != nil {
		return "", err
	}
	return out, nil
}

// verify returns an error if a selector of a query lacks the matcher. The printer writes some names without quotes, so that its text
// may have other selectors than the expression.
func verify(query string, tenant *labels.Matcher) error {
	expr, err := parse(query)
	if err != nil {
		return fmt.Errorf("with %s: %w", tenant, err)
	}
	for selector := range selectors(expr) {
		has := false
		for _, m := range selector.LabelMatchers {
			has = has || m.Type == tenant.Type && m.Name == tenant.Name && m.Value == tenant.Value
		}
		if !has {
			return fmt.Errorf("cannot be restricted to %s: write it with plain names", tenant)
		}
	}
	return nil
}

// selectors yields every selector of an expression, those in parameters of aggregations included.
func selectors(expr parser.Expr) func(func(*parser.VectorSelector) bool) {
	return func(yield func(*parser.VectorSelector) bool) {
		open := true
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			if selector, ok := node.(*parser.VectorSelector); ok && open {
				open = yield(selector)
			}
			return nil
		})
	}
}

// shorten bounds the message of an error.
func shorten(err error) error {
	message := err.Error()
	if len(message) <= maxMessage {
		return err
	}
	return errors.New(strings.ToValidUTF8(message[:maxMessage], "") + "…")
}
