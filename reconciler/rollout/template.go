// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/index"
)

// refusal is why something cannot be done, as a condition has it; empty if it can.
type refusal struct{ reason, message string }

// templatePlan is what one pass does.
type templatePlan struct {
	// blocked says which blocks stop whatever might be asked of the Application; empty when none does. A rollback or an
	// abort may be done all the same.
	blocked string
	// verdict is what blocks mean for what is done below.
	verdict block.Verdict
	// pending says which blocks keep the template from becoming a Release; empty when none do.
	pending string
	// disorder is why the order of Releases is unknown, with the remedy. Nothing is deleted and nothing taken back then.
	disorder refusal
	// restoring is true while the newest Release of an Application that was restored was not: nothing is done until it is.
	restoring bool
	// unready is why no Release can be made of the template yet: its version, its values or its content is not known.
	unready refusal
	// stampErr is why the Release that is wanted cannot be named; nil when it can.
	stampErr error
	// create is the Release to be made; nil when the newest has the template's environment.
	create *shipper.Release
	// abort is the Release whose environment the template gets; nil unless a newer one was deleted.
	abort *shipper.Release
	// back is the newest Release before it is brought back, and backAs how it is to be; nil when there is nothing to do for
	// that. See broughtBack.
	back, backAs *shipper.Release
	// finalize are the Application and its Releases that lack Shipper's finalizer.
	finalize []client.Object
	// mark are annotations that must be brought up to date; nil when they are. One with an empty value is removed.
	mark map[string]string
	// endsRollback is true when the records of a rollback of content are removed, before a Release is created.
	endsRollback bool
	// lowers is true when mark forgets a generation that was observed.
	lowers bool
	// remove are the Releases to be deleted, oldest first.
	remove []*shipper.Release
}

// acts reports whether the plan does something that old news could make wrong.
func (p templatePlan) acts() bool {
	return len(p.finalize) > 0 || p.create != nil || p.abort != nil || p.back != nil || p.lowers || len(p.remove) > 0
}

// isOrdered reports whether the order of Releases is known.
func (p templatePlan) isOrdered() bool { return p.disorder.reason == "" }

// planTemplate is pure.
func planTemplate(s *scope, now metav1.Time) templatePlan {
	var p templatePlan
	highest, known, err := stamp.HighestObserved(s.app)
	newest := s.history.Newest()
	p.disorder.reason, p.disorder.message = disorder(s, err)
	if p.restoring = stamp.Restoring(s.app, newest); p.restoring {
		p.disorder = refusal{shipper.ReleasesMissing, restoring(s.app, newest, highest)}
		return p
	}
	p.finalize = withoutFinalizer(s)
	pending := newest == nil || !stamp.SameEnvironment(&newest.Spec.Environment, &s.placing().Spec.Template)
	abort := p.isOrdered() && aborted(s.app, newest, highest, known)
	returns := abort || (p.isOrdered() && !pending && known && generation(newest) < highest)
	if returns {
		p.back, p.backAs = bringBack(s, newest, now)
	}
	var stopped string
	p.verdict, stopped = stops(s, p.backAs, returns, now)
	p.blocked = cmp.Or(s.view(now).OfApplication().Message(), stopped)
	if stopped != "" {
		p.back, p.backAs = nil, nil
		if text := contentRights(s, nil); p.isOrdered() && text != s.app.Annotations[shipper.ContentRightsAnnotation] {
			p.mark = map[string]string{shipper.ContentRightsAnnotation: text}
		}
		switch {
		case pending:
			p.pending = stopped
		case p.isOrdered() && !returns:
			p.remove = superseded(s, now) // as far as it belongs to a rollback that is allowed
		}
		return p
	}
	if abort {
		p.abort = newest
		return p
	}
	head := p.head(s)
	if p.isOrdered() || p.create != nil {
		p.mark = marks(s, head)
		if p.endsRollback = endsRollback(s, returns, p.create != nil); p.endsRollback && p.create == nil {
			p.mark = with(p.mark, shipper.AppRolledBackToAnnotation, shipper.AppRollbackStrategyAnnotation)
		}
		if obsolete(s.app, newest) {
			p.mark = with(p.mark, shipper.AppFailedAnnotation)
		}
		p.lowers = known && p.mark[shipper.AppHighestObservedGenerationAnnotation] != "" && generation(head) < highest
	}
	if p.create == nil && p.isOrdered() {
		p.remove = append(superseded(s, now), surplus(s, now)...)
	}
	return p
}

// withoutFinalizer are the objects that would go the moment they are deleted, whatever they run and whatever blocks say.
func withoutFinalizer(s *scope) []client.Object {
	var out []client.Object
	all := []client.Object{s.app}
	for _, rel := range s.history.Releases() {
		all = append(all, rel)
	}
	for _, o := range all {
		if !slices.Contains(o.GetFinalizers(), shipper.RolloutFinalizer) {
			out = append(out, o)
		}
	}
	return out
}

// head is the Release that the template asks for: one that is made, the newest, or one that is there already.
func (p *templatePlan) head(s *scope) *shipper.Release {
	wanted := s.placing()
	rel, isNew, err := stamp.Next(wanted, s.history.All, s.history.Stuck...)
	if err == nil && !isNew && shutOut(s) {
		rel, err = stamp.Release(wanted, s.history.All, s.history.Stuck...)
		isNew = true
	}
	switch {
	case err != nil:
		p.stampErr = err
	case !isNew:
		return rel
	case !restoresTemplate(s.app, s.history.All):
		p.unready = refusal{shipper.CreateReleaseFailed, neverInstalled(s.app)}
	case strategy.StartsOver(len(s.history.Live), s.history.Leaving):
		return nil // its name is to be given again
	case neverTaken(s) != refusal{}:
		p.unready = neverTaken(s)
	case s.app.Spec.Template.Resources != nil:
		if p.unready = contentPending(s.content); p.unready.reason == "" && !slices.ContainsFunc(s.history.Broken, hasTemplateOf(wanted)) {
			p.create = rel
			return rel
		}
	case !resolved(s.app):
		p.unready = refusal{shipper.ChartVersionResolutionFailed, neverResolved(s.app)}
	case !read(s.app):
		p.unready = refusal{shipper.ValuesFetchFailure, neverRead(s.app)}
	case slices.ContainsFunc(s.history.Broken, hasTemplateOf(s.app)):
	default:
		p.create = rel
		return rel
	}
	return s.history.Newest()
}

// neverResolved says what to do about a chart version that the webhook did not see.
func neverResolved(app *shipper.Application) string {
	return fmt.Sprintf("version %q of chart %q was never resolved to one version: "+
		"kubectl annotate app %s %s=<anything new> --overwrite -n %s",
		app.Spec.Template.Chart.Version, app.Spec.Template.Chart.Name,
		app.Name, shipper.AppChartVersionRefreshAnnotation, app.Namespace)
}

// read reports whether it is known what the ConfigMaps and Secrets of the template held.
func read(app *shipper.Application) bool {
	return !slices.ContainsFunc(app.Spec.Template.ValuesFrom, func(source shipper.ValuesSource) bool {
		return app.Spec.Template.ValuesDigests[source.String()] == ""
	})
}

// neverRead says what to do about values that the webhook did not see.
func neverRead(app *shipper.Application) string {
	return fmt.Sprintf("what valuesFrom names was never read: kubectl annotate app %s %s=<anything new> --overwrite -n %s",
		app.Name, shipper.AppValuesRefreshAnnotation, app.Namespace)
}

// restoresTemplate reports whether the template is one that was installed, with the same archive, if it names Secrets and a record says
// that it was rolled back to. Without a webhook users can write the record, and a rollback needs no right to those Secrets.
func restoresTemplate(app *shipper.Application, existing []*shipper.Release) bool {
	return app.Annotations[shipper.AppRolledBackToAnnotation] == "" || !namesSecrets(&app.Spec.Template) ||
		slices.ContainsFunc(stamp.Own(app, existing), func(rel *shipper.Release) bool {
			return stamp.SameTemplate(&rel.Spec.Environment, &app.Spec.Template) &&
				rel.Annotations[shipper.ReleaseChartDigestAnnotation] == app.Annotations[shipper.AppChartDigestAnnotation]
		})
}

// namesSecrets reports whether a chart is fetched, verified or rendered with Secrets.
func namesSecrets(template *shipper.ReleaseEnvironment) bool {
	return template.Chart.Credentials.SecretName != "" || template.Chart.Verify.SecretName != "" ||
		slices.ContainsFunc(template.ValuesFrom, shipper.ValuesSource.Secret)
}

// neverInstalled says what to do about a template that only claims to be that of a rollback.
func neverInstalled(app *shipper.Application) string {
	return fmt.Sprintf("annotation %s names Release %q, and no Release has this template; remove the annotation: "+
		"kubectl annotate app %s -n %s %s-", shipper.AppRolledBackToAnnotation, app.Annotations[shipper.AppRolledBackToAnnotation],
		app.Name, app.Namespace, shipper.AppRolledBackToAnnotation)
}

// contentPending is why there is no content of resources; empty when there is.
func contentPending(c content) refusal {
	if c.digest != "" {
		return refusal{}
	}
	if p := c.problem(); p != nil {
		return refusal{p.Reason, p.Message}
	}
	return refusal{shipper.SelectionPending, "the content of resources is being taken"}
}

// shutOut reports whether the newest Release cannot have targets for want of a name: those of an earlier Release of its name are
// kept by a cluster that was not known to be out of reach when the name was given.
func shutOut(s *scope) bool {
	newest := s.history.Live[len(s.history.Live)-1]
	return slices.Contains(s.history.Stuck, newest.Release.Name) &&
		newest.Installation == nil && newest.Capacity == nil && newest.Traffic == nil
}

// stops says which blocks stop what is to be done, or the rollout of the Release that is to be brought back: half an abort
// would be forgotten.
func stops(s *scope, back *shipper.Release, returns bool, now metav1.Time) (v block.Verdict, stopped string) {
	view := s.view(now)
	if v = view.OfTemplate(returns); v.Blocked() || back == nil {
		return v, v.Message()
	}
	view.Releases[len(view.Releases)-1] = back
	return v, view.OfRollout().Message()
}

// hasTemplateOf returns a function that reports whether a Release has the environment of app's template.
func hasTemplateOf(app *shipper.Application) func(*shipper.Release) bool {
	return func(rel *shipper.Release) bool {
		return stamp.SameEnvironment(&rel.Spec.Environment, &app.Spec.Template)
	}
}

// disorder says why the order of Releases is unknown; empty if it is known.
func disorder(s *scope, observed error) (reason, message string) {
	if len(s.history.Broken) > 0 {
		var parts []string
		for _, rel := range s.history.Broken {
			if _, err := stamp.Generation(rel); err != nil {
				parts = append(parts, err.Error())
			}
		}
		return shipper.BrokenReleaseGeneration, strings.Join(parts, "; ") +
			"; nothing is aborted or deleted until it has one, or is deleted"
	}
	if observed != nil {
		return shipper.BrokenApplicationObservedGeneration, observed.Error() +
			"; nothing is aborted or deleted until the annotation is corrected or removed"
	}
	return "", ""
}

// restoring says what is waited for until an Application is whole again, and what else would help.
func restoring(app *shipper.Application, newest *shipper.Release, highest int) string {
	key := shipper.AppHighestObservedGenerationAnnotation
	message := fmt.Sprintf("waiting for the Release of generation %d to be restored; nothing is made, moved or deleted until then. "+
		"If it is lost, ", highest)
	if newest == nil {
		return message + fmt.Sprintf("delete the Application and create it without the annotation %s", key)
	}
	return message + fmt.Sprintf("go on with %s: kubectl annotate app %s %s=%d --overwrite -n %s",
		newest.Name, app.Name, key, generation(newest), app.Namespace)
}

// aborted reports whether a Release newer than newest was deleted and the template is still that Release's.
func aborted(app *shipper.Application, newest *shipper.Release, highest int, known bool) bool {
	if newest == nil || !known || generation(newest) >= highest ||
		stamp.SameTemplate(&newest.Spec.Environment, &app.Spec.Template) {
		return false
	}
	observed := app.Annotations[shipper.AppObservedTemplateAnnotation]
	mark, err := stamp.Mark(app.Spec.Template)
	if err != nil || observed == "" || observed == mark {
		return true
	}
	hash, err := stamp.Hash(app.Spec.Template) // what marks were before defaults were left out
	return err == nil && observed == hash
}

// resolved reports whether the template names one version of its chart.
func resolved(app *shipper.Application) bool {
	c := app.Spec.Template.Chart
	return index.IsExact(c.Version) || (c.Version != "" &&
		c.Version == app.Annotations[shipper.AppChartVersionResolvedAnnotation] &&
		c.Name == app.Annotations[shipper.AppChartNameAnnotation])
}

// endsRollback reports whether the records of a rollback of content go: content is taken again, or the rollback was aborted. Where the
// template changes, the webhook removes them.
func endsRollback(s *scope, returns, creates bool) bool {
	to, newest := s.app.Annotations[shipper.AppRolledBackToAnnotation], s.history.Newest()
	switch {
	case s.app.Spec.Template.Resources == nil || to == "" || newest == nil:
		return false
	case creates:
		return s.placing().Annotations[shipper.AppRolledBackToAnnotation] == ""
	}
	return returns && newest.Annotations[shipper.ReleaseRollbackOfAnnotation] != to
}

// generation of a Release that is known to have one.
func generation(rel *shipper.Release) int {
	n, err := stamp.Generation(rel)
	if err != nil {
		return 0
	}
	return n
}

// superseded are the Releases that never completed and whose place is taken. What blocks hold is not tried: their end
// wakes this Application.
func superseded(s *scope, now metav1.Time) []*shipper.Release {
	if !slices.Contains(strategy.Roles(s.history.Releases()), strategy.Superseded) {
		return nil
	}
	rels := s.view(now).Hold(s.history.Live)
	covered := strategy.Make(strategy.Observed{Releases: rels}, now).Covered
	var out []*shipper.Release
	for _, rel := range s.history.Releases() {
		if slices.Contains(covered, rel.Name) {
			out = append(out, rel)
		}
	}
	return out
}

// surplus are the oldest complete Releases beyond the history limit that do not serve any more.
func surplus(s *scope, now metav1.Time) []*shipper.Release {
	var complete []strategy.Release
	live := s.view(now).Hold(s.history.Live)
	for i, role := range strategy.Roles(s.history.Releases()) {
		if role == strategy.Incumbent || role == strategy.Retired {
			complete = append(complete, live[i])
		}
	}
	var out []*shipper.Release
	for i := range len(complete) - limit(s.app) {
		if !serves(complete[i]) && complete[i].Held == "" && !keepsValues(s, complete[i].Release) {
			out = append(out, complete[i].Release)
		}
	}
	return out
}

// keepsValues reports whether the newest Release may need the values that are stored for a Release, perhaps for it alone.
func keepsValues(s *scope, rel *shipper.Release) bool {
	newest := s.history.Newest()
	return len(rel.Spec.Environment.ValuesFrom) > 0 && !strategy.Complete(newest) &&
		stamp.SameSources(&rel.Spec.Environment, &newest.Spec.Environment)
}

func limit(app *shipper.Application) int {
	n := shipper.DefaultRevisionHistoryLimit
	if app.Spec.RevisionHistoryLimit != nil {
		n = *app.Spec.RevisionHistoryLimit
	}
	return int(min(max(n, shipper.MinRevisionHistoryLimit), shipper.MaxRevisionHistoryLimit))
}

// serves reports whether a Release has Pods, or may have some: some are asked for, or nothing is asked, and some are there
// or that is not known.
func serves(r strategy.Release) bool {
	if r.Capacity == nil {
		return r.Lost()
	}
	asked := slices.ContainsFunc(r.Capacity.Spec.Clusters, func(c shipper.ClusterCapacityTarget) bool {
		return c.Percent > 0 && c.TotalReplicaCount > 0 || c.AsFound
	})
	there := slices.ContainsFunc(r.Capacity.Status.Clusters, func(c shipper.ClusterCapacityStatus) bool {
		return c.AvailableReplicas > 0
	})
	current := r.Capacity.Status.ObservedGeneration >= r.Capacity.Generation
	return asked && (there || !current)
}
