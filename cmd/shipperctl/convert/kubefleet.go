// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// fleetDomain is that of KubeFleet's groups, labels, annotations and properties.
const fleetDomain = "kubernetes-fleet.io"

// The groups of KubeFleet.
const (
	fleetClusters   = "cluster." + fleetDomain
	fleetPlacements = "placement." + fleetDomain
)

// Kinds of KubeFleet that are converted, or that placements select.
const (
	memberClusterKind   = "MemberCluster"
	clusterPlacement    = "ClusterResourcePlacement"
	namespacedPlacement = "ResourcePlacement"
	clusterEnvelope     = "ClusterResourceEnvelope"
	namespacedEnvelope  = "ResourceEnvelope"
	// envelopeAnnotation makes a ConfigMap an envelope.
	envelopeAnnotation = fleetDomain + "/envelope-configmap"
)

// Kinds that are made.
const (
	kindOfClusters     = "Cluster"
	kindOfEnvelopes    = "Envelope"
	kindOfApplications = "Application"
	kindOfOverrides    = "ResourceOverride"
)

// What to do instead of kinds that are not converted.
const (
	noCounterpart      = "Shipper has no counterpart yet, "
	insteadOfOverrides = "no rule has clusters that are selected by labels: for every cluster, write " +
		"clusterSelector: {clusterSelectorTerms: []}"
	insteadOfLeaving = noCounterpart + "and a placement removes from clusters that it does not choose: require in its affinity.required " +
		"{key: shipper.booking.com/cluster, operator: NotIn, values: [CLUSTER]}"
	insteadOfBudgets = "there are no evictions to refuse; strategy.rolling bounds how many clusters are without a ready version (25%) " +
		"while a Release is placed"
	recordOfFleet = "it is made by KubeFleet itself, and Shipper makes records of its own"
)

// defaultHome is the namespace of what is made of objects without a namespace.
const defaultHome = "fleet"

// fleetVersions are those in which kinds are read: the fields that are converted have the same shape in all of them.
var fleetVersions = []string{"v1", "v1beta1", "v1alpha1"}

// leftOutOfFleet has what to do with objects of KubeFleet that are not converted, by kind.
var leftOutOfFleet = map[string]string{
	"ClusterResourceBinding":                   recordOfFleet,
	"ClusterResourceOverride":                  insteadOfOverrides,
	"ClusterResourceOverrideSnapshot":          recordOfFleet,
	"ClusterResourcePlacementDisruptionBudget": insteadOfBudgets,
	"ClusterResourcePlacementEviction":         insteadOfLeaving,
	"ClusterResourcePlacementStatus":           recordOfFleet,
	"ClusterResourceSnapshot":                  recordOfFleet,
	"ClusterSchedulingPolicySnapshot":          recordOfFleet,
	"InternalMemberCluster":                    recordOfFleet,
	"AppliedWork":                              recordOfFleet,
	"ResourceBinding":                          recordOfFleet,
	"ResourceOverride":                         insteadOfOverrides,
	"ResourceOverrideSnapshot":                 recordOfFleet,
	"ResourceSnapshot":                         recordOfFleet,
	"SchedulingPolicySnapshot":                 recordOfFleet,
	"Work":                                     recordOfFleet,
}

// fleetObject is a Cluster, an Envelope or an Application that was made of an object of KubeFleet.
type fleetObject struct {
	object  metav1.Object
	kind    string
	name    string
	reviews []string
	// clusterWide is true for an Application made of a placement of objects without a namespace.
	clusterWide bool
}

// fleetOrder is that in which kinds are printed: an Application selects Envelopes and chooses Clusters, and
// its first Release copies ResourceOverrides.
var fleetOrder = []string{kindOfClusters, kindOfEnvelopes, kindOfOverrides, kindOfApplications}

// home is the namespace of what is made of objects without a namespace.
func (s settings) home() string { return cmp.Or(s.namespace, defaultHome) }

// ofFleet reports whether the object is of a group of KubeFleet, or of what belongs to it, or a ConfigMap that is an envelope.
func (d document) ofFleet() bool {
	group, _, _ := strings.Cut(d.GetAPIVersion(), "/")
	return strings.HasSuffix(group, "."+fleetDomain) || d.isConfigMapEnvelope()
}

func (d document) isConfigMapEnvelope() bool {
	_, marked := d.GetAnnotations()[envelopeAnnotation]
	return marked && d.is("v1", "ConfigMap")
}

// converterOf is what converts the object; nil if it is not converted.
func converterOf(d document) func(document, settings) (fleetObject, error) {
	if d.isConfigMapEnvelope() {
		return envelopeOf
	}
	group, version, _ := strings.Cut(d.GetAPIVersion(), "/")
	if !slices.Contains(fleetVersions, version) {
		return nil
	}
	switch group + " " + d.GetKind() {
	case fleetClusters + " " + memberClusterKind:
		return clusterOf
	case fleetPlacements + " " + clusterPlacement, fleetPlacements + " " + namespacedPlacement:
		return applicationOfPlacement
	case fleetPlacements + " " + clusterEnvelope, fleetPlacements + " " + namespacedEnvelope:
		return envelopeOf
	case fleetPlacements + " " + clusterOverride, fleetPlacements + " " + namespacedOverride:
		if hasClusters(d) {
			return resourceOverrideOf
		}
	}
	return nil
}

// convertFleet converts the objects of KubeFleet, and returns what is to be reviewed of those that make none. Two that make the same object
// are an error.
func convertFleet(all []document, used map[int]bool, failed *failures, with settings) ([]fleetObject, []string) {
	var out []fleetObject
	from := map[string]string{}
	with.input, with.staged = all, stagedUpdatesOf(all, failed)
	for i, d := range all {
		converter := converterOf(d)
		if converter == nil {
			continue
		}
		one, err := converter(d, with)
		if err != nil {
			failed.add(i, err)
			continue
		}
		name := one.kind + " " + strings.TrimPrefix(one.object.GetNamespace()+"/"+one.name, "/")
		if other := from[name]; other != "" {
			failed.add(i, fmt.Errorf("%s: %s and %s make the %s: rename one of the two", d.at(), other, d.title(), name))
			continue
		}
		used[i], from[name] = true, d.title()
		out = append(out, one)
	}
	slices.SortStableFunc(out, func(a, b fleetObject) int {
		return cmp.Compare(slices.Index(fleetOrder, a.kind), slices.Index(fleetOrder, b.kind))
	})
	return out, with.staged.leftOver(all, used, failed)
}

// fleetMetadata is the metadata of what is made of an object of KubeFleet. Labels stay: placements and selectors use them.
func fleetMetadata(d document, namespace string) metav1.ObjectMeta {
	out := metav1.ObjectMeta{Name: d.GetName(), Namespace: namespace, Labels: d.GetLabels()}
	kept := d.GetAnnotations()
	maps.DeleteFunc(kept, func(key, _ string) bool {
		domain, _, _ := strings.Cut(key, "/")
		return domain == fleetDomain || strings.HasSuffix(domain, "."+fleetDomain) || key == corev1.LastAppliedConfigAnnotation
	})
	if len(kept) > 0 {
		out.Annotations = kept
	}
	return out
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: shipper.GroupVersion.String(), Kind: kind}
}

// checkObjectName refuses a name that no Cluster and no Envelope can have.
func (d document) checkObjectName(kind string) error {
	if d.GetName() == "" {
		return d.failed("metadata.name", "is missing")
	}
	if wrong := validation.IsDNS1123Subdomain(d.GetName()); len(wrong) > 0 {
		return d.failed("metadata.name", "cannot be the name of a %s: %s", kind, strings.Join(wrong, "; "))
	}
	return nil
}

// oneOfFleet is the counterpart of a value of an enumeration. The documentation of KubeFleet writes some with a small first letter.
func oneOfFleet[T ~string](d document, field, value string, known map[string]T) (T, error) {
	for name, counterpart := range known {
		if strings.EqualFold(name, value) {
			return counterpart, nil
		}
	}
	return "", d.failed(field, "is %q, and must be one of %s", value, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
}
