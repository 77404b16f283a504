// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
)

// What an Application has until a person replaces it.
const (
	placeholderRegion     = "REGION"
	placeholderRepository = "https://REPOSITORY"
)

// settings are what a Rollout does not say.
type settings struct {
	// regions of the Applications; none means a placeholder.
	regions []string
	// apart has the charts in files of their own, and not in the Applications.
	apart bool
	// repository is the URL that the charts will be in; empty means a placeholder. Used only if apart.
	repository string
}

// converted is one Application.
type converted struct {
	app   *shipper.Application
	chart files
	// reviews are what a person has to review.
	reviews []string
}

// result is what becomes of an input.
type result struct {
	all []converted
	// leftOut are the objects of the input that no Application has.
	leftOut []string
}

// reviews are all that a person has to review.
func (r result) reviews() []string {
	out := slices.Clone(r.leftOut)
	for _, one := range r.all {
		out = append(out, one.reviews...)
	}
	return out
}

// convert converts the Rollouts in YAML documents.
func convert(ctx context.Context, raw []byte, with settings) (result, error) {
	all, err := read(raw)
	if err != nil {
		return result{}, err
	}
	var out result
	used, owner := map[int]bool{}, map[int]string{}
	var kinds []string
	for i, d := range all {
		kinds = append(kinds, d.GetKind())
		if !d.is(argo, "Rollout") {
			continue
		}
		used[i] = true
		one, from, err := convertOne(ctx, d, all, with)
		if err != nil {
			return result{}, err
		}
		for _, i := range from {
			if other := owner[i]; other != "" {
				one.reviews = append(one.reviews, fmt.Sprintf("%s: %s is in the chart of %s, too: give each its own, since an object belongs to one "+
					"Application", d.title(), all[i].title(), other))
			}
			used[i], owner[i] = true, d.title()
		}
		out.all = append(out.all, one)
	}
	switch {
	case len(all) == 0:
		return result{}, errors.New("the input is empty: give Rollouts of " + argo)
	case len(out.all) == 0:
		return result{}, fmt.Errorf("there is no Rollout of %s in the input, only: %s", argo,
			strings.Join(slices.Compact(slices.Sorted(slices.Values(kinds))), ", "))
	}
	for i, d := range all {
		if !used[i] {
			out.leftOut = append(out.leftOut, unused(d))
		}
	}
	return out, nil
}

// convertOne converts a Rollout, and returns the indexes of the documents that its chart was made from.
func convertOne(ctx context.Context, d document, all []document, with settings) (converted, []int, error) {
	r, err := decode(d)
	if err != nil {
		return converted{}, nil, err
	}
	source, template, selector, err := templateOf(d, r, all)
	if err != nil {
		return converted{}, nil, err
	}
	report := &report{object: d.title()}
	report.fields(d)
	r.completeReplicas(all, source, report)
	app, err := application(d, r, with.regions, report)
	if err != nil {
		return converted{}, nil, err
	}
	from, err := servicesOf(d, r, template, all, report)
	if err != nil {
		return converted{}, nil, err
	}
	chart, err := chartOf(d, r, template, selector, from)
	if err != nil {
		return converted{}, nil, fmt.Errorf("document %d: %w", d.number, err)
	}
	archive, err := pack(d.GetName(), chart)
	if err != nil {
		return converted{}, nil, fmt.Errorf("document %d: %w", d.number, err)
	}
	app.Spec.Template.Chart = reference(d, archive, with, report)
	if err := check(ctx, app, archive); err != nil {
		return converted{}, nil, fmt.Errorf("document %d: %w", d.number, err)
	}
	if !with.apart && len(archive) > render.MaxInlineBytes {
		return converted{}, nil, fmt.Errorf("document %d: the chart has %d KiB, and an Application takes %d KiB: write it to a folder "+
			"with --chart-dir", d.number, len(archive)>>10, render.MaxInlineBytes>>10)
	}
	sources := from.used
	if source >= 0 {
		sources = append(sources, source)
	}
	return converted{app, chart, report.reviews}, sources, nil
}

// reference is the chart as an Application names it.
func reference(d document, archive []byte, with settings, report *report) shipper.Chart {
	chart := shipper.Chart{Name: d.GetName(), Version: chartVersion}
	switch {
	case !with.apart:
		chart.Archive = base64.StdEncoding.EncodeToString(archive)
	case with.repository != "":
		chart.RepoURL = with.repository
	default:
		chart.RepoURL = placeholderRepository
		report.add("spec.template", "is a chart in a folder: push it to a repository, and replace %s in the Application by its URL, or give "+
			"--repo-url", placeholderRepository)
	}
	return chart
}

// print is the Applications as YAML, each after comments with what a person has to review.
func (r result) print() (string, error) {
	var out strings.Builder
	comment(&out, r.leftOut)
	for i, one := range r.all {
		if i > 0 {
			out.WriteString("---\n")
		}
		comment(&out, one.reviews)
		text, err := manifest(one.app)
		if err != nil {
			return "", fmt.Errorf("writing Application %s: %w", one.app.Name, err)
		}
		out.WriteString(text)
	}
	return out.String(), nil
}

func comment(out *strings.Builder, reviews []string) {
	for _, review := range reviews {
		out.WriteString("# review: " + review + "\n")
	}
}

// manifest is an Application without its status and without fields that are empty.
func manifest(app *shipper.Application) (string, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(app)
	if err != nil {
		return "", fmt.Errorf("encoding it: %w", err)
	}
	unstructured.RemoveNestedField(object, "status")
	unstructured.RemoveNestedField(object, "metadata", "creationTimestamp")
	if app.Spec.Template.Chart.RepoURL == "" {
		unstructured.RemoveNestedField(object, "spec", "template", "chart", "repoUrl")
	}
	text, err := yaml.Marshal(object)
	if err != nil {
		return "", fmt.Errorf("encoding it: %w", err)
	}
	return string(text), nil
}
