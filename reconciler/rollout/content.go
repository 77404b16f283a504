// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"shipper.dev/shipper/apis/rules/rights"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/reconciler/artifact"
	"shipper.dev/shipper/reconciler/selection"
)

// content is what is known of the content of resources; the zero value is that of a chart.
type content struct {
	// live is what is selected now; nil if it was not read. err is why it could not be.
	live *selection.Content
	err  error
	// again is when it is to be read again; 0 if an event says so.
	again time.Duration
	// digest is of the content that the template places; empty while there is none.
	digest string
	// taken is what the status says once a Release has the digest.
	taken *shipper.TakenResources
}

// isTaken reports whether live is what the template places.
func (c content) isTaken() bool { return c.live != nil && c.live.Digest == c.digest }

// problem is why the content cannot be taken; nil if it can, or if that is not known.
func (c content) problem() *selection.Problem {
	p, _ := errors.AsType[*selection.Problem](c.err)
	return p
}

// repeated is err, or nil if it is a problem that a user has to mend.
func repeated(err error) error {
	if p, ok := errors.AsType[*selection.Problem](err); ok && !p.Passing() {
		return nil
	}
	return err
}

// observeContent reads what an Application selects, if it follows that or asks for it.
func (r *pass) observeContent(ctx context.Context, s *scope) {
	key := client.ObjectKeyFromObject(s.app)
	if r.content == nil || s.app.Spec.Template.Resources == nil {
		r.forgetContent(ctx, key)
		return
	}
	is := contentOf(s)
	switch {
	case stamp.Restoring(s.app, s.history.Newest()):
	case is.asks || s.app.Spec.Template.Resources.Follow != shipper.FollowOnRefresh:
		// A Release that is created in any case has the content of its time.
		s.content.live, s.content.again, s.content.err = r.content.Observe(ctx, s.app, is.kept == "" || is.edited)
	default:
		r.content.Rest(ctx, key)
	}
	s.content.digest, s.content.taken = is.plan(s.app, s.content.live, r.now)
}

func (r *Reconciler) forgetContent(ctx context.Context, app client.ObjectKey) {
	if r.content != nil {
		r.content.Forget(ctx, app)
	}
}

// placing is the Application with the content that its template places.
func (s *scope) placing() *shipper.Application {
	return stamp.WithContent(s.app, s.history.All, s.content.digest)
}

// contentPlan decides which content a template places.
type contentPlan struct {
	// kept is the digest of the content that is placed unless content is taken; empty if there is none.
	kept string
	// fixed is true while a rollback or an abort decides.
	fixed bool
	// was is what was taken last; nil if that is not known.
	was *shipper.TakenResources
	// edited is true if the newest Release has another template.
	edited bool
	// asks is true if content is taken even if it has not changed since it was taken last.
	asks bool
	// back is true if the newest Release is a rollback.
	back bool
}

// contentOf is pure. asks is true if there is no content, a user requests a refresh, or follow is OnRefresh and a user has edited the
// template. After a rollback or an abort the content that is kept is not what was taken last: then an edit does not take it again.
func contentOf(s *scope) contentPlan {
	app, newest := s.app, s.history.Newest()
	p := contentPlan{was: lastTaken(s), edited: newest == nil || !stamp.SameTemplate(&newest.Spec.Environment, &app.Spec.Template)}
	p.kept, p.fixed = stamp.NextContent(app, s.history.All)
	if newest != nil {
		p.fixed = p.fixed || returning(app, newest)
		p.back = newest.Annotations[shipper.ReleaseRollbackOfAnnotation] != ""
	}
	p.asks = !p.fixed && (p.kept == "" || p.was == nil || p.was.Refresh != app.Annotations[shipper.AppResourcesRefreshAnnotation] ||
		app.Spec.Template.Resources.Follow == shipper.FollowOnRefresh && p.edited && p.kept == p.was.Digest)
	return p
}

// lastTaken is what was taken last, by the status, or by a Release that was created since and is not in it yet.
func lastTaken(s *scope) *shipper.TakenResources {
	was := s.app.Status.Resources
	highest, known, err := stamp.HighestObserved(s.app)
	if err != nil {
		return was
	}
	ordered, _ := stamp.SortByGeneration(stamp.Own(s.app, s.history.All))
	for _, rel := range ordered {
		if known && generation(rel) <= highest || rel.Annotations[shipper.ReleaseRollbackOfAnnotation] != "" ||
			!stamp.SameSelectors(rel.Spec.Environment.Resources, s.app.Spec.Template.Resources) {
			continue
		}
		next := shipper.TakenResources{}
		if was != nil {
			next = *was
		}
		next.Digest, next.TakenAt, next.Objects = rel.Spec.Environment.ResourcesDigest, rel.CreationTimestamp, 0
		was = &next
	}
	return was
}

// plan is pure: it returns the digest of the content that the template places, and what was taken last once a Release has it. Content is
// taken when it differs from what was taken last: a rollback or an abort stays until then.
func (p contentPlan) plan(app *shipper.Application, live *selection.Content, now metav1.Time) (string, *shipper.TakenResources) {
	switch {
	case p.fixed:
		return p.kept, p.was
	case live == nil && p.edited && p.asks:
		return "", p.was // an edit that takes content is one Release
	case live == nil:
		return p.kept, p.was
	}
	taken := takenNow(app, live, now)
	switch {
	case p.was == nil && p.back && p.kept != "": // the status was lost
		return p.kept, taken
	case p.asks, p.was.Digest != live.Digest:
		return live.Digest, taken
	case p.was.Objects == 0: // a Release has it, and the status does not yet
		return p.kept, taken
	}
	return p.kept, p.was
}

// takenNow is the status of content that is taken.
func takenNow(app *shipper.Application, live *selection.Content, now metav1.Time) *shipper.TakenResources {
	who, _ := rights.ParseSelector(app.Annotations[shipper.AppSelectedByAnnotation])
	return &shipper.TakenResources{
		Digest: live.Digest, Objects: int32(live.Objects), TakenAt: now.Rfc3339Copy(), SelectedBy: who.Username,
		Refresh: app.Annotations[shipper.AppResourcesRefreshAnnotation],
	}
}

// keepContent stores the content of the Release that is created. Content that was read just now is stored in any case: what is stored may
// have been deleted. What cannot be stored is a problem of the content.
func (r *pass) keepContent(ctx context.Context, s *scope, p templatePlan) error {
	if !s.content.isTaken() || p.pending != "" || p.create == nil && !s.content.live.IsNew() {
		return nil
	}
	parts, err := r.content.Parts(ctx, s.app, s.content.live)
	if err == nil {
		err = r.snapshots.Keep(ctx, s.app, s.history.Releases(), parts)
	}
	if err == nil || artifact.Transient(err) {
		return err
	}
	problem := selection.ProblemOf(s.app, err)
	s.content.live, s.content.err, s.content.again = nil, problem, problem.Recheck()
	return problem
}

// ownContent gives stored content its owners.
func (r *pass) ownContent(ctx context.Context, s *scope) error {
	if s.app.Spec.Template.Resources == nil && s.app.Status.Resources == nil && !hasContent(s.history.All) {
		return nil
	}
	return r.snapshots.SetOwners(ctx, s.app, stamp.Own(s.app, s.history.All), s.content.digest)
}

func hasContent(rels []*shipper.Release) bool {
	for _, rel := range rels {
		if rel.Spec.Environment.ResourcesDigest != "" {
			return true
		}
	}
	return false
}

// Contents reads the content of Applications, and requests passes when it changes: *selection.Source does.
type Contents interface {
	source.Source
	// Observe is that of selection.Source, as are the others.
	Observe(ctx context.Context, app *shipper.Application, urgent bool) (*selection.Content, time.Duration, error)
	Parts(ctx context.Context, app *shipper.Application, c *selection.Content) ([]objects.Part, error)
	Released(c *selection.Content)
	Changed(app client.ObjectKey)
	Rest(ctx context.Context, app client.ObjectKey)
	Forget(ctx context.Context, app client.ObjectKey)
}
