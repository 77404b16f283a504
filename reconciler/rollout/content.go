// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"shipper.dev/shipper/apis/rules/rights"
	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
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

// placing is the Application with the content that its template places, and with what it takes from a Strategy.
func (s *scope) placing() *shipper.Application {
	return stamp.WithStrategy(stamp.WithContent(s.app, s.history.All, s.content.digest), s.taken)
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
// have been deleted. What cannot be stored, or not be placed any more, is a problem of the content.
func (r *pass) keepContent(ctx context.Context, s *scope, p templatePlan) error {
	return s.refuseContent(r.takeContent(ctx, s, p))
}

// refuseContent makes an error of content its problem, unless the next pass may succeed.
func (s *scope) refuseContent(err error) error {
	problem := selection.ProblemOf(s.app, err)
	if problem == nil || artifact.Transient(err) {
		return err
	}
	s.content.live, s.content.err, s.content.again = nil, problem, problem.Recheck()
	return problem
}

// takeContent stores content, and asks for the rights of the Application's user before a Release is created of it: also if it was stored
// long ago, as that of a rollback, and for what is placed now and will be removed.
func (r *pass) takeContent(ctx context.Context, s *scope, p templatePlan) error {
	if p.pending != "" {
		return nil
	}
	stores := s.content.isTaken() && (p.create != nil || s.content.live.IsNew())
	if stores {
		parts, err := r.content.Parts(ctx, s.app, s.content.live)
		if err != nil {
			return err
		}
		content, err := objects.Join(parts)
		if err != nil {
			return err
		}
		if err := r.permitContent(ctx, s, p, content); err != nil {
			return err
		}
		return r.snapshots.Keep(ctx, s.app, s.history.Releases(), parts)
	}
	if p.create == nil || s.content.digest == "" {
		return nil
	}
	content, err := r.storedContent(ctx, s, s.content.digest)
	if err != nil {
		return err
	}
	return r.permitContent(ctx, s, p, content)
}

// permitContent returns a problem unless the Application's user may place content, and remove what is placed instead. It records in the
// Release what else than its selectors that needs: neither the webhook nor a policy has the content when a user deletes it.
func (r *pass) permitContent(ctx context.Context, s *scope, p templatePlan, content []unstructured.Unstructured) error {
	if p.create == nil {
		return nil
	}
	selected := []*shipper.Resources{s.app.Spec.Template.Resources}
	for _, rel := range strategy.Placing(s.history.Releases()) {
		selected = append(selected, rel.Spec.Environment.Resources)
	}
	needs, err := r.content.Permit(ctx, s.app, selected, content)
	if err == nil && (len(needs) > 0 || rights.HoldsEnvelopes(s.app.Spec.Template.Resources)) {
		metav1.SetMetaDataAnnotation(&p.create.ObjectMeta, shipper.ContentRightsAnnotation, rights.FormatRecord(needs))
	}
	return err
}

// permitReturn returns a problem unless the Application's user may still place what an abort brings back.
func (r *pass) permitReturn(ctx context.Context, s *scope, to *shipper.Release) error {
	env := &to.Spec.Environment
	if env.Resources == nil || r.content == nil {
		return nil
	}
	content, err := r.storedContent(ctx, s, env.ResourcesDigest)
	if err == nil {
		_, err = r.content.Permit(ctx, s.app, []*shipper.Resources{env.Resources}, content)
	}
	return s.refuseContent(err)
}

// storedContent is the content with a digest; none if it was lost, for then nothing of it can be placed.
func (r *pass) storedContent(ctx context.Context, s *scope, digest string) ([]unstructured.Unstructured, error) {
	content, err := r.snapshots.Content(ctx, s.app.Namespace, digest)
	if errors.Is(err, chart.ErrNotKept) {
		return nil, nil
	}
	return content, err
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
	Permit(
		ctx context.Context, app *shipper.Application, selected []*shipper.Resources, content []unstructured.Unstructured,
	) ([]rights.Action, error)
	Needs(namespace string, of *shipper.Resources, content []unstructured.Unstructured) ([]rights.Action, error)
	Released(c *selection.Content)
	Changed(app client.ObjectKey)
	Rest(ctx context.Context, app client.ObjectKey)
	Forget(ctx context.Context, app client.ObjectKey)
}

// Snapshots store content: *artifact.Resources does, and its methods are these.
type Snapshots interface {
	Keep(ctx context.Context, app *shipper.Application, rels []*shipper.Release, parts []objects.Part) error
	Content(ctx context.Context, namespace, digest string) ([]unstructured.Unstructured, error)
	SetOwners(ctx context.Context, app *shipper.Application, rels []*shipper.Release, digest string) error
}
