// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// updateRun is the spec of a ClusterStagedUpdateRun or a StagedUpdateRun.
type updateRun struct {
	PlacementName string `json:"placementName"`
	Index         string `json:"resourceSnapshotIndex"`
	Strategy      string `json:"stagedRolloutStrategyName"`
	State         string `json:"state"`
}

// approvalRequest is the spec of a ClusterApprovalRequest or an ApprovalRequest.
type approvalRequest struct {
	Run   string `json:"parentStageRollout"`
	Stage string `json:"targetStage"`
}

// Kinds of staged updates, and what precedes the names of those without a namespace.
const (
	strategyKind  = "StagedUpdateStrategy"
	runKind       = "StagedUpdateRun"
	approvalKind  = "ApprovalRequest"
	ofAllClusters = "Cluster"
)

// isStaged reports whether the object is of a kind of staged updates, with a namespace or without.
func (d document) isStaged(kind string) bool {
	group, version, _ := strings.Cut(d.GetAPIVersion(), "/")
	return group == fleetPlacements && slices.Contains(fleetVersions, version) && strings.TrimPrefix(d.GetKind(), ofAllClusters) == kind
}

// sameScope reports whether both objects have no namespace, or may be in the same one.
func (d document) sameScope(other document) bool {
	const prefix = ofAllClusters
	of, others := strings.HasPrefix(d.GetKind(), prefix), strings.HasPrefix(other.GetKind(), prefix)
	return of == others && (of || d.besides(other))
}

// stagedStrategy is a strategy of staged runs.
type stagedStrategy struct {
	document
	index int
	// stages are nil if they cannot be converted.
	stages *stages
	// used is true if an Application has its waves.
	used bool
}

// stagedRun is a staged run.
type stagedRun struct {
	document
	index int
	spec  updateRun
	// app is the Application that has its waves; nil if none has.
	app *shipper.Application
}

// ended reports whether the run is being deleted: KubeFleet abandons it.
func (r *stagedRun) ended() bool { return r.GetDeletionTimestamp() != nil }

// begun reports whether a run places something. Without a state, runs of the first versions of KubeFleet do, and later ones do not.
func (r *stagedRun) begun() bool {
	return r.spec.State == "Run" || r.spec.State == "" && strings.HasSuffix(r.GetAPIVersion(), "/v1alpha1")
}

// stagedUpdates are the staged updates of an input.
type stagedUpdates struct {
	strategies []*stagedStrategy
	runs       []*stagedRun
}

// stagedUpdatesOf reads the strategies and runs of an input. Those that cannot be read have failed.
func stagedUpdatesOf(all []document, failed *failures) *stagedUpdates {
	out := &stagedUpdates{}
	for i, d := range all {
		switch {
		case d.isStaged(strategyKind):
			made, err := stagesToWaves(d)
			if err != nil {
				failed.add(i, err)
			}
			out.strategies = append(out.strategies, &stagedStrategy{document: d, index: i, stages: made})
		case d.isStaged(runKind):
			var from struct {
				Spec updateRun `json:"spec"`
			}
			if err := decodeInto(d, &from); err != nil {
				failed.add(i, err)
				continue
			}
			out.runs = append(out.runs, &stagedRun{document: d, index: i, spec: from.Spec})
		}
	}
	return out
}

// runOf is the run that places something of a placement: the newest that is not being deleted, or else the last of the input; nil if there
// is none.
func (s *stagedUpdates) runOf(placement document) *stagedRun {
	var newest *stagedRun
	for _, run := range s.runs {
		if run.spec.PlacementName != placement.GetName() || !run.sameScope(placement) || run.ended() {
			continue
		}
		if created := run.GetCreationTimestamp(); newest == nil || !created.Time.Before(newest.GetCreationTimestamp().Time) {
			newest = run
		}
	}
	return newest
}

// strategyOf is that which a run names, or else the only one that placements of the scope could have; nil if there is none.
func (s *stagedUpdates) strategyOf(placement document, run *stagedRun) *stagedStrategy {
	var found []*stagedStrategy
	for _, one := range s.strategies {
		if one.sameScope(placement) && (run == nil || run.spec.Strategy == one.GetName()) {
			found = append(found, one)
		}
	}
	if len(found) != 1 || found[0].stages == nil || len(found[0].stages.waves) == 0 {
		return nil
	}
	return found[0]
}

// roll makes the Application of a placement with the strategy External roll out by waves, and reports whether there are any.
func (s *stagedUpdates) roll(placement document, app *shipper.Application, report *report) bool {
	run := s.runOf(placement)
	strategy := s.strategyOf(placement, run)
	if strategy == nil {
		return false
	}
	waves := strategy.stages.waves
	begun := run != nil && run.begun()
	if !begun || strategy.stages.approvedFirst {
		waves = held(waves)
	}
	into := app.Spec.Template.Strategy
	if into.Rolling != nil {
		report.add("spec.strategy.rollingUpdate", "is left out: it has no effect with External, in KubeFleet as here")
		into.Rolling = nil
	}
	into.Advance, into.Waves, strategy.used = shipper.AdvanceAutomatic, waves, true
	report.add("spec.strategy.type", "External becomes follow: OnRefresh and the waves of %s: content is taken when the Application is "+
		"created, and again when its template is edited or the annotation %s gets another value, which takes the place of a new run. "+
		"Clusters without an earlier Release change all at once when their wave begins, others maxConcurrency of them", strategy.title(),
		shipper.AppResourcesRefreshAnnotation)
	report.reviews = append(report.reviews, strategy.stages.reviews...)
	approve := fmt.Sprintf("wave %s has no cluster, and nothing is placed before another user than the one who asked for the Release "+
		"approves it, with `shipperctl rollout approve %s -n %s`", waves[0].Name, app.Name, app.Namespace)
	switch {
	case run == nil:
		report.add("spec.strategy.type", "has no run in the input: %s. Leave this wave out to begin when you apply the Application", approve)
	case !begun:
		report.addOf(run.document, run.at()+": spec.state", "is %s: %s. Leave this wave out to begin when you apply the Application",
			cmp.Or(run.spec.State, "Initialize, the default"), approve)
	case strategy.stages.approvedFirst:
		report.addOf(strategy.document, "spec.stages[0].beforeStageTasks", "becomes a wave in front: %s", approve)
	}
	if run != nil {
		run.app = app
		run.report(report)
	}
	return true
}

// report adds what is not carried over of a run.
func (r *stagedRun) report(into *report) {
	own := &report{object: r.title()}
	own.unread(r.Object["spec"], reflect.TypeFor[updateRun](), r.at()+": spec", nil)
	if r.spec.Index != "" {
		own.add(r.at()+": spec.resourceSnapshotIndex", "%q names content of an earlier time, which only KubeFleet has. What is selected "+
			"when the Application is created is taken instead: make the selected objects as they were before you apply it", r.spec.Index)
	}
	into.reviews = append(into.reviews, own.reviews...)
}

// leftOver reports what no Application has of the staged updates. All of them are used then: they are converted, or reported.
func (s *stagedUpdates) leftOver(all []document, used map[int]bool, failed *failures) []string {
	into := &report{}
	for _, one := range s.strategies {
		if one.stages != nil {
			one.leftOver(into)
			used[one.index] = true
		}
	}
	for _, run := range s.runs {
		s.reportRun(run, all, failed, into)
		used[run.index] = true
	}
	for i, d := range all {
		if d.isStaged(approvalKind) {
			s.reportApproval(d, into)
			used[i] = true
		}
	}
	return into.reviews
}

// leftOver reports the waves of a strategy that no Application has.
func (s *stagedStrategy) leftOver(into *report) {
	switch {
	case s.used:
		return
	case len(s.stages.waves) == 0:
		into.addOf(s.document, s.at(), "is left out: it has no stages")
		into.reviews = append(into.reviews, s.stages.reviews...)
		return
	}
	text, err := json.Marshal(shipper.RolloutStrategy{Advance: shipper.AdvanceAutomatic, Waves: s.stages.waves})
	if err != nil {
		text = []byte(err.Error())
	}
	into.addOf(s.document, s.at(), "is left out: no run in the input names it for a placement that is External. Write this into "+
		"spec.template.strategy of each Application that is to have its waves: %s", text)
	into.reviews = append(into.reviews, s.stages.reviews...)
}

// reportRun reports a run that no Application has.
func (s *stagedUpdates) reportRun(run *stagedRun, all []document, failed *failures, into *report) {
	why := ""
	at := slices.IndexFunc(all, func(d document) bool {
		is := converterOf(d) != nil && strings.TrimPrefix(d.GetKind(), ofAllClusters) == namespacedPlacement
		return is && d.GetName() == run.spec.PlacementName && run.sameScope(d)
	})
	switch {
	case run.app != nil:
		return
	case run.ended():
		why = "it is being deleted"
	case run.spec.PlacementName == "":
		why = "it names no placement"
	case at < 0:
		why = fmt.Sprintf("its placement %s is not in the input: give its file, too", run.spec.PlacementName)
	case failed.has(at):
		why = fmt.Sprintf("its placement %s is not converted", run.spec.PlacementName)
	default:
		why = s.whyNot(run, all[at])
	}
	into.addOf(run.document, run.at(), "is left out: %s", why)
}

// whyNot is why the Application of a placement does not have the waves of a run.
func (s *stagedUpdates) whyNot(run *stagedRun, placement document) string {
	newest := s.runOf(placement)
	known := func(one *stagedStrategy) bool { return one.sameScope(placement) && one.GetName() == run.spec.Strategy }
	switch from, err := specOf[placementSpec](placement); {
	case err != nil || !strings.EqualFold(from.Spec.Strategy.Type, external):
		return fmt.Sprintf("%s does not have the strategy External, without which KubeFleet refuses runs", placement.title())
	case newest != nil && newest != run:
		return fmt.Sprintf("the Application of %s has what run %s asks for, which is newer or comes later in the input", placement.title(),
			newest.GetName())
	case slices.ContainsFunc(s.strategies, known):
		return fmt.Sprintf("its strategy %s is not converted, or is in the input twice", run.spec.Strategy)
	}
	return fmt.Sprintf("its strategy %s is not in the input: give its file, too", run.spec.Strategy)
}

// reportApproval reports what takes the place of an approval of KubeFleet.
func (s *stagedUpdates) reportApproval(d document, into *report) {
	from, err := specOf[approvalRequest](d)
	if err != nil {
		into.addOf(d, d.at(), "is left out: its spec cannot be read: %v", err)
		return
	}
	of := &from.Spec
	if of.Run == "" || of.Stage == "" {
		into.addOf(d, d.at(), "is left out: it names no stage of a run")
		return
	}
	command, wave := "shipperctl rollout approve", "the wave"
	for _, run := range s.runs {
		if run.app != nil && run.GetName() == of.Run && run.sameScope(d) {
			command += " " + run.app.Name + " -n " + run.app.Namespace
			wave = "wave " + of.Stage
		}
	}
	into.addOf(d, d.at(), "is left out: it approves stage %s of run %s. When %s waits, another user than the one who asked for the "+
		"Release approves it anew, with `%s`", of.Stage, of.Run, wave, command)
	own := &report{object: d.title()}
	own.unread(d.Object["spec"], reflect.TypeFor[approvalRequest](), d.at()+": spec", nil)
	into.reviews = append(into.reviews, own.reviews...)
}
