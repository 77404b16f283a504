// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/render"
)

// chartVersion is the version of every chart that is made here.
const chartVersion = "1.0.0"

// files are those of a chart, by their paths in it.
type files map[string]string

// chartOf makes the chart of a Rollout.
func chartOf(d document, r *rollout, template, selector map[string]any, from services) (files, error) {
	deployment, err := deploymentOf(d, r, template, selector)
	if err != nil {
		return nil, err
	}
	out := files{
		"Chart.yaml": fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\ndescription: Made from the Argo Rollout %s\n",
			quoted(d.GetName()), chartVersion, d.GetName()),
		"values.yaml":               fmt.Sprintf("replicaCount: %d\n", r.replicas()),
		"templates/deployment.yaml": deployment,
	}
	for name, service := range map[string]map[string]any{"service": from.production, "service-preview": from.preview} {
		if service == nil {
			continue
		}
		text, err := literal(service, "")
		if err != nil {
			return nil, err
		}
		out["templates/"+name+".yaml"] = text
	}
	return out, nil
}

// quoted is a name as a YAML string: 123 is a name.
func quoted(name string) string { return fmt.Sprintf("%q", name) }

// deploymentOf is the template of the Deployment. Its name and its replicas are the only parts that Helm fills in.
func deploymentOf(d document, r *rollout, template, selector map[string]any) (string, error) {
	delete(selector, hashLabel)
	spec := map[string]any{"selector": selector, "template": template}
	if r.Spec.MinReadySeconds > 0 {
		spec["minReadySeconds"] = int64(r.Spec.MinReadySeconds)
	}
	below, err := literal(spec, "  ")
	if err != nil {
		return "", err
	}
	metadata := ""
	if more := metadataOf("", d.GetLabels(), d.GetAnnotations()); len(more) > 0 {
		if metadata, err = literal(more, "  "); err != nil {
			return "", err
		}
	}
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ .Release.Name }}\n" + metadata +
		"spec:\n  replicas: {{ .Values.replicaCount }}\n" + below, nil
}

// literal is YAML, indented, that Helm renders to itself.
func literal(value map[string]any, indent string) (string, error) {
	raw, err := yaml.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("writing a template: %w", err)
	}
	var out strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(string(raw), "{{", `{{ "{{" }}`)) {
		if line != "\n" {
			out.WriteString(indent)
		}
		out.WriteString(line)
	}
	return out.String(), nil
}

// pack makes an archive as `helm package` does. The same files give the same bytes: nothing in it has a time, and nothing is
// compressed, since other versions of the library compress differently.
func pack(name string, from files) ([]byte, error) {
	var packed bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&packed, gzip.NoCompression)
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

// check renders the chart as Shipper does, so that an error shows here and not when the Application is applied.
func check(ctx context.Context, app *shipper.Application, archive []byte) error {
	opened, err := render.Open(archive)
	if err != nil {
		return fmt.Errorf("opening the chart: %w", err)
	}
	target := render.Target{ReleaseName: app.Name + "-00000000-0", Namespace: "default", App: app.Name}
	manifest, err := opened.Render(ctx, app.Spec.Template.Values, target)
	if err != nil {
		return fmt.Errorf("rendering the chart: %w", err)
	}
	if _, err := manifest.Prepare(target); err != nil {
		return fmt.Errorf("rendering the chart: %w", err)
	}
	return nil
}
