// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"cmp"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Policy says which objects may be placed. The zero value has the rules of this package only. A Policy is immutable.
type Policy struct {
	// placeable are the only kinds that may be placed; empty for all.
	placeable, unplaceable []schema.GroupKind
	namespaces, own        []string
}

// PolicyOptions are the operator's additions to the rules of this package. Each is a comma-separated list; empty means no addition.
type PolicyOptions struct {
	// PlaceableKinds are the only kinds that may be placed, such as `ConfigMap,Deployment.apps,*.example.com`. Not with UnplaceableKinds.
	PlaceableKinds string
	// UnplaceableKinds are kinds that may not be placed, in the same form.
	UnplaceableKinds string
	// UnplaceableNamespaces are namespaces whose content may not be placed. `team-*` is all with that prefix.
	UnplaceableNamespaces string
}

// AddFlags adds the flags of the lists, which both programs have.
func (o *PolicyOptions) AddFlags(set *flag.FlagSet) {
	set.StringVar(&o.PlaceableKinds, "placeable-kinds", "",
		"comma-separated `kinds` that Applications with resources may place, such as ConfigMap,Deployment.apps,*.example.com; empty: all "+
			"but those that belong to one cluster. The reconciler and the webhook need the same lists")
	set.StringVar(&o.UnplaceableKinds, "unplaceable-kinds", "",
		"comma-separated `kinds` that they may not place; not with --placeable-kinds")
	set.StringVar(&o.UnplaceableNamespaces, "unplaceable-namespaces", "",
		"comma-separated `namespaces` that they may not place, nor what is in them; team-* is all with that prefix")
}

// Refusal is why an object may not be placed.
type Refusal struct {
	// Field is that of a selector which the refusal is about: kind, namespace or name.
	Field string
	// Reason says why, and what to do instead.
	Reason string
}

// kindRule refuses kinds. An empty kind is all kinds of a group.
type kindRule struct {
	group  string
	kinds  []string
	reason string
}

// refusedKinds are the kinds that may not be placed. ReplicaSets may: those of Deployments are skipped one by one.
var refusedKinds = []kindRule{
	{"", []string{"Pod"}, "Pods are made by what owns them: select that"},
	{"", []string{"Node"}, "Nodes are the machines of one cluster"},
	{"", []string{"Event"}, "Events are records of one cluster"},
	{"events.k8s.io", nil, "Events are records of one cluster"},
	{"", []string{"Endpoints"}, "Endpoints are made for Services: select the Service"},
	{"discovery.k8s.io", []string{"EndpointSlice"}, "EndpointSlices are made for Services: select the Service"},
	{"coordination.k8s.io", nil, "Leases are locks of the processes of one cluster"},
	{"apps", []string{"ControllerRevision"}, "ControllerRevisions are made by StatefulSets and DaemonSets: select those"},
	{"metrics.k8s.io", nil, "metrics are measurements of one cluster"},
	{"custom.metrics.k8s.io", nil, "metrics are measurements of one cluster"},
	{"external.metrics.k8s.io", nil, "metrics are measurements of one cluster"},
	{"storage.k8s.io", []string{"CSINode", "CSIStorageCapacity", "VolumeAttachment"},
		"CSINodes, CSIStorageCapacities and VolumeAttachments describe the storage of one cluster"},
	{"resource.k8s.io", []string{"ResourceSlice"}, "ResourceSlices describe the devices of one cluster"},
	{"internal.apiserver.k8s.io", nil, "StorageVersions describe the API servers of one cluster"},
	{"certificates.k8s.io", []string{"CertificateSigningRequest"}, "CertificateSigningRequests are requests to one cluster"},
	{"authentication.k8s.io", nil, "reviews and token requests are calls, not objects"},
	{"authorization.k8s.io", nil, "reviews are calls, not objects"},
	{"admission.k8s.io", nil, "reviews are calls, not objects"},
	{"apiextensions.k8s.io", []string{"ConversionReview"}, "reviews are calls, not objects"},
	{"policy", []string{"Eviction"}, "Evictions are calls, not objects"},
	{"autoscaling", []string{"Scale"}, "a Scale is a part of another object: select that"},
	{"", []string{"Binding", "ComponentStatus"}, "Bindings and ComponentStatuses are not stored"},
}

// refusedNamespaces may not be placed, nor may their content.
var refusedNamespaces = map[string]string{
	"default": "each cluster has its own default namespace: move the content to another one",
	// Each cluster with Shipper has its own, and so has each application cluster.
	shipper.SystemNamespace:       "it is Shipper's own namespace",
	shipper.GlobalBlocksNamespace: "it is Shipper's own namespace",
	check.SharedNamespace:         "it is Shipper's own namespace",
}

// reservedPrefix begins the names of the namespaces of Kubernetes itself.
const reservedPrefix = "kube-"

// ParsePolicy parses the operator's lists. Its errors name the option as a flag. own are the namespaces of Shipper in the management
// cluster, where they have other names than in the manifests.
func ParsePolicy(o PolicyOptions, own ...string) (Policy, error) {
	p := Policy{own: own}
	var err error
	if p.placeable, err = parseKinds(o.PlaceableKinds); err != nil {
		return Policy{}, fmt.Errorf("--placeable-kinds: %w", err)
	}
	if p.unplaceable, err = parseKinds(o.UnplaceableKinds); err != nil {
		return Policy{}, fmt.Errorf("--unplaceable-kinds: %w", err)
	}
	if len(p.placeable) > 0 && len(p.unplaceable) > 0 {
		return Policy{}, fmt.Errorf("--placeable-kinds and --unplaceable-kinds: at most one of the two")
	}
	for _, entry := range list(o.UnplaceableNamespaces) {
		prefix, isPrefix := strings.CutSuffix(entry, "*")
		name := entry
		if isPrefix && prefix != "" {
			name = prefix + "x" // a prefix such as team- is not a name, but team-x is
		}
		if len(validation.IsDNS1123Label(name)) > 0 {
			return Policy{}, fmt.Errorf("--unplaceable-namespaces: %q is neither the name of a namespace nor a prefix such as team-*", entry)
		}
		p.namespaces = append(p.namespaces, entry)
	}
	return p, nil
}

var (
	kindName  = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	anyInName = "*"
)

func parseKinds(text string) ([]schema.GroupKind, error) {
	var out []schema.GroupKind
	for _, entry := range list(text) {
		gk := schema.ParseGroupKind(entry)
		groupOK := gk.Group == "" || len(validation.IsDNS1123Subdomain(gk.Group)) == 0
		if !groupOK || gk.Kind != anyInName && !kindName.MatchString(gk.Kind) || entry == anyInName {
			return nil, fmt.Errorf("%q is not a kind such as ConfigMap or Deployment.apps, nor a group such as *.example.com", entry)
		}
		out = append(out, gk)
	}
	return out, nil
}

// list splits a comma-separated list and drops empty entries.
func list(text string) []string {
	var out []string
	for entry := range strings.SplitSeq(text, ",") {
		if entry = strings.TrimSpace(entry); entry != "" {
			out = append(out, entry)
		}
	}
	return out
}

// Refused is why an object, or all of a kind where name is empty, may not be placed; nil if it may. namespace is empty for objects without
// one. Envelopes may be selected: their content is judged one by one.
func (p Policy) Refused(gvk schema.GroupVersionKind, namespaceName, name string) *Refusal {
	gk := gvk.GroupKind()
	if reason := p.refusedKind(gk); reason != "" {
		return &Refusal{"kind", reason}
	}
	field, in := "namespace", namespaceName
	if gk == namespace {
		field, in = "name", name
	}
	if reason := p.refusedNamespace(in); reason != "" {
		return &Refusal{field, reason}
	}
	return nil
}

func (p Policy) refusedKind(gk schema.GroupKind) string {
	if IsEnvelope(gk) {
		return ""
	}
	if gk.Group == shipper.GroupName {
		return gk.Kind + " is a kind of Shipper, and of those only Envelopes are placed"
	}
	for _, r := range refusedKinds {
		if r.group == gk.Group && (len(r.kinds) == 0 || slices.Contains(r.kinds, gk.Kind)) {
			return r.reason
		}
	}
	listed := func(entry schema.GroupKind) bool {
		return entry.Group == gk.Group && (entry.Kind == gk.Kind || entry.Kind == anyInName)
	}
	if slices.ContainsFunc(p.unplaceable, listed) || len(p.placeable) > 0 && !slices.ContainsFunc(p.placeable, listed) {
		return "the administrators of Shipper do not allow " + gk.String() + " to be placed"
	}
	return ""
}

func (p Policy) refusedNamespace(name string) string {
	if name == "" {
		return ""
	}
	if strings.HasPrefix(name, reservedPrefix) {
		return "namespaces with the prefix kube- belong to Kubernetes"
	}
	if reason, found := refusedNamespaces[name]; found {
		return reason
	}
	if slices.Contains(p.own, name) {
		return refusedNamespaces[shipper.SystemNamespace]
	}
	for _, entry := range p.namespaces {
		if prefix, isPrefix := strings.CutSuffix(entry, "*"); entry == name || isPrefix && strings.HasPrefix(name, prefix) {
			return "the administrators of Shipper do not allow namespace " + name + " to be placed"
		}
	}
	return ""
}

// Skip reports whether an object of a selected namespace, or one of all of a kind, is left out, and why: it may not be placed, or another
// process makes it in every cluster. reason follows the name of the object, or the field of a Refusal.
func (p Policy) Skip(o *unstructured.Unstructured) (reason string, skip bool) {
	if refusal := p.Refused(o.GroupVersionKind(), o.GetNamespace(), o.GetName()); refusal != nil {
		return refusal.Reason, true
	}
	reason = cmp.Or(firstReason(liveSkipRules, o), OwnOfCluster(o))
	return reason, reason != ""
}
