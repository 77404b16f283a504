// SPDX-License-Identifier: Apache-2.0

// Command chart writes the templates of the Helm chart, manifests/chart/templates, from the manifests that kustomize takes: the
// same text, with values in some places. A text that is not found is an error, so that no manifest can change and leave a value
// without effect.
//
//	go run ./hack/chart OUT
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// header names the source of a template.
const header = "# Written by hack/update-chart.sh from manifests/%s; edit that.\n"

// folders are what the default overlay has, and components, each with the value that adds it.
var folders = []struct{ name, value string }{
	{"crd", ""},
	{"rbac", ""},
	{"webhook", ""},
	{"policy", ""},
	{"deploy", ""},
	{"certs/cert-manager", ".Values.certManager.enabled"},
	{"network", ".Values.networkPolicy.enabled"},
	{"monitoring", ".Values.monitoring.enabled"},
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./hack/chart OUT")
		os.Exit(2)
	}
	if err := write("manifests", os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "writing the chart:", err)
		os.Exit(1)
	}
}

// write writes a template into out for every file under manifests that is installed.
func write(manifests, out string) error {
	found := make([]int, len(replacements))
	for _, folder := range folders {
		names, err := resources(filepath.Join(manifests, folder.name))
		if err != nil {
			return err
		}
		for _, name := range names {
			path := folder.name + "/" + name
			text, err := os.ReadFile(filepath.Join(manifests, path))
			if err != nil {
				return err
			}
			to := filepath.Join(out, path)
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(to, []byte(template(path, string(text), folder.value, found)), 0o644); err != nil {
				return err
			}
		}
	}
	for i, p := range replacements {
		if found[i] == 0 {
			return fmt.Errorf("%q is nowhere in %s*: hack/chart/replacements.go has to follow the manifests", p.old, p.in)
		}
	}
	return nil
}

// resources are the files that the kustomization of a folder names.
func resources(folder string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(folder, "kustomization.yaml"))
	if err != nil {
		return nil, err
	}
	var kustomization struct {
		Resources []string `json:"resources"`
	}
	if err := yaml.Unmarshal(text, &kustomization); err != nil {
		return nil, fmt.Errorf("%s: %w", folder, err)
	}
	return kustomization.Resources, nil
}

// template makes a template of a manifest and counts the replacements that it made.
func template(path, text, value string, found []int) string {
	// What a manifest has in braces is not for Helm.
	text = strings.ReplaceAll(text, "{{", `{{ "{{" }}`)
	for i, p := range replacements {
		if strings.HasPrefix(path, p.in) {
			found[i] += strings.Count(text, p.old)
			text = strings.ReplaceAll(text, p.old, p.value)
		}
	}
	text = fmt.Sprintf(header, path) + text
	if value != "" {
		text = "{{- if " + value + " }}\n" + text + "{{- end }}\n"
	}
	return text
}
