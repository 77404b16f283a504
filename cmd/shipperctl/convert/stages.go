// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// updateStrategy is the spec of a ClusterStagedUpdateStrategy or a StagedUpdateStrategy.
type updateStrategy struct {
	Stages []stage `json:"stages"`
}

// stage is a group of clusters that a staged run updates before the next.
type stage struct {
	Name            string                `json:"name"`
	LabelSelector   *metav1.LabelSelector `json:"labelSelector"`
	SortingLabelKey string                `json:"sortingLabelKey"`
	MaxConcurrency  *intstr.IntOrString   `json:"maxConcurrency"`
	Before          []stageTask           `json:"beforeStageTasks"`
	After           []stageTask           `json:"afterStageTasks"`
}

type stageTask struct {
	Type     string `json:"type"`
	WaitTime string `json:"waitTime"`
}

// String is the type of the task, with its time if it waits.
func (t stageTask) String() string { return strings.TrimSpace(t.Type + " " + t.WaitTime) }

// Types of tasks of stages.
const (
	taskApproval = "Approval"
	taskWait     = "TimedWait"
)

// stages are the waves of a strategy of staged runs.
type stages struct {
	waves []shipper.Wave
	// approvedFirst is true where the first stage has an approval before it.
	approvedFirst bool
	reviews       []string
}

// stagesToWaves makes waves of the stages of a strategy.
func stagesToWaves(d document) (*stages, error) {
	var from struct {
		Spec updateStrategy `json:"spec"`
	}
	if err := decodeInto(d, &from); err != nil {
		return nil, err
	}
	report := &report{object: d.title()}
	report.unread(d.Object["spec"], reflect.TypeFor[updateStrategy](), "spec", nil)
	out, names, approvals := &stages{}, map[string]bool{}, false
	for i := range from.Spec.Stages {
		s, at := &from.Spec.Stages[i], field.NewPath("spec", "stages").Index(i)
		if names[s.Name] {
			return nil, d.failed(at.Child("name").String(), "is that of another stage: %s", s.Name)
		}
		names[s.Name] = true
		wave, err := s.wave(d, at, report)
		if err != nil {
			return nil, err
		}
		if i == len(from.Spec.Stages)-1 && len(s.After) > 0 {
			report.add(at.Child("afterStageTasks").String(), "is left out: no wave follows that could wait, and the Release is complete")
			s.After = nil
		}
		if wave.AfterTasks, err = s.afterTasks(d, at.Child("afterStageTasks"), report); err != nil {
			return nil, err
		}
		if s.approvedBefore(at.Child("beforeStageTasks"), report) {
			approvals = true
			out.approveBefore(s, at.Child("beforeStageTasks"), report)
		}
		approvals = approvals || wave.AfterTasks != nil && wave.AfterTasks.Approvals > 0
		out.waves = append(out.waves, wave)
	}
	if approvals {
		report.add("spec.stages", "approvals are of users with the verb approve on the Release, and never of the one who asked for it")
	}
	out.reviews = report.reviews
	return out, nil
}

// wave is the wave of a stage, without its tasks.
func (s *stage) wave(d document, at *field.Path, report *report) (shipper.Wave, error) {
	out := shipper.Wave{Name: s.Name, ClusterSelector: s.LabelSelector}
	if wrong := validation.IsDNS1123Label(s.Name); len(wrong) > 0 {
		return out, d.failed(at.Child("name").String(), "cannot be the name of a wave: %s", strings.Join(wrong, "; "))
	}
	if s.LabelSelector == nil {
		out.ClusterSelector = noClusters()
		report.add(at.Child("labelSelector").String(), "is missing, so that wave %s has no clusters, as in later versions of KubeFleet: leave "+
			"its clusterSelector out if it is to have all clusters that no other wave selects", s.Name)
	}
	if errs := placement.ValidateSelector(out.ClusterSelector, at.Child("labelSelector")); len(errs) > 0 {
		return out, d.failed(at.Child("labelSelector").String(), "makes a wave that Shipper refuses: %w", errs.ToAggregate())
	}
	if s.SortingLabelKey != "" {
		report.add(at.Child("sortingLabelKey").String(), "is left out: clusters of a wave change in the order of their names; make a wave of "+
			"its own for each value of label %s that has to come first", s.SortingLabelKey)
	}
	bound := at.Child("maxConcurrency")
	var err error
	if out.MaxConcurrency, err = clusterBound(d, bound.String(), s.MaxConcurrency); err != nil {
		return out, err
	}
	if isNone(out.MaxConcurrency) {
		return out, d.failed(bound.String(), "is 0, and must be 1 at least")
	}
	if m := out.MaxConcurrency; m != nil && m.Type == intstr.String && m.StrVal != "100%" {
		report.add(bound.String(), "%s of the clusters is rounded up, and by KubeFleet down", m.StrVal)
	}
	return out, nil
}

// noClusters selects no cluster: each has the label with its name.
func noClusters() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: shipper.ClusterLabel, Operator: metav1.LabelSelectorOpDoesNotExist},
	}}
}

// afterTasks are those of the wave; nil if there are none.
func (s *stage) afterTasks(d document, at *field.Path, report *report) (*shipper.WaveTasks, error) {
	out := shipper.WaveTasks{}
	for i, task := range s.After {
		at := at.Index(i)
		switch task.Type {
		case taskApproval:
			out.Approvals = 1
		case taskWait:
			wait, err := time.ParseDuration(task.WaitTime)
			if err != nil || wait < 0 {
				return nil, d.failed(at.Child("waitTime").String(), "is %q, and must be a duration such as 1h30m", task.WaitTime)
			}
			if wait > 0 {
				out.Wait = bounded(wait, at.Child("waitTime").String(), report)
			}
		default:
			report.add(at.Child("type").String(), "%s is left out: Shipper does not know such tasks", task.Type)
		}
	}
	if out.Approvals == 0 && out.Wait == "" {
		return nil, nil
	}
	return &out, nil
}

// approvedBefore reports whether a stage waits for an approval before it begins.
func (s *stage) approvedBefore(at *field.Path, report *report) (approved bool) {
	for i, task := range s.Before {
		if task.Type == taskApproval {
			approved = true
			continue
		}
		report.add(at.Index(i).Child("type").String(), "%s is left out: a wave begins when the one before it is done", task)
	}
	return approved
}

// approveBefore makes the wave before a stage wait for one approval more.
func (s *stages) approveBefore(next *stage, at *field.Path, report *report) {
	if len(s.waves) == 0 {
		s.approvedFirst = true
		return
	}
	before := &s.waves[len(s.waves)-1]
	if before.AfterTasks == nil {
		before.AfterTasks = &shipper.WaveTasks{}
	}
	before.AfterTasks.Approvals++
	text := fmt.Sprintf("becomes an approval after wave %s, which may be given while that wave waits", before.Name)
	if before.AfterTasks.Approvals > 1 {
		text += fmt.Sprintf("; with the one after its stage, two users have to approve before %s begins", next.Name)
	}
	report.add(at.String(), "%s", text)
}

// held adds a wave without clusters in front: nothing is placed before it is approved.
func held(waves []shipper.Wave) []shipper.Wave {
	name := "before-" + waves[0].Name
	if len(name) > validation.DNS1123LabelMaxLength {
		name = strings.TrimRight(name[:validation.DNS1123LabelMaxLength], "-")
	}
	first := shipper.Wave{Name: name, ClusterSelector: noClusters(), AfterTasks: &shipper.WaveTasks{Approvals: 1}}
	return append([]shipper.Wave{first}, waves...)
}
