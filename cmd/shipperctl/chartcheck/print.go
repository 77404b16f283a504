// SPDX-License-Identifier: Apache-2.0

package chartcheck

import (
	"fmt"
	"slices"
	"strings"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/lots"
	"shipper.dev/shipper/cmd/shipperctl/screen"
)

// Text is the report for a terminal of width columns; 0 is unbounded.
func (r *Report) Text(width int) string {
	var out strings.Builder
	fmt.Fprintf(&out, "Chart %s %s, named by %s\n", r.Chart, r.Version, r.Naming)
	for _, t := range r.tables() {
		if len(t.rows) > 0 {
			out.WriteString("\n" + screen.Table(width, t.head, t.rows))
		}
	}
	out.WriteString("\n")
	var grant []string
	for _, right := range r.Rights {
		grant = append(grant, right.GrantedBy...)
	}
	grant = slices.Compact(slices.Sorted(slices.Values(grant)))
	for _, list := range []struct{ what, names string }{
		{"These grant rights that Shipper lacks by default: ", strings.Join(grant, ", ")},
		{"Side by side with what they scale: ", strings.Join(r.Scalers, ", ")},
		{"Shared by all Releases: ", r.Shared},
	} {
		if list.names != "" {
			out.WriteString(screen.Hang("", list.what+list.names, width))
		}
	}
	for _, sentence := range r.Warnings {
		out.WriteString(screen.Hang("! ", sentence, width))
	}
	for _, sentence := range r.Refused {
		out.WriteString(screen.Hang("refused: ", sentence, width))
	}
	if len(r.Refused) == 0 {
		out.WriteString(r.verdict(width))
	}
	return out.String()
}

// table is a part of the report.
type table struct {
	head []string
	rows [][]string
}

// tables are the parts of the report that have columns.
func (r *Report) tables() []table {
	workloads := table{head: []string{"WORKLOAD", "LOT", "WHY", "PODS", "A STEP OF 50 %"}}
	for _, w := range r.Workloads {
		pods := ""
		if w.Pods > 0 {
			pods = fmt.Sprint(w.Pods)
		}
		workloads.rows = append(workloads.rows, []string{w.Workload, string(w.Lot), w.Why, pods, w.Half})
	}
	services := table{head: []string{"SERVICE", "MOVES"}}
	for _, s := range r.Services {
		moves := map[lots.Use]string{
			lots.Production: strings.Join(s.Moves, ", "), lots.Preview: "the contender of a preview", lots.AsItIs: "stays as it is: " + s.Why,
		}
		services.rows = append(services.rows, []string{s.Service, moves[s.Use]})
	}
	copies := table{head: []string{"COPIED FOR EACH RELEASE", "FOR THE PODS OF"}}
	for _, c := range r.Copies {
		copies.rows = append(copies.rows, []string{c.Object, strings.Join(c.UsedBy, ", ")})
	}
	hooks := table{head: []string{"HOOK", "RUNS"}}
	for _, h := range r.Hooks {
		hooks.rows = append(hooks.rows, []string{h.Object, strings.Join(h.Events, ", ")})
	}
	rights := table{head: []string{"RIGHT THAT SHIPPER LACKS BY DEFAULT", "FOR"}}
	for _, right := range r.Rights {
		if len(right.For) > 0 {
			rights.rows = append(rights.rows, []string{right.String(), brief(right.For)})
		}
	}
	return []table{workloads, services, copies, hooks, rights}
}

// brief names at most three things.
func brief(names []string) string {
	if len(names) <= 3 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:2], ", "), len(names)-2)
}

// verdict says that the chart rolls out, and what else that takes.
func (r *Report) verdict(width int) string {
	sentence := "It rolls out unedited."
	if r.Naming == shipper.NamingByRelease {
		sentence = "It rolls out, by the rules for charts that put the name of the Release into theirs."
	}
	if len(r.Rights) > 0 {
		sentence += " First give Shipper the rights that it lacks, in each application cluster: --grant prints them for `kubectl apply -f -`."
	}
	return screen.Hang("", sentence, width)
}
