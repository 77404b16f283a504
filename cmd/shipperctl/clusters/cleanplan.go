// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"shipper.dev/shipper/apis/rules/strategy"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

// change takes clusters off one Release.
type change struct {
	release types.NamespacedName
	// from is the annotation as it is, to as it is to be.
	from, to string
}

// kept is a Release that is on no other clusters: it is not changed. Without any, Shipper would choose clusters for it
// again, and it would run where nobody asked for it, or be rolled out again.
type kept struct {
	release types.NamespacedName
	// part the Release has in its Application's rollout. One that is retired has no Pods; all others may have.
	part strategy.Role
}

// live reports whether the Release may have Pods, or get some by itself.
func (k kept) live() bool { return k.part != strategy.Retired }

// cleanPlan is what is to be done, sorted by Release.
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
	parts := rolesOf(releases)
	used := map[string]bool{}
	for i := range releases {
		rel := &releases[i]
		from := rel.Annotations[shipper.ReleaseClustersAnnotation]
		var stay []string
		touched := false
		for _, name := range strategy.Clusters(rel) {
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
	slices.SortFunc(p.changes, func(a, b change) int { return compareNames(a.release, b.release) })
	slices.SortFunc(p.kept, func(a, b kept) int { return compareNames(a.release, b.release) })
	for _, name := range gone {
		if !used[name] {
			p.nowhere = append(p.nowhere, name)
		}
	}
	return p
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
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
		return nil, cli.WithCode(cli.Misused, errors.New("name the clusters that are decommissioned: --decommissionedClusters eu-west-1,eu-west-2"))
	}
	return out, nil
}
