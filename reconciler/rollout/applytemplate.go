// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/events"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/retry"
	"shipper.dev/shipper/reconciler/rollout/blocks"
)

// applied is what a pass could not write.
type applied struct {
	// create is why the Release could not be made; nil when it was, or need not be.
	create error
	// rest is why something else could not be written.
	rest error
}

// err is any error met.
func (a applied) err() error {
	if a.create != nil {
		return a.create
	}
	return a.rest
}

// applyTemplate makes the Release, then remembers it, then deletes what is not needed any more; each only after the one before.
// A Release that was moved without effect is brought back before what was there after it is forgotten.
func (r *pass) applyTemplate(ctx context.Context, s *scope, p templatePlan) applied {
	for _, o := range p.finalize {
		if err := r.addFinalizer(ctx, s, o); err != nil {
			return applied{rest: err}
		}
	}
	if err := r.keepContent(ctx, s, p); err != nil {
		if p.create != nil {
			return applied{create: err}
		}
		return applied{rest: err}
	}
	if p.create != nil && p.endsRollback {
		// Before the Release: with the records, the rollback would be done again.
		removed := with(nil, shipper.AppRolledBackToAnnotation, shipper.AppRollbackStrategyAnnotation)
		if err := r.annotate(ctx, s.app, removed); err != nil {
			return applied{create: err}
		}
	}
	if p.create != nil {
		rel := p.create.DeepCopy()
		if err := r.copyOverrides(ctx, s, rel); err != nil {
			return applied{create: err}
		}
		if err := r.decideNaming(ctx, s, rel); err != nil {
			return applied{create: err}
		}
		err := r.client.Create(ctx, rel)
		if r.wrote(rel); err != nil {
			return applied{create: fmt.Errorf("creating release %s/%s: %w", rel.Namespace, rel.Name, err)}
		}
		if names := blocks.Overridden(p.verdict); names != "" {
			report.Emit(r.recorder, s.app, []report.Event{events.Override(names)})
		}
		if s.content.isTaken() {
			r.content.Released(s.content.live)
		}
	}
	if p.back != nil {
		if err := r.bringBack(ctx, p); err != nil {
			return applied{rest: err}
		}
	}
	if p.mark != nil {
		if err := r.remember(ctx, s, p); err != nil {
			return applied{rest: err}
		}
	}
	for _, rel := range p.remove {
		err := r.client.Delete(ctx, rel, client.Preconditions{UID: &rel.UID})
		if r.wrote(rel); client.IgnoreNotFound(err) != nil {
			return applied{rest: fmt.Errorf("deleting release %s/%s: %w", rel.Namespace, rel.Name, err)}
		}
	}
	return applied{}
}

// addFinalizer adds Shipper's finalizer, unless the object was changed since it was read. A Release is the cache's own.
func (r *pass) addFinalizer(ctx context.Context, s *scope, o client.Object) error {
	was, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return nil
	}
	if o != client.Object(s.app) {
		was, o = o, was
	}
	controllerutil.AddFinalizer(o, shipper.RolloutFinalizer)
	err := r.client.Patch(ctx, o, onlyIfUnchanged(was))
	if r.wrote(o); err != nil {
		return fmt.Errorf("adding the finalizer to %s/%s: %w", o.GetNamespace(), o.GetName(), err)
	}
	return nil
}

// remember notes the newest Release in annotations. An Application without conditions gets its status first: with annotations and no
// status it would count as restored from a backup, and an abort would wait for that Release (stamp.Restoring). With resources the status
// is first, too: it lacks the content of a Release until that is noted (lastTaken).
func (r *pass) remember(ctx context.Context, s *scope, p templatePlan) error {
	if len(s.app.Status.Conditions) == 0 || p.create != nil && s.app.Spec.Template.Resources != nil {
		if err := r.persistApplication(ctx, s.app, applicationStatus(s, p, applied{}, r.now)); err != nil {
			return err
		}
	}
	mark := p.mark
	if p.create != nil {
		if text := contentRights(s, p.create); text != "" {
			mark = with(mark)
			mark[shipper.ContentRightsAnnotation] = text
		}
	}
	return r.annotate(ctx, s.app, mark)
}

func (r *pass) annotate(ctx context.Context, app *shipper.Application, with map[string]string) error {
	was := app.DeepCopy()
	if app.Annotations == nil {
		app.Annotations = map[string]string{}
	}
	for key, value := range with {
		if app.Annotations[key] = value; value == "" {
			delete(app.Annotations, key)
		}
	}
	err := r.client.Patch(ctx, app, onlyIfUnchanged(was))
	if r.wrote(app); err != nil {
		return fmt.Errorf("remembering the newest release of application %s/%s: %w", app.Namespace, app.Name, err)
	}
	return nil
}

// abort reports that the template is taken back, and takes it back unless it was edited meanwhile.
func (r *pass) abort(ctx context.Context, s *scope, p templatePlan) error {
	if err := r.persistApplication(ctx, s.app, abortingStatus(s, p, r.now)); err != nil {
		return err
	}
	if p.back != nil {
		if err := r.bringBack(ctx, p); err != nil {
			return err
		}
	}
	restore(s.app, p.abort)
	err := r.client.Update(ctx, s.app)
	if r.wrote(s.app); err != nil {
		return fmt.Errorf("restoring the template of application %s/%s: %w", s.app.Namespace, s.app.Name, err)
	}
	return nil
}

// bringBack does what the plan says of it, before anything else is done of what reports that it has to be.
func (r *pass) bringBack(ctx context.Context, p templatePlan) error {
	rel, is := p.back, p.backAs.DeepCopy()
	err := r.client.Patch(ctx, is, onlyIfUnchanged(rel))
	r.wrote(is)
	switch {
	case apierrors.IsInvalid(err) && retry.Blocked(err) == "":
		// The gate may know the newer Release for a moment longer, and no event reports when it does not.
		return fmt.Errorf("bringing release %s/%s back: %s", rel.Namespace, rel.Name, err.Error())
	case err != nil:
		return fmt.Errorf("bringing release %s/%s back: %w", rel.Namespace, rel.Name, err)
	}
	return nil
}

// restore makes the template that of rel, as it was resolved then. The constraint the user wrote is kept while it
// speaks of the same chart, so that applying the same manifest again does not roll out again what was aborted.
func restore(app *shipper.Application, rel *shipper.Release) {
	// The user who chose other resources did not choose these: their content is taken again when a user requests it.
	if !stamp.SameSelectors(app.Spec.Template.Resources, rel.Spec.Environment.Resources) {
		delete(app.Annotations, shipper.AppSelectedByAnnotation)
	}
	naming := app.Spec.Template.Chart.Naming
	app.Spec.Template = stamp.Template(*rel.Spec.Environment.DeepCopy())
	if app.Spec.Template.Resources == nil {
		app.Spec.Template.Chart.Naming = naming // the user's alone
	}
	if app.Annotations == nil {
		app.Annotations = map[string]string{}
	}
	pin, notes := app.Spec.Template.Chart, app.Annotations
	if notes[shipper.AppChartNameAnnotation] != pin.Name || notes[shipper.AppChartRepoAnnotation] != pin.RepoURL {
		notes[shipper.AppChartVersionRawAnnotation] = pin.Version
	}
	notes[shipper.AppChartNameAnnotation] = pin.Name
	notes[shipper.AppChartRepoAnnotation] = pin.RepoURL
	notes[shipper.AppChartVersionResolvedAnnotation] = pin.Version
	notes[shipper.AppChartDigestAnnotation] = rel.Annotations[shipper.ReleaseChartDigestAnnotation]
	if notes[shipper.AppChartDigestAnnotation] == "" {
		delete(notes, shipper.AppChartDigestAnnotation)
	}
	notes[shipper.AppHighestObservedGenerationAnnotation] = strconv.Itoa(generation(rel))
	if hash, err := stamp.Mark(app.Spec.Template); err == nil {
		notes[shipper.AppObservedTemplateAnnotation] = hash
	}
}

// persistApplication writes a status that differs from what it was, unless the Application was changed since it was read, and then
// records events for the changes.
func (r *pass) persistApplication(ctx context.Context, app *shipper.Application, is shipper.ApplicationStatus) error {
	if equality.Semantic.DeepEqual(app.Status, is) {
		return nil
	}
	was := app.DeepCopy()
	app.Status = is
	err := r.client.Status().Patch(ctx, app, onlyIfUnchanged(was))
	if r.wrote(app); err != nil {
		return fmt.Errorf("writing the status of application %s/%s: %w", app.Namespace, app.Name, err)
	}
	report.Emit(r.recorder, app, applicationChanges(was.Status, is))
	return nil
}
