// SPDX-License-Identifier: Apache-2.0

package chartcheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/lots"
	"shipper.dev/shipper/chart/render"
)

// Report is what Shipper does with a chart, as `-o json` prints it.
type Report struct {
	Chart   string `json:"chart"`
	Version string `json:"version"`
	// Naming is Release or Application: the value of spec.template.chart.naming.
	Naming shipper.ChartNaming `json:"naming"`
	// Workloads are those that a rollout changes, and Jobs.
	Workloads []Workload `json:"workloads"`
	Services  []Service  `json:"services"`
	// Copies are the ConfigMaps and Secrets of which each Release has its own.
	Copies []Copy `json:"copies"`
	// Scalers are side by side, as what they scale.
	Scalers []string `json:"scalers,omitempty"`
	// Shared counts the objects that follow the newest Release, by kind.
	Shared string `json:"shared,omitempty"`
	Hooks  []Hook `json:"hooks"`
	// Rights are those that Shipper lacks in an application cluster by default.
	Rights []Right `json:"rights"`
	// Warnings say what may surprise users, and Refused what cannot be rolled out, with what to do.
	Warnings []string `json:"warnings"`
	Refused  []string `json:"refused"`
}

// Workload is a row of the first table.
type Workload struct {
	Workload string   `json:"workload"`
	Lot      lots.Lot `json:"lot"`
	Why      string   `json:"why,omitempty"`
	Pods     int32    `json:"pods"`
	// Half says what a step of 50 % means.
	Half string `json:"half"`
}

// Service is a row of the second table.
type Service struct {
	Service string   `json:"service"`
	Use     lots.Use `json:"use"`
	// Moves are the workloads whose Pods it gets from step to step.
	Moves []string `json:"moves,omitempty"`
	Why   string   `json:"why,omitempty"`
}

// Copy is a ConfigMap or Secret that is copied for each Release; for Pods in place, for each that has another content.
type Copy struct {
	Object string `json:"object"`
	// UsedBy are the workloads whose Pods use the copy.
	UsedBy []string `json:"usedBy"`
}

// Hook is an object that is run, with the moments of Helm.
type Hook struct {
	Object string   `json:"object"`
	Events []string `json:"events"`
}

// ReportOf renders a chart as for the first Release of an Application in a cluster of a recent version, and says what Shipper does with it.
// Faults of the chart are in Refused; the error is of another cause, such as the end of ctx.
func ReportOf(ctx context.Context, c *render.Chart, values *shipper.ChartValues, app, namespace string) (*Report, error) {
	out := &Report{
		Chart: c.Name(), Version: c.Version(), Workloads: []Workload{}, Services: []Service{}, Copies: []Copy{}, Hooks: []Hook{},
		Rights: []Right{}, Warnings: []string{}, Refused: []string{},
	}
	target := render.Target{ReleaseName: app + "-12345678-0", Namespace: namespace, App: app}
	var err error
	if target.Naming, err = c.Naming(ctx, values, target); err != nil {
		return nil, err
	}
	out.Naming = target.Naming
	manifest, err := c.Render(ctx, values, target)
	if err == nil {
		err = out.add(manifest, target)
	}
	if failure, ok := errors.AsType[*chart.Error](err); ok && !failure.Retry {
		out.Refused, err = append(out.Refused, failure.Message), nil
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// add says what becomes of the objects and hooks.
func (r *Report) add(manifest render.Manifest, target render.Target) error {
	hooks, err := manifest.Hooks(target)
	if err != nil {
		return err
	}
	for i := range hooks {
		hook, err := render.HookOf(&hooks[i])
		if err != nil {
			return err
		}
		r.Hooks = append(r.Hooks, Hook{named(&hooks[i]), events(hook)})
	}
	if r.Rights, err = rightsFor(slices.Concat(manifest.Objects, hooks)); err != nil {
		return err
	}
	if sentence := warnOfRights(r.Rights); sentence != "" {
		r.Warnings = append(r.Warnings, sentence)
	}
	r.Warnings = append(r.Warnings, manifest.Warnings()...)
	if target.Naming == shipper.NamingByRelease {
		return r.addByRelease(manifest, target)
	}
	table, err := manifest.Lots(target)
	if len(table.Refused) == 0 && err != nil {
		return err
	}
	r.addTable(table)
	return nil
}

// addTable says what becomes of objects that are named by Application.
func (r *Report) addTable(table lots.Table) {
	var shared []unstructured.Unstructured
	for i := range table.Entries {
		e := &table.Entries[i]
		switch kind := e.Object.GetKind(); {
		case e.Lot == lots.InPlace, e.Lot == lots.SideBySide && (kind == "Deployment" || kind == "Job"):
			r.Workloads = append(r.Workloads, Workload{e.String(), e.Lot, e.Reason, e.Replicas, half(e)})
		case e.Lot == lots.SideBySide:
			r.Scalers = append(r.Scalers, e.String())
		default:
			shared = append(shared, *e.Object)
		}
		if e.Copy != nil {
			r.Copies = append(r.Copies, Copy{e.String(), e.UsedBy})
		}
	}
	r.Shared = summary(shared)
	for _, s := range table.Services {
		one := Service{Service: s.Name, Use: s.Use, Why: s.Reason}
		if s.Use != lots.AsItIs {
			for _, name := range s.SideBySide {
				one.Moves = append(one.Moves, "Deployment "+name)
			}
			one.Moves = append(one.Moves, s.InPlace...)
		}
		r.Services = append(r.Services, one)
	}
	r.Warnings, r.Refused = append(r.Warnings, table.Warnings...), append(r.Refused, table.Refused...)
}

// addByRelease says what becomes of a chart that fits the rules of the original.
func (r *Report) addByRelease(manifest render.Manifest, target render.Target) error {
	objects, err := manifest.Prepare(target)
	if err != nil {
		return err
	}
	var shared []unstructured.Unstructured
	for i := range objects {
		o := &objects[i]
		use := o.GetLabels()[shipper.LBLabel]
		switch {
		case o.GetKind() == "Deployment" && strings.HasPrefix(o.GetAPIVersion(), "apps/"):
			e := lots.Entry{Object: o, Given: o.GetName(), Lot: lots.SideBySide, Replicas: manifest.Replicas()}
			name := strings.ReplaceAll(named(o), target.ReleaseName, "RELEASE")
			r.Workloads = append(r.Workloads, Workload{name, e.Lot, "the chart gives it the name of the Release", e.Replicas, half(&e)})
		case o.GetKind() == "Service" && use == shipper.LBForProduction:
			r.Services = append(r.Services, Service{Service: o.GetName(), Use: lots.Production, Moves: []string{"Deployment"}})
		case o.GetKind() == "Service" && use == shipper.LBForPreview:
			r.Services = append(r.Services, Service{Service: o.GetName(), Use: lots.Preview, Moves: []string{"Deployment"}})
		default:
			shared = append(shared, *o)
		}
	}
	r.Shared = summary(shared)
	return nil
}

// half says what a step of 50 % means for a workload.
func half(e *lots.Entry) string {
	n := strategy.Pods(e.Replicas, 50)
	switch kind := e.Object.GetKind(); {
	case kind == "Job":
		return "it runs when the Release is installed"
	case e.Lot == lots.SideBySide:
		return fmt.Sprintf("%d of %d Pods beside those of the incumbent", n, e.Replicas)
	case kind == "StatefulSet":
		return fmt.Sprintf("%d of %d Pods replaced, the highest numbers first", n, e.Replicas)
	default:
		return "unchanged until the step of 100 %"
	}
}

// events are the moments at which a hook is run.
func events(hook *render.Hook) []string {
	out := []string{}
	for _, event := range hook.Events {
		out = append(out, cmp.Or(map[release.HookEvent]string{release.HookTest: "test, on request"}[event], string(event)))
	}
	return out
}

// named names an object in a report.
func named(o *unstructured.Unstructured) string { return o.GetKind() + " " + o.GetName() }
