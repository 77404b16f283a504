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

	"shipper.dev/shipper/apis/rules/printable"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// syncWave is the annotation with the order in which Argo CD applies objects.
const syncWave = "argocd.argoproj.io/sync-wave"

// What an Application has until a person replaces it.
const (
	placeholderRegion     = "REGION"
	placeholderRepository = "https://REPOSITORY"
	placeholderServer     = "https://API-SERVER"
)

// settings are what a Rollout and the objects of KubeFleet do not say.
type settings struct {
	// regions of the Applications with a chart, and of Clusters; none means a placeholder.
	regions []string
	// apart has the charts in files of their own, and not in the Applications.
	apart bool
	// repository is the URL that the charts will be in; empty means a placeholder. Used only if apart.
	repository string
	// namespace is that of Applications and Envelopes made of objects without one; empty means fleet.
	namespace string
	// shipyards is the namespace of Shipyards; empty means none in the manifest.
	shipyards string
	// shipyard is the name of a Shipyard whose file has none.
	shipyard string
	// input is all documents: what becomes of an object of KubeFleet depends on others.
	input []document
	// staged are the staged updates of the input.
	staged *stagedUpdates
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
	checks []convertedCheck
	all    []converted
	fleet  []fleetObject
	yards  []convertedShipyard
	// leftOut are the objects of the input that no Application has.
	leftOut []string
	// failed are why objects could not be converted, of so many objects in the input.
	failed  []error
	objects int
}

// reviews are all that a person has to review.
func (r result) reviews() []string {
	out := slices.Clone(r.leftOut)
	for _, one := range r.checks {
		out = append(out, one.reviews...)
	}
	for _, one := range r.fleet {
		out = append(out, one.reviews...)
	}
	for _, one := range r.yards {
		out = append(out, one.reviews...)
	}
	for _, one := range r.all {
		out = append(out, one.reviews...)
	}
	return out
}

// convert converts the objects in YAML documents of a text without a name. The error has all failures; result has what is converted
// all the same.
func convert(ctx context.Context, raw []byte, with settings) (result, error) {
	if len(raw) > maxInput {
		return result{}, errTooLarge
	}
	out := convertAll(ctx, []input{{text: raw}}, with)
	return out, errors.Join(out.failed...)
}

// convertAll converts the objects in YAML documents.
func convertAll(ctx context.Context, inputs []input, with settings) result {
	all := readAll(inputs)
	used, failed := map[int]bool{}, &failures{}
	for i, d := range all {
		if d.broken != nil {
			failed.add(i, d.broken)
		}
	}
	templates, rollouts := decodeAll(all, used, failed)
	out := result{objects: len(all), checks: checksOf(all, templates, used, failed)}
	out.all = convertRollouts(ctx, all, rollouts, templates, used, failed, with)
	apps, notConverted := convertCanaries(ctx, all, out.all, used, failed, with)
	out.all, out.leftOut = append(out.all, apps...), notConverted
	out.fleet, notConverted = convertFleet(all, used, failed, with)
	out.leftOut = append(out.leftOut, notConverted...)
	out.yards = convertShipyards(all, used, failed, with)
	fleet := slices.ContainsFunc(all, document.ofFleet)
	for i, d := range all {
		if !used[i] && !failed.has(i) {
			out.leftOut = append(out.leftOut, unused(d, fleet && len(out.all) == 0))
		}
	}
	if err := out.judge(ctx); err != nil {
		failed.also(err)
	}
	out.failed = failed.ordered()
	if len(out.failed) == 0 && out.empty() && !slices.ContainsFunc(all, document.ofOthers) {
		out.failed = []error{nothing(all)}
	}
	return out
}

// empty reports whether nothing was made.
func (r result) empty() bool { return len(r.all)+len(r.checks)+len(r.fleet)+len(r.yards) == 0 }

// ofOthers reports whether the object is of a project whose objects are converted.
func (d document) ofOthers() bool {
	group, _, _ := strings.Cut(d.GetAPIVersion(), "/")
	return d.ofFleet() || d.ofKeptn() || group == "argoproj.io" || group == "flagger.app"
}

// convertRollouts converts Rollouts. Two that make the same Application are an error.
func convertRollouts(
	ctx context.Context, all []document, rollouts map[int]*rollout, templates *index, used map[int]bool, failed *failures, with settings,
) []converted {
	var out []converted
	owner, from := map[int]string{}, map[string]document{}
	for i, d := range all {
		if rollouts[i] == nil {
			continue
		}
		name := strings.TrimPrefix(d.GetNamespace()+"/"+d.GetName(), "/")
		if other, twice := from[name]; twice {
			failed.add(i, fmt.Errorf("%s: %s is at %s, too, and both make the Application %s: rename one of the two", d.at(), d.title(),
				other.at(), name))
			continue
		}
		one, sources, err := convertOne(ctx, d, rollouts[i], all, templates, with)
		if err != nil {
			failed.add(i, err)
			continue
		}
		from[name] = d
		for _, i := range sources {
			if other := owner[i]; other != "" {
				one.reviews = append(one.reviews, fmt.Sprintf("%s: %s is in the chart of %s, too: give each its own, since an object belongs to one "+
					"Application", d.title(), all[i].title(), other))
			}
			used[i], owner[i] = true, d.title()
		}
		out = append(out, one)
	}
	return out
}

// nothing is the error for an input with nothing to convert.
func nothing(all []document) error {
	const wanted = "give Rollouts, AnalysisTemplates or ClusterAnalysisTemplates of " + argo + ", Canaries and MetricTemplates of " + flagger +
		", MemberClusters, placements or envelopes of " + fleetDomain + ", or a shipyard of Keptn"
	if len(all) == 0 {
		return errors.New("the input is empty: " + wanted)
	}
	var kinds []string
	for _, d := range all {
		kinds = append(kinds, d.GetKind())
	}
	return fmt.Errorf("there is nothing to convert in the input, only: %s: %s",
		strings.Join(slices.Compact(slices.Sorted(slices.Values(kinds))), ", "), wanted)
}

// decodeAll decodes the templates of analyses, and the Rollouts by the index of their documents. Templates know how Rollouts use them.
func decodeAll(all []document, used map[int]bool, failed *failures) (*index, map[int]*rollout) {
	templates, rollouts := &index{}, map[int]*rollout{}
	for i, d := range all {
		switch {
		case d.is(argo, "Rollout"):
			r, err := decode(d)
			if err != nil {
				failed.add(i, err)
				continue
			}
			rollouts[i], used[i] = r, true
		case d.is(argo, namespacedTemplate), d.is(argo, clusterTemplate):
			t, err := templateOfAnalyses(d)
			if err != nil {
				failed.add(i, err)
				templates.failed = append(templates.failed, d.title())
				continue
			}
			t.index = i
			templates.all, used[i] = append(templates.all, t), true
		}
	}
	for i, d := range all {
		if r := rollouts[i]; r != nil {
			for _, a := range r.analyses() {
				templates.note(d, a)
			}
		}
	}
	return templates, rollouts
}

// checksOf makes the Checks of all templates. Two with the same name are an error.
func checksOf(all []document, templates *index, used map[int]bool, failed *failures) []convertedCheck {
	var out []convertedCheck
	for _, t := range templates.all {
		checks, err := t.checks()
		if err != nil {
			failed.add(t.index, err)
			t.unmeasured = true
			continue
		}
		out = append(out, checks...)
	}
	out = append(out, checksOfMetrics(all, used, failed)...)
	inUse := map[string]bool{}
	return slices.DeleteFunc(out, func(one convertedCheck) bool {
		if one.check == nil {
			return false
		}
		name := one.check.Namespace + "/" + one.check.Name
		if inUse[name] {
			failed.also(fmt.Errorf("two metrics make the Check %s: rename a template or a metric", strings.TrimPrefix(name, "/")))
			return true
		}
		inUse[name] = true
		// The webhook refuses an Application before the Checks that it names are there.
		one.check.Annotations = map[string]string{syncWave: "-1"}
		return false
	})
}

// convertOne converts a Rollout, and returns the indexes of the documents that its chart was made from.
func convertOne(
	ctx context.Context, d document, r *rollout, all []document, templates *index, with settings,
) (converted, []int, error) {
	source, template, selector, err := templateOf(d, r, all)
	if err != nil {
		return converted{}, nil, err
	}
	report := &report{object: d.title()}
	report.fields(d)
	r.completeReplicas(all, source, report)
	app, err := application(d, r, with, templates, report)
	if err != nil {
		return converted{}, nil, err
	}
	made := workload{
		of: d, origin: "the Argo Rollout " + d.GetName(), replicas: r.replicas(), minReadySeconds: r.Spec.MinReadySeconds,
		template: template, selector: selector,
	}
	if made.services, err = servicesOf(r, podsOf{d, template, selector}, all, report); err != nil {
		return converted{}, nil, err
	}
	reportHash(template, report)
	sources := made.services.used
	if source >= 0 {
		sources = append(sources, source)
	}
	one, more, err := packaged(ctx, app, made, all, with, report)
	return one, append(sources, more...), err
}

// reference is the chart as an Application names it.
func reference(d document, version string, archive []byte, with settings, report *report) shipper.Chart {
	chart := shipper.Chart{Name: d.GetName(), Version: version, Naming: shipper.NamingByApplication}
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

// print is the Checks, the objects made of those of KubeFleet, and the Applications as YAML, each after comments with what a person has
// to review.
func (r result) print() (string, error) {
	var out strings.Builder
	if !r.empty() {
		for _, err := range r.failed {
			out.WriteString("# error: " + printable.OneLine(err.Error()) + "\n")
		}
	}
	comment(&out, r.leftOut)
	if err := commentGrants(&out, r.fleet); err != nil {
		return "", err
	}
	printed := 0
	object := func(o any, kind, name string) error {
		text, err := manifest(o)
		if err != nil {
			return fmt.Errorf("writing %s %s: %w", kind, name, err)
		}
		out.WriteString(text)
		return nil
	}
	begin := func(reviews []string) {
		if printed++; printed > 1 {
			out.WriteString("---\n")
		}
		comment(&out, reviews)
	}
	for _, one := range r.checks {
		if one.check == nil {
			comment(&out, one.reviews)
			continue
		}
		begin(one.reviews)
		if err := object(one.check, "Check", one.check.Name); err != nil {
			return "", err
		}
	}
	for _, one := range r.fleet {
		begin(one.reviews)
		if err := object(one.object, one.kind, one.name); err != nil {
			return "", err
		}
	}
	for _, one := range r.yards {
		if one.shipyard == nil {
			comment(&out, one.reviews)
			continue
		}
		begin(one.reviews)
		if err := object(one.shipyard, kindOfShipyards, one.shipyard.Name); err != nil {
			return "", err
		}
	}
	for _, one := range r.all {
		begin(one.reviews)
		if err := object(one.app, "Application", one.app.Name); err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

func comment(out *strings.Builder, reviews []string) {
	for _, review := range reviews {
		out.WriteString("# review: " + printable.OneLine(review) + "\n")
	}
}

// manifest is an object without its status and without fields that are empty.
func manifest(from any) (string, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(from)
	if err != nil {
		return "", fmt.Errorf("encoding it: %w", err)
	}
	unstructured.RemoveNestedField(object, "status")
	unstructured.RemoveNestedField(object, "metadata", "creationTimestamp")
	if url, _, _ := unstructured.NestedString(object, "spec", "template", "chart", "repoUrl"); url == "" {
		unstructured.RemoveNestedField(object, "spec", "template", "chart", "repoUrl")
	}
	// Fields without omitempty: the wire of the original has them.
	for _, path := range [][]string{{"spec", "template", "values"}, {"spec", "capabilities"}} {
		if value, found, _ := unstructured.NestedFieldNoCopy(object, path...); found && value == nil {
			unstructured.RemoveNestedField(object, path...)
		}
	}
	if history, found, _ := unstructured.NestedMap(object, "spec", "history"); found && len(history) == 0 {
		unstructured.RemoveNestedField(object, "spec", "history")
	}
	if scheduler, _, _ := unstructured.NestedMap(object, "spec", "scheduler"); len(scheduler) == 1 && scheduler["unschedulable"] == false {
		unstructured.RemoveNestedField(object, "spec", "scheduler")
	}
	text, err := valuesFirst(object)
	if err != nil {
		return "", fmt.Errorf("encoding it: %w", err)
	}
	return text, nil
}
