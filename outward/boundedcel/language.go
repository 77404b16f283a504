// SPDX-License-Identifier: Apache-2.0

// Package boundedcel compiles CEL expressions of users to programs whose time and memory are bounded. The environment is that of the
// API server's matchConditions, without the functions whose cost is not bounded.
package boundedcel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

const (
	// Timeout bounds one evaluation where the machine is slow.
	Timeout = time.Second
	// maxCompilations bounds the expressions that are compiled at the same time, each with some MB of memory.
	maxCompilations = 2
	// maxIssues bounds the errors of one expression that are reported.
	maxIssues = 3
)

var compiling = semaphore.NewWeighted(maxCompilations)

// ErrBusy means that the context ended while other expressions were compiled.
var ErrBusy = errors.New("waited too long for other expressions to be compiled")

// Language is what an expression may contain and must result in.
type Language struct {
	// Types are those of Variables that have fields.
	Types     []*apiservercel.DeclType
	Variables []cel.EnvOption
	// Functions may be called; Page of the docs lists them.
	Functions []string
	Page      string
	// Accept returns an error if an expression must not have this type.
	Accept func(*cel.Type) error
	// Hint, which may be nil, explains an expression with a call whose arguments have other types than the function.
	Hint func(*cel.Ast) string
}

// Environment builds the environment of Compile.
func (l *Language) Environment() (*environment.EnvSet, error) {
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        l.Variables,
		DeclTypes:         l.Types,
	}, environment.StrictCostOpt)
	if err != nil {
		return nil, fmt.Errorf("building the CEL environment: %w", err)
	}
	return set, nil
}

// Compile compiles an expression in the Environment that environments returns. With environment.NewExpressions it refuses features
// that only this version has. The error is ErrBusy if the expression was not looked at.
func (l *Language) Compile(
	ctx context.Context, expression string, mode environment.Type, environments func() (*environment.EnvSet, error),
) (*Program, error) {
	if compiling.Acquire(ctx, 1) != nil {
		return nil, ErrBusy
	}
	defer compiling.Release(1)
	set, err := environments()
	if err != nil {
		return nil, err
	}
	env, err := set.Env(mode)
	if err != nil {
		return nil, fmt.Errorf("building the CEL environment: %w", err)
	}
	parsed, issues := env.Parse(expression)
	if issues.Err() != nil {
		return nil, describe(issues, "")
	}
	if err := l.permit(parsed); err != nil {
		return nil, err
	}
	checked, issues := env.Check(parsed)
	if issues.Err() != nil {
		hint := ""
		if l.Hint != nil && strings.Contains(issues.Err().Error(), "no matching overload") {
			hint = l.Hint(parsed)
		}
		return nil, describe(issues, hint)
	}
	if err := l.permit(checked); err != nil {
		return nil, err
	}
	if err := l.Accept(checked.OutputType()); err != nil {
		return nil, err
	}
	compiled, err := env.Program(checked, cel.CostLimit(Budget), cel.CostTracking(costs{}), cel.InterruptCheckFrequency(1))
	if err != nil {
		return nil, fmt.Errorf("planning the expression: %w", err)
	}
	return &Program{compiled: compiled, names: namesOf(parsed)}, nil
}

// describe gives the first errors of the compiler on one line, each with its line and column.
func describe(issues *cel.Issues, hint string) error {
	var out []string
	for _, e := range issues.Errors() {
		message := strings.ReplaceAll(e.Message, " (in container '')", "")
		out = append(out, fmt.Sprintf("%d:%d: %s", e.Location.Line(), e.Location.Column()+1, message))
		if len(out) == maxIssues {
			break
		}
	}
	if hint != "" {
		out = append(out, hint)
	}
	return fmt.Errorf("does not compile: %s", strings.Join(out, "; "))
}
