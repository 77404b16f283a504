// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// argo is the apiVersion of Rollouts.
const argo = "argoproj.io/v1alpha1"

// Bounds of a strategy, as admission has them, and Argo's default of progressDeadlineSeconds.
const (
	maxSteps            = 100
	maxDuration         = 720 * time.Hour
	minProgressDeadline = 30 * time.Second
	argoDeadlineSeconds = 600
)

// Further defaults of Argo's: old versions that are kept, and how long the Pods of a version stay after the switch.
const (
	argoHistoryLimit = 10
	argoDelaySeconds = 30
)

// rollout has the fields of a Rollout that are converted. Its template and selector are read from the document as they are.
type rollout struct {
	Spec struct {
		Replicas                *int32 `json:"replicas"`
		MinReadySeconds         int32  `json:"minReadySeconds"`
		RevisionHistoryLimit    *int32 `json:"revisionHistoryLimit"`
		ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds"`
		ProgressDeadlineAbort   bool   `json:"progressDeadlineAbort"`
		WorkloadRef             *struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
		} `json:"workloadRef"`
		Strategy struct {
			Type      string     `json:"type"`
			Canary    *canary    `json:"canary"`
			BlueGreen *blueGreen `json:"blueGreen"`
		} `json:"strategy"`
	} `json:"spec"`
}

type canary struct {
	Analysis                   *analysis           `json:"analysis"`
	StableService              string              `json:"stableService"`
	CanaryService              string              `json:"canaryService"`
	Steps                      []canaryStep        `json:"steps"`
	MaxSurge                   *intstr.IntOrString `json:"maxSurge"`
	DynamicStableScale         bool                `json:"dynamicStableScale"`
	ScaleDownDelaySeconds      *int32              `json:"scaleDownDelaySeconds"`
	AbortScaleDownDelaySeconds *int32              `json:"abortScaleDownDelaySeconds"`
	TrafficRouting             *struct {
		MaxTrafficWeight *int32 `json:"maxTrafficWeight"`
	} `json:"trafficRouting"`
}

type canaryStep struct {
	Analysis       *analysis    `json:"analysis"`
	SetWeight      *int32       `json:"setWeight"`
	SetCanaryScale *canaryScale `json:"setCanaryScale"`
	Pause          *struct {
		Duration *intstr.IntOrString `json:"duration"`
	} `json:"pause"`
}

type canaryScale struct {
	Weight             *int32 `json:"weight"`
	Replicas           *int32 `json:"replicas"`
	MatchTrafficWeight bool   `json:"matchTrafficWeight"`
}

type blueGreen struct {
	ActiveService              string    `json:"activeService"`
	PreviewService             string    `json:"previewService"`
	AutoPromotionEnabled       *bool     `json:"autoPromotionEnabled"`
	AutoPromotionSeconds       int32     `json:"autoPromotionSeconds"`
	PreviewReplicaCount        *int32    `json:"previewReplicaCount"`
	ScaleDownDelaySeconds      *int32    `json:"scaleDownDelaySeconds"`
	AbortScaleDownDelaySeconds *int32    `json:"abortScaleDownDelaySeconds"`
	PrePromotionAnalysis       *analysis `json:"prePromotionAnalysis"`
	PostPromotionAnalysis      *analysis `json:"postPromotionAnalysis"`
}

// completeReplicas reports that spec.replicas is absent, and replaces it by that of the Deployment in workloadRef, at. A Deployment
// with 0 was scaled down because the Rollout runs its Pods.
func (r *rollout) completeReplicas(all []document, at int, report *report) {
	if r.Spec.Replicas != nil {
		return
	}
	const autoscaler = "if an autoscaler sets it, write the number that runs now into the Rollout, and convert it again"
	if at >= 0 {
		if n, _, err := unstructured.NestedInt64(all[at].Object, "spec", "replicas"); err == nil && n > 0 && n <= math.MaxInt32 {
			r.Spec.Replicas = new(int32(n))
			report.add("spec.replicas", "is absent: %d is taken from %s; %s", n, all[at].title(), autoscaler)
			return
		}
	}
	report.add("spec.replicas", "is absent: 1 is Argo's default; %s", autoscaler)
}

// replicas is the number of Pods at full capacity.
func (r *rollout) replicas() int32 {
	if r.Spec.Replicas == nil {
		return 1
	}
	return *r.Spec.Replicas
}

// decode reads the fields that are converted, and refuses a Rollout that Argo would refuse.
func decode(d document) (*rollout, error) {
	if err := d.checkName(); err != nil {
		return nil, err
	}
	r := &rollout{}
	if err := decodeInto(d, r); err != nil {
		return nil, err
	}
	switch s := r.Spec.Strategy; {
	case s.Canary == nil && s.BlueGreen == nil:
		return nil, d.failed("spec.strategy", "is missing: it must have canary or blueGreen")
	case s.Canary != nil && s.BlueGreen != nil:
		return nil, d.failed("spec.strategy", "has both canary and blueGreen: leave one of the two out")
	case s.BlueGreen != nil && s.BlueGreen.ActiveService == "":
		return nil, d.failed("spec.strategy.blueGreen.activeService", "is missing")
	case r.replicas() < 0:
		return nil, d.failed("spec.replicas", "is less than 0")
	}
	return r, nil
}

// checkName refuses a name that an Application cannot have. It becomes that of a folder and the value of a label.
func (d document) checkName() error {
	if d.GetName() == "" {
		return d.failed("metadata.name", "is missing")
	}
	if wrong := append(validation.IsDNS1123Subdomain(d.GetName()), validation.IsValidLabelValue(d.GetName())...); len(wrong) > 0 {
		return d.failed("metadata.name", "cannot be the name of an Application: %s", strings.Join(wrong, "; "))
	}
	return nil
}

// decodeInto reads the fields of a document that are converted.
func decodeInto(d document, into any) error {
	raw, err := d.MarshalJSON()
	if err != nil {
		return d.failed("spec", "cannot be read: %w", err)
	}
	if err := utiljson.Unmarshal(raw, into); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return d.failed(wrong.Field, "is a %s, and must be a %s", wrong.Value, typeName(wrong.Type.Kind().String()))
		}
		return d.failed("spec", "cannot be read: %w", err)
	}
	return nil
}

// typeName is the name of a Go kind for readers of YAML.
func typeName(kind string) string {
	switch kind {
	case "int32":
		return "number"
	case "struct", "map", "ptr":
		return "map"
	case "slice":
		return "list"
	}
	return kind
}

// application makes the Application, without its chart.
func application(d document, r *rollout, with settings, templates *index, report *report) (*shipper.Application, error) {
	strategy, err := strategyOf(d, r, templates, report)
	if err != nil {
		return nil, err
	}
	app := &shipper.Application{
		TypeMeta:   metav1.TypeMeta{APIVersion: shipper.GroupVersion.String(), Kind: "Application"},
		ObjectMeta: metav1.ObjectMeta{Name: d.GetName(), Namespace: d.GetNamespace()},
	}
	limit := r.Spec.RevisionHistoryLimit
	if limit == nil {
		limit = new(int32(argoHistoryLimit))
	}
	app.Spec.RevisionHistoryLimit = historyLimit(limit, report)
	app.Spec.Template.Strategy = strategy
	regions := with.regions
	if len(regions) == 0 {
		regions = []string{placeholderRegion}
		report.add("spec", "names no regions: replace %s in the Application by a region of your clusters, or give --region", placeholderRegion)
	}
	for _, region := range regions {
		app.Spec.Template.ClusterRequirements.Regions = append(app.Spec.Template.ClusterRequirements.Regions,
			shipper.RegionRequirement{Name: region})
	}
	return app, nil
}

// historyLimit moves a limit into the bounds of an Application. Nil stays nil.
func historyLimit(limit *int32, report *report) *int32 {
	if limit == nil {
		return nil
	}
	bounded := min(max(*limit, shipper.MinRevisionHistoryLimit), shipper.MaxRevisionHistoryLimit)
	if bounded != *limit {
		report.add("spec.revisionHistoryLimit", "must be from %d to %d in an Application: it becomes %d",
			shipper.MinRevisionHistoryLimit, shipper.MaxRevisionHistoryLimit, bounded)
	}
	return &bounded
}

// strategyOf converts the strategy and the deadline.
func strategyOf(d document, r *rollout, templates *index, report *report) (*shipper.RolloutStrategy, error) {
	out := &shipper.RolloutStrategy{
		// As in Argo, which skips the steps of the first deployment.
		FirstRelease:     shipper.FirstReleaseImmediate,
		ProgressDeadline: progressDeadline(r.Spec.ProgressDeadlineSeconds, report),
	}
	if r.Spec.ProgressDeadlineAbort {
		out.OnFailure = shipper.OnFailureAbort
	}
	var err error
	if r.Spec.Strategy.BlueGreen != nil {
		out.Steps, err = blueGreenSteps(d, r, templates, report)
	} else {
		err = canarySteps(d, r, out, templates, report)
	}
	if err != nil {
		return nil, err
	}
	if len(out.Steps) > maxSteps {
		return nil, d.failed("spec.strategy.canary.steps", "become %d steps, and an Application has %d at most", len(out.Steps), maxSteps)
	}
	failurePolicy(out, report)
	unique(out)
	return out, nil
}

// progressDeadline is Argo's deadline, and its default, within the bounds of a strategy.
func progressDeadline(seconds *int32, report *report) shipper.Duration {
	const field = "spec.progressDeadlineSeconds"
	if seconds == nil {
		return format(argoDeadlineSeconds * time.Second)
	}
	deadline := time.Duration(*seconds) * time.Second
	if deadline < minProgressDeadline {
		report.add(field, "must be at least 30 in an Application: it becomes 30s")
		deadline = minProgressDeadline
	}
	return bounded(deadline, field, report)
}

// templateOf is the Pod template and the selector of a Rollout: its own, or those of the Deployment that it refers to. at is the
// index of the document that has them, -1 for the Rollout itself.
func templateOf(d document, r *rollout, all []document) (at int, template, selector map[string]any, err error) {
	source, at := d, -1
	_, own, _ := unstructured.NestedFieldNoCopy(d.Object, "spec", "template")
	if ref := r.Spec.WorkloadRef; ref != nil && !own {
		for i, other := range all {
			if other.is("apps/v1", "Deployment") && ref.Kind == "Deployment" && other.GetName() == ref.Name && other.besides(d) {
				source, at = other, i
			}
		}
		if at < 0 {
			return at, nil, nil, d.failed("spec.template", "is missing, and %s, which spec.workloadRef names, is not in the input",
				cmp.Or(ref.Kind, "the object")+" "+ref.Name)
		}
	}
	template, found, err := unstructured.NestedMap(source.Object, "spec", "template")
	if err != nil {
		return at, nil, nil, source.failed("spec.template", "is not a map")
	}
	if !found || len(template) == 0 {
		return at, nil, nil, source.failed("spec.template", "is missing")
	}
	unstructured.RemoveNestedField(template, "metadata", "creationTimestamp")
	selector, _, err = unstructured.NestedMap(source.Object, "spec", "selector")
	if err != nil {
		return at, nil, nil, source.failed("spec.selector", "is not a map")
	}
	if len(selector) == 0 {
		return at, nil, nil, source.failed("spec.selector", "is missing")
	}
	return at, template, selector, nil
}
