// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/response"
)

const (
	// askTime bounds the request to the API server for the traffic of a Release.
	askTime = time.Second
	// retryServing is the retry hint when it fails.
	retryServing = time.Second
)

// validateServing refuses the deletion of a Release that serves and is not the newest, unless it is confirmed. For the newest
// it warns of the traffic that it keeps until another Release takes over.
func (w *Webhook) validateServing(
	ctx context.Context, req *admission.Request, a *response.Response, app block.App, old *shipper.Release,
) error {
	known := slices.ContainsFunc(app.Releases, func(rel *shipper.Release) bool { return rel.Name == old.Name })
	if !known || w.reconciler(req) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	targets, err := w.State.TrafficTargetsNow(ctx, types.NamespacedName{Namespace: old.Namespace, Name: app.Name})
	share := servedShare(old.Name, targets)
	if app.Newest().Name == old.Name {
		warnOfAbort(a, old, app.Previous(), share)
		if err != nil {
			a.Warn("what Release %s serves could not be read: it is removed when others serve in its place", old.Name)
		}
		return nil
	}
	switch {
	case err != nil:
		return response.Later(fmt.Sprintf(
			"Release %s is not the newest, and what it serves could not be read: %v. Try again", old.Name, err), retryServing)
	case share == "":
		return nil
	case old.Annotations[shipper.ConfirmDeletionAnnotation] == old.Name:
		a.Warn("Release %s serves %s; it is removed when others serve in its place", old.Name, share)
		return nil
	}
	return response.Forbid(resource, old.Name, refusalOf(old, app.Newest(), share))
}

// refusalOf says what share a Release that is not the newest serves, with the commands to stop the rollout or to delete it
// anyway.
func refusalOf(rel, newest *shipper.Release, share string) string {
	text := fmt.Sprintf("Release %s serves %s and is not the newest. "+
		"To give up the rollout that is under way: kubectl delete rel %s -n %s --wait=false. ",
		rel.Name, share, newest.Name, rel.Namespace)
	if step := newest.Spec.TargetStep; step > 0 {
		text += fmt.Sprintf(`To go back a step: kubectl patch rel %s -n %s --type=merge -p '{"spec":{"targetStep":%d}}'. `,
			newest.Name, rel.Namespace, step-1)
	}
	overwrite := ""
	if _, there := rel.Annotations[shipper.ConfirmDeletionAnnotation]; there {
		overwrite = " --overwrite"
	}
	return text + fmt.Sprintf("To delete this one all the same: kubectl annotate rel %[1]s -n %[2]s %[3]s=%[1]s%[4]s, and delete it again; "+
		"it is then removed when others serve in its place", rel.Name, rel.Namespace, shipper.ConfirmDeletionAnnotation, overwrite)
}

// servedShare describes the share of the traffic that a Release has, and in how many clusters, from the TrafficTargets of its
// Application; empty when it has none. Weights need not sum up to 100.
func servedShare(release string, targets []shipper.TrafficTarget) string {
	own, all := map[string]uint64{}, map[string]uint64{}
	for _, tt := range targets {
		for _, c := range tt.Status.Clusters {
			all[c.Name] += uint64(c.AchievedTraffic)
			if tt.Name == release && c.AchievedTraffic > 0 {
				own[c.Name] = uint64(c.AchievedTraffic)
			}
		}
	}
	if len(own) == 0 {
		return ""
	}
	var shares []uint64
	for cluster, weight := range own {
		shares = append(shares, (100*weight+all[cluster]-1)/all[cluster])
	}
	clusters := "1 cluster"
	if len(shares) > 1 {
		clusters = fmt.Sprintf("%d clusters", len(shares))
	}
	if least, most := slices.Min(shares), slices.Max(shares); least != most {
		return fmt.Sprintf("%d to %d %% of the traffic in %s", least, most, clusters)
	}
	return fmt.Sprintf("%d %% of the traffic in %s", shares[0], clusters)
}
