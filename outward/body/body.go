// SPDX-License-Identifier: Apache-2.0

// Package body evaluates the CEL expressions that give the content of messages about Releases. The values of one map have one type,
// or are dyn(…).
package body

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/utils/lru"

	"shipper.dev/shipper/outward/boundedcel"
)

const (
	// maxBytes bounds the result as JSON.
	maxBytes = boundedcel.MaxBytes
	// maxValues bounds the values of a result.
	maxValues = boundedcel.MaxElements
	// kept is how many compiled expressions are cached.
	kept = 1024
)

// ErrBusy means that ctx ended while other expressions were compiled.
var ErrBusy = boundedcel.ErrBusy

// Event is what an expression sees as event. Absent values are empty.
type Event struct {
	ID, Type, Source, Subject       string
	Time                            time.Time
	Event                           string
	Application, Namespace, Release string
	Step                            int32
	StepName, Reason, Message, User string
}

func (e Event) fields() map[string]any {
	return map[string]any{
		"id": e.ID, "type": e.Type, "source": e.Source, "subject": e.Subject, "time": e.Time.UTC(), "event": e.Event,
		"application": e.Application, "namespace": e.Namespace, "release": e.Release, "step": int64(e.Step), "stepName": e.StepName,
		"reason": e.Reason, "message": e.Message, "user": e.User,
	}
}

// language has the variable event, whose fields are those of Event.
var language = newLanguage()

var environments = sync.OnceValues(language.Environment)

func newLanguage() *boundedcel.Language {
	fields := map[string]*apiservercel.DeclField{}
	for name, value := range (Event{}).fields() {
		kind := apiservercel.StringType
		switch value.(type) {
		case int64:
			kind = apiservercel.IntType
		case time.Time:
			kind = apiservercel.TimestampType
		}
		fields[name] = apiservercel.NewDeclField(name, kind, true, nil, nil)
	}
	event := apiservercel.NewObjectType("shipper.Event", fields)
	return &boundedcel.Language{
		Types:     []*apiservercel.DeclType{event},
		Variables: []cel.EnvOption{cel.Variable("event", event.CelType())},
		Functions: slices.Concat(
			boundedcel.Operators, boundedcel.Conversions, boundedcel.Texts, boundedcel.Rewriting, boundedcel.Times),
		Page:   "docs/notifications.md",
		Accept: acceptMapOrText,
	}
}

// Check returns an error if an expression does not compile to a map or a string. It refuses CEL features that only this version of
// Shipper has: another version may have to evaluate the expression. The error is ErrBusy if the expression was not looked at.
func Check(ctx context.Context, expression string) error {
	_, err := compile(ctx, expression, environment.NewExpressions)
	return err
}

func compile(ctx context.Context, expression string, mode environment.Type) (*boundedcel.Program, error) {
	return language.Compile(ctx, expression, mode, environments)
}

func acceptMapOrText(out *cel.Type) error {
	switch out.Kind() {
	case types.StringKind, types.DynKind:
	case types.MapKind:
		if key := out.Parameters()[0].Kind(); key != types.StringKind && key != types.DynKind {
			return fmt.Errorf("must be a map with strings as keys or a text, is %s", out)
		}
	default:
		return fmt.Errorf("must be a map or a text, is %s", out)
	}
	return nil
}

// Bodies evaluates expressions and caches the compiled ones. It is safe for concurrent use.
type Bodies struct{ compiled *lru.Cache } // of *boundedcel.Program, by expression

// New returns Bodies.
func New() *Bodies { return &Bodies{lru.New(kept)} }

// Of is the value of an expression for an event: a string, or a map as JSON has it.
func (b *Bodies) Of(ctx context.Context, expression string, e Event) (any, error) {
	program, err := b.program(ctx, expression)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, boundedcel.Timeout) // also of the conversion
	defer cancel()
	out, _, err := program.Eval(ctx, map[string]any{"event": e.fields()})
	if err != nil {
		return nil, err
	}
	if text, ok := out.Value().(string); ok {
		if len(text) > maxBytes {
			return nil, tooLong()
		}
		return text, nil
	}
	fields, ok := out.(traits.Mapper)
	if !ok {
		return nil, fmt.Errorf("must be a map or a text, is %s", out.Type().TypeName())
	}
	return (&converter{ctx: ctx}).fields(fields, 1)
}

func (b *Bodies) program(ctx context.Context, expression string) (*boundedcel.Program, error) {
	if known, ok := b.compiled.Get(expression); ok {
		if program, ok := known.(*boundedcel.Program); ok {
			return program, nil
		}
	}
	program, err := compile(ctx, expression, environment.StoredExpressions)
	if err != nil {
		return nil, err
	}
	b.compiled.Add(expression, program)
	return program, nil
}
