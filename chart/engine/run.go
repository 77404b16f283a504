// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/template"
)

// What the templates of one chart may have.
const (
	// maxOutput is how much they may render to.
	maxOutput = 16 << 20
	// maxFuel is what all their work together may cost. It is counted in bytes of memory for what is made. Time costs
	// too: a call costs callFuel, a turn of a loop stepFuel, a template templateFuel.
	maxFuel      = 256 << 20
	callFuel     = 128
	stepFuel     = 128
	templateFuel = 1024
	// tplFuel is the cost of a call of tpl, parseFuel that of each byte of a template, and decodeFuel that of each byte of
	// a decoded text.
	tplFuel    = 4 << 10
	parseFuel  = 4
	decodeFuel = 16
	// maxText is how large a value may be that is printed, encoded or otherwise worked on as a whole.
	maxText = 8 << 20
	// maxFiles is how large files may be together that are encoded at once; no ConfigMap or Secret holds half as much.
	maxFiles = 2 << 20
	// maxSource is how long one template may be, and maxActions how many actions it may have.
	maxSource  = 4 << 20
	maxActions = 50_000
	// maxDepth is how deep templates may call one another.
	maxDepth = 1000
	// maxNesting is how deep values may be nested that are worked on as a whole.
	maxNesting = 200
	// checkEvery is how many calls and turns may pass before ctx is looked at.
	checkEvery = 256
)

// run is one rendering. It is used by one goroutine.
type run struct {
	ctx    context.Context
	fuel   int64
	output int64
	depth  int
	ticks  int
}

func newRun(ctx context.Context) *run {
	return &run{ctx: ctx, fuel: maxFuel, output: maxOutput}
}

// spend pays for work, and stops it when there is no fuel or no time left.
func (r *run) spend(fuel int64) error {
	if r.fuel -= fuel; r.fuel < 0 {
		return exceeded("the chart's templates do too much")
	}
	if r.ticks++; r.ticks%checkEvery == 0 {
		return r.ctx.Err()
	}
	return nil
}

// enter begins a template.
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

// step begins a turn of a loop.
func (r *run) step() (string, error) { return "", r.spend(stepFuel) }

// acceptable refuses a template that is too long to be parsed, or that calls what is put into templates here.
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

// page is what a template writes to.
type page struct {
	run  *run
	text strings.Builder
}

// errPage says that one template renders to too much.
var errPage = exceeded("a template renders to more than %d MiB", maxOutput>>20)

// Write pays for what is written.
func (p *page) Write(b []byte) (int, error) {
	if p.text.Len()+len(b) > maxOutput {
		return 0, errPage
	}
	if err := p.run.spend(int64(len(b))); err != nil {
		return 0, err
	}
	return p.text.Write(b)
}

// late are the functions that need the set of templates they are called from.
func (r *run) late(t *template.Template) template.FuncMap {
	return template.FuncMap{
		"include": func(name string, data any) (string, error) { return r.execute(t, name, data) },
		"tpl":     func(text string, data any) (string, error) { return r.tpl(t, text, data) },
	}
}

// tpl runs a text as a template among all others. What it defines is seen within it only.
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
