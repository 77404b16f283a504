// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// observeStrategy finds what the template takes from a Strategy: in a Release that has taken the same, or in the Strategy. It reads that
// from the API server, and only before a Release is created: a user applies both together, and a cache may show the Application first.
func (r *pass) observeStrategy(ctx context.Context, s *scope) error {
	from, newest := stamp.From(&s.app.Spec.Template), s.history.Newest()
	if from == nil || from.Digest == "" {
		return nil
	}
	if s.taken = stamp.KnownStrategy(s.app, s.history.All); s.taken != nil || stamp.Restoring(s.app, newest) {
		return nil
	}
	if from.Namespace != "" && from.Namespace != s.app.Namespace && from.Namespace != r.global {
		return nil // admission refuses it
	}
	found, key := &shipper.Strategy{}, strategyKey(s.app)
	switch err := r.live.Get(ctx, key, found); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading strategy %s: %w", key, err)
	}
	digest, err := stamp.StrategyDigest(found.Spec)
	if err == nil && digest == from.Digest {
		s.taken = &found.Spec
	}
	return err
}

// strategyKey is the Strategy that an Application takes.
func strategyKey(app *shipper.Application) client.ObjectKey {
	return stamp.StrategyKey(stamp.From(&app.Spec.Template), app.Namespace)
}

// neverTaken is what to do about a Strategy that no Release can take; empty if there is none.
func neverTaken(s *scope) refusal {
	from := stamp.From(&s.app.Spec.Template)
	if from == nil || s.taken != nil {
		return refusal{}
	}
	why := fmt.Sprintf("Strategy %s was never taken", strategyKey(s.app))
	if from.Digest != "" {
		why = fmt.Sprintf("Strategy %s is not any more what it was when the template was admitted", strategyKey(s.app))
	}
	return refusal{shipper.StrategyFetchFailure, fmt.Sprintf("%s; take it as it is now: kubectl annotate app %s %s=<anything new> "+
		"--overwrite -n %s", why, s.app.Name, shipper.AppStrategyRefreshAnnotation, s.app.Namespace)}
}
