// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// File is a parsed clusters.yaml.
type File struct {
	// Management lists the clusters to join to; empty means the one of the current context.
	Management []ManagementCluster
	// Applications lists the clusters to join.
	Applications []ApplicationCluster
}

// ManagementCluster is an entry under managementClusters.
type ManagementCluster struct {
	// Name is for people.
	Name string
	// Context is its context in the kubeconfig; the name when the file has none.
	Context string
}

// ApplicationCluster is an entry under applicationClusters.
type ApplicationCluster struct {
	// Name is the name of the Cluster object.
	Name string
	// Context is its context in the kubeconfig; the name when the file has none.
	Context string
	// Spec is the spec of the Cluster object. An empty apiMaster means the server of the context.
	Spec shipper.ClusterSpec

	line int
}

func readFile(path string) (*File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the clusters: %w", err)
	}
	return Parse(path, text)
}

// Parse reads a clusters.yaml. name is the file's, for errors, which give all that is wrong, each with its line.
func Parse(name string, text []byte) (*File, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s is empty: list clusters under applicationClusters", name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if !errors.Is(decoder.Decode(&yaml.Node{}), io.EOF) {
		return nil, fmt.Errorf("%s: one document is expected; take out what follows `---`", name)
	}
	r := &reader{file: name}
	f := r.top(document.Content[0])
	if len(r.problems) > 0 {
		return nil, errors.Join(r.problems...)
	}
	return f, nil
}

func (r *reader) top(n *yaml.Node) *File {
	f := &File{}
	var managementKey string
	management := func(key string) func(*yaml.Node) {
		return func(n *yaml.Node) {
			if managementKey != "" {
				r.wrong(n, "%s and %s mean the same: keep one", managementKey, key)
			}
			managementKey = key
			r.each(n, key, func(n *yaml.Node) { f.Management = append(f.Management, r.management(n)) })
		}
	}
	r.mapping(n, "clusters.yaml", fields{
		"managementClusters": management("managementClusters"),
		"managementCluster":  management("managementCluster"),
		"applicationClusters": func(n *yaml.Node) {
			r.each(n, "applicationClusters", func(n *yaml.Node) { f.Applications = append(f.Applications, r.application(n)) })
		},
	})
	if len(f.Applications) == 0 && len(r.problems) == 0 {
		r.wrong(n, "no clusters to join: list them under applicationClusters")
	}
	seen := map[string]int{}
	for _, a := range f.Applications {
		if first, twice := seen[a.Name]; twice && a.Name != "" {
			r.wrong(&yaml.Node{Line: a.line}, "cluster %q is listed already in line %d", a.Name, first)
		}
		seen[a.Name] = a.line
	}
	return f
}

// management reads an entry under managementClusters. Fields of a Cluster are accepted without effect: no Cluster is made for it.
func (r *reader) management(n *yaml.Node) ManagementCluster {
	var m ManagementCluster
	known := r.specFields(&shipper.ClusterSpec{})
	known["name"], known["context"] = r.text(&m.Name), r.text(&m.Context)
	r.mapping(n, "a management cluster", known)
	if m.Name == "" {
		r.wrong(n, "a management cluster needs a name")
	}
	m.Context = cmp.Or(m.Context, m.Name)
	return m
}

func (r *reader) application(n *yaml.Node) ApplicationCluster {
	a := ApplicationCluster{line: n.Line}
	known := r.specFields(&a.Spec)
	known["name"], known["context"] = r.text(&a.Name), r.text(&a.Context)
	r.mapping(n, "an application cluster", known)
	a.Context = cmp.Or(a.Context, a.Name)
	switch invalid := validation.IsDNS1123Subdomain(a.Name); {
	case a.Name == "":
		r.wrong(n, "an application cluster needs a name")
	case len(invalid) > 0:
		r.wrong(n, "%q cannot be the name of a Cluster object: use lower-case letters, digits, '-' and '.'; "+
			"the context keeps its own name:\n  - name: %s\n    context: %s", a.Name, friendly(a.Name), a.Context)
	}
	if a.Spec.Region == "" {
		r.wrong(n, "application cluster %q needs a region", a.Name)
	}
	if err := reachable(a.Spec.APIMaster); err != "" {
		r.wrong(n, "apiMaster of application cluster %q is %q: %s", a.Name, a.Spec.APIMaster, err)
	}
	return a
}

// specFields are the fields of a Cluster's spec, as the API has them.
func (r *reader) specFields(spec *shipper.ClusterSpec) fields {
	return fields{
		"region":       r.text(&spec.Region),
		"apiMaster":    r.text(&spec.APIMaster),
		"capabilities": r.texts("capabilities", &spec.Capabilities),
		"metrics": func(n *yaml.Node) {
			spec.Metrics = &shipper.ClusterMetrics{}
			r.mapping(n, "metrics", fields{
				"address":     r.text(&spec.Metrics.Address),
				"secretName":  r.text(&spec.Metrics.SecretName),
				"tenantLabel": r.text(&spec.Metrics.TenantLabel),
			})
			if spec.Metrics.Address == "" {
				r.wrong(n, "metrics needs an address, for example https://prometheus.example.com")
			}
		},
		"taints": func(n *yaml.Node) {
			spec.Taints = []shipper.ClusterTaint{}
			r.each(n, "taints", func(n *yaml.Node) {
				t := shipper.ClusterTaint{Effect: shipper.TaintNoSchedule}
				effect := string(t.Effect)
				r.mapping(n, "a taint", fields{"key": r.text(&t.Key), "value": r.text(&t.Value), "effect": r.text(&effect)})
				if t.Key == "" {
					r.wrong(n, "a taint needs a key")
				}
				t.Effect = shipper.ClusterTaintEffect(effect)
				spec.Taints = append(spec.Taints, t)
			})
		},
		"properties": func(n *yaml.Node) {
			spec.Properties = map[string]string{}
			if err := n.Decode(&spec.Properties); err != nil {
				r.wrong(n, "properties must be a mapping of names to quantities, for example {tier: \"1\"}")
			}
		},
		"onLeave": r.text((*string)(&spec.OnLeave)),
		"scheduler": func(n *yaml.Node) {
			r.mapping(n, "a scheduler", fields{
				"unschedulable": r.boolean(&spec.Scheduler.Unschedulable),
				"weight":        r.number(&spec.Scheduler.Weight),
				"identity": func(n *yaml.Node) {
					spec.Scheduler.Identity = new(string)
					r.text(spec.Scheduler.Identity)(n)
				},
			})
		},
	}
}

// reachable returns the fault of an API server's URL, or nothing.
func reachable(server string) string {
	if server == "" {
		return ""
	}
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return "write a URL as in a kubeconfig, for example https://10.0.0.1:6443"
	}
	return ""
}

// friendly turns a name into one that Kubernetes takes.
func friendly(name string) string {
	fit := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.' {
			return c
		}
		return '-'
	}, strings.ToLower(name))
	return cmp.Or(strings.Trim(fit, "-."), "eu-1")
}

// reader reads YAML strictly and collects problems, each with its line.
type reader struct {
	file     string
	problems []error
}

// fields are the readers of a mapping's keys.
type fields map[string]func(*yaml.Node)

// wrong notes a problem in the line of a node.
func (r *reader) wrong(n *yaml.Node, format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf("%s:%d: %s", r.file, n.Line, fmt.Sprintf(format, args...)))
}

// mapping reads a mapping that may have the known keys only. A key without a value counts as absent.
func (r *reader) mapping(n *yaml.Node, what string, known fields) {
	n = follow(n)
	if n.Kind != yaml.MappingNode {
		r.wrong(n, "%s must be a mapping of keys to values", what)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], follow(n.Content[i+1])
		read, ok := known[key.Value]
		switch {
		case !ok:
			r.wrong(key, "%s has no field %q%s", what, key.Value, suggestField(key.Value, known))
		case seen[key.Value]:
			r.wrong(key, "%q is given twice", key.Value)
		case value.Tag != "!!null":
			read(value)
		}
		seen[key.Value] = true
	}
}

func (r *reader) each(n *yaml.Node, key string, read func(*yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		r.wrong(n, "%s must be a list: start each entry with `- `", key)
		return
	}
	for _, e := range n.Content {
		read(follow(e))
	}
}

// text reads any scalar as it is written, numbers too.
func (r *reader) text(into *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode {
			r.wrong(n, "a text is expected here")
			return
		}
		*into = n.Value
	}
}

func (r *reader) texts(key string, into *[]string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		*into = []string{}
		r.each(n, key, func(n *yaml.Node) {
			var s string
			r.text(&s)(n)
			if slices.Contains(*into, s) {
				r.wrong(n, "%q is listed twice", s)
			}
			*into = append(*into, s)
		})
	}
}

func (r *reader) boolean(into *bool) func(*yaml.Node) {
	return func(n *yaml.Node) { decode(r, n, "!!bool", "true or false", into) }
}

func (r *reader) number(into **int32) func(*yaml.Node) {
	return func(n *yaml.Node) { decode(r, n, "!!int", "a whole number", into) }
}

func decode[T any](r *reader, n *yaml.Node, tag, expected string, into *T) {
	if n.Tag != tag || n.Decode(into) != nil {
		r.wrong(n, "%s is expected here, not %q", expected, n.Value)
	}
}

// follow resolves an alias.
func follow(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// suggestField names the field that an unknown key may stand for, or all fields.
func suggestField(key string, known fields) string {
	switch key {
	case "unschedulable", "weight", "identity":
		if _, ok := known["scheduler"]; ok {
			return "; it belongs under `scheduler`"
		}
	}
	names := slices.Sorted(maps.Keys(known))
	for _, name := range names {
		if distance(strings.ToLower(key), strings.ToLower(name)) <= 2 {
			return fmt.Sprintf("; is %q meant?", name)
		}
	}
	return "; there are: " + strings.Join(names, ", ")
}

// distance is the number of letters to insert, delete or replace to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := diagonal
			if a[i] != b[j] {
				next = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
