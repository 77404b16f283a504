// SPDX-License-Identifier: Apache-2.0

// Rbacdocs prints the rights of Shipper's accounts, and those of its roles for people, as tables: what manifests/rbac
// grants, and why, as the comments there say. It takes the root of the source as its one argument; by default that is the current folder.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// pages are the files, what their tables are called, and the text about roles in those.
var pages = []struct {
	file, title, column string
	of                  func(role) string
}{
	{"management.yaml", "In the management cluster, as `shipper-mgmt-cluster`", "where", where},
	{"application.yaml", "In application clusters, as `shipper-app-cluster`", "where", where},
	{"users.yaml", "Roles for people, in the management cluster", "role", name},
}

// role is what is read of a Role or ClusterRole.
type role struct {
	Kind     string `yaml:"kind"`
	Metadata struct {
		Name      string            `yaml:"name"`
		Namespace string            `yaml:"namespace"`
		Labels    map[string]string `yaml:"labels"`
	} `yaml:"metadata"`
	Rules []yaml.Node `yaml:"rules"`
}

// where a role holds that Shipper binds itself.
func where(r role) string {
	if r.Kind == "Role" {
		return "in `shipper-system`"
	}
	return "everywhere"
}

// aggregate begins the labels by which Kubernetes adds a role to one of its own, whose name follows.
const aggregate = "rbac.authorization.k8s.io/aggregate-to-"

// name is what people are bound to.
func name(r role) string {
	out := "`" + r.Metadata.Name + "`"
	for _, label := range slices.Sorted(maps.Keys(r.Metadata.Labels)) {
		if to, ok := strings.CutPrefix(label, aggregate); ok {
			out += ", and so `" + to + "`"
		}
	}
	if r.Metadata.Namespace != "" {
		out += ", of all who are authenticated, in `" + r.Metadata.Namespace + "`"
	}
	return out
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
		fmt.Fprintf(out, "### %s\n\n| on | may | %s | because |\n|---|---|---|---|\n", page.title, page.column)
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
			if err := writeRole(out, &document, page.of); err != nil {
				return fmt.Errorf("%s: %w", page.file, err)
			}
		}
		fmt.Fprintln(out)
	}
	return nil
}

// writeRole writes a row for each rule, when the document is a role.
func writeRole(out io.Writer, document *yaml.Node, of func(role) string) error {
	var r role
	if err := document.Decode(&r); err != nil {
		return err
	}
	if r.Kind != "Role" && r.Kind != "ClusterRole" {
		return nil
	}
	for i := range r.Rules {
		node := &r.Rules[i]
		reason := sentence(node.HeadComment)
		if reason == "" {
			return fmt.Errorf("rule %d of the %s has no reason", i+1, r.Kind)
		}
		row, err := rowOf(node)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "| %s | %s | %s |\n", row, of(r), reason)
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
