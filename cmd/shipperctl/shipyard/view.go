// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"shipper.dev/shipper/apis/rules/printable"
	rules "shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/screen"
)

// View is a run as `shipyard status` shows it, also in `-o json`.
type View struct {
	Namespace string `json:"namespace"`
	Run       string `json:"run"`
	Shipyard  string `json:"shipyard"`
	Stage     string `json:"stage"`
	Sequence  string `json:"sequence"`
	Service   string `json:"service"`
	Chart     string `json:"chart,omitempty"`
	Version   string `json:"version,omitempty"`
	Context   string `json:"context,omitempty"`
	// RequestedBy is the user who created the run, or the first run of its context. TriggeredBy is the event that it follows from.
	RequestedBy string    `json:"requestedBy,omitempty"`
	TriggeredBy string    `json:"triggeredBy,omitempty"`
	CreatedAt   time.Time `json:"createdAt"`
	RetryOf     string    `json:"retryOf,omitempty"`
	// SkipsRequires is the reason why the run does not need what its stage requires.
	SkipsRequires string `json:"skipsRequires,omitempty"`
	// State is what the run does, or how it ended; Pending before Shipper has seen it.
	State    string `json:"state"`
	Finished bool   `json:"finished"`
	Result   string `json:"result,omitempty"`
	// Completion is empty until the run is finished.
	Completion string `json:"completion,omitempty"`
	Message    string `json:"message,omitempty"`
	// Unanswered says that the reconciler does not look at the run; empty while it does.
	Unanswered string `json:"unanswered,omitempty"`
	// Position counts the runs ahead in the line; Behind is the run directly ahead.
	Position int    `json:"position,omitempty"`
	Behind   string `json:"behind,omitempty"`
	Hold     string `json:"hold,omitempty"`
	Abort    string `json:"abort,omitempty"`
	// Blocked is the message of what stops the task under way.
	Blocked string `json:"blocked,omitempty"`
	// LeftHeld is the Release that the run, which has finished, has left held, as NAMESPACE/NAME.
	LeftHeld   string     `json:"leftHeld,omitempty"`
	StartedAt  time.Time  `json:"startedAt,omitzero"`
	FinishedAt time.Time  `json:"finishedAt,omitzero"`
	Tasks      []Task     `json:"tasks"`
	FollowUps  []FollowUp `json:"followUps"`
}

// Task is a task of a run.
type Task struct {
	// Name of the task; test#2 is the second test.
	Name string `json:"name"`
	// State is Pending before the task is reached.
	State      string    `json:"state"`
	Result     string    `json:"result,omitempty"`
	Completion string    `json:"completion,omitempty"`
	Message    string    `json:"message,omitempty"`
	Release    string    `json:"release,omitempty"`
	StartedAt  time.Time `json:"startedAt,omitzero"`
	FinishedAt time.Time `json:"finishedAt,omitzero"`
	// Approvals that were counted, and how many are Wanted.
	Approvals []string `json:"approvals,omitempty"`
	Approved  int      `json:"approved,omitempty"`
	Wanted    int      `json:"wanted,omitempty"`
	// ExpiresAt is when the task fails without them.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

// FollowUp is a run that the end of this one triggered.
type FollowUp struct {
	Run      string `json:"run"`
	Stage    string `json:"stage"`
	Sequence string `json:"sequence"`
	Event    string `json:"event"`
	// State and Result are those of the run. One that is not created is Pending or Refused, for the reason in Message; one that was deleted is
	// Deleted.
	State   string `json:"state"`
	Result  string `json:"result,omitempty"`
	Message string `json:"message,omitempty"`
}

// States that no condition has.
const (
	pending = "Pending"
	refused = "Refused"
	deleted = "Deleted"
)

// stateOf is what a run does, or how it ended.
func stateOf(run *shipper.SequenceRun) string {
	if c := shipper.FindCondition(run.Status.Conditions, shipper.RunFinished); c != nil && c.Reason != "" {
		return c.Reason
	}
	return pending
}

// byName finds runs of one namespace.
func byName(runs []shipper.SequenceRun) map[string]*shipper.SequenceRun {
	out := map[string]*shipper.SequenceRun{}
	for i := range runs {
		out[runs[i].Name] = &runs[i]
	}
	return out
}

// position counts the runs ahead of a run, by the chain of status.behind.
func position(run *shipper.SequenceRun, all map[string]*shipper.SequenceRun) int {
	seen := map[string]bool{run.Name: true}
	n := 0
	for next := run.Status.Behind; next != "" && !seen[next]; {
		seen[next] = true
		n++
		ahead := all[next]
		if ahead == nil {
			break
		}
		next = ahead.Status.Behind
	}
	return n
}

// viewOf is the view of a run. others are runs of the same Shipyard, itself among them or not.
func viewOf(run *shipper.SequenceRun, others []shipper.SequenceRun) *View {
	all := byName(others)
	out := &View{
		Namespace: run.Namespace, Run: run.Name, Shipyard: run.Spec.Shipyard, Stage: run.Spec.Stage, Sequence: run.Spec.Sequence,
		Service: run.Spec.Service, Chart: rules.VersionOf(run).Name, Version: rules.VersionOf(run).Version, Context: rules.ContextOf(run),
		RequestedBy: run.Spec.RequestedBy.Username, CreatedAt: run.CreationTimestamp.Time,
		State: stateOf(run), Finished: isFinished(run), Result: string(run.Status.Result), Completion: string(run.Status.Completion),
		Message: printable.OneLine(run.Status.Message), Position: position(run, all), Behind: run.Status.Behind,
		Hold: printable.OneLine(run.Spec.Hold), Abort: printable.OneLine(run.Spec.Abort), LeftHeld: rules.LeftHeld(run),
	}
	if resolved := run.Status.Resolved; resolved != nil && resolved.TriggeredBy != nil {
		out.TriggeredBy = resolved.TriggeredBy.Event + " of run " + resolved.TriggeredBy.Run
	}
	if of := run.Spec.RetryOf; of != nil {
		out.RetryOf = of.Run
		if of.From != "" {
			out.RetryOf += " from " + of.From
		}
	}
	if skip := run.Spec.SkipRequires; skip != nil {
		out.SkipsRequires = printable.OneLine(skip.Reason)
	}
	if c := shipper.FindCondition(run.Status.Conditions, shipper.RunFinished); c != nil && !out.Finished && out.Message == "" {
		out.Message = printable.OneLine(c.Message)
	}
	if c := shipper.FindCondition(run.Status.Conditions, shipper.RunBlocked); c != nil && !out.Finished &&
		shipper.ConditionTrue(run.Status.Conditions, shipper.RunBlocked) {
		out.Blocked = printable.OneLine(c.Message)
	}
	if t := run.Status.StartTime; t != nil {
		out.StartedAt = t.Time
	}
	if t := run.Status.FinishTime; t != nil {
		out.FinishedAt = t.Time
	}
	out.Tasks, out.FollowUps = tasksOf(run), followUpsOf(run, all)
	return out
}

// tasksOf are the tasks that were begun or skipped, and those of the sequence that are left.
func tasksOf(run *shipper.SequenceRun) []Task {
	sequence := rules.OwnSequence(run)
	out := []Task{}
	for i := range run.Status.Tasks {
		task := &run.Status.Tasks[i]
		one := Task{
			Name: nameOf(task.Name, int(task.Ordinal)), State: string(task.State), Result: string(task.Result),
			Completion: string(task.Completion), Message: printable.OneLine(task.Message), Release: task.Release,
		}
		if task.TriggerTime != nil {
			one.StartedAt = task.TriggerTime.Time
		}
		if task.FinishTime != nil {
			one.FinishedAt = task.FinishTime.Time
		}
		for _, a := range task.Approvals {
			verb := "approved"
			if a.Decision == shipper.DecisionReject {
				verb = "rejected"
			} else {
				one.Approved++
			}
			one.Approvals = append(one.Approvals, a.By+" "+verb)
		}
		if sequence != nil && i < len(sequence.Tasks) && task.Name == rules.TaskApproval && task.State == shipper.TaskWaiting {
			if consent, err := rules.ConsentOf(sequence.Tasks[i].Properties); err == nil {
				one.Wanted, one.ExpiresAt = consent.Approvals, one.StartedAt.Add(consent.Expires)
			}
		}
		out = append(out, one)
	}
	if sequence == nil || isFinished(run) {
		return out
	}
	count := map[string]int{}
	for i := range sequence.Tasks {
		name := sequence.Tasks[i].Name
		if count[name]++; i >= len(run.Status.Tasks) {
			out = append(out, Task{Name: nameOf(name, count[name]), State: pending})
		}
	}
	return out
}

// nameOf names a task: test#2 is the second test.
func nameOf(name string, ordinal int) string {
	return rules.NameOf(&shipper.TaskStatus{Name: name, Ordinal: int32(ordinal)})
}

func followUpsOf(run *shipper.SequenceRun, all map[string]*shipper.SequenceRun) []FollowUp {
	out := []FollowUp{}
	for _, t := range run.Status.Triggered {
		one := FollowUp{Run: t.Name, Stage: t.Stage, Sequence: t.Sequence, Event: t.Event, Message: printable.OneLine(t.Message)}
		switch next := all[t.Name]; {
		case next != nil:
			one.State, one.Result, one.Message = stateOf(next), string(next.Status.Result), ""
		case t.CreateTime != nil:
			one.State = deleted
		case t.Refused:
			one.State = refused
		default:
			one.State = pending
		}
		out = append(out, one)
	}
	return out
}

func age(t, now time.Time) string { return duration.HumanDuration(max(now.Sub(t), 0)) }

// took is how long something took, or takes so far; empty before it began.
func took(from, to, now time.Time) string {
	switch {
	case from.IsZero():
		return ""
	case to.IsZero():
		return age(from, now)
	}
	return age(from, to)
}

// Text formats the view for people, in lines of at most width columns; 0 is unbounded.
func (v *View) Text(width int, now time.Time) string {
	var out strings.Builder
	line := func(label, text string) {
		if text != "" {
			out.WriteString(screen.Hang(fmt.Sprintf("%-10s ", label), text, width))
		}
	}
	line("run", v.Namespace+"/"+v.Run)
	line("delivers", strings.TrimSpace(v.Service+" "+v.Chart+" "+v.Version))
	line("runs", fmt.Sprintf("sequence %s of stage %s of shipyard %s", v.Sequence, v.Stage, v.Shipyard))
	line("by", fmt.Sprintf("%s, %s ago", cmp.Or(v.RequestedBy, "unknown"), age(v.CreatedAt, now)))
	line("follows", v.TriggeredBy)
	line("retries", v.RetryOf)
	line("overrides", v.overrides())
	line("state", v.state(now))
	if v.Unanswered != "" {
		line("waits for", "the last edit of the run to be observed; "+v.Unanswered)
	}
	line("held", v.Hold)
	line("blocked", v.Blocked)
	if len(v.Tasks) > 0 {
		var rows [][]string
		for i := range v.Tasks {
			rows = append(rows, v.Tasks[i].row(now))
		}
		out.WriteString(screen.Table(width, []string{"task", "state", "result", "took", "release", "message"}, rows))
	}
	for _, next := range v.FollowUps {
		line("triggers", next.text())
	}
	line("to do", v.remedy())
	return out.String()
}

func (v *View) overrides() string {
	if v.SkipsRequires == "" {
		return ""
	}
	return "what the stage requires: " + v.SkipsRequires
}

// state is what the run does, with its figures.
func (v *View) state(now time.Time) string {
	parts := []string{v.State}
	switch {
	case v.Position > 0 && !v.Finished:
		parts = append(parts, fmt.Sprintf("position %d, behind run %s", v.Position, v.Behind))
	case v.Finished:
		parts = append(parts, "result "+v.Result+" ("+v.Completion+")", v.Message)
	default:
		parts = append(parts, v.Message)
	}
	if text := took(v.StartedAt, v.FinishedAt, now); text != "" {
		parts = append(parts, "took "+text)
		if !v.Finished {
			parts[len(parts)-1] = "for " + text
		}
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" || s == v.Hold && !v.Finished }), ", ")
}

func (t *Task) row(now time.Time) []string {
	result := t.Result
	if t.Completion != "" && t.Completion != string(shipper.CompletionSucceeded) {
		result += " (" + t.Completion + ")"
	}
	return []string{t.Name, t.State, result, took(t.StartedAt, t.FinishedAt, now), t.Release, t.text(now)}
}

// text is the message of a task, with its approvals.
func (t *Task) text(now time.Time) string {
	parts := []string{t.Message}
	if t.Wanted > 0 {
		parts[0] = fmt.Sprintf("%d of %d approvals", t.Approved, t.Wanted)
		if len(t.Approvals) > 0 {
			parts[0] += ": " + strings.Join(t.Approvals, ", ")
		}
		parts = append(parts, "expires in "+age(now, t.ExpiresAt))
	} else if len(t.Approvals) > 0 {
		parts = append(parts, strings.Join(t.Approvals, ", "))
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

func (f *FollowUp) text() string {
	text := fmt.Sprintf("run %s, sequence %s of stage %s: %s", f.Run, f.Sequence, f.Stage, f.State)
	if f.Result != "" {
		text += ", result " + f.Result
	}
	if f.Message != "" {
		text += ": " + f.Message
	}
	return text
}

// remedy is the command that helps a run on that waits for a person; empty if none does.
func (v *View) remedy() string {
	if namespace, name, held := strings.Cut(v.LeftHeld, "/"); held {
		return fmt.Sprintf("the run has left Release %s of namespace %s held: if it still is, `shipperctl shipyard retry %s -n %s --from TASK` "+
			"goes on with it, and a run of rollback aborts it", name, namespace, v.Run, v.Namespace)
	}
	if v.Finished {
		return ""
	}
	if v.Hold != "" {
		return fmt.Sprintf("`shipperctl shipyard resume %s -n %s` lets it go on", v.Run, v.Namespace)
	}
	for i := range v.Tasks {
		if v.Tasks[i].Wanted > 0 {
			return fmt.Sprintf("`shipperctl shipyard approve %s -n %s` approves it, by another user than %s", v.Run, v.Namespace,
				cmp.Or(v.RequestedBy, "its requester"))
		}
	}
	return ""
}
