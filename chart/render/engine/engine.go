// SPDX-License-Identifier: Apache-2.0

// Package engine runs the templates of a chart like Helm's engine, but within bounds.
//
// Helm's engine is for users who render their own charts. It cannot be stopped, its output is unbounded, and one line can end
// the process: printing a map that contains itself overflows the stack, which Go cannot recover from. Shipper renders many
// tenants' charts in one process. So the same templates run with the same functions, scopes and library, but every template,
// loop and function call first checks its time and size.
package engine

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sort"
	"strings"
	"text/template"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
)

// noValue is what text/template prints for missing values; Helm prints an empty text.
const noValue = "<no value>"

// longError is the length above which the middle of an error is cut out.
const longError = 900

// ErrBounds means that the templates exceeded a bound.
var ErrBounds = errors.New("out of bounds")

// source is one template file of a chart or subchart.
type source struct {
	name string
	text string
	// scope is what the file's templates see; the files of one chart share it.
	scope map[string]any
	// folder is the chart's folder of templates.
	folder string
}

// Lookup is what the function lookup finds in a cluster: an object, or a list if name is empty; nil for nothing. Templates get a copy,
// which takes size bytes.
type Lookup func(apiVersion, kind, namespace, name string) (found map[string]any, size int64)

// Render is RenderIn where lookup finds nothing.
func Render(ctx context.Context, c *chart.Chart, scope chartutil.Values) (map[string]string, error) {
	return RenderIn(ctx, c, scope, nil)
}

// RenderIn runs the templates of c and its subcharts in the scope that chartutil.ToRenderValues made, and returns the result of
// each file by its path in the chart. It stops with ctx. getHostByName finds nothing.
func RenderIn(ctx context.Context, c *chart.Chart, scope chartutil.Values, lookup Lookup) (map[string]string, error) {
	sources := collect(c, scope, nil)
	inOrder(sources)
	r := newRun(ctx)
	r.lookup = lookup
	root := template.New("chart").Option("missingkey=zero").Funcs(r.functions())
	root.Funcs(r.late(root))
	for _, s := range sources {
		if err := r.acceptable(s.text); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		if _, err := root.New(s.name).Parse(s.text); err != nil {
			return nil, errors.New(strings.TrimPrefix(err.Error(), "template: "))
		}
	}
	r.instrument(root)
	rendered := make(map[string]string, len(sources))
	for _, s := range sources {
		if strings.HasPrefix(path.Base(s.name), "_") {
			continue // only included by others
		}
		s.scope["Template"] = chartutil.Values{"Name": s.name, "BasePath": s.folder}
		text, err := r.execute(root, s.name, Values(s.scope))
		if err != nil {
			return nil, explain(err)
		}
		if r.output -= int64(len(text)); r.output < 0 {
			return nil, exceeded("the chart renders to more than %d MiB", maxOutput>>20)
		}
		rendered[s.name] = strings.ReplaceAll(text, noValue, "")
	}
	return rendered, nil
}

// collect appends the files of c and its subcharts, each with its scope: a subchart sees the values under its name, and
// every chart sees the scopes of its own subcharts.
func collect(c *chart.Chart, outer chartutil.Values, sources []source) []source {
	values, _ := outer["Values"].(chartutil.Values)
	_, sources = collectScoped(c, outer, Values(values), sources)
	return sources
}

func collectScoped(c *chart.Chart, outer chartutil.Values, values Values, sources []source) (map[string]any, []source) {
	subcharts := map[string]any{}
	scope := map[string]any{
		"Chart": struct {
			chart.Metadata
			IsRoot bool
		}{*c.Metadata, c.IsRoot()},
		"Files": newFiles(c.Files), "Release": outer["Release"], "Capabilities": outer["Capabilities"],
		"Values": values, "Subcharts": subcharts,
	}
	for _, child := range c.Dependencies() {
		own, err := values.Table(child.Name())
		if err != nil {
			own = Values{}
		}
		subcharts[child.Name()], sources = collectScoped(child, scope, own, sources)
	}
	folder := c.ChartFullPath()
	isLibrary := strings.EqualFold(c.Metadata.Type, "library")
	for _, t := range c.Templates {
		if t == nil || (isLibrary && !strings.HasPrefix(path.Base(t.Name), "_")) {
			continue
		}
		sources = append(sources, source{
			name: path.Join(folder, t.Name), text: string(t.Data), scope: scope, folder: path.Join(folder, "templates"),
		})
	}
	return scope, sources
}

// inOrder sorts the files of deeper charts first: if two templates have the same name, the outer chart's is defined last and
// wins.
func inOrder(sources []source) {
	sort.SliceStable(sources, func(i, j int) bool {
		a, b := sources[i].name, sources[j].name
		if depthA, depthB := strings.Count(a, "/"), strings.Count(b, "/"); depthA != depthB {
			return depthA > depthB
		}
		return a > b
	})
}

// explain turns an error of text/template into one for the chart's author, with the place and the cause.
func explain(err error) error {
	text := strings.ReplaceAll(strings.TrimPrefix(err.Error(), "template: "), " | "+showName, "")
	if _, inside := errors.AsType[template.ExecError](err); inside {
		where, _, _ := strings.Cut(text, ": ")
		if failure, ok := errors.AsType[*said](err); ok {
			return fmt.Errorf("%s: %w", where, failure)
		}
		if failure, ok := errors.AsType[*outOfBounds](err); ok {
			return fmt.Errorf("%s: %w", where, failure)
		}
	}
	if len(text) > longError {
		// Recursive templates repeat themselves in between.
		head, tail := text[:longError/3], text[len(text)-longError/2:]
		text = strings.ToValidUTF8(head, "") + " … " + strings.ToValidUTF8(tail, "")
	}
	return &located{text: text, err: err}
}

// outOfBounds is an ErrBounds with a message.
type outOfBounds struct{ message string }

// Error says which bound.
func (o *outOfBounds) Error() string { return o.message }

// Is makes it an ErrBounds.
func (o *outOfBounds) Is(target error) bool { return target == ErrBounds }

func exceeded(format string, args ...any) error {
	return &outOfBounds{"out of bounds: " + fmt.Sprintf(format, args...)}
}

// said is the message of a chart's fail or required.
type said struct{ message string }

// Error is the chart's message.
func (s *said) Error() string { return s.message }

// located is an error with a shortened text.
type located struct {
	text string
	err  error
}

// Error is the tidy text.
func (l *located) Error() string { return l.text }

// Unwrap returns the error itself.
func (l *located) Unwrap() error { return l.err }
