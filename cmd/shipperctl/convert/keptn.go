// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// keptnDomain ends the API groups of Keptn.
const keptnDomain = "keptn.sh"

// besideShipyard has a review of a file of Keptn that is no shipyard, with what is missing for it; nil for all other objects.
func (d document) besideShipyard() []string {
	object, what := "", ""
	_, remediations := d.Object["remediations"].([]any)
	group, _, _ := strings.Cut(d.GetAPIVersion(), "/")
	bare := d.GetKind() == "" && d.GetAPIVersion() == ""
	switch objectives, indicators := list(d.Object, "objectives"), keys(d.Object, "indicators"); {
	case d.GetKind() == "Remediation" && group != shipper.GroupName, bare && remediations:
		object, what = strings.TrimSpace("Remediation "+d.GetName()), d.remediation()
	case bare && len(objectives) > 0:
		object, what = "SLO file", sloOf(d, objectives)
	case bare && len(indicators) > 0:
		object, what = "SLI file", fmt.Sprintf("its %s (%s) are queries: write each into the prometheus.query of a Check",
			count(len(indicators), "indicator"), firstNames(indicators))
	case d.GetKind() == "" && len(list(d.Object, "actions")) > 0:
		object, what = "file of the job executor", fmt.Sprintf("Shipper has no executors yet: write a Job of its %s as properties.job of a task "+
			"test", count(len(list(d.Object, "actions")), "action"))
	case d.GetKind() == "WebhookConfig" && strings.HasSuffix(group, keptnDomain):
		object, what = d.title(), "Shipper sends no requests for tasks yet: a notification reports the ends of rollouts, and a Check with http "+
			"asks a server"
	case strings.HasSuffix(group, "."+keptnDomain) && d.GetKind() != kindOfShipyards:
		object, what = d.title(), "no object of "+group+" has a counterpart"
	default:
		return nil
	}
	r := report{object: object}
	r.add(d.at(), "is left out: %s", what)
	return r.reviews
}

// remediation says what is missing for the remediations of a file, of which 0.1.x has no spec.
func (d document) remediation() string {
	all := list(d.Object, "spec", "remediations")
	if len(all) == 0 {
		all = list(d.Object, "remediations")
	}
	return fmt.Sprintf("%s: Shipper receives no events of problems yet, and does not do the tasks get-action and action; let a sequence with "+
		"the task rollback take a service back", count(len(all), "remediation"))
}

// relative is a criterion that compares with earlier evaluations.
var relative = regexp.MustCompile(`^\s*[<>]?=?\s*[+-]`)

// sloOf says what becomes of the objectives of an SLO file.
func sloOf(d document, objectives []any) string {
	var names []string
	compared := 0
	for _, raw := range objectives {
		of, _ := raw.(map[string]any)
		name, _ := of["sli"].(string)
		names = append(names, cmp.Or(name, "without a name"))
		if slices.ContainsFunc(criteria(of), relative.MatchString) {
			compared++
		}
	}
	text := fmt.Sprintf("convert its %s (%s) by hand: each is a Check, which a task evaluation names in properties.checks, with weight and "+
		"key (key_sli)", count(len(objectives), "objective"), firstNames(names))
	if compared > 0 {
		text += fmt.Sprintf("; %d of them compare with earlier evaluations, and a Check compares with the incumbent", compared)
	}
	for _, name := range []string{"pass", "warning"} {
		if score, _, _ := unstructured.NestedFieldNoCopy(d.Object, "total_score", name); score != nil {
			text += fmt.Sprintf("; total_score.%s %v is properties.%s", name, score, name)
		}
	}
	return text
}

// criteria are the texts of an objective's pass and warning.
func criteria(of map[string]any) []string {
	var out []string
	for _, field := range []string{"pass", "warning"} {
		for _, raw := range list(of, field) {
			one, _ := raw.(map[string]any)
			for _, text := range list(one, "criteria") {
				out = append(out, fmt.Sprint(text))
			}
		}
	}
	return out
}

// list is a list of an object; nil if there is none.
func list(of map[string]any, path ...string) []any {
	found, _, _ := unstructured.NestedFieldNoCopy(of, path...)
	all, _ := found.([]any)
	return all
}

// keys are those of a map of an object, in order.
func keys(of map[string]any, field string) []string {
	found, _ := of[field].(map[string]any)
	return slices.Sorted(maps.Keys(found))
}

// count is a number with a noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
