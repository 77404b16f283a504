// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

// plugin is a manifest of krew, https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest.
type plugin struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       spec              `json:"spec"`
}

type spec struct {
	Version          string     `json:"version"`
	Homepage         string     `json:"homepage"`
	ShortDescription string     `json:"shortDescription"`
	Description      string     `json:"description"`
	Platforms        []platform `json:"platforms"`
}

type platform struct {
	Selector selector `json:"selector"`
	URI      string   `json:"uri"`
	SHA256   string   `json:"sha256"`
	Bin      string   `json:"bin"`
}

type selector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

// krew is the manifest by which krew installs the archives of a version as the plugin `shipper`: it calls the program
// kubectl-shipper.
func krew(version, downloads string, archives []archive) ([]byte, error) {
	out := plugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2",
		Kind:       "Plugin",
		Metadata:   map[string]string{"name": "shipper"},
		Spec: spec{
			Version:          version,
			Homepage:         "https://shipper.dev/shipper",
			ShortDescription: "Roll out to fleets of clusters with Shipper",
			Description: "Sets clusters up for Shipper, shows, moves and stops rollouts, and looks for what is wrong. It is\n" +
				"shipperctl by another name.\n",
		},
	}
	for _, a := range archives {
		out.Spec.Platforms = append(out.Spec.Platforms, platform{
			Selector: selector{MatchLabels: map[string]string{"os": a.system, "arch": a.arch}},
			URI:      downloads + "/" + version + "/" + a.name,
			SHA256:   a.sum,
			Bin:      a.program,
		})
	}
	text, err := yaml.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("writing the manifest for krew: %w", err)
	}
	return text, nil
}
