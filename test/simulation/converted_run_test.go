// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	checkrules "shipper.dev/shipper/apis/rules/check"
	"shipper.dev/shipper/apis/rules/shipyard"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

const (
	// shapeLimit is how long, in virtual time, a Release or a run may take.
	shapeLimit = 2 * time.Hour
	// shapeLook is how often a person looks.
	shapeLook = 10 * time.Second
)

// runs creates what was made, and runs it to its end.
func (s *shape) runs(t *testing.T) {
	w := newWorld(t, Plan{Webhooks: 1})
	defer w.end()
	w.laws.story(Story{})
	w.Network.serve(checksHost, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"status":"success","ok":true,"value":%s,"data":{"resultType":"vector","result":[{"metric":{},"value":[1,"%s"]}]}}`,
			s.measured, s.measured)
	}))
	w.begin(s.clusters)
	s.Fixture = newFixture(w, Story{})
	s.approver = s.clientOf(approverName)
	s.prepare()
	var admitted []*unstructured.Unstructured
	for _, o := range s.made {
		if s.admits(o) {
			admitted = append(admitted, o)
		}
	}
	for _, o := range admitted {
		switch o.GetKind() {
		case "Application":
			s.say("end", "Application %s: %s", o.GetName(), s.rollsOut(o.GetNamespace(), o.GetName()))
		case "Shipyard":
			s.delivers(o)
		}
	}
}

// prepare makes the namespaces, the labels of the clusters, and what the manifest has of Kubernetes.
func (s *shape) prepare() {
	namespaces := map[string]bool{namespace: false, checkrules.SharedNamespace: true}
	for _, o := range slices.Concat(s.made, s.given) {
		if ns := o.GetNamespace(); ns != "" && ns != namespace {
			namespaces[ns] = true
		}
	}
	for _, o := range s.given {
		if o.GetKind() == "Namespace" {
			namespaces[o.GetName()] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(namespaces)) {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}}
		for _, o := range s.given {
			if o.GetKind() == "Namespace" && o.GetName() == name {
				maps.Copy(ns.Labels, o.GetLabels())
			}
		}
		if namespaces[name] {
			s.must("creating a namespace", s.Management.Create("", "namespaces", ns.DeepCopy()))
			for _, cluster := range slices.Sorted(maps.Keys(s.Clusters)) {
				s.must("creating a namespace", s.Clusters[cluster].Create("", "namespaces", ns.DeepCopy()))
			}
		}
		s.must("creating the runner", s.Management.Create("", "serviceaccounts", &corev1.ServiceAccount{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: shipper.DefaultRunner},
		}))
	}
	for n, environment := range []string{"staging", "production", "production"}[:s.clusters] {
		patch := fmt.Sprintf(`{"metadata":{"labels":{"environment":%q,"region":%q}}}`, environment, region(n))
		s.must("labelling a cluster", s.User.Patch(s.Ctx, &shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: clusterName(n)}},
			client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	for _, o := range s.given {
		if o.GetKind() == "Namespace" {
			continue
		}
		o = o.DeepCopy()
		if o.GetNamespace() == "" {
			o.SetNamespace(namespace)
		}
		_ = s.User.Create(s.Ctx, o) // kinds that this management cluster does not serve are not there
	}
	time.Sleep(shapeLook)
}

// denied is what an API server says before the message of a webhook.
var denied = regexp.MustCompile(`^.*denied the request: `)

// admits creates an object. A Cluster is only tried: there is no cluster at its address.
func (s *shape) admits(o *unstructured.Unstructured) bool {
	var options []client.CreateOption
	if o.GetKind() == "Cluster" {
		options = append(options, client.DryRunAll)
	}
	err := s.User.Create(s.Ctx, o.DeepCopy(), options...)
	time.Sleep(shapeLook) // the webhook reads of it
	if err != nil {
		s.say("admits", "%s %s: refused: %s", o.GetKind(), o.GetName(), denied.ReplaceAllString(err.Error(), ""))
		return false
	}
	s.say("admits", "%s %s", o.GetKind(), o.GetName())
	return true
}

// until waits for a while until look has an answer.
func until(look func() string) string {
	for began := time.Now(); time.Since(began) < shapeLimit; time.Sleep(shapeLook) {
		if answer := look(); answer != "" {
			return answer
		}
	}
	return ""
}

// rollsOut is how the Releases of an Application end.
func (s *shape) rollsOut(ns, name string) string {
	end, _ := s.completes(ns, name, 0)
	var app shipper.Application
	s.hosts[management].read(kindOf("applications"), ns, name, &app)
	if !strings.HasPrefix(end, "complete") || app.Spec.Template.Resources != nil {
		return end
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"template":{"values":{"edited":"once"}}}}`))
	if err := s.User.Patch(s.Ctx, &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}, patch); err != nil {
		return "the first Release is complete; an edit is refused: " + denied.ReplaceAllString(err.Error(), "")
	}
	end, passed := s.completes(ns, name, 1)
	steps := max(1, len(app.Spec.Template.Strategy.Steps))
	return fmt.Sprintf("the first Release is complete; the second, of %d steps: %s%s", steps, end, passed)
}

// completes waits for the end of the n-th Release, and moves it where it waits for a person.
func (s *shape) completes(ns, name string, n int) (end, passed string) {
	steps, approvals := 0, 0
	var rel shipper.Release
	end = until(func() string {
		var app shipper.Application
		s.hosts[management].read(kindOf("applications"), ns, name, &app)
		switch {
		case len(app.Status.History) <= n && rel.Name != "":
			return "aborted, while the step " + reasonOf(&rel)
		case len(app.Status.History) <= n:
			return ""
		}
		rel = shipper.Release{}
		s.hosts[management].read(kindOf("releases"), ns, app.Status.History[n], &rel)
		if shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseComplete) {
			return "complete"
		}
		if c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseFailed); c != nil && c.Status == corev1.ConditionTrue {
			return fmt.Sprintf("failed: %s: %s", c.Reason, c.Message)
		}
		if rel.Status.Strategy == nil {
			return ""
		}
		key := metav1.ObjectMeta{Namespace: ns, Name: rel.Name}
		switch state, target := rel.Status.Strategy.State, rel.Spec.TargetStep; {
		case state.WaitingForApproval == shipper.StrategyStateTrue:
			approvals++
			err := s.approver.Create(s.Ctx, &shipper.Approval{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("%s-%d", rel.Name, approvals)},
				Spec:       shipper.ApprovalSpec{Release: rel.Name, Step: &target},
			})
			if err != nil || approvals > 20 {
				return fmt.Sprintf("a person cannot approve step %d: %v", target, err)
			}
		case state.WaitingForCommand == shipper.StrategyStateTrue && rel.Status.AchievedStep != nil && rel.Status.AchievedStep.Step == target:
			steps++
			patch := fmt.Appendf(nil, `{"spec":{"targetStep":%d}}`, target+1)
			if err := s.User.Patch(s.Ctx, &shipper.Release{ObjectMeta: key}, client.RawPatch(types.MergePatchType, patch)); err != nil {
				return fmt.Sprintf("a person cannot pass step %d: %v", target, err)
			}
		}
		return ""
	})
	if end == "" {
		end = "not complete: " + waitsFor(&rel)
		if rel.Name == "" {
			end = "no Release: " + s.whyNone(ns, name)
		}
	}
	if steps > 0 {
		passed += fmt.Sprintf(", a person passes %d", steps)
	}
	if approvals > 0 {
		passed += fmt.Sprintf(", a person approves %d", approvals)
	}
	return end, passed
}

// reasonOf is the reason with which a Release says what it waits for.
func reasonOf(rel *shipper.Release) string {
	if c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseAdvancing); c != nil {
		return "was " + c.Reason
	}
	return "had no reason to wait"
}

// waitsFor is what a Release says of its progress.
func waitsFor(rel *shipper.Release) string {
	for _, kind := range []string{shipper.ReleaseAdvancing, shipper.ReleaseComplete} {
		if c := shipper.FindCondition(rel.Status.Conditions, kind); c != nil {
			return fmt.Sprintf("%s: %s", c.Reason, c.Message)
		}
	}
	return "it has no conditions"
}

// whyNone is what an Application without a Release says.
func (s *shape) whyNone(ns, name string) string {
	var app shipper.Application
	s.hosts[management].read(kindOf("applications"), ns, name, &app)
	for _, c := range app.Status.Conditions {
		if c.Status == corev1.ConditionFalse && c.Message != "" {
			return fmt.Sprintf("%s: %s", c.Reason, c.Message)
		}
	}
	return "it has no conditions"
}

// delivers starts the sequences of a shipyard that no other triggers, with an Application for each stage.
func (s *shape) delivers(o *unstructured.Unstructured) {
	const service = "web"
	yard := &shipper.Shipyard{}
	convert(o, yard)
	for _, stage := range yard.Spec.Stages {
		app := s.Application(strings.NewReplacer("{service}", service, "{stage}", stage.Name, "{shipyard}", yard.Name).Replace(
			applicationOf(&stage)), "0.0.1", 1, allIn())
		if app.Namespace = yard.Namespace; stage.Namespace != "" {
			app.Namespace = stage.Namespace
		}
		(*app.Spec.Template.Values)["nameOverride"] = app.Name
		if err := s.User.Create(s.Ctx, app.DeepCopy()); err != nil {
			s.say("end", "the Application of the stage %s: %s", stage.Name, denied.ReplaceAllString(err.Error(), ""))
			return
		}
		if end, _ := s.completes(app.Namespace, app.Name, 0); end != "complete" {
			s.say("end", "the Application of the stage %s: %s", stage.Name, end)
		}
	}
	for i, stage := range yard.Spec.Stages {
		for j, sequence := range stage.Sequences {
			if len(sequence.TriggeredOn) > 0 {
				continue
			}
			run := &shipper.SequenceRun{
				ObjectMeta: metav1.ObjectMeta{Namespace: yard.Namespace, Name: fmt.Sprintf("run-%d-%d", i, j)},
				Spec: shipper.SequenceRunSpec{
					Shipyard: yard.Name, Stage: stage.Name, Sequence: sequence.Name, Service: service,
					Data: shipper.FreeForm{"deployment": map[string]any{"version": "0.0.2"}},
				},
			}
			if err := s.User.Create(s.Ctx, run); err != nil {
				s.say("end", "%s.%s is refused: %s", stage.Name, sequence.Name, denied.ReplaceAllString(err.Error(), ""))
				continue
			}
			s.finishes()
		}
	}
	s.reportsRuns(yard)
}

// applicationOf is the name of the Application of a stage, before parts of it are replaced.
func applicationOf(stage *shipper.Stage) string {
	switch {
	case stage.Application != "":
		return stage.Application
	case stage.Namespace != "":
		return "{service}"
	}
	return "{service}-{stage}"
}

// finishes waits until all runs have ended for a while, and approves what waits for that.
func (s *shape) finishes() {
	ended := 0
	until(func() string {
		ended++
		for _, o := range s.hosts[management].all(kindOf("sequenceruns")) {
			run := &shipper.SequenceRun{}
			if convert(o, run); shipper.ConditionTrue(run.Status.Conditions, shipper.RunFinished) {
				continue
			}
			ended = 0
			for i := range run.Status.Tasks {
				task := &run.Status.Tasks[i]
				if task.State == shipper.TaskWaiting || strings.HasPrefix(task.Name, "approval") && task.State == shipper.TaskTriggered {
					_ = s.approver.Create(s.Ctx, &shipper.Approval{ // one that is there already counts
						ObjectMeta: metav1.ObjectMeta{Namespace: run.Namespace, Name: fmt.Sprintf("%s-%d", run.Name, i)},
						Spec:       shipper.ApprovalSpec{Run: run.Name},
					})
				}
			}
		}
		if ended > 6 { // a run that was triggered by the last one is there by now
			return "ended"
		}
		return ""
	})
}

// reportsRuns says how all runs ended, and which sequences had none.
func (s *shape) reportsRuns(yard *shipper.Shipyard) {
	ran := map[string]string{}
	for _, o := range s.hosts[management].all(kindOf("sequenceruns")) {
		run := &shipper.SequenceRun{}
		convert(o, run)
		end := "no condition"
		if c := shipper.FindCondition(run.Status.Conditions, shipper.RunFinished); c != nil {
			end = c.Reason
		}
		for i := range run.Status.Tasks {
			task := &run.Status.Tasks[i]
			end += fmt.Sprintf(", %s %s", shipyard.NameOf(task), task.Result)
			if task.Result == shipper.ResultFail || task.Result == shipper.ResultWarning || task.State == shipper.TaskWaiting {
				end += fmt.Sprintf(" (%s)", task.Message)
			}
		}
		ran[run.Spec.Stage+"."+run.Spec.Sequence] = end
	}
	approved := len(s.hosts[management].all(kindOf("approvals")))
	for _, stage := range yard.Spec.Stages {
		for _, sequence := range stage.Sequences {
			name := stage.Name + "." + sequence.Name
			end := ran[name]
			if end == "" {
				end = "not started: no event triggered it"
			}
			s.say("end", "Shipyard %s: %s: %s", yard.Name, name, end)
		}
		if len(stage.Sequences) == 0 {
			s.say("end", "Shipyard %s: the stage %s has no sequences", yard.Name, stage.Name)
		}
	}
	if approved > 0 {
		s.say("end", "Shipyard %s: a person approves %d", yard.Name, approved)
	}
}
