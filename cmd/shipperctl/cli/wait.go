// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Await reads an object into o, again and again, until done. It returns false, without an error, when patience is over first.
func Await(
	ctx context.Context, c client.Reader, key client.ObjectKey, o client.Object, interval, patience time.Duration, done func() bool,
) (bool, error) {
	over := false
	err := wait.PollUntilContextTimeout(ctx, interval, patience, true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, key, o)
		over = err == nil && done()
		return over, client.IgnoreNotFound(err)
	})
	if ctx.Err() == nil && wait.Interrupted(err) {
		err = nil
	}
	return over, err
}

// CheckTimeout refuses a --timeout that leaves no time.
func CheckTimeout(timeout time.Duration) error {
	if timeout <= 0 {
		return WithCode(Misused, fmt.Errorf("--timeout is %s: it must be more than nothing", timeout))
	}
	return nil
}

// Leader is a reconciler that holds the Lease, and when its hold ends unless it renews.
type Leader struct {
	Name  string
	Until time.Time
}

// LeaseName is the Lease in Shipper's namespace that the leading reconciler renews.
const LeaseName = "shipper-reconciler"

// LeaderOf returns the last holder of a Lease; nil if it was released.
func LeaderOf(lease *coordinationv1.Lease) *Leader {
	holder, renewed, seconds := lease.Spec.HolderIdentity, lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds
	if holder == nil || *holder == "" || renewed == nil || seconds == nil {
		return nil
	}
	return &Leader{Name: *holder, Until: renewed.Add(time.Duration(*seconds) * time.Second)}
}

// RunningLeader returns the reconciler that holds the Lease in a namespace at a time; nil if none does.
func RunningLeader(ctx context.Context, from client.Reader, namespace string, now time.Time) (*Leader, error) {
	lease := &coordinationv1.Lease{}
	err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: LeaseName}, lease)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the Lease %s/%s, which shows whether a reconciler runs: %w", namespace, LeaseName, err)
	}
	if leader := LeaderOf(lease); leader != nil && now.Before(leader.Until) {
		return leader, nil
	}
	return nil, nil
}

// Annotate sets annotations of an object, whatever they were.
func Annotate(ctx context.Context, c client.Client, o client.Object, annotations map[string]string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return fmt.Errorf("writing a patch: %w", err)
	}
	return c.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch))
}

// PatchIf returns a JSON patch that sets a field, or removes it if value is nil, and fails if another field, or the same, is not as seen.
// JSON pointers name them.
func PatchIf(path string, value any, unless string, seen any) (client.Patch, error) {
	change := map[string]any{"op": "add", "path": path, "value": value}
	if value == nil {
		change = map[string]any{"op": "remove", "path": path}
	}
	patch, err := json.Marshal([]map[string]any{{"op": "test", "path": unless, "value": seen}, change})
	if err != nil {
		return nil, fmt.Errorf("writing a patch: %w", err)
	}
	return client.RawPatch(types.JSONPatchType, patch), nil
}
