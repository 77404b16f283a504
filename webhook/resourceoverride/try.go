// SPDX-License-Identifier: Apache-2.0

package resourceoverride

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/apis/rules/override"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/webhook/response"
)

const (
	// maxTried bounds the Applications whose charts are rendered in a review, and tryTimeout the time that takes.
	maxTried   = 5
	tryTimeout = time.Second
)

// Charts renders the charts of Releases.
type Charts interface {
	// Judge returns an *chart.Error without Retry if a Release cannot be rolled out in a cluster.
	Judge(ctx context.Context, rel *shipper.Release, in render.Cluster) (doubts []string, err error)
}

// State has the Applications, their Releases, the clusters, and other ResourceOverrides.
type State interface {
	Releases(app types.NamespacedName) ([]*shipper.Release, error)
	Clusters() []shipper.Cluster
	// Applications are the metadata of those in a namespace.
	Applications(namespace string) ([]*metav1.PartialObjectMetadata, error)
	// OverridesNow are the outlines of the ResourceOverrides in a namespace, as the API server has them. They must not be changed.
	OverridesNow(ctx context.Context, namespace string) ([]override.Outline, error)
}

// try applies each rule to the newest Releases of the Applications that are named, in one of their clusters that it matches, and returns
// the rules that fail. What is not tried in time, or cannot be, is a warning: Shipper reports it when it installs.
func (w *Webhook) try(ctx context.Context, o *shipper.ResourceOverride, a *response.Response) field.ErrorList {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	var errs field.ErrorList
	if len(o.Spec.ApplicationNames) == 0 {
		a.Warn("not tried: only the Applications in applicationNames are; a rule that does not apply fails in the clusters then")
	}
	for i, name := range o.Spec.ApplicationNames {
		if i == maxTried {
			a.Warn("only the first %d Applications were tried", maxTried)
			break
		}
		rel, why := w.newest(types.NamespacedName{Namespace: o.Namespace, Name: name})
		if rel != nil {
			unset, err := w.checkClusters(ctx, o, rel)
			if errs = append(errs, unset...); err != nil {
				a.Warn("not tried on Application %s: %v", name, err)
			}
			if err != nil || len(unset) > 0 {
				continue
			}
		}
		if why != "" {
			a.Warn("not tried on Application %s: %s", name, why)
			continue
		}
		wrong, err := w.tryOn(ctx, o, rel)
		if errs = append(errs, wrong...); err != nil {
			a.Warn("not tried on Application %s: %v", name, err)
		}
	}
	return errs
}

// checkClusters returns the rules with variables that have no value in a cluster of a Release. err is why not all were tried.
func (w *Webhook) checkClusters(ctx context.Context, o *shipper.ResourceOverride, rel *shipper.Release) (errs field.ErrorList, err error) {
	clusters := w.clustersOf(rel)
	for i := range o.Spec.Rules {
		for _, cluster := range clusters {
			if err := ctx.Err(); err != nil {
				return errs, err
			}
			if err := override.CheckCluster(&o.Spec.Rules[i], rel.Name, cluster); err != nil {
				errs = append(errs, field.Invalid(field.NewPath("spec", "rules").Index(i), "", fmt.Sprintf(
					"Application %s is in cluster %s, and there %v: give all clusters a value, or leave this one out with clusterTerms",
					rel.Labels[shipper.AppLabel], cluster.Name, err)))
				break
			}
		}
	}
	return errs, nil
}

// clustersOf are the Clusters of a Release.
func (w *Webhook) clustersOf(rel *shipper.Release) (out []*shipper.Cluster) {
	all, chosen := w.State.Clusters(), stamp.Clusters(rel)
	for i := range all {
		if slices.Contains(chosen, all[i].Name) {
			out = append(out, &all[i])
		}
	}
	return out
}

// newest is the newest Release of an Application, if there is one, and why its chart cannot be rendered in a review.
func (w *Webhook) newest(app types.NamespacedName) (*shipper.Release, string) {
	rels, err := w.State.Releases(app)
	rel := stamp.NewestOf(rels)
	switch {
	case err != nil:
		return nil, err.Error()
	case rel == nil:
		return nil, "it has no Release yet"
	case rel.Spec.Environment.Resources != nil:
		return rel, "it has resources"
	case len(rel.Spec.Environment.ValuesFrom) > 0:
		return rel, "it has values from ConfigMaps or Secrets"
	}
	return rel, ""
}

// tryOn returns the rules that fail on a Release. err is why they could not be tried.
func (w *Webhook) tryOn(ctx context.Context, o *shipper.ResourceOverride, rel *shipper.Release) (errs field.ErrorList, err error) {
	clusters := w.clustersOf(rel)
	for i := range o.Spec.Rules {
		at := slices.IndexFunc(clusters, func(c *shipper.Cluster) bool {
			return ctx.Err() != nil || override.InCluster(&o.Spec.Rules[i], c)
		})
		if err := ctx.Err(); err != nil {
			return errs, err
		}
		if at < 0 {
			continue
		}
		tried := rel.DeepCopy()
		tried.Spec.Overrides = []shipper.ReleaseOverride{{
			Name: o.Namespace + "/" + o.Name, Resources: o.Spec.Resources, Rules: o.Spec.Rules[:i+1],
		}}
		in := render.ClusterOf(clusters[at])
		_, err := w.Charts.Judge(ctx, tried, in)
		failure, ok := errors.AsType[*chart.Error](err)
		if err != nil && (!ok || failure.Retry) {
			return errs, err
		}
		if ok {
			if _, err := w.Charts.Judge(ctx, rel, in); err != nil {
				return errs, fmt.Errorf("its newest Release cannot be rendered: %w", err)
			}
			return append(errs, field.Invalid(field.NewPath("spec", "rules").Index(i), "", fmt.Sprintf(
				"tried on Application %s in cluster %s: %s", rel.Labels[shipper.AppLabel], in.Place.Cluster, failure.Message))), nil
		}
	}
	return errs, nil
}
