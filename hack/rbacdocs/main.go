// SPDX-License-Identifier: Apache-2.0

// Rbacdocs prints the rights of Shipper's accounts as tables: what manifests/rbac grants, and why, as the comments there
// say. It takes the root of the source as its one argument; by default that is the current folder.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// pages are the files, and what their tables are called.
var pages = []struct{ file, title string }{
	{"management.yaml", "In the management cluster, as `shipper-mgmt-cluster`"},
	{"application.yaml", "In application clusters, as `shipper-app-cluster`"},
}

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	var out bytes.Buffer
	if err := write(&out, root); err != nil {
		fmt.Fprintln(os.Stderr, "rbacdocs:", err)
		os.Exit(1)
	}
	if _, err := out.WriteTo(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "rbacdocs:", err)
		os.Exit(1)
	}
}

func write(out io.Writer, root string) error {
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(root, "manifests", "rbac", page.file))
		if err != nil {
			return fmt.Errorf("reading the roles: %w", err)
		}
		fmt.Fprintf(out, "### %s\n\n| on | may | where | because |\n|---|---|---|---|\n", page.title)
		documents := yaml.NewDecoder(bytes.NewReader(text))
		for {
			var document yaml.Node
			err := documents.Decode(&document)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return fmt.Errorf("reading %s: %w", page.file, err)
			}
			if err := writeRole(out, &document); err != nil {
				return fmt.Errorf("%s: %w", page.file, err)
			}
		}
		fmt.Fprintln(out)
	}
	return nil
}

// writeRole writes a row for each rule, when the document is a role.
func writeRole(out io.Writer, document *yaml.Node) error {
	var role struct {
		Kind  string      `yaml:"kind"`
		Rules []yaml.Node `yaml:"rules"`
	}
	if err := document.Decode(&role); err != nil {
		return err
	}
	where := map[string]string{"ClusterRole": "everywhere", "Role": "in `shipper-system`"}[role.Kind]
	if where == "" {
		return nil
	}
	for i := range role.Rules {
		node := &role.Rules[i]
		reason := sentence(node.HeadComment)
		if reason == "" {
			return fmt.Errorf("rule %d of the %s has no reason", i+1, role.Kind)
		}
		row, err := rowOf(node)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "| %s | %s | %s |\n", row, where, reason)
	}
	return nil
}

// rowOf is what a rule is on, and which verbs it has.
func rowOf(node *yaml.Node) (string, error) {
	var rule struct {
		Groups    []string `yaml:"apiGroups"`
		Resources []string `yaml:"resources"`
		Names     []string `yaml:"resourceNames"`
		Verbs     []string `yaml:"verbs"`
	}
	if err := node.Decode(&rule); err != nil {
		return "", err
	}
	on := "`" + strings.Join(rule.Resources, "`, `") + "`"
	if len(rule.Names) > 0 {
		on += " called `" + strings.Join(rule.Names, "`, `") + "`"
	}
	for i, group := range rule.Groups {
		if group == "" {
			rule.Groups[i] = "core"
		}
	}
	return on + " of " + strings.Join(rule.Groups, " and ") + " | " + strings.Join(rule.Verbs, ", "), nil
}

// sentence is a comment as one line.
func sentence(comment string) string {
	var words []string
	for line := range strings.Lines(comment) {
		words = append(words, strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "#"))...)
	}
	return strings.Join(words, " ")
}
