// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// row is a line of the table of metrics in docs/operations.md: the metric, its process, its labels.
var row = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (?:webhook|reconciler|both) \\| ([a-z, ]*) ?\\|")

// documented are the metrics that the guide lists, with their labels. test/docs proves that they are served.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		out[m[1]] = strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' || r == ' ' })
	}
	if len(out) < 15 {
		t.Fatalf("the guide lists %d metrics", len(out))
	}
	return out
}

// known checks that an expression asks for what there is: documented metrics, and of their labels those that they have, beside
// those that Prometheus adds.
func known(t *testing.T, metrics map[string][]string, expression string) {
	t.Helper()
	tree, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	if err != nil {
		t.Errorf("%s: %v", expression, err)
		return
	}
	for _, matchers := range parser.ExtractSelectors(tree) {
		var name string
		for _, m := range matchers {
			if m.Name == model.MetricNameLabel {
				name = strings.TrimSuffix(m.Value, "_bucket")
			}
		}
		has, ok := metrics[name]
		if !ok {
			t.Errorf("%s: docs/operations.md has no %s", expression, name)
		}
		added := []string{model.MetricNameLabel, "namespace", "instance", "le"}
		for _, m := range matchers {
			if !slices.Contains(has, m.Name) && !slices.Contains(added, m.Name) {
				t.Errorf("%s: %s has no label %s", expression, name, m.Name)
			}
		}
		parser.Inspect(tree, func(node parser.Node, _ []parser.Node) error {
			aggregation, ok := node.(*parser.AggregateExpr)
			if !ok {
				return nil
			}
			for _, label := range aggregation.Grouping {
				if !slices.Contains(has, label) && !slices.Contains(added, label) {
					t.Errorf("%s: %s has no label %s", expression, name, label)
				}
			}
			return nil
		})
	}
}

func TestAlertsAskForMetricsThatThereAre(t *testing.T) {
	metrics := documented(t)
	for _, r := range rules(t) {
		known(t, metrics, r.Expr)
	}
}

// panel is what is read of a panel of Grafana's.
type panel struct {
	ID          int    `json:"id"`
	Title       string `json:"title"`
	Description string `json:"description"`
	GridPos     struct {
		X, Y, W, H int
	} `json:"gridPos"`
	Targets []struct {
		Datasource map[string]string `json:"datasource"`
		Expr       string            `json:"expr"`
	} `json:"targets"`
}

func TestTheDashboardAsksForMetricsThatThereAre(t *testing.T) {
	text, err := os.ReadFile("../../manifests/monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		UID    string  `json:"uid"`
		Title  string  `json:"title"`
		Panels []panel `json:"panels"`
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	if dashboard.UID == "" || dashboard.Title == "" || len(dashboard.Panels) == 0 {
		t.Fatalf("it is none: %+v", dashboard)
	}
	metrics := documented(t)
	ids, places := map[int]bool{}, map[[2]int]string{}
	for _, p := range dashboard.Panels {
		if p.Title == "" || p.Description == "" || len(p.Targets) == 0 || ids[p.ID] {
			t.Errorf("panel %d has no title, no description, no expression or the id of another", p.ID)
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if places[at] != "" || at[0] >= 24 {
					t.Fatalf("%q is where %q is, or beyond the edge", p.Title, places[at])
				}
				places[at] = p.Title
			}
		}
		for _, target := range p.Targets {
			if target.Datasource["uid"] != "${datasource}" {
				t.Errorf("%q asks a user's own Prometheus", p.Title)
			}
			known(t, metrics, strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"))
		}
	}
}
