// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Observed is what a decision about a run is made of.
type Observed struct {
	Run *shipper.SequenceRun
	// Others are the other unfinished runs of the service in the stage, and of all services if the stage bounds its runs.
	Others []*shipper.SequenceRun
	// Outcome is what the current task has come to; nil before it was done.
	Outcome *Outcome
	// Approvals name the run, the oldest first.
	Approvals []shipper.Approval
	// RetryOf is the run that this one repeats from a task on; nil if there is none, or not any more.
	RetryOf *shipper.SequenceRun
	// Snapshot is the revision of the Shipyard, for a run that may end; nil if it is gone.
	Snapshot *shipper.ShipyardSnapshot
	// Unresolved is why it cannot be decided yet what the run does, and Refused why it is not to begin; both are empty otherwise.
	Unresolved, Refused string
	Now                 time.Time
}

// Outcome is what a task has come to.
type Outcome struct {
	// Result is empty while the task is under way.
	Result     shipper.Result
	Completion shipper.Completion
	Message    string
	// Blocked is the refusal of a RolloutBlock, for which the task waits; its clock stands.
	Blocked string
	// Stands is true while the task waits for users or for a time that its Release says: its clock stands.
	Stands bool
	// Generation of the Application that the task wrote; 0 if it wrote none.
	Generation int64
	// Release that the task made, or acts on.
	Release string
	// Data that the task reports.
	Data shipper.FreeForm
}

// Decision is what is to be done about a run.
type Decision struct {
	// Status is to be written before anything else is done, if it differs from that of the run.
	Status shipper.SequenceRunStatus
	// Do is the task to be done; nil for none.
	Do *shipper.TaskStatus
	// Recheck is when time alone changes the decision; 0 for never.
	Recheck time.Duration
}

// Plan is the next decision about a run. A decision without a change of the status is final until something else changes.
func Plan(o Observed) Decision {
	p := &plan{Observed: o, status: *o.Run.Status.DeepCopy(), now: metav1.NewTime(o.Now.Truncate(time.Second))}
	p.sequence = OwnSequence(o.Run)
	p.status.ObservedGeneration = o.Run.Generation
	if !IsFinished(o.Run) {
		p.advance()
		p.status.Task = p.underWay()
	}
	return Decision{Status: p.status, Do: p.do, Recheck: p.recheck}
}

// StillWaits reports whether a run that has not begun is not to begin or end by a decision.
func StillWaits(status *shipper.SequenceRunStatus) bool {
	return status.StartTime == nil && !shipper.ConditionTrue(status.Conditions, shipper.RunFinished)
}

// plan collects a decision.
type plan struct {
	Observed

	sequence *shipper.Sequence
	status   shipper.SequenceRunStatus
	now      metav1.Time
	do       *shipper.TaskStatus
	recheck  time.Duration
}

// advance moves the run as far as it goes without anything being done.
func (p *plan) advance() {
	switch {
	case p.Refused != "":
		p.finish(shipper.ResultFail, shipper.CompletionErrored, shipper.RunRefused, p.Refused)
		p.status.Triggered = nil // it has done nothing that another run may follow from
	case p.Run.Spec.Abort != "":
		p.finish(shipper.ResultFail, shipper.CompletionAborted, shipper.RunAborted, p.Run.Spec.Abort)
	case p.sequence == nil && p.Unresolved != "":
		p.unfinished(shipper.RunUnresolved, p.Unresolved)
	case p.sequence == nil: // it waits for those before
	case p.status.StartTime == nil && !p.begin():
	case p.preempted():
	default:
		p.run()
	}
}

// begin starts the run if it is its turn.
func (p *plan) begin() bool {
	if p.Run.Spec.Hold != "" {
		p.status.Behind = ""
		p.unfinished(shipper.RunPaused, p.Run.Spec.Hold)
		return false
	}
	queue := Queue(append(p.rivals(), p.Run))
	if newer := p.superseding(queue); newer != "" {
		p.finish(shipper.ResultFail, shipper.CompletionAborted, shipper.RunSuperseded, "run "+newer+" is newer")
		return false
	}
	at := slices.Index(queue, p.Run)
	busy := slices.IndexFunc(queue, func(run *shipper.SequenceRun) bool { return run != p.Run && run.Status.StartTime != nil })
	if at > 0 || busy >= 0 {
		ahead := queue[max(at-1, 0)]
		if at == 0 {
			ahead = queue[busy] // this one goes next, or the other is about to be aborted for it
		}
		p.status.Behind = ahead.Name
		p.unfinished(shipper.RunQueued, "behind run "+ahead.Name)
		return false
	}
	if most := StageOf(p.Run).MaxConcurrency; most != nil && p.active() >= int(*most) {
		p.status.Behind = ""
		p.unfinished(shipper.RunQueued, fmt.Sprintf("%d runs of stage %s are under way, and maxConcurrency is %d", p.active(), p.Run.Spec.Stage,
			*most))
		return false
	}
	p.status.Behind, p.status.StartTime = "", &p.now
	return p.carry()
}

// carry takes over the tasks before the one that a retry begins with, and the data of the run; false if that cannot be done.
func (p *plan) carry() bool {
	of := p.Run.Spec.RetryOf
	if of == nil || of.From == "" {
		return true
	}
	at := TaskIndex(p.sequence, of.From)
	if p.RetryOf == nil || at < 0 || at > len(p.RetryOf.Status.Tasks) || !startsWith(p.sequence, p.RetryOf.Status.Tasks[:at]) {
		p.finish(shipper.ResultFail, shipper.CompletionErrored, shipper.RunFailed,
			"run "+of.Run+" is gone, or did not come to task "+of.From+": repeat the whole run")
		return false
	}
	old := p.RetryOf.DeepCopy().Status
	for _, task := range old.Tasks[:at] {
		if task.State == shipper.TaskFinished {
			task.State = shipper.TaskCarried
		}
		p.status.Tasks = append(p.status.Tasks, task)
	}
	p.status.Data = old.Data
	return true
}

// startsWith reports whether the first tasks of a sequence have the names of tasks.
func startsWith(of *shipper.Sequence, tasks []shipper.TaskStatus) bool {
	for i := range tasks {
		if tasks[i].Name != of.Tasks[i].Name {
			return false
		}
	}
	return true
}

// run does the tasks in order.
func (p *plan) run() {
	if p.Run.Spec.Hold != "" {
		p.unfinished(shipper.RunPaused, p.Run.Spec.Hold)
	} else {
		p.unfinished(shipper.RunRunning, "")
	}
	for !p.current() {
		if p.isFinished() {
			return
		}
		p.clock(p.Run.Spec.Hold != "")
		if p.Run.Spec.Hold != "" || !p.next() {
			return
		}
	}
}

// current advances the task under way; false if there is none, or none any more.
func (p *plan) current() bool {
	if len(p.status.Tasks) == 0 {
		return false
	}
	task := &p.status.Tasks[len(p.status.Tasks)-1]
	of := p.task(len(p.status.Tasks) - 1)
	switch task.State {
	case shipper.TaskDelayed:
		p.clock(p.Run.Spec.Hold != "")
		if p.timedOut() {
			return false
		}
		left := of.TriggeredAfter.Value() - p.elapsed(task)
		switch {
		case p.Run.Spec.Hold != "":
			return true
		case left > 0:
			p.wakeAfter(min(left, p.left()))
			return true
		}
		task.State, task.TriggerTime, task.PausedBefore = shipper.TaskTriggered, &p.now, p.status.PausedSeconds
		if of.Name == TaskApproval {
			p.ask(task, of)
		}
		return p.current()
	case shipper.TaskWaiting:
		return p.consent(task, of)
	case shipper.TaskTriggered:
		return p.triggered(task, of)
	}
	return false
}

// triggered advances a task that the reconciler does: Outcome says how far it is.
func (p *plan) triggered(task *shipper.TaskStatus, of *shipper.Task) bool {
	out := p.Outcome
	p.Outcome = nil // it is of one task
	p.blocked(out)
	if out != nil {
		task.Release, task.Message = cmp.Or(out.Release, task.Release), shorten(cmp.Or(out.Blocked, out.Message))
		task.Generation = cmp.Or(out.Generation, task.Generation)
		if out.Result != "" {
			p.ends(task, *out)
			return false
		}
	}
	switch {
	case p.timedOut():
		return false
	case p.elapsed(task) >= timeout(of.Timeout, DefaultTaskTimeout):
		p.ends(task, Outcome{Result: shipper.ResultFail, Completion: shipper.CompletionErrored,
			Message: fmt.Sprintf("timed out after %s: %s", timeout(of.Timeout, DefaultTaskTimeout), task.Message)})
		return false
	}
	p.wakeAfter(min(timeout(of.Timeout, DefaultTaskTimeout)-p.elapsed(task), p.left()))
	p.do = task.DeepCopy()
	return true
}

// next begins or skips the next task, or ends the run; false if it ended.
func (p *plan) next() bool {
	if p.timedOut() {
		return false
	}
	if len(p.status.Tasks) == len(p.sequence.Tasks) {
		result := p.soFar()
		reason := map[shipper.Result]string{
			shipper.ResultPass: shipper.RunPassed, shipper.ResultWarning: shipper.RunWarned, shipper.ResultFail: shipper.RunFailed,
		}[result]
		p.finish(result, p.completion(), reason, cmp.Or(p.firstFailure(), p.unmeasured()))
		return false
	}
	of := p.task(len(p.status.Tasks))
	task := shipper.TaskStatus{Name: of.Name, Ordinal: p.ordinal(of.Name), State: shipper.TaskTriggered, TriggerTime: &p.now,
		PausedBefore: p.status.PausedSeconds}
	task.EventID = eventID(p.Run, &task)
	if !isFor(of, p.soFar() == shipper.ResultFail) {
		task.State, task.TriggerTime, task.EventID, task.PausedBefore = shipper.TaskSkipped, nil, "", 0
		p.status.Tasks = append(p.status.Tasks, task)
		return true
	}
	p.status.Data = Begin(p.data(), of)
	switch {
	case of.TriggeredAfter.Value() > 0:
		task.State = shipper.TaskDelayed
	case of.Name == TaskApproval:
		p.ask(&task, of)
	}
	p.status.Tasks = append(p.status.Tasks, task)
	return true
}

// ask lets a task approval wait, unless it decides itself (KS21).
func (p *plan) ask(task *shipper.TaskStatus, of *shipper.Task) {
	wanted, err := ConsentOf(of.Properties)
	result := p.soFar()
	switch {
	case err != nil:
		p.ends(task, Outcome{Result: shipper.ResultFail, Completion: shipper.CompletionErrored, Message: err.Error()})
	case result == shipper.ResultFail:
		p.ends(task, Outcome{Result: shipper.ResultFail, Completion: shipper.CompletionSucceeded, Message: "a task before it failed"})
	case result == shipper.ResultPass && wanted.Pass == automatic, result == shipper.ResultWarning && wanted.Warning == automatic:
		p.ends(task, Outcome{Result: result, Completion: shipper.CompletionSucceeded, Message: "approved automatically"})
	default:
		task.State, task.Subject = shipper.TaskWaiting, Subject(p.soon())
	}
}

// ends finishes a task, and merges what it reported.
func (p *plan) ends(task *shipper.TaskStatus, out Outcome) {
	task.State, task.FinishTime = shipper.TaskFinished, &p.now
	task.Result, task.Completion, task.Message = out.Result, out.Completion, shorten(out.Message)
	if out.Completion != shipper.CompletionSucceeded && out.Result != shipper.ResultFail { // KS11
		task.Result = shipper.ResultFail
	}
	var spaces []string
	for i := range p.sequence.Tasks {
		spaces = append(spaces, p.sequence.Tasks[i].Name)
	}
	data, err := Report(p.data(), task.Name, spaces, out.Data)
	if err != nil {
		task.Result, task.Completion, task.Message = shipper.ResultFail, shipper.CompletionErrored, shorten(err.Error())
		return
	}
	p.status.Data = data
}

// data is what the tasks so far have come to.
func (p *plan) data() shipper.FreeForm {
	if p.status.Data != nil {
		return p.status.Data
	}
	return firstData(p.Run)
}

func (p *plan) task(i int) *shipper.Task { return &p.sequence.Tasks[i] }

// ordinal is that of the next task of a name.
func (p *plan) ordinal(name string) int32 {
	n := int32(1)
	for _, task := range p.status.Tasks {
		if task.Name == name {
			n++
		}
	}
	return n
}

// NameOf names a task of a sequence: test#2 is the second test.
func NameOf(task *shipper.TaskStatus) string {
	if task.Ordinal <= 1 {
		return task.Name
	}
	return fmt.Sprintf("%s#%d", task.Name, task.Ordinal)
}

// eventID identifies an attempt at a task: the same after a crash, another in a retry.
func eventID(run *shipper.SequenceRun, task *shipper.TaskStatus) string {
	sum := sha256.Sum256([]byte(string(run.UID) + "/" + NameOf(task)))
	return hex.EncodeToString(sum[:16])
}

// shorten bounds a message, as the schema does.
func shorten(text string) string {
	const most = 1024
	if len(text) <= most {
		return text
	}
	return text[:most-3] + "..."
}
