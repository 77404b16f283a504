// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/template"
)

// Bounds for the templates of one chart.
const (
	// maxOutput bounds the total rendered size, in bytes.
	maxOutput = 16 << 20
	// maxFuel bounds the cost of all their work, in bytes of allocated memory. Time counts too: a call costs callFuel, an
	// iteration of a loop stepFuel, a template templateFuel.
	maxFuel      = 256 << 20
	callFuel     = 128
	stepFuel     = 128
	templateFuel = 1024
	// tplFuel is the cost of a call of tpl, parseFuel that of each byte of a template, and decodeFuel that of each byte of a
	// decoded text.
	tplFuel    = 4 << 10
	parseFuel  = 4
	decodeFuel = 16
	// maxText bounds a value that is printed, encoded or otherwise processed as a whole.
	maxText = 8 << 20
	// largeText is the size from which a value is processed only after a look at ctx.
	largeText = 64 << 10
	// maxFiles bounds the files that are encoded together; no ConfigMap or Secret holds half as much.
	maxFiles = 2 << 20
	// maxSource bounds the length of one template, and maxActions its actions.
	maxSource  = 4 << 20
	maxActions = 50_000
	// maxDepth bounds the depth of template calls.
	maxDepth = 1000
	// maxNesting bounds the depth of values that are processed as a whole.
	maxNesting = 200
	// checkEvery is the number of calls and iterations between checks of ctx.
	checkEvery = 256
)

// run is one rendering. It is used by one goroutine.
type run struct {
	ctx    context.Context
	fuel   int64
	output int64
	depth  int
	ticks  int
	lookup Lookup // nil finds nothing
}

func newRun(ctx context.Context) *run {
	return &run{ctx: ctx, fuel: maxFuel, output: maxOutput}
}

// spend subtracts fuel, and fails when no fuel or no time is left.
func (r *run) spend(fuel int64) error {
	if r.fuel -= fuel; r.fuel < 0 {
		return exceeded("the chart's templates do too much")
	}
	if r.ticks++; r.ticks%checkEvery == 0 {
		return r.ctx.Err()
	}
	return nil
}

// enter starts a template.
func (r *run) enter() (string, error) {
	if r.depth++; r.depth > maxDepth {
		return "", exceeded("templates call one another more than %d deep", maxDepth)
	}
	return "", r.spend(templateFuel)
}

// leave ends it.
func (r *run) leave() string {
	r.depth--
	return ""
}

// step starts an iteration of a loop.
func (r *run) step() (string, error) { return "", r.spend(stepFuel) }

// acceptable refuses a template that is too long to be parsed, or that calls an inserted function.
func (r *run) acceptable(text string) error {
	if len(text) > maxSource || strings.Count(text, "{{") > maxActions {
		return exceeded("a template of more than %d MiB or %d actions", maxSource>>20, maxActions)
	}
	if strings.Contains(text, reserved) {
		return fmt.Errorf("templates may not use the name %s", reserved)
	}
	return r.spend(int64(parseFuel * len(text)))
}

// execute runs one template.
func (r *run) execute(t *template.Template, name string, data any) (string, error) {
	out := &page{run: r}
	depth := r.depth
	err := t.ExecuteTemplate(out, name, data)
	r.depth = depth
	return out.text.String(), err
}

// page is the output of a template.
type page struct {
	run  *run
	text strings.Builder
}

// errPage means that the output of one template is too large.
var errPage = exceeded("a template renders to more than %d MiB", maxOutput>>20)

// Write pays for the written bytes.
func (p *page) Write(b []byte) (int, error) {
	if p.text.Len()+len(b) > maxOutput {
		return 0, errPage
	}
	if err := p.run.spend(int64(len(b))); err != nil {
		return 0, err
	}
	return p.text.Write(b)
}

// late are the functions that need the set of templates.
func (r *run) late(t *template.Template) template.FuncMap {
	return template.FuncMap{
		"include": func(name string, data any) (string, error) { return r.execute(t, name, data) },
		"tpl":     func(text string, data any) (string, error) { return r.tpl(t, text, data) },
	}
}

// tpl runs a text as a template among all others. Its definitions are visible only within it.
func (r *run) tpl(parent *template.Template, text string, data any) (string, error) {
	if err := errors.Join(r.spend(tplFuel), r.acceptable(text)); err != nil {
		return "", err
	}
	own, err := parent.Clone()
	if err != nil {
		return "", fmt.Errorf("copying the templates for tpl: %w", err)
	}
	own.Option("missingkey=zero").Funcs(r.late(own))
	known := own.Templates()
	parsed, err := own.New(parent.Name()).Parse(text)
	if err != nil {
		return "", fmt.Errorf("parsing what is given to tpl: %w", err)
	}
	r.instrument(parsed, known...)
	out := &page{run: r}
	depth := r.depth
	err = parsed.Execute(out, data)
	r.depth = depth
	return strings.ReplaceAll(out.text.String(), noValue, ""), err
}
