// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// placementPolicy has the fields of a placement's policy that are converted.
type placementPolicy struct {
	PlacementType    string   `json:"placementType"`
	ClusterNames     []string `json:"clusterNames"`
	NumberOfClusters *int32   `json:"numberOfClusters"`
	Affinity         struct {
		ClusterAffinity struct {
			Required struct {
				Terms []clusterTerm `json:"clusterSelectorTerms"`
			} `json:"requiredDuringSchedulingIgnoredDuringExecution"`
			Preferred []preferredTerm `json:"preferredDuringSchedulingIgnoredDuringExecution"`
		} `json:"clusterAffinity"`
	} `json:"affinity"`
	TopologySpreadConstraints []shipper.TopologySpreadConstraint `json:"topologySpreadConstraints"`
	Tolerations               []shipper.ClusterToleration        `json:"tolerations"`
}

type preferredTerm struct {
	Weight     int32       `json:"weight"`
	Preference clusterTerm `json:"preference"`
}

type clusterTerm struct {
	LabelSelector    *metav1.LabelSelector `json:"labelSelector"`
	PropertySelector struct {
		MatchExpressions []propertyExpression `json:"matchExpressions"`
	} `json:"propertySelector"`
	PropertySorter *propertySorter `json:"propertySorter"`
	// MetricSorter is the name of PropertySorter in KubeFleet's guides.
	MetricSorter *propertySorter `json:"metricSorter"`
}

type propertyExpression struct {
	Name     string   `json:"name"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

type propertySorter struct {
	Name      string `json:"name"`
	SortOrder string `json:"sortOrder"`
}

// Fields of a policy.
const (
	policyField    = "spec.policy"
	affinityField  = policyField + ".affinity.clusterAffinity."
	requiredField  = affinityField + "requiredDuringSchedulingIgnoredDuringExecution"
	preferredField = affinityField + "preferredDuringSchedulingIgnoredDuringExecution"
)

// convert makes the placement. No policy is PickAll, as in KubeFleet.
func (p *placementPolicy) convert(d document, report *report) (*shipper.Placement, error) {
	if p == nil {
		p = &placementPolicy{}
	}
	out := &shipper.Placement{Type: shipper.PlacementType(cmp.Or(p.PlacementType, string(shipper.PickAll)))}
	switch out.Type {
	case shipper.PickAll:
	case shipper.PickN:
		if p.NumberOfClusters == nil {
			return nil, d.failed(policyField+".numberOfClusters", "is missing: PickN needs it")
		}
		out.Count = p.NumberOfClusters
	case shipper.PickFixed:
		if len(p.ClusterNames) == 0 {
			return nil, d.failed(policyField+".clusterNames", "is missing: PickFixed needs it")
		}
		out.Clusters = p.ClusterNames
	default:
		return nil, d.failed(policyField+".placementType", "is %q, and must be PickAll, PickFixed or PickN", p.PlacementType)
	}
	if err := p.convertAffinity(d, out, report); err != nil {
		return nil, err
	}
	if out.Type == shipper.PickN {
		out.TopologySpreadConstraints = p.TopologySpreadConstraints
	}
	if out.Type != shipper.PickFixed {
		out.Tolerations = p.Tolerations
	}
	p.reportIgnored(out.Type, report)
	if errs := placement.Validate(out, field.NewPath("placement")); len(errs) > 0 {
		return nil, d.failed(policyField, "makes a placement that Shipper refuses: %w", errs.ToAggregate())
	}
	return out, nil
}

// reportIgnored reports fields that a type of placement does not have. KubeFleet refuses or ignores them.
func (p *placementPolicy) reportIgnored(of shipper.PlacementType, report *report) {
	affinity := &p.Affinity.ClusterAffinity
	for _, one := range []struct {
		field string
		given bool
	}{
		{policyField + ".clusterNames", len(p.ClusterNames) > 0 && of != shipper.PickFixed},
		{policyField + ".numberOfClusters", p.NumberOfClusters != nil && of != shipper.PickN},
		{requiredField, len(affinity.Required.Terms) > 0 && of == shipper.PickFixed},
		{preferredField, len(affinity.Preferred) > 0 && of != shipper.PickN},
		{policyField + ".topologySpreadConstraints", len(p.TopologySpreadConstraints) > 0 && of != shipper.PickN},
		{policyField + ".tolerations", len(p.Tolerations) > 0 && of == shipper.PickFixed},
	} {
		if one.given {
			report.add(one.field, "is left out: it has no effect with %s, in KubeFleet as here", of)
		}
	}
}

// convertAffinity converts the terms that the type of placement has.
func (p *placementPolicy) convertAffinity(d document, out *shipper.Placement, report *report) error {
	if out.Type == shipper.PickFixed {
		return nil
	}
	from, affinity := &p.Affinity.ClusterAffinity, shipper.ClusterAffinity{}
	for i := range from.Required.Terms {
		at := fmt.Sprintf("%s.clusterSelectorTerms[%d]", requiredField, i)
		if from.Required.Terms[i].isEmpty() {
			if len(from.Required.Terms) > 1 {
				report.add(at, "is left out, since it requires nothing: releases of KubeFleet differ in whether every cluster matches it; leave "+
					"affinity.required out if so")
			}
			continue
		}
		term, err := from.Required.Terms[i].convert(d, at, report)
		if err != nil {
			return err
		}
		if from.Required.Terms[i].sorter() != nil {
			report.add(at+".propertySorter", "is left out: it has no effect in a required term")
		}
		affinity.Required = append(affinity.Required, term)
	}
	for i := range from.Preferred {
		if out.Type != shipper.PickN {
			break
		}
		at := fmt.Sprintf("%s[%d].preference", preferredField, i)
		if preference := &from.Preferred[i].Preference; len(preference.PropertySelector.MatchExpressions) > 0 {
			report.add(at+".propertySelector", "is left out: it has no effect in a preferred term")
			preference.PropertySelector.MatchExpressions = nil
		}
		term, err := from.Preferred[i].Preference.convert(d, at, report)
		if err != nil {
			return err
		}
		preferred := shipper.PreferredClusterTerm{Weight: from.Preferred[i].Weight, ClusterTerm: term}
		if sorter := from.Preferred[i].Preference.sorter(); sorter != nil {
			preferred.Sort = &shipper.PropertySort{
				Property: propertyOf(sorter.Name, at+".propertySorter", report), Order: shipper.SortOrder(sorter.SortOrder),
			}
		}
		affinity.Preferred = append(affinity.Preferred, preferred)
	}
	if len(affinity.Required)+len(affinity.Preferred) > 0 {
		out.Affinity = &affinity
	}
	return nil
}

// isEmpty reports whether a term requires nothing.
func (t *clusterTerm) isEmpty() bool {
	selector := t.LabelSelector
	return (selector == nil || len(selector.MatchLabels)+len(selector.MatchExpressions) == 0) && len(t.PropertySelector.MatchExpressions) == 0
}

func (t *clusterTerm) sorter() *propertySorter { return cmp.Or(t.PropertySorter, t.MetricSorter) }

func (t *clusterTerm) convert(d document, at string, report *report) (shipper.ClusterTerm, error) {
	out := shipper.ClusterTerm{LabelSelector: t.LabelSelector.DeepCopy()}
	if out.LabelSelector != nil {
		for i := range out.LabelSelector.MatchExpressions {
			// KubeFleet's guides name this operator so.
			if e := &out.LabelSelector.MatchExpressions[i]; e.Operator == "NotExists" {
				e.Operator = metav1.LabelSelectorOpDoesNotExist
			}
		}
	}
	for i, e := range t.PropertySelector.MatchExpressions {
		field := fmt.Sprintf("%s.propertySelector.matchExpressions[%d]", at, i)
		if len(e.Values) != 1 {
			return out, d.failed(field+".values", "has %d values, and must have one", len(e.Values))
		}
		out.Properties = append(out.Properties, shipper.PropertyRequirement{
			Name: propertyOf(e.Name, field, report), Operator: shipper.PropertyOperator(e.Operator), Value: e.Values[0],
		})
	}
	return out, nil
}

// amounts are what KubeFleet has of each resource, and the ends of the names that such properties have here.
var amounts = []struct{ prefix, suffix string }{
	{"total-", ".capacity"}, {"allocatable-", ".allocatable"}, {"available-", ".available"},
}

// propertyOf is the name of a property. Those that Shipper does not measure are reported.
func propertyOf(name, field string, report *report) string {
	const declare = "clusters have it where spec.properties of the Cluster, or a ConfigMap in the cluster, declares it"
	if name == fleetDomain+"/node-count" {
		return "nodes"
	}
	of, isResource := strings.CutPrefix(name, "resources."+fleetDomain+"/")
	for _, amount := range amounts {
		resource, ok := strings.CutPrefix(of, amount.prefix)
		if !isResource || !ok {
			continue
		}
		if amount.suffix == ".available" {
			report.add(field, "%s.available is not measured yet, and %s.allocatable is: %s", resource, resource, declare)
		}
		return resource + amount.suffix
	}
	report.add(field, "%s is no property that Shipper measures: %s", name, declare)
	return name
}
