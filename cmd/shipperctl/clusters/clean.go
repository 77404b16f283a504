// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// NewCleanCommand returns `clean` with its sub-commands.
func NewCleanCommand() *cobra.Command {
	o := &cli.Flags{}
	cmd := cli.Group("clean", "Tidy up after clusters, or Shipper itself, that are gone", newDecommissioned(o), newFinalizers(o))
	o.Register(cmd.PersistentFlags())
	return cmd
}

func newDecommissioned(o *cli.Flags) *cobra.Command {
	var names []string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "decommissioned-clusters",
		Short: "Take clusters off the Releases that are placed there",
		Long: "Take clusters off the Releases that are placed there. Other clusters of a Release are not touched. A Release that\n" +
			"is on no other cluster is left as it is, and named.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			gone, err := namesOf(names)
			if err != nil {
				return err
			}
			c, err := o.ClientFor(shipper.AddToScheme)
			if err != nil {
				return err
			}
			cl := cleaner{client: c, out: cmd.OutOrStdout(), dryRun: dryRun}
			return cl.clean(cmd.Context(), gone)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&names, "decommissioned-clusters", nil,
		"names of the clusters, separated by commas, also as --decommissionedClusters")
	flags.BoolVar(&dryRun, "dry-run", false, "say what would be done, and do nothing, also as --dryrun")
	return cmd
}

type cleaner struct {
	client client.Client
	out    io.Writer
	dryRun bool
}

// clean goes on after a Release that cannot be changed, and returns an error at the end.
func (c *cleaner) clean(ctx context.Context, gone []string) error {
	releases, err := readReleases(ctx, c.client)
	if err != nil {
		return err
	}
	if err := c.remind(ctx, gone); err != nil {
		return err
	}
	p := makePlan(releases, gone)
	for _, name := range p.nowhere {
		c.progressf("no release is placed on cluster %q", name)
	}
	var problems []error
	for _, ch := range p.changes {
		err := c.change(ctx, ch)
		if ctx.Err() != nil {
			return fmt.Errorf("not every release was cleaned: %w", ctx.Err())
		}
		if err != nil {
			problems = append(problems, err)
			c.progressf("release %q: %s -> %s: failed: %v", ch.release, ch.from, ch.to, err)
		}
	}
	live := 0
	for _, k := range p.kept {
		c.progressf("release %q is placed on no other cluster and left as it is: %s", k.release, advice(k))
		if k.live() {
			live++
		}
	}
	verb := "were"
	if c.dryRun {
		verb = "would be"
	}
	c.progressf("%d releases %s changed, %d left as they are, %d failed",
		len(p.changes)-len(problems), verb, len(p.kept), len(problems))
	if live > 0 {
		problems = append(problems, fmt.Errorf("%d releases that may run have nowhere else to go", live))
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("not every release was cleaned: %w", errors.Join(problems...))
}

// advice is the remedy for a Release that stays.
func advice(k kept) string {
	if k.live() {
		return "roll its application out to other clusters, or choose some: kubectl annotate rel " + k.release.Name + " -n " +
			k.release.Namespace + " " + shipper.ReleaseClustersAnnotation + "=NAME --overwrite"
	}
	return "it has no pods any more; delete it if it is not to be gone back to: kubectl delete rel " + k.release.Name + " -n " +
		k.release.Namespace
}

// remind warns of Clusters that new Releases may still be placed on.
func (c *cleaner) remind(ctx context.Context, gone []string) error {
	var list shipper.ClusterList
	if err := c.client.List(ctx, &list); err != nil {
		return fmt.Errorf("listing clusters: %w", err)
	}
	for i := range list.Items {
		cluster := &list.Items[i]
		if slices.Contains(gone, cluster.Name) && !cluster.Spec.Scheduler.Unschedulable {
			c.progressf("Note: new releases may still be placed on cluster %q: kubectl patch cluster %s --type=merge -p "+
				`'{"spec":{"scheduler":{"unschedulable":true}}}'`, cluster.Name, cluster.Name)
		}
	}
	return nil
}

// change rewrites the annotation, unless it has changed meanwhile.
func (c *cleaner) change(ctx context.Context, ch change) error {
	if c.dryRun {
		c.progressf("release %q: %s -> %s (dry run)", ch.release, ch.from, ch.to)
		return nil
	}
	path := "/metadata/annotations/" + strings.ReplaceAll(shipper.ReleaseClustersAnnotation, "/", "~1")
	patch, err := cli.PatchIf(path, ch.to, path, ch.from)
	if err != nil {
		return err
	}
	rel := &shipper.Release{}
	rel.Namespace, rel.Name = ch.release.Namespace, ch.release.Name
	if err := c.client.Patch(ctx, rel, patch); err != nil {
		if apierrors.IsNotFound(err) {
			return nil // it went meanwhile
		}
		return fmt.Errorf("taking clusters off release %q: %w", ch.release, err)
	}
	c.progressf("release %q: %s -> %s", ch.release, ch.from, ch.to)
	return nil
}

func (c *cleaner) progressf(format string, args ...any) { fmt.Fprintf(c.out, format+"\n", args...) }

// change takes clusters off one Release.
type change struct {
	release types.NamespacedName
	// from is the annotation as it is, to as it is to be.
	from, to string
}

// kept is a Release that is on no other clusters: it is not changed. Without any, Shipper would choose clusters for it
// again, where no user wants it, or roll it out again.
type kept struct {
	release types.NamespacedName
	// part the Release has in its Application's rollout. One that is retired has no Pods; all others may have.
	part strategy.Role
}

// live reports whether the Release may have Pods, or get some by itself.
func (k kept) live() bool { return k.part != strategy.Retired }

// cleanPlan lists changes, sorted by Release.
type cleanPlan struct {
	changes []change
	kept    []kept
	// nowhere are the names that no Release is placed on.
	nowhere []string
}

// makePlan is pure. It looks at no more of a Release than at its annotations, its labels and whether it is complete: that
// one cannot be understood keeps no other from being cleaned.
func makePlan(releases []shipper.Release, gone []string) cleanPlan {
	var p cleanPlan
	slices.SortFunc(releases, func(a, b shipper.Release) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	parts := rolesOf(releases)
	used := map[string]bool{}
	for i := range releases {
		rel := &releases[i]
		from := rel.Annotations[shipper.ReleaseClustersAnnotation]
		var stay []string
		touched := false
		for _, name := range stamp.Clusters(rel) {
			if slices.Contains(gone, name) {
				used[name], touched = true, true
				continue
			}
			stay = append(stay, name)
		}
		key := types.NamespacedName{Namespace: rel.Namespace, Name: rel.Name}
		switch {
		case !touched || !rel.DeletionTimestamp.IsZero():
		case len(stay) == 0:
			p.kept = append(p.kept, kept{release: key, part: parts[key]})
		default:
			p.changes = append(p.changes, change{release: key, from: from, to: strings.Join(stay, ",")})
		}
	}
	for _, name := range gone {
		if !used[name] {
			p.nowhere = append(p.nowhere, name)
		}
	}
	return p
}

// namesOf reads the names of clusters as the flag has them.
func namesOf(values []string) ([]string, error) {
	var out []string
	for _, v := range values {
		if v = strings.TrimSpace(v); v != "" {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	if out = slices.Compact(out); len(out) == 0 {
		err := errors.New("name the clusters that are decommissioned: --decommissionedClusters eu-west-1,eu-west-2")
		return nil, cli.WithCode(cli.Misused, err)
	}
	return out, nil
}

func newFinalizers(o *cli.Flags) *cobra.Command {
	var in string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "finalizers",
		Short: "Remove Shipper's finalizers from all its objects, after Shipper was uninstalled",
		Long: "Remove Shipper's finalizers from all its objects, after Shipper was uninstalled: with them, and without Shipper, nothing\n" +
			"that is deleted would go. Nothing is deleted, and what runs in application clusters runs on. While a reconciler runs,\n" +
			"the command is refused: it would put the finalizers back. With --context of an application cluster it removes the\n" +
			"finalizers of the ConfigMaps that own what Shipper has installed there.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.ClientFor(shipper.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme)
			if err != nil {
				return err
			}
			f := finalizers{client: c, out: cmd.OutOrStdout(), system: o.Namespace, in: in, dryRun: dryRun}
			return f.remove(cmd.Context(), time.Now())
		},
	}
	cmd.Flags().StringVar(&in, "in", "", "only from objects in this namespace (default all namespaces)")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be done, and do nothing, also as --dryrun")
	return cmd
}

type finalizers struct {
	client     client.Client
	out        io.Writer
	system, in string
	dryRun     bool
}

// remove goes on after an object that cannot be changed, and returns an error at the end.
func (f *finalizers) remove(ctx context.Context, now time.Time) error {
	if err := f.stopped(ctx, now); err != nil {
		return err
	}
	removed, problems := 0, []error(nil)
	kinds := []client.ObjectList{
		&shipper.ApplicationList{}, &shipper.ReleaseList{}, &shipper.InstallationTargetList{},
		&shipper.CapacityTargetList{}, &shipper.TrafficTargetList{},
	}
	if f.in == "" {
		kinds = append(kinds, &shipper.ClusterList{})
	}
	for _, list := range append(kinds, &corev1.ConfigMapList{}) {
		of := []client.ListOption{client.InNamespace(f.in)}
		if _, anchors := list.(*corev1.ConfigMapList); anchors {
			of = append(of, client.HasLabels{shipper.AppLabel})
		}
		err := f.client.List(ctx, list, of...)
		if meta.IsNoMatchError(err) { // it is an application cluster
			continue
		}
		if err != nil {
			return fmt.Errorf("listing what has finalizers: %w", err)
		}
		err = meta.EachListItem(list, func(item runtime.Object) error {
			o, ok := item.(client.Object)
			if !ok || !slices.ContainsFunc(o.GetFinalizers(), ofShipper) {
				return nil
			}
			if err := f.removeFrom(ctx, o); err != nil {
				problems = append(problems, err)
				return ctx.Err()
			}
			removed++
			return nil
		})
		if err != nil {
			return fmt.Errorf("not every finalizer was removed: %w", err)
		}
	}
	verb := "were"
	if f.dryRun {
		verb = "would be"
	}
	fmt.Fprintf(f.out, "the finalizers of %d objects %s removed, %d failed\n", removed, verb, len(problems))
	if len(problems) > 0 {
		return fmt.Errorf("not every finalizer was removed: %w", errors.Join(problems...))
	}
	return nil
}

// removeFrom removes Shipper's finalizers from an object, unless it was changed since it was listed.
func (f *finalizers) removeFrom(ctx context.Context, o client.Object) error {
	is, ok := o.DeepCopyObject().(client.Object)
	if !ok || f.dryRun {
		return nil
	}
	is.SetFinalizers(slices.DeleteFunc(is.GetFinalizers(), ofShipper))
	err := f.client.Patch(ctx, is, client.MergeFromWithOptions(o, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizers of %T %s/%s: %w", o, o.GetNamespace(), o.GetName(), err)
	}
	return nil
}

func ofShipper(finalizer string) bool { return strings.HasPrefix(finalizer, shipper.GroupName+"/") }

// stopped returns an error while a reconciler holds the Lease.
func (f *finalizers) stopped(ctx context.Context, now time.Time) error {
	leader, err := cli.RunningLeader(ctx, f.client, f.system, now)
	if err == nil && leader != nil {
		err = fmt.Errorf("the reconciler %s runs, and would put the finalizers back: uninstall Shipper first, "+
			"or stop it: kubectl scale deployment shipper --replicas=0 -n %s", leader.Name, f.system)
	}
	return err
}
