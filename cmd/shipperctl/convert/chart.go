// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/lots"
	"shipper.dev/shipper/chart/render"
)

// files are those of a chart, by their paths in it.
type files map[string]string

// workload is what a chart is made from.
type workload struct {
	// of is the object of the input that the workload belongs to: its name is that of the chart, the Deployment and the Application.
	of document
	// origin describes it in the chart, such as "the Argo Rollout web".
	origin          string
	replicas        int32
	minReadySeconds int32
	// template is the Pod template, and selector the label selector of its Pods.
	template, selector map[string]any
	services           services
	// configuration are the ConfigMaps and claims that the Pods use.
	configuration []document
}

// chartOf makes the chart of a workload, with its version and its usual values.
func chartOf(w workload) (chart files, version string, values shipper.ChartValues, err error) {
	values = usualValues(w)
	text, err := yaml.Marshal(values)
	if err != nil {
		return nil, "", nil, fmt.Errorf("writing values: %w", err)
	}
	deployment, err := deploymentOf(w, values)
	if err != nil {
		return nil, "", nil, err
	}
	chart = files{"values.yaml": string(text), "templates/deployment.yaml": deployment}
	others := map[string]map[string]any{}
	for i, service := range w.services.production {
		name := "service"
		if i > 0 {
			name += "-" + (&unstructured.Unstructured{Object: service}).GetName()
		}
		others[name] = service
	}
	if w.services.preview != nil {
		name := "service-preview"
		if others[name] != nil { // a production Service is named preview
			name = "preview-service"
		}
		others[name] = w.services.preview
	}
	for _, d := range w.configuration {
		others[strings.ToLower(d.GetKind())+"-"+d.GetName()] = cleanedConfiguration(d)
	}
	for name, object := range others {
		if chart["templates/"+name+".yaml"], err = literal(object, ""); err != nil {
			return nil, "", nil, err
		}
	}
	version = versionOf(chart)
	chart["Chart.yaml"] = fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\ndescription: Made from %s\n",
		quoted(w.of.GetName()), version, w.origin)
	return chart, version, values, nil
}

// versionOf is the version of a chart with these files: equal files have an equal version. It comes before every version that a
// person gives the chart later. Its letter keeps a prerelease of digits alone, which must not begin with 0, from being refused.
func versionOf(from files) string {
	hash := sha256.New()
	for _, path := range slices.Sorted(maps.Keys(from)) {
		fmt.Fprintf(hash, "%q %q\n", path, from[path])
	}
	return "0.0.0-c" + hex.EncodeToString(hash.Sum(nil))[:10]
}

// quoted is a name as a YAML string: 123 is a name.
func quoted(name string) string { return fmt.Sprintf("%q", name) }

// deploymentOf is the template of the Deployment. Its replicas and what is in the values are the only parts that Helm fills in.
func deploymentOf(w workload, values shipper.ChartValues) (string, error) {
	delete(w.selector, hashLabel)
	below := map[string]any{"selector": w.selector}
	if w.minReadySeconds > 0 {
		below["minReadySeconds"] = int64(w.minReadySeconds)
	}
	spec, err := literal(below, "  ")
	if err != nil {
		return "", err
	}
	template, err := templateText(w.template, values)
	if err != nil {
		return "", err
	}
	metadata := ""
	if more := metadataOf("", w.of.GetLabels(), w.of.GetAnnotations()); len(more) > 0 {
		if metadata, err = literal(more, "  "); err != nil {
			return "", err
		}
	}
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: " + quoted(w.of.GetName()) + "\n" + metadata +
		"spec:\n  replicas: {{ .Values.replicaCount }}\n" + spec + "  template:\n" + template, nil
}

// literal is YAML, indented, that Helm renders to itself.
func literal(value map[string]any, indent string) (string, error) {
	raw, err := yaml.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("writing a template: %w", err)
	}
	return indented(verbatim(string(raw)), indent), nil
}

// verbatim is a text that Helm renders to itself.
func verbatim(text string) string { return strings.ReplaceAll(text, "{{", `{{ "{{" }}`) }

// pack makes an archive as `helm package` does. The same files give the same bytes: nothing in it has a time.
func pack(name string, from files) ([]byte, error) {
	var packed bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("packing the chart: %w", err)
	}
	writer := tar.NewWriter(zipped)
	for _, path := range slices.Sorted(maps.Keys(from)) {
		header := &tar.Header{Name: name + "/" + path, Mode: 0o644, Size: int64(len(from[path])), Format: tar.FormatPAX}
		if err := writer.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", path, err)
		}
		if _, err := io.WriteString(writer, from[path]); err != nil {
			return nil, fmt.Errorf("packing %s: %w", path, err)
		}
	}
	for _, closer := range []io.Closer{writer, zipped} {
		if err := closer.Close(); err != nil {
			return nil, fmt.Errorf("packing the chart: %w", err)
		}
	}
	return packed.Bytes(), nil
}

// packaged gives an Application the chart of a workload, and returns the indexes of further documents that the chart was made from.
func packaged(
	ctx context.Context, app *shipper.Application, from workload, all []document, with settings, report *report,
) (converted, []int, error) {
	d := from.of
	used := configurationOf(d, from.template, all, report)
	for _, i := range used {
		from.configuration = append(from.configuration, all[i])
	}
	chart, version, values, err := chartOf(from)
	if err != nil {
		return converted{}, nil, fmt.Errorf("%s: %w", d.at(), err)
	}
	archive, err := pack(d.GetName(), chart)
	if err != nil {
		return converted{}, nil, fmt.Errorf("%s: %w", d.at(), err)
	}
	app.Spec.Template.Values = &values
	app.Spec.Template.Chart = reference(d, version, archive, with, report)
	if err := check(ctx, app, archive, report); err != nil {
		return converted{}, nil, fmt.Errorf("%s: %w", d.at(), err)
	}
	if !with.apart && len(archive) > render.MaxInlineBytes {
		return converted{}, nil, fmt.Errorf("%s: the chart has %d KiB, and an Application takes %d KiB: write it to a folder "+
			"with --chart-dir", d.at(), len(archive)>>10, render.MaxInlineBytes>>10)
	}
	return converted{app, chart, report.reviews}, used, nil
}

// check renders the chart as Shipper does, so that an error shows here and not when the Application is applied. It reports what of the
// workload does not change step by step.
func check(ctx context.Context, app *shipper.Application, archive []byte, report *report) error {
	opened, err := render.Open(archive)
	if err != nil {
		return fmt.Errorf("opening the chart: %w", err)
	}
	target := render.Target{
		Naming: shipper.NamingByApplication, ReleaseName: app.Name + "-00000000-0", Namespace: "default", App: app.Name,
	}
	manifest, err := opened.Render(ctx, app.Spec.Template.Values, target)
	if err != nil {
		return fmt.Errorf("rendering the chart: %w", err)
	}
	table, err := manifest.Lots(target)
	if err != nil {
		return fmt.Errorf("rendering the chart: %w", err)
	}
	for _, one := range table.Workloads() {
		if one.Lot == lots.InPlace {
			report.add("spec.template", "%s: its Pods cannot run beside those of the Release before, so that the Deployment changes in place at "+
				"the step that gives the contender 100 %% of capacity, and steps before it change nothing", one.Reason)
		}
	}
	for _, one := range table.Services {
		if one.Use == lots.AsItIs && len(one.SideBySide) > 0 {
			report.put("Service "+one.Name, "spec", fmt.Sprintf("is not moved from Release to Release (%s): it selects the Pods of both",
				one.Reason))
		}
	}
	return nil
}
