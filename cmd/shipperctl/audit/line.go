// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/printable"
	rules "shipper.dev/shipper/apis/rules/shipyard"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/summary"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/screen"
)

// The kinds of entries.
const (
	kindRun      = "run"
	kindApproval = "approval"
	kindOverride = "override"
	kindBlock    = "block"
	kindMove     = "move"
)

var kinds = []string{kindRun, kindApproval, kindOverride, kindBlock, kindMove}

// kept says for how long objects with entries of a kind exist.
var kept = map[string]string{
	kindRun:      "finished runs are kept as history of their Shipyard says; a hold and an abort have no user, and a hold that ended is gone",
	kindApproval: "Approvals are deleted with their run or their Release",
	kindOverride: "overrides are recorded on the Application until they are removed from it, and on each Release",
	kindBlock:    "a block that was lifted is gone",
	kindMove:     "Releases are kept as revisionHistoryLimit says; of the moves of a Release only the last is",
}

// filter selects entries; empty parts select all.
type filter struct {
	app, user string
	kinds     []string
	from      time.Time
}

// Line is a time line, also in `-o json`.
type Line struct {
	Entries []Entry `json:"entries"`
	// Reach says how far back the entries of each kind go.
	Reach []Reach `json:"reach"`
	// Unread says which objects could not be read.
	Unread []string `json:"unread,omitempty"`
}

// Entry is one thing that a user did, or that came of it.
type Entry struct {
	Time time.Time `json:"time"`
	Kind string    `json:"kind"`
	// User is empty where objects do not record it.
	User      string `json:"user,omitempty"`
	Namespace string `json:"namespace"`
	// Object is KIND/NAME.
	Object string `json:"object"`
	// Application is NAMESPACE/NAME; empty if there is none.
	Application string `json:"application,omitempty"`
	Text        string `json:"text"`
}

// Reach is how far back the objects with entries of a kind go.
type Reach struct {
	Kind string `json:"kind"`
	// Since is the time of the oldest entry; absent if there is none.
	Since time.Time `json:"since,omitzero"`
	Why   string    `json:"why"`
}

// timeLine is the time line of what was read, the newest last. It is pure.
func timeLine(s *state, of filter) Line {
	all := slices.Concat(runs(s), approvals(s), overrides(s), blocks(s), moves(s))
	slices.SortStableFunc(all, func(a, b Entry) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Text, b.Text))
	})
	out := Line{Entries: []Entry{}, Unread: s.unread}
	for _, kind := range kinds {
		if len(of.kinds) > 0 && !slices.Contains(of.kinds, kind) {
			continue
		}
		reach := Reach{Kind: kind, Why: kept[kind]}
		if i := slices.IndexFunc(all, func(e Entry) bool { return e.Kind == kind }); i >= 0 {
			reach.Since = all[i].Time
		}
		out.Reach = append(out.Reach, reach)
	}
	for _, e := range all {
		_, name, _ := strings.Cut(e.Application, "/")
		switch {
		case e.Time.Before(of.from), of.user != "" && e.User != of.user, len(of.kinds) > 0 && !slices.Contains(of.kinds, e.Kind):
		case of.app != "" && of.app != e.Application && of.app != name:
		default:
			out.Entries = append(out.Entries, e)
		}
	}
	return out
}

// runs are the beginnings, overrides, holds and ends of runs.
func runs(s *state) []Entry {
	var out []Entry
	for i := range s.runs {
		run := &s.runs[i]
		add := func(kind, user string, at time.Time, format string, args ...any) {
			out = append(out, Entry{
				Time: at, Kind: kind, User: user, Namespace: run.Namespace, Object: "SequenceRun/" + run.Name, Application: applicationOf(run),
				Text: printable.OneLine(fmt.Sprintf(format, args...)),
			})
		}
		by := run.Spec.RequestedBy.Username
		what := fmt.Sprintf("sequence %s of stage %s of shipyard %s for %s", run.Spec.Sequence, run.Spec.Stage, run.Spec.Shipyard,
			strings.TrimSpace(run.Spec.Service+" "+rules.VersionOf(run).Version))
		trigger := &shipper.RunTrigger{}
		if run.Status.Resolved != nil && run.Status.Resolved.TriggeredBy != nil {
			trigger = run.Status.Resolved.TriggeredBy
		}
		switch of := run.Spec.RetryOf; {
		case of != nil:
			add(kindRun, by, run.CreationTimestamp.Time, "repeated run %s: %s", of.Run, what)
		case trigger.Event != "":
			add(kindRun, by, run.CreationTimestamp.Time, "%s started %s, requested by the user who started the delivery", trigger.Event, what)
		default:
			add(kindRun, by, run.CreationTimestamp.Time, "started %s", what)
		}
		if skip := run.Spec.SkipRequires; skip != nil {
			add(kindOverride, by, run.CreationTimestamp.Time, "overrode what stage %s requires: %s", run.Spec.Stage, skip.Reason)
		}
		if at := run.Status.PausedSince; at != nil && run.Spec.Hold != "" {
			add(kindRun, "", at.Time, "was held: %s", run.Spec.Hold)
		}
		if at := run.Status.FinishTime; at != nil {
			text := "ended with " + string(run.Status.Result)
			if run.Spec.Abort != "" {
				text = "was aborted: " + run.Spec.Abort
			} else if run.Status.Message != "" {
				text += ": " + run.Status.Message
			}
			add(kindRun, "", at.Time, "%s", text)
		}
	}
	return out
}

// applicationOf is the Application that a run writes; empty if the run is not resolved.
func applicationOf(run *shipper.SequenceRun) string {
	if run.Status.Resolved == nil {
		return ""
	}
	return rules.ApplicationOfRun(run).String()
}

// approvals are those of steps of Releases, and of tasks of runs.
func approvals(s *state) []Entry {
	apps := map[string]string{} // by KIND/NAMESPACE/NAME
	for i := range s.runs {
		apps["run/"+s.runs[i].Namespace+"/"+s.runs[i].Name] = applicationOf(&s.runs[i])
	}
	for i := range s.releases {
		apps["release/"+s.releases[i].Namespace+"/"+s.releases[i].Name] = ofRelease(&s.releases[i])
	}
	var out []Entry
	for i := range s.approvals {
		a := &s.approvals[i]
		verb := "approved"
		if a.Spec.Decision == shipper.DecisionReject {
			verb = "rejected"
		}
		text, app := "", ""
		if a.Spec.Run != "" {
			text = fmt.Sprintf("%s task %s of run %s", verb, cmp.Or(a.Spec.Task, "approval"), a.Spec.Run)
			app = apps["run/"+a.Namespace+"/"+a.Spec.Run]
		} else {
			step := int32(0)
			if a.Spec.Step != nil {
				step = *a.Spec.Step
			}
			text = fmt.Sprintf("%s step %d of release %s", verb, step, a.Spec.Release)
			if a.Spec.Task == shipper.ApprovalBefore {
				text = fmt.Sprintf("%s that wave %d of release %s begins", verb, ptr.Deref(a.Spec.Wave, 0), a.Spec.Release)
			}
			app = apps["release/"+a.Namespace+"/"+a.Spec.Release]
		}
		if a.Spec.Reason != "" {
			text += ": " + a.Spec.Reason
		}
		out = append(out, Entry{
			Time: a.CreationTimestamp.Time, Kind: kindApproval, User: a.Spec.By.Username, Namespace: a.Namespace,
			Object: "Approval/" + a.Name, Application: app, Text: printable.OneLine(text),
		})
	}
	return out
}

// ofRelease is the Application of a Release.
func ofRelease(rel *shipper.Release) string {
	if name := rel.Labels[shipper.AppLabel]; name != "" {
		return rel.Namespace + "/" + name
	}
	return ""
}

// overrides are the records of overridden blocks. A Release has those of its Application: each is listed once.
func overrides(s *state) []Entry {
	type key struct {
		app, block, user string
		at               time.Time
	}
	seen := map[key]bool{}
	var out []Entry
	add := func(o metav1.Object, object, app string) {
		for _, r := range block.Records(o.GetAnnotations()) {
			k := key{app, r.Block, r.User, r.Time.UTC()}
			if seen[k] {
				continue
			}
			seen[k] = true
			text := "overrode block " + r.Block
			if r.Reason != "" {
				text += ": " + r.Reason
			}
			out = append(out, Entry{
				Time: r.Time.Time, Kind: kindOverride, User: r.User, Namespace: o.GetNamespace(), Object: object, Application: app,
				Text: printable.OneLine(text),
			})
		}
	}
	for i := range s.apps {
		add(&s.apps[i], "Application/"+s.apps[i].Name, s.apps[i].Namespace+"/"+s.apps[i].Name)
	}
	for i := range s.releases {
		add(&s.releases[i], "Release/"+s.releases[i].Name, ofRelease(&s.releases[i]))
	}
	return out
}

// blocks are those that exist.
func blocks(s *state) []Entry {
	var out []Entry
	for i := range s.blocks {
		b := &s.blocks[i]
		out = append(out, Entry{
			Time: b.CreationTimestamp.Time, Kind: kindBlock,
			User:      cmp.Or(b.Annotations[shipper.RolloutBlockCreatedByAnnotation], b.Spec.Author.Name),
			Namespace: b.Namespace, Object: "RolloutBlock/" + b.Name, Text: printable.OneLine("blocked: " + b.Spec.Message),
		})
	}
	return out
}

// moves are the requests for Releases with what became of them, and the last move of each.
func moves(s *state) []Entry {
	of := map[string][]*shipper.Release{}
	for i := range s.releases {
		if app := ofRelease(&s.releases[i]); app != "" {
			of[app] = append(of[app], &s.releases[i])
		}
	}
	var out []Entry
	for app, rels := range of {
		ordered, _ := stamp.SortByGeneration(rels)
		for i, rel := range ordered {
			one := Entry{Kind: kindMove, Namespace: rel.Namespace, Object: "Release/" + rel.Name, Application: app}
			made := one
			made.Time, made.User = rel.CreationTimestamp.Time, rel.Annotations[shipper.ReleaseRequestedByAnnotation]
			made.Text = fmt.Sprintf("asked for %s %s: %s", rel.Spec.Environment.Chart.Name, rel.Spec.Environment.Chart.Version,
				summary.Of(ordered, i).Outcome)
			if before := rel.Annotations[shipper.ReleaseRollbackOfAnnotation]; before != "" {
				made.Text += ", back to release " + before
			}
			if run := runOf(rel); run != "" {
				made.Text += ", by run " + run
			}
			made.Text = printable.OneLine(made.Text)
			out = append(out, made)
			if move := stamp.Moved(rel); move.Count > 0 {
				one.Time, one.User, one.Text = move.Time.Time, move.By, fmt.Sprintf("moved it from step %d to %d", move.From, move.To)
				if move.Why != "" {
					one.Text += ": " + move.Why
				}
				one.Text = printable.OneLine(one.Text)
				out = append(out, one)
			}
		}
	}
	return out
}

// runOf is the run that a Release was made for, as NAMESPACE/NAME; empty if there is none.
func runOf(rel *shipper.Release) string {
	var claim shipper.RunClaim
	if text := rel.Annotations[shipper.ReleaseRunAnnotation]; text == "" || json.Unmarshal([]byte(text), &claim) != nil || claim.Run == "" {
		return ""
	}
	return claim.Namespace + "/" + claim.Run
}

// notes say how far back the entries go, and what could not be read.
func (l Line) notes() []string {
	out := slices.Clone(l.Unread)
	for _, r := range l.Reach {
		since := "none"
		if !r.Since.IsZero() {
			since = "back to " + r.Since.UTC().Format(time.RFC3339)
		}
		out = append(out, fmt.Sprintf("%s: %s; %s", r.Kind, since, r.Why))
	}
	return out
}

func (l Line) table(width int) string {
	var out strings.Builder
	if len(l.Entries) == 0 {
		out.WriteString("there is nothing to list\n")
	} else {
		var rows [][]string
		for _, e := range l.Entries {
			object := e.Object
			if e.Application == "" || !strings.HasPrefix(e.Application, e.Namespace+"/") {
				object = e.Namespace + "/" + object
			}
			rows = append(rows, []string{
				e.Time.UTC().Format(time.RFC3339), e.Kind, printable.OneLine(cmp.Or(e.User, "-")), e.Application, object, e.Text,
			})
		}
		out.WriteString(screen.Table(width, []string{"TIME", "KIND", "USER", "APPLICATION", "OBJECT", "WHAT"}, rows))
	}
	out.WriteString("\n")
	for _, note := range l.notes() {
		out.WriteString(screen.Hang("note  ", note, width))
	}
	return out.String()
}

func (l Line) csv() (string, error) {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	rows := [][]string{{"time", "kind", "user", "namespace", "object", "application", "text"}}
	for _, e := range l.Entries {
		row := []string{e.Time.UTC().Format(time.RFC3339), e.Kind, e.User, e.Namespace, e.Object, e.Application, e.Text}
		for i := range row {
			row[i] = plain(row[i])
		}
		rows = append(rows, row)
	}
	if err := w.WriteAll(rows); err != nil {
		return "", fmt.Errorf("writing CSV: %w", err)
	}
	return out.String(), nil
}

// plain keeps spreadsheets from taking a user's text for a formula.
func plain(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}
