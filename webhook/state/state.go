// SPDX-License-Identifier: Apache-2.0

// Package state holds the objects that the webhook reads without a request to the API server: RolloutBlocks, Releases,
// Clusters, Checks, Shipyards and their runs, and the metadata of Applications and namespaces, cached by watches and indexed so that no
// review scans them.
package state

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/placement"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Indexers hold the cached objects. They belong to the cache and must not be changed.
type Indexers struct {
	Blocks       cache.Indexer // RolloutBlocks, by namespace
	Releases     cache.Indexer // Releases as Strip leaves them, by application, by cluster and by check
	Applications cache.Indexer // metadata
	Clusters     cache.Indexer
	Checks       cache.Indexer // by namespace
	Shipyards    cache.Indexer
	Runs         cache.Indexer // SequenceRuns as Strip leaves them, by Shipyard
	Namespaces   cache.Indexer // metadata
}

// The indices.
const (
	byApplication = "application" // namespace/name of the Application, from the Release's label
	byCluster     = "cluster"     // names of the clusters in the Release's annotation
	byCheck       = "check"       // namespace/name of the Checks that the Release's strategy names
	byShipyard    = "shipyard"    // namespace/name of the Shipyard of a run
	byStrategy    = "strategy"    // namespace/name of the Strategy that the Release has taken
)

// releaseIndices are the indices of Releases besides that by namespace.
var releaseIndices = cache.Indexers{byApplication: applicationOf, byCluster: clustersOf, byCheck: checksOf, byStrategy: strategyOf}

// runIndices are the indices of SequenceRuns besides that by namespace.
var runIndices = cache.Indexers{byShipyard: shipyardOf}

// NewIndexers returns empty indexers with the indices that Reader uses.
func NewIndexers() Indexers {
	empty := func() cache.Indexer {
		byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
		return cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace)
	}
	i := Indexers{
		Blocks: empty(), Releases: empty(), Applications: empty(), Clusters: empty(), Checks: empty(), Namespaces: empty(),
		Shipyards: empty(), Runs: empty(),
	}
	_ = i.Releases.AddIndexers(releaseIndices) // these fail only when a name is taken
	_ = i.Runs.AddIndexers(runIndices)
	return i
}

// Reader reads the cached objects. Its results belong to the cache and must not be changed.
type Reader struct {
	cached Indexers
	// live reads a single object that is not in the cache: an object that was just created must not count as missing. With nil
	// there are no live reads.
	live            client.Reader
	globalNamespace string
	// unhealthyAfter and clock are for placements.
	unhealthyAfter time.Duration
	clock          clock.PassiveClock
	// confirmed replaces the blocks of the cache if it is set.
	confirmed atomic.Pointer[confirmation]
	// overrides are the lists of ResourceOverrides that are under way, by namespace.
	overrides singleflight.Group
	// bearing has room for as many dry runs as read ResourceOverrides at the same time.
	bearing chan struct{}
}

// New returns a Reader of known. RolloutBlocks in globalNamespace apply to every namespace.
func New(known Indexers, live client.Reader, globalNamespace string) *Reader {
	return &Reader{
		cached: known, live: live, globalNamespace: globalNamespace,
		unhealthyAfter: placement.DefaultUnhealthyAfter, clock: clock.RealClock{}, bearing: make(chan struct{}, maxBearingLists),
	}
}

// SetUnhealthyAfter sets how long a cluster may be not ready and still be chosen by placements, and the clock that says so. It is not
// safe while others read.
func (f *Reader) SetUnhealthyAfter(after time.Duration, c clock.PassiveClock) {
	f.unhealthyAfter, f.clock = after, c
}

// GlobalNamespace is the namespace whose RolloutBlocks apply to every namespace.
func (f *Reader) GlobalNamespace() string { return f.globalNamespace }

// BlocksFor are the RolloutBlocks that apply to namespace, in no order.
func (f *Reader) BlocksFor(namespace string) ([]*shipper.RolloutBlock, error) {
	known := f.blocks()
	blocks, err := list[*shipper.RolloutBlock](known, cache.NamespaceIndex, namespace)
	if err != nil || f.globalNamespace == "" || f.globalNamespace == namespace {
		return blocks, err
	}
	global, err := list[*shipper.RolloutBlock](known, cache.NamespaceIndex, f.globalNamespace)
	return append(blocks, global...), err
}

// Blocks are the RolloutBlocks in namespace, in no order.
func (f *Reader) Blocks(namespace string) ([]*shipper.RolloutBlock, error) {
	return list[*shipper.RolloutBlock](f.blocks(), cache.NamespaceIndex, namespace)
}

// Block is the RolloutBlock in any namespace; nil when there is none.
func (f *Reader) Block(ctx context.Context, key types.NamespacedName) (*shipper.RolloutBlock, error) {
	return get(ctx, f, f.blocks(), key, &shipper.RolloutBlock{})
}

// Applications are the metadata of those in namespace, in no order.
func (f *Reader) Applications(namespace string) ([]*metav1.PartialObjectMetadata, error) {
	return list[*metav1.PartialObjectMetadata](f.cached.Applications, cache.NamespaceIndex, namespace)
}

// Application is the metadata of the Application; nil when there is none.
func (f *Reader) Application(ctx context.Context, key types.NamespacedName) (*metav1.PartialObjectMetadata, error) {
	empty := &metav1.PartialObjectMetadata{}
	empty.SetGroupVersionKind(shipper.GroupVersion.WithKind("Application"))
	return get(ctx, f, f.cached.Applications, key, empty)
}

// TrafficTargetsNow reads an Application's TrafficTargets from the API server.
func (f *Reader) TrafficTargetsNow(ctx context.Context, app types.NamespacedName) ([]shipper.TrafficTarget, error) {
	var found shipper.TrafficTargetList
	if f.live == nil {
		return nil, nil
	}
	err := f.live.List(ctx, &found, client.InNamespace(app.Namespace), client.MatchingLabels{shipper.AppLabel: app.Name})
	if err != nil {
		return nil, fmt.Errorf("listing the TrafficTargets of Application %s: %w", app, err)
	}
	return found.Items, nil
}

// Release is the Release; nil when there is none.
func (f *Reader) Release(ctx context.Context, key types.NamespacedName) (*shipper.Release, error) {
	return get(ctx, f, f.cached.Releases, key, &shipper.Release{})
}

// ApplicationNow is Application, read from the API server.
func (f *Reader) ApplicationNow(ctx context.Context, key types.NamespacedName) (*metav1.PartialObjectMetadata, error) {
	if f.live == nil || key.Name == "" {
		return f.Application(ctx, key)
	}
	empty := &metav1.PartialObjectMetadata{}
	empty.SetGroupVersionKind(shipper.GroupVersion.WithKind("Application"))
	return read(ctx, f.live, key, empty)
}

// ReleaseNow is Release, read from the API server.
func (f *Reader) ReleaseNow(ctx context.Context, key types.NamespacedName) (*shipper.Release, error) {
	if f.live == nil {
		return f.Release(ctx, key)
	}
	return read(ctx, f.live, key, &shipper.Release{})
}

// Releases are the Releases with the label of the Application, in no order. Their status has only the fields that blocks need.
func (f *Reader) Releases(app types.NamespacedName) ([]*shipper.Release, error) {
	return list[*shipper.Release](f.cached.Releases, byApplication, app.String())
}

// App is the Application of rel, as blocks need it. Its Releases are those of the Application with the same UID, not of an
// earlier one of the same name; rel is one of them once the cache has it.
func (f *Reader) App(rel *shipper.Release) (block.App, error) {
	name := rel.Labels[shipper.AppLabel]
	key := types.NamespacedName{Namespace: rel.Namespace, Name: name}
	rels, err := f.Releases(key)
	if err != nil {
		return block.App{}, err
	}
	ordered, _ := stamp.SortByGeneration(rels)
	app := f.Around(name, nil)
	app.Releases = slices.DeleteFunc(ordered, func(r *shipper.Release) bool {
		return !r.DeletionTimestamp.IsZero() || applicationUID(r) != applicationUID(rel)
	})
	if o, there, err := f.cached.Applications.GetByKey(key.String()); err == nil && there {
		if meta, ok := o.(metav1.Object); ok {
			app.Labels = []map[string]string{meta.GetLabels()}
		}
	}
	return app, nil
}

// Around is an Application of that name with its own Releases, oldest first, as blocks and placements need it.
func (f *Reader) Around(app string, rels []*shipper.Release) block.App {
	return block.App{Name: app, Releases: rels, Clusters: sync.OnceValue(f.Clusters), UnhealthyAfter: f.unhealthyAfter, Now: f.clock.Now()}
}

// PlacedOn are the Releases that are placed on the cluster, sorted.
func (f *Reader) PlacedOn(cluster string) ([]string, error) {
	rels, err := list[*shipper.Release](f.cached.Releases, byCluster, cluster)
	names := make([]string, len(rels))
	for i, rel := range rels {
		names[i] = rel.Namespace + "/" + rel.Name
	}
	slices.Sort(names)
	return names, err
}

// Check is the Check; nil when there is none.
func (f *Reader) Check(ctx context.Context, key types.NamespacedName) (*shipper.Check, error) {
	return get(ctx, f, f.cached.Checks, key, &shipper.Check{})
}

// Checks are the Checks in namespace, in no order.
func (f *Reader) Checks(namespace string) ([]*shipper.Check, error) {
	return list[*shipper.Check](f.cached.Checks, cache.NamespaceIndex, namespace)
}

// NamingCheck are the Releases that are the newest of their Application and name the Check, sorted by namespace and Application.
func (f *Reader) NamingCheck(key types.NamespacedName) ([]*shipper.Release, error) {
	return f.newestBy(byCheck, key)
}

// Clusters are all Clusters, in no order.
func (f *Reader) Clusters() []shipper.Cluster {
	known := f.cached.Clusters.List()
	clusters := make([]shipper.Cluster, 0, len(known))
	for _, o := range known {
		if c, ok := o.(*shipper.Cluster); ok {
			clusters = append(clusters, *c)
		}
	}
	return clusters
}

// NamespaceTerminating reports whether the namespace is being deleted; false if it is not in the cache.
func (f *Reader) NamespaceTerminating(namespace string) bool {
	o, there, err := f.cached.Namespaces.GetByKey(namespace)
	if err != nil || !there {
		return false
	}
	meta, ok := o.(metav1.Object)
	return ok && meta.GetDeletionTimestamp() != nil
}

func list[T any](indexer cache.Indexer, index, value string) ([]T, error) {
	found, err := indexer.ByIndex(index, value)
	if err != nil {
		return nil, fmt.Errorf("reading index %s: %w", index, err)
	}
	out := make([]T, 0, len(found))
	for _, o := range found {
		if t, ok := o.(T); ok {
			out = append(out, t)
		}
	}
	return out, nil
}

// get returns the object from the cache or, if it is not there, reads it live into empty. It returns the zero T, which is nil,
// when the object does not exist.
func get[T client.Object](
	ctx context.Context, f *Reader, indexer cache.Indexer, key types.NamespacedName, empty T,
) (T, error) {
	var none T
	o, there, err := indexer.GetByKey(key.String())
	if err != nil {
		return none, fmt.Errorf("reading %s: %w", key, err)
	}
	if known, ok := o.(T); there && ok {
		return known, nil
	}
	if f.live == nil || key.Name == "" {
		return none, nil
	}
	return read(ctx, f.live, key, empty)
}

// read reads key into empty; it returns the zero T when there is none.
func read[T client.Object](ctx context.Context, live client.Reader, key types.NamespacedName, empty T) (T, error) {
	var none T
	if err := live.Get(ctx, key, empty); apierrors.IsNotFound(err) {
		return none, nil
	} else if err != nil {
		return none, fmt.Errorf("reading %s: %w", key, err)
	}
	return empty, nil
}

// applicationUID distinguishes Applications that had the same name one after the other.
func applicationUID(rel *shipper.Release) types.UID {
	for _, ref := range rel.OwnerReferences {
		if ref.Kind == "Application" && strings.HasPrefix(ref.APIVersion, shipper.GroupName+"/") {
			return ref.UID
		}
	}
	return ""
}

func applicationOf(o any) ([]string, error) {
	rel, ok := o.(*shipper.Release)
	if !ok {
		return nil, nil
	}
	return []string{types.NamespacedName{Namespace: rel.Namespace, Name: rel.Labels[shipper.AppLabel]}.String()}, nil
}

func clustersOf(o any) ([]string, error) {
	rel, ok := o.(*shipper.Release)
	if !ok || rel.Annotations[shipper.ReleaseClustersAnnotation] == "" {
		return nil, nil
	}
	return strings.Split(rel.Annotations[shipper.ReleaseClustersAnnotation], ","), nil
}

// checksOf are the keys of the Checks that a Release names. A name with a namespace is the key of a shared one.
func checksOf(o any) ([]string, error) {
	rel, ok := o.(*shipper.Release)
	if !ok {
		return nil, nil
	}
	named := map[string]bool{}
	for _, c := range rel.Spec.Environment.Strategy.AllChecks() {
		if strings.Contains(c.Check, "/") {
			named[c.Check] = true
		} else {
			named[rel.Namespace+"/"+c.Check] = true
		}
	}
	return slices.Sorted(maps.Keys(named)), nil
}
