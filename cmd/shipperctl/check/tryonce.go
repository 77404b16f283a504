// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// once is a check that is made once, as `-o json` prints it.
type once struct {
	Check    string   `json:"check"`
	Release  string   `json:"release"`
	Step     int32    `json:"step"`
	Clusters []string `json:"clusters"`
	// Tests describes the tests that Shipper would run, and Jobs have the spec of its Job by cluster.
	Tests string                     `json:"tests,omitempty"`
	Jobs  map[string]json.RawMessage `json:"jobs,omitempty"`
}

// once describes the tests or the Job that Shipper would run.
func (a *attempt) once(ctx context.Context) (*once, error) {
	out := &once{Check: a.run.From, Release: a.target.Name, Step: a.target.Spec.Step, Clusters: a.target.Spec.Clusters}
	if a.run.Check.Tests != nil {
		out.Tests = measures(&a.run.Check)
		return out, nil
	}
	out.Jobs = map[string]json.RawMessage{}
	for _, name := range out.Clusters {
		raw, err := a.job(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("the Job of check %s in cluster %s: %w", out.Check, name, err)
		}
		out.Jobs[name] = raw
	}
	return out, nil
}

// text is for people.
func (o *once) text() string {
	var out strings.Builder
	if o.Tests != "" {
		fmt.Fprintf(&out, "# check %s of release %s, step %d: %s, once in each of: %s\n", o.Check, o.Release, o.Step, o.Tests,
			strings.Join(o.Clusters, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(o.Jobs)) {
		text, err := yaml.JSONToYAML(o.Jobs[name])
		if err != nil {
			text = append(o.Jobs[name], '\n')
		}
		fmt.Fprintf(&out, "# check %s of release %s, step %d: spec of the Job in cluster %s\n---\n%s", o.Check, o.Release, o.Step, name, text)
	}
	return out.String() + "# try runs nothing: Shipper does when the step has its capacity and traffic\n"
}

// job is the spec of a Job with the values of arguments.
func (a *attempt) job(ctx context.Context, name string) ([]byte, error) {
	cluster := &shipper.Cluster{}
	if err := a.client.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
		return nil, fmt.Errorf("reading Cluster %q: %w", name, err)
	}
	raw, err := check.SubstituteJSON(a.run.Check.Job.Raw, check.Arguments(a.target, a.run, cluster, a.now))
	if err != nil {
		return nil, fmt.Errorf("job %w", err)
	}
	return raw, nil
}
