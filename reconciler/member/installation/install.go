// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/member/traffic"
	"shipper.dev/shipper/reconciler/retry"
)

// installer installs one target in one cluster, in one pass.
type installer struct {
	member     *fleet.Member
	it         *shipper.InstallationTarget
	rendering  *rendering
	hookOrders hookOrders
	now        time.Time
	// home reads from the caches of the management cluster.
	home client.Reader
	// initialSelector returns the initial selector of a Service; nil where Services always select by label.
	initialSelector traffic.InitialSelector

	anchor *anchor
	// live is set when anchor is what the API server itself said in this pass, or nothing where it said that there is none.
	live bool
	// was is set when the anchor said at first that all is installed, and replaced is set when the cached anchor was being deleted.
	was, replaced bool
	hookRecord    *hookRecord
	// render gives what the target consists of in the cluster, and all is that once it was rendered. Stored is what it was rendered to before,
	// and storeAs is set to the fingerprint under which all is to be stored when this pass has rendered it.
	render  func() ([]wanted, error)
	all     []wanted
	stored  *storedRendering
	storeAs string
	// tested is what came of the tests that a user asked for, and checked of those that Checks asked for.
	tested  *shipper.TestRun
	checked []shipper.TestRun
	// wake is when to look again though nothing happens; zero when there is no need.
	wake   time.Time
	events []report.Event
	// scoped are the objects without a namespace that this pass found or wrote, and listed is the list of them; nil when there is none.
	// listedLive is set when the API server itself said so in this pass.
	scoped     []shipper.ClusterScopedObject
	listed     *scopedList
	listedLive bool
	// written are the objects that this pass wrote, without digests: a cache that lacks one is late.
	written map[item]bool
}

// step is one object and what to do with it.
type step struct {
	wanted
	item   item
	live   *metav1.PartialObjectMetadata
	action action
	// whose names the owner of an object that is refused.
	whose string
	// ports are those of a live Service and of an incumbent; nil where they were not compared.
	ports *sharedPorts
	// unknown is set when the cluster does not know the kind yet, and a CustomResourceDefinition of the chart will
	// tell it.
	unknown bool
}

// install makes the cluster as the target wants it.
func (i *installer) install(ctx context.Context) error {
	if err := i.readList(ctx); err != nil {
		return err
	}
	if err := i.findNamespace(ctx); err != nil {
		return cmp.Or(i.releaseAnchor(ctx), err)
	}
	if err := i.member.Claimed(ctx, i.it.Namespace, i.it.Labels[shipper.AppLabel]); err != nil {
		return err
	}
	var err error
	if i.anchor, err = readAnchor(ctx, i.member, i.it); err != nil {
		return err
	}
	i.live = i.anchor == nil
	if i.anchor != nil && i.anchor.claim != nil { // one without an Application
		return i.anchor.claim
	}
	i.was = i.anchor != nil && i.anchor.done
	if i.anchor != nil && i.anchor.deleting {
		if err := i.replaceAnchor(ctx); err != nil {
			return err
		}
	}
	i.hookRecord = hookRecordOf(i.anchor, find(i.it.Status.Clusters, i.member.Name))
	source, err := i.rendering.sources.in(i.member.Name)
	if err != nil {
		return err
	}
	t := render.TargetOf(&i.it.ObjectMeta, source.Chart.Naming, i.member.KubeVersion(), i.member.APIVersions())
	fingerprint, err := source.fingerprint(t)
	if err != nil {
		return err
	}
	i.render = sync.OnceValues(func() ([]wanted, error) { return i.storedOrRendered(ctx, source, t) })
	intact, err := i.intact(ctx)
	if err != nil {
		return err
	}
	if intact && i.anchor.rendered == fingerprint {
		return i.adoptAnchor(ctx)
	}
	objects, err := i.render()
	if err != nil {
		if intact && i.anchor.rendered != "" {
			// What it would be rendered from now cannot be read: a repository that has gone disturbs nothing that is installed.
			log.FromContext(ctx).Info("What is installed stays as it is", "cluster", i.member.Name, "reason", err.Error())
			return i.adoptAnchor(ctx)
		}
		return err
	}
	return i.converge(ctx, objects, fingerprint)
}

// discreet is err without what may quote secret values.
func (i *installer) discreet(err error) error { return i.rendering.sources.discreet(err) }

// findNamespace reports whether the cluster has the target's namespace.
func (i *installer) findNamespace(ctx context.Context) error {
	gvk := corev1.SchemeGroupVersion.WithKind("Namespace")
	live, err := i.member.Metadata(ctx, gvk, types.NamespacedName{Name: i.it.Namespace})
	missing := func(format string) error {
		return &problem{shipper.NamespaceMissing, retry.Recheck, fmt.Sprintf(format, i.it.Namespace)}
	}
	switch {
	case apierrors.IsNotFound(err):
		return missing("the cluster has no namespace %q; create it there, Shipper does not")
	case err != nil:
		return err
	case live.DeletionTimestamp != nil:
		return missing("namespace %q is being deleted in the cluster")
	}
	return nil
}

// intact reports whether everything the anchor lists is in the cluster as it was written.
func (i *installer) intact(ctx context.Context) (bool, error) {
	if i.anchor == nil || len(i.anchor.inventory) == 0 && i.anchor.rendered == "" {
		return false, nil
	}
	for _, entry := range i.anchor.inventory {
		live, err := i.member.Metadata(ctx, entry.gvk(), entry.key())
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			if entry.InPlace { // it is written at its step, which says whose it is
				continue
			}
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if a := decide(i.it, entry, i.anchor, live); a != keep && (!entry.InPlace || a == mark) {
			return false, nil
		}
		i.note(entry, live.UID)
	}
	return true, nil
}

// adoptAnchor rewrites an anchor that was another target's of the same name, as after a restore, or that does not say yet
// whose it is. It is not left to the next change: until then another management cluster could take it for its own.
func (i *installer) adoptAnchor(ctx context.Context) error {
	i.noteAdoption()
	if err := i.listScoped(ctx); err != nil {
		return err
	}
	return i.record(ctx, i.anchor.inventory, i.anchor.rendered)
}

// converge writes what has to be written: first what was rendered is stored, then the anchor with the list of all that will be there,
// so that nothing is ever there that no list names, then the objects in order, between the hooks, then the anchor as done.
func (i *installer) converge(ctx context.Context, all []wanted, fingerprint string) error {
	i.all = all
	objects, hooks := part(all)
	steps, err := i.plan(ctx, objects)
	if err != nil {
		return err
	}
	if err := i.tryInPlace(ctx, steps); err != nil {
		return err
	}
	if err := i.store(ctx); err != nil {
		return err
	}
	inventory := make([]item, 0, len(steps))
	for _, s := range steps {
		inventory = append(inventory, s.item)
	}
	var before []item
	if i.anchor != nil {
		before = i.anchor.inventory
		i.noteAdoption()
	}
	if changes := slices.ContainsFunc(steps, func(s step) bool { return s.action != keep }); changes || i.anchor == nil {
		if err := i.record(ctx, merge(inventory, before), ""); err != nil {
			return err
		}
		if err := i.listPending(ctx, steps); err != nil {
			return err
		}
	}
	if err := i.ownLost(ctx); err != nil {
		return err
	}
	i.scoped = nil
	first := definitions(steps)
	if err := i.carryOutAll(ctx, steps[:first]); err != nil {
		return err
	}
	if err := i.runHooks(ctx, hooks, pre); err != nil {
		return err
	}
	if err := i.carryOutAll(ctx, steps[first:]); err != nil {
		return err
	}
	if _, err := removeItems(ctx, i.member, i.it, without(before, inventory)); err != nil {
		return err
	}
	if err := i.runHooks(ctx, hooks, post); err != nil {
		return err
	}
	if i.notePending(hooks); i.hookRecord != nil {
		i.hookRecord.Installed = true
	}
	if err := i.listScoped(ctx); err != nil {
		return err
	}
	return i.record(ctx, inventory, fingerprint)
}

// plan decides about every object before any is written, and refuses all of them when one may not be written.
func (i *installer) plan(ctx context.Context, objects []wanted) ([]step, error) {
	steps := make([]step, 0, len(objects))
	var conflicts []string
	var missing denials
	for _, object := range objects {
		s, err := i.planOne(ctx, object, objects)
		if missing.note(i.called(s.item), err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		switch s.action {
		case write:
			found, err := i.serviceConflicts(ctx, &s)
			if err != nil {
				return nil, err
			}
			conflicts = append(conflicts, found...)
		case refuse:
			conflicts = append(conflicts, fmt.Sprintf("%s cannot be installed: %s", i.called(s.item), s.whose))
		case wait:
			return nil, waiting("%s is there and is being deleted", i.called(s.item))
		}
		steps = append(steps, s)
	}
	if len(missing) > 0 {
		return nil, notGranted(i.member.Name, i.it, missing)
	}
	if len(conflicts) > 0 {
		return nil, conflict("%s", strings.Join(conflicts, "; "))
	}
	return steps, nil
}

func (i *installer) planOne(ctx context.Context, object wanted, all []wanted) (step, error) {
	content := object.content
	gvk := content.GroupVersionKind()
	s := step{wanted: object, item: item{
		APIVersion: content.GetAPIVersion(), Kind: content.GetKind(), Name: content.GetName(), Digest: object.digest,
		InPlace: object.inPlace(),
	}}
	if s.item.InPlace {
		s.item.Replicas = shipper.FullReplicas(content.GetAnnotations())
	}
	if s.item.Name == "" {
		return s, broken("%s of the chart has no name", i.called(s.item))
	}
	mapping, err := i.member.Mapping(gvk)
	switch {
	case meta.IsNoMatchError(err) && defines(all, gvk.Group, gvk.Kind):
		s.unknown, s.action = true, create
		s.item.Namespace = content.GetNamespace()
		return s, nil
	case meta.IsNoMatchError(err) && i.rendering.sources.secret():
		return s, &problem{shipper.ChartError, retry.Recheck, i.called(s.item) + " is of a kind the cluster does not know" + chart.Unsaid}
	case meta.IsNoMatchError(err):
		return s, &problem{shipper.ChartError, retry.Recheck, fmt.Sprintf("%s is of a kind the cluster does not know: "+
			"it has no CustomResourceDefinition for %s in %s", s.item, gvk.Kind, gvk.GroupVersion())}
	case err != nil:
		return s, fmt.Errorf("asking for the kind %s: %w", gvk.Kind, err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if s.item.Namespace = i.it.Namespace; content.GetNamespace() != "" && content.GetNamespace() != i.it.Namespace {
			return s, i.elsewhere(s.item, content.GetNamespace())
		}
	}
	if s.live, err = i.look(ctx, s.item); err != nil {
		return s, err
	}
	s.action = decide(i.it, s.item, i.anchor, s.live)
	switch s.action {
	case refuse:
		s.whose = whose(s.live)
	case write, mark:
		err = i.checkOwnership(ctx, &s)
	case create, keep, wait:
	}
	return s, err
}

// defines reports whether a CustomResourceDefinition among objects makes a kind known.
func defines(objects []wanted, group, kind string) bool {
	for _, o := range objects {
		if o.content.GetKind() != "CustomResourceDefinition" {
			continue
		}
		itsGroup, _, _ := unstructured.NestedString(o.content.Object, "spec", "group")
		itsKind, _, _ := unstructured.NestedString(o.content.Object, "spec", "names", "kind")
		if itsGroup == group && itsKind == kind {
			return true
		}
	}
	return false
}

// carryOut writes one object.
func (i *installer) carryOut(ctx context.Context, s step) error {
	if s.unknown {
		again, err := i.planOne(ctx, s.wanted, nil)
		var known *problem
		if errors.As(err, &known) && known.reason == shipper.ChartError {
			message := i.called(s.item) + " waits until the cluster serves its kind"
			return &problem{shipper.InProgress, retry.Retry, message}
		}
		if err != nil {
			return err
		}
		s = again
	}
	var err error
	uid := uidOf(s.live)
	switch s.action {
	case create, write:
		if uid, err = i.write(ctx, s); err == nil {
			i.noteWritten(s.item)
		}
	case mark:
		err = i.mark(ctx, s)
	case refuse:
		err = conflict("%s cannot be installed: %s", i.called(s.item), s.whose)
	case wait:
		err = waiting("%s is there and is being deleted", i.called(s.item))
	case keep:
	}
	if err != nil {
		return i.granted(s.item, i.refused(ctx, s, "installing "+i.called(s.item), err))
	}
	i.note(s.item, uid)
	return nil
}
