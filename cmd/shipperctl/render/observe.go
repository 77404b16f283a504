// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/placement"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	chart "shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/member/installation"
)

// answerTimeout is how long an application cluster may take for one answer.
const answerTimeout = 10 * time.Second

// requestedReleases are the next Releases of an Application in the management cluster, or of those in a file.
func (r *renderer) requestedReleases(
	ctx context.Context, in io.Reader, name, file string, note func(string, ...any),
) ([]*shipper.Release, error) {
	var apps []*shipper.Application
	if name != "" {
		app := &shipper.Application{}
		key := cli.ApplicationKey(r.namespace, name)
		if err := r.client.Get(ctx, key, app); err != nil {
			return nil, fmt.Errorf("reading application %s: %w", key, err)
		}
		apps = append(apps, app)
	} else {
		found, err := cli.ReadManifest(in, file, r.namespace)
		if err != nil {
			return nil, err
		}
		for _, one := range found {
			stored, err := dryRunApply(ctx, r.client, one)
			if err != nil {
				return nil, err
			}
			app := &shipper.Application{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, app); err != nil {
				return nil, fmt.Errorf("reading application %s/%s: %w", one.GetNamespace(), one.GetName(), err)
			}
			apps = append(apps, app)
		}
	}
	var out []*shipper.Release
	for _, app := range apps {
		rel, err := r.next(ctx, app, note)
		if err != nil {
			return nil, err
		}
		out = append(out, rel)
	}
	return out, nil
}

// next is the Release of an Application's template, stored or not.
func (r *renderer) next(ctx context.Context, app *shipper.Application, note func(string, ...any)) (*shipper.Release, error) {
	var list shipper.ReleaseList
	key := client.ObjectKeyFromObject(app)
	if err := r.client.List(ctx, &list, cli.OfApplication(key)...); err != nil {
		return nil, fmt.Errorf("listing releases of %s: %w", key, err)
	}
	existing := make([]*shipper.Release, len(list.Items))
	for i := range list.Items {
		existing[i] = &list.Items[i]
	}
	app, err := r.withStrategy(ctx, app, existing)
	if err != nil {
		return nil, err
	}
	digest, _ := stamp.NextContent(app, existing)
	rel, isNew, err := stamp.Next(stamp.WithContent(app, existing, digest), existing)
	if err != nil {
		return nil, err
	}
	if isNew {
		unread, err := copyOverrides(ctx, r.client, app, existing, rel)
		if err != nil {
			return nil, err
		}
		for _, namespace := range unread {
			note("you may not list ResourceOverrides in namespace %s: release %s/%s is rendered without them", namespace, rel.Namespace, rel.Name)
		}
	}
	if stamp.Undecided(app, existing) {
		err = r.decideNaming(ctx, rel)
	}
	return rel, err
}

// withStrategy is an Application with what it takes from its Strategy, which the server has admitted a moment ago.
func (r *renderer) withStrategy(
	ctx context.Context, app *shipper.Application, existing []*shipper.Release,
) (*shipper.Application, error) {
	from := stamp.From(&app.Spec.Template)
	if from == nil {
		return app, nil
	}
	if known := stamp.KnownStrategy(app, existing); known != nil {
		return stamp.WithStrategy(app, known), nil
	}
	found, key := &shipper.Strategy{}, stamp.StrategyKey(from, app.Namespace)
	if err := r.client.Get(ctx, key, found); err != nil {
		return nil, fmt.Errorf("reading strategy %s: %w", key, err)
	}
	return stamp.WithStrategy(app, &found.Spec), nil
}

// decideNaming decides how the objects of the first Release of an Application are named, as the reconciler does.
func (r *renderer) decideNaming(ctx context.Context, rel *shipper.Release) error {
	names, err := r.placed(ctx, rel)
	if err != nil {
		return err
	}
	var chosen []chart.Cluster
	for _, name := range names {
		cluster := &shipper.Cluster{}
		if err := r.client.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
			return fmt.Errorf("reading cluster %s: %w", name, err)
		}
		chosen = append(chosen, chart.ClusterOf(cluster))
	}
	naming, err := r.namer.Naming(ctx, rel, chosen)
	if err != nil {
		return fmt.Errorf("deciding how the objects of release %s/%s are named: %w", rel.Namespace, rel.Name, err)
	}
	rel.Spec.Environment.Chart.Naming = stamp.Recorded(naming)
	return nil
}

// placed are the clusters of a Release: those that it has, or those that it would get now.
func (r *renderer) placed(ctx context.Context, rel *shipper.Release) ([]string, error) {
	if names := stamp.Clusters(rel); len(names) > 0 {
		return names, nil
	}
	var all shipper.ClusterList
	if err := r.client.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	before, err := r.before(ctx, rel)
	if err != nil {
		return nil, err
	}
	app := block.App{
		Name: rel.Labels[shipper.AppLabel], Releases: before, Clusters: func() []shipper.Cluster { return all.Items },
		UnhealthyAfter: placement.DefaultUnhealthyAfter, Now: time.Now(),
	}
	d, err := app.Select(&rel.Spec.Environment)
	if len(r.clusters) > 0 && len(d.Chosen) == 0 {
		return nil, nil // others are named
	}
	if err == nil && len(d.Chosen) == 0 && rel.Spec.Environment.ClusterRequirements.Placement != nil {
		err = errors.New("none fits its placement as they are now")
	}
	if err != nil {
		return nil, fmt.Errorf("choosing clusters for %s/%s: %w; --clusters names some", rel.Namespace, rel.Name, err)
	}
	return d.Chosen, nil
}

// before are the other Releases of rel's Application that are not being deleted, oldest first.
func (r *renderer) before(ctx context.Context, rel *shipper.Release) ([]*shipper.Release, error) {
	var list shipper.ReleaseList
	key := client.ObjectKey{Namespace: rel.Namespace, Name: rel.Labels[shipper.AppLabel]}
	if err := r.client.List(ctx, &list, cli.OfApplication(key)...); err != nil {
		return nil, fmt.Errorf("listing releases of %s: %w", key, err)
	}
	var others []*shipper.Release
	for i := range list.Items {
		if one := &list.Items[i]; one.Name != rel.Name && one.DeletionTimestamp.IsZero() {
			others = append(others, one)
		}
	}
	ordered, _ := stamp.SortByGeneration(others)
	return ordered, nil
}

// describeCluster reads the properties of a cluster that charts are rendered with.
func (r *renderer) describeCluster(ctx context.Context, name string, note func(string, ...any)) (installation.Cluster, error) {
	cluster := &shipper.Cluster{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
		return installation.Cluster{}, fmt.Errorf("reading cluster %s: %w", name, err)
	}
	in, err := r.discover(ctx, cluster)
	in.Name, in.Region, in.Object = name, cluster.Spec.Region, cluster
	if err == nil {
		return in, nil
	}
	note("cluster %s cannot be asked for its APIs (%v): those of Kubernetes itself are assumed, and what the management cluster "+
		"knows of namespaces", name, err)
	mapper, err := r.mapper(r.config)
	if err != nil {
		return installation.Cluster{}, err
	}
	return installation.Cluster{
		Name: name, Region: cluster.Spec.Region, KubeVersion: cluster.Status.KubernetesVersion, HasNamespace: hasNamespace(mapper),
		Object: cluster,
	}, nil
}

// regionOf is the region a cluster is in for a Release: the one it was in when it was chosen, or the one it is in now.
func (r *renderer) regionOf(ctx context.Context, rel *shipper.Release, cluster, now string) (string, error) {
	if len(rel.Spec.Environment.ValuesPerRegion) == 0 {
		return now, nil
	}
	it := &shipper.InstallationTarget{}
	err := r.client.Get(ctx, client.ObjectKeyFromObject(rel), it)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading the InstallationTarget of release %s/%s: %w", rel.Namespace, rel.Name, err)
	}
	return cmp.Or(it.Spec.Regions[cluster], now), nil
}

// discover reads a cluster's version and APIs with Shipper's credentials.
func (r *renderer) discover(ctx context.Context, cluster *shipper.Cluster) (installation.Cluster, error) {
	key := client.ObjectKey{Namespace: r.system, Name: cluster.Name}
	secret := &corev1.Secret{}
	switch err := r.client.Get(ctx, key, secret); {
	case apierrors.IsNotFound(err):
		secret = nil
	case err != nil:
		return installation.Cluster{}, fmt.Errorf("reading the Secret %s: %w", key, err)
	}
	access, err := fleet.NewAccess(cluster, secret, key.String())
	if err != nil {
		return installation.Cluster{}, err
	}
	config := access.Config
	config.UserAgent, config.Timeout = "shipperctl", answerTimeout
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return installation.Cluster{}, fmt.Errorf("making a client: %w", err)
	}
	var in installation.Cluster
	if in.KubeVersion, in.APIVersions, err = fleet.Discover(ctx, d); err != nil {
		return in, err
	}
	mapper, err := r.mapper(config)
	if err != nil {
		return in, err
	}
	in.HasNamespace = hasNamespace(mapper)
	return in, nil
}

func (r *renderer) mapper(config *rest.Config) (meta.RESTMapper, error) {
	hc, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, hc)
	if err != nil {
		return nil, fmt.Errorf("asking for the kinds: %w", err)
	}
	return mapper, nil
}

// hasNamespace looks a kind up in a cluster.
func hasNamespace(mapper meta.RESTMapper) func(schema.GroupVersionKind) (namespaced, known bool) {
	return func(gvk schema.GroupVersionKind) (namespaced, known bool) {
		mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return false, false
		}
		return mapping.Scope.Name() == meta.RESTScopeNameNamespace, true
	}
}
