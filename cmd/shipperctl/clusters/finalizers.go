// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// leaseName is the Lease that the reconciler which leads renews.
const leaseName = "shipper-reconciler"

// newFinalizers returns `clean finalizers`.
func newFinalizers(o *cli.Flags) *cobra.Command {
	var in string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "finalizers",
		Short: "Remove Shipper's finalizers from all its objects, after Shipper was uninstalled",
		Long: "Remove Shipper's finalizers from all its objects, after Shipper was uninstalled: with them, and without Shipper, nothing\n" +
			"that is deleted would go. Nothing is deleted, and what runs in application clusters runs on. While a reconciler runs,\n" +
			"the command is refused: it would put the finalizers back.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := o.Management()
			if err != nil {
				return err
			}
			c, err := cli.NewClient(config, shipper.AddToScheme, coordinationv1.AddToScheme)
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

// finalizers removes Shipper's finalizers.
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
	for _, list := range []client.ObjectList{
		&shipper.ApplicationList{}, &shipper.ReleaseList{}, &shipper.InstallationTargetList{},
		&shipper.CapacityTargetList{}, &shipper.TrafficTargetList{},
	} {
		if err := f.client.List(ctx, list, client.InNamespace(f.in)); err != nil {
			return fmt.Errorf("listing what has finalizers: %w", err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
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

// stopped is nil when no reconciler has renewed its Lease lately.
func (f *finalizers) stopped(ctx context.Context, now time.Time) error {
	lease := &coordinationv1.Lease{}
	err := f.client.Get(ctx, client.ObjectKey{Namespace: f.system, Name: leaseName}, lease)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the Lease %s/%s, which reports whether a reconciler runs: %w", f.system, leaseName, err)
	}
	if holds(lease.Spec, now) {
		return fmt.Errorf("the reconciler %s runs, and would put the finalizers back: uninstall Shipper first, "+
			"or stop it: kubectl scale deployment shipper --replicas=0 -n %s", *lease.Spec.HolderIdentity, f.system)
	}
	return nil
}

// holds reports whether somebody holds a Lease at a time.
func holds(lease coordinationv1.LeaseSpec, now time.Time) bool {
	if lease.HolderIdentity == nil || *lease.HolderIdentity == "" || lease.RenewTime == nil || lease.LeaseDurationSeconds == nil {
		return false
	}
	return now.Before(lease.RenewTime.Add(time.Duration(*lease.LeaseDurationSeconds) * time.Second))
}
