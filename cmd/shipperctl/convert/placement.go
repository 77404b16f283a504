// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
)

// placementSpec has the fields of a ClusterResourcePlacement or a ResourcePlacement that are converted.
type placementSpec struct {
	ResourceSelectors    []resourceSelector `json:"resourceSelectors"`
	Policy               *placementPolicy   `json:"policy"`
	Strategy             placementStrategy  `json:"strategy"`
	RevisionHistoryLimit *int32             `json:"revisionHistoryLimit"`
	// StatusReportingScope says whether users of the namespace see the status. Those of an Application's namespace always do.
	StatusReportingScope string `json:"statusReportingScope"`
}

type resourceSelector struct {
	Group          string                `json:"group"`
	Version        string                `json:"version"`
	Kind           string                `json:"kind"`
	Name           string                `json:"name"`
	LabelSelector  *metav1.LabelSelector `json:"labelSelector"`
	SelectionScope string                `json:"selectionScope"`
}

// fleetHistory is the default of revisionHistoryLimit in KubeFleet.
const fleetHistory int32 = 10

// applicationOfPlacement makes an Application of a placement.
func applicationOfPlacement(d document, with settings) (fleetObject, error) {
	var from struct {
		Spec placementSpec `json:"spec"`
	}
	if err := d.checkName(); err != nil {
		return fleetObject{}, err
	}
	if err := decodeInto(d, &from); err != nil {
		return fleetObject{}, err
	}
	spec, report := &from.Spec, &report{object: d.title()}
	report.unread(d.Object["spec"], reflect.TypeFor[placementSpec](), "spec", nil)
	app := &shipper.Application{TypeMeta: typeMeta(kindOfApplications), ObjectMeta: fleetMetadata(d, spec.namespace(d, with))}
	app.Spec.RevisionHistoryLimit = historyLimit(cmp.Or(spec.RevisionHistoryLimit, new(fleetHistory)), report)
	template := &app.Spec.Template
	var err error
	if template.Resources, err = spec.selected(d, app.Namespace, with, report); err != nil {
		return fleetObject{}, err
	}
	if template.ClusterRequirements.Placement, err = spec.Policy.convert(d, report); err != nil {
		return fleetObject{}, err
	}
	if err := spec.Strategy.convert(d, &app.Spec, report); err != nil {
		return fleetObject{}, err
	}
	if strings.EqualFold(spec.Strategy.Type, external) && !with.staged.roll(d, app, report) {
		if err := waitForRun(d, app, report); err != nil {
			return fleetObject{}, err
		}
	}
	return fleetObject{app, kindOfApplications, app.Name, report.reviews, d.GetKind() == clusterPlacement}, nil
}

// namespace is that of the Application: its own, that of the one Namespace which is selected by name, or else the one that was given.
func (p *placementSpec) namespace(d document, with settings) string {
	if d.GetKind() == namespacedPlacement {
		return d.GetNamespace()
	}
	names := map[string]bool{}
	only := ""
	for _, s := range p.ResourceSelectors {
		if s.isNamespace() {
			names[s.Name], only = true, s.Name
		}
	}
	if len(names) == 1 && only != "" {
		return only
	}
	return with.home()
}

func (s *resourceSelector) isNamespace() bool { return s.Group == "" && s.Kind == "Namespace" }

// selected are the resources of the Application.
func (p *placementSpec) selected(d document, namespace string, with settings, report *report) (*shipper.Resources, error) {
	out := &shipper.Resources{}
	for i := range p.ResourceSelectors {
		s, field := &p.ResourceSelectors[i], fmt.Sprintf("spec.resourceSelectors[%d]", i)
		switch {
		case s.Kind == "":
			return nil, d.failed(field+".kind", "is missing")
		case s.Name != "" && s.LabelSelector != nil:
			return nil, d.failed(field, "has both name and labelSelector: leave one of the two out")
		case s.Group == fleetPlacements && s.Kind != clusterEnvelope && s.Kind != namespacedEnvelope, s.Group == fleetClusters:
			report.add(field, "is left out: %s is a kind of KubeFleet, and is not placed", s.Kind)
			continue
		}
		if refusal := s.refused(namespace, d.GetKind()); refusal != "" {
			report.add(field, "is left out, since %s", refusal)
			continue
		}
		reportPowerful(schema.GroupVersionKind{Group: s.Group, Kind: s.Kind}, field, report)
		out.Select = append(out.Select, s.convert(field, namespace, with, report))
	}
	if len(out.Select) == 0 {
		return nil, d.failed("spec.resourceSelectors", "select nothing that is placed")
	}
	return out, nil
}

// refused is why what is selected may not be placed; empty if it may. A ResourcePlacement selects in its own namespace.
func (s *resourceSelector) refused(namespace, placement string) string {
	if s.Group == fleetPlacements {
		return ""
	}
	if placement == clusterPlacement {
		namespace = ""
	}
	refusal := (objects.Policy{}).Refused(schema.GroupVersionKind{Group: s.Group, Version: s.Version, Kind: s.Kind}, namespace, s.Name)
	if refusal == nil {
		return ""
	}
	return refusal.Reason
}

func (s *resourceSelector) convert(field, namespace string, with settings, report *report) shipper.ResourceSelector {
	out := shipper.ResourceSelector{Group: s.Group, Version: s.Version, Kind: s.Kind, Name: s.Name, LabelSelector: s.LabelSelector}
	if s.isPreferred() {
		out.Version = ""
	}
	isSecret := s.Group == "" && s.Kind == "Secret"
	if (s.isNamespace() || isSecret) && s.Name == "" && s.LabelSelector == nil {
		out.LabelSelector = &metav1.LabelSelector{} // an Application without it is refused
	}
	if s.Group == fleetPlacements {
		out.Group, out.Version, out.Kind = shipper.GroupName, "", kindOfEnvelopes
		if s.Kind == clusterEnvelope && namespace != with.home() {
			out.Namespace = with.home()
		}
	}
	switch {
	case !s.isNamespace() || s.SelectionScope == "" || s.SelectionScope == "NamespaceWithResources":
	case s.SelectionScope == "NamespaceOnly":
		out.Content = shipper.ContentNone
	default:
		out.Content = shipper.ContentNone
		report.add(field+".selectionScope", "%s becomes content: None: select by their kinds what else is to be placed", s.SelectionScope)
	}
	return out
}

// isPreferred reports whether the version is the one that API servers prefer for a kind of Kubernetes. Others may have several.
func (s *resourceSelector) isPreferred() bool {
	builtIn := !strings.Contains(s.Group, ".") && s.Group != "autoscaling" || strings.HasSuffix(s.Group, ".k8s.io")
	return s.Version == "v1" && builtIn
}

// placementStrategy has the fields of a placement's strategy that are converted.
type placementStrategy struct {
	Type string `json:"type"`
	// ResourceSnapshotIndex is the content to place, in place of the newest.
	ResourceSnapshotIndex *string        `json:"resourceSnapshotIndex"`
	RollingUpdate         rollingUpdate  `json:"rollingUpdate"`
	ApplyStrategy         applyStrategy  `json:"applyStrategy"`
	Delete                deleteStrategy `json:"deleteStrategy"`
	ReportBack            struct {
		Type        string `json:"type"`
		Destination string `json:"destination"`
	} `json:"reportBackStrategy"`
}

type deleteStrategy struct {
	PropagationPolicy string `json:"propagationPolicy"`
}

type applyStrategy struct {
	Type                  string `json:"type"`
	ComparisonOption      string `json:"comparisonOption"`
	WhenToApply           string `json:"whenToApply"`
	WhenToTakeOver        string `json:"whenToTakeOver"`
	ServerSideApplyConfig struct {
		Force bool `json:"force"`
	} `json:"serverSideApplyConfig"`
	// AllowCoOwnership lets an object have owners besides.
	AllowCoOwnership bool `json:"allowCoOwnership"`
}

// Counterparts of the values of enumerations.
var (
	follows    = map[string]shipper.ResourcesFollow{"RollingUpdate": "", external: shipper.FollowOnRefresh}
	removals   = map[string]shipper.ResourcesRemoval{"Delete": shipper.RemovalAll, "Abandon": shipper.RemovalNone}
	applyTypes = map[string]shipper.ApplyType{
		"ClientSideApply": shipper.ApplyClientSide, "ServerSideApply": shipper.ApplyServerSide, "ReportDiff": shipper.ApplyReportDiff,
	}
	comparisons = map[string]shipper.ApplyComparison{"PartialComparison": "", "FullComparison": shipper.ComparisonFull}
	driftRules  = map[string]shipper.DriftPolicy{"Always": shipper.DriftCorrect, "IfNotDrifted": shipper.DriftHalt}
	takeOvers   = map[string]shipper.TakeOverPolicy{
		"Always": shipper.TakeOverAlways, "IfNoDiff": shipper.TakeOverIfNoDiff, "Never": shipper.TakeOverNever,
	}
)

// convert writes the strategy into the Application. Defaults of KubeFleet that are others than Shipper's are written.
func (s *placementStrategy) convert(d document, app *shipper.ApplicationSpec, report *report) (err error) {
	template := &app.Template
	const at, apply = "spec.strategy.", "spec.strategy.applyStrategy."
	if template.Resources.Follow, err = oneOfFleet(d, at+"type", cmp.Or(s.Type, "RollingUpdate"), follows); err != nil {
		return err
	}
	if index := s.ResourceSnapshotIndex; index != nil {
		template.Resources.Follow = shipper.FollowOnRefresh
		report.add(at+"resourceSnapshotIndex", "%q holds the content of an earlier time, which only KubeFleet has. What is selected now is "+
			"taken instead, and no later change of it (follow: OnRefresh) until the annotation %s gets another value: make the selected "+
			"objects as they were before you apply this", *index, shipper.AppResourcesRefreshAnnotation)
	}
	policy := cmp.Or(s.Delete.PropagationPolicy, "Delete")
	if template.Resources.Removal, err = oneOfFleet(d, at+"deleteStrategy.propagationPolicy", policy, removals); err != nil {
		return err
	}
	if template.Resources.Removal == shipper.RemovalNone {
		report.add(at+"deleteStrategy.propagationPolicy", "Abandon becomes removal: None, which also keeps objects in clusters that are no "+
			"longer chosen, and objects that are no longer selected")
	}
	if s.ReportBack.Type != "" && s.ReportBack.Type != "Disabled" {
		report.add(at+"reportBackStrategy", "is left out: statuses of placed objects stay in their clusters, and InstallationTargets name those "+
			"that are not ready")
	}
	a, out := &s.ApplyStrategy, &shipper.Apply{}
	template.Apply = out
	if out.Type, err = oneOfFleet(d, apply+"type", cmp.Or(a.Type, "ClientSideApply"), applyTypes); err != nil {
		return err
	}
	if out.Type == shipper.ApplyServerSide {
		out.ForceConflicts = &a.ServerSideApplyConfig.Force
	}
	comparison := cmp.Or(a.ComparisonOption, "PartialComparison")
	if out.Comparison, err = oneOfFleet(d, apply+"comparisonOption", comparison, comparisons); err != nil {
		return err
	}
	if out.TakeOver, err = oneOfFleet(d, apply+"whenToTakeOver", cmp.Or(a.WhenToTakeOver, "Always"), takeOvers); err != nil {
		return err
	}
	if a.AllowCoOwnership {
		report.add(apply+"allowCoOwnership", "is left out: an object that has another owner is left alone, and reported as %s, whatever "+
			"takeOver is", shipper.NotTakenOver)
	}
	if app.DriftPolicy, err = oneOfFleet(d, apply+"whenToApply", cmp.Or(a.WhenToApply, "Always"), driftRules); err != nil {
		return err
	}
	template.Strategy, err = s.RollingUpdate.convert(d, report)
	return err
}
