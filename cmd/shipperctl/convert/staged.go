// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// external is the strategy of placements that a staged run of KubeFleet carries out: nothing is placed before a run.
const external = "External"

// maxTermNames is how many clusters a term of an affinity names at most.
const maxTermNames = 100

// startLabel is the label of Clusters in which an Application made of a placement with the strategy External begins. No Cluster has it
// until a person sets it. Two Applications never have the same.
func startLabel(app metav1.Object) string { return "run." + app.GetNamespace() + "/" + app.GetName() }

// labelCommand sets the label on the Clusters that arguments of kubectl name. MemberClusters are often served beside Clusters.
func labelCommand(which, label string) string {
	return "kubectl label clusters.shipper.booking.com " + which + " " + label + "=started"
}

// holdUntilStarted makes a placement choose none but the clusters with a label.
func holdUntilStarted(p *shipper.Placement, label string) {
	if p.Affinity == nil {
		p.Affinity = &shipper.ClusterAffinity{}
	}
	if p.Type == shipper.PickFixed {
		for names := range slices.Chunk(p.Clusters, maxTermNames) {
			p.Affinity.Required = append(p.Affinity.Required, shipper.ClusterTerm{Names: names})
		}
		// PickFixed ignores taints.
		p.Type, p.Clusters, p.Tolerations = shipper.PickAll, nil, []shipper.ClusterToleration{{Operator: shipper.TolerationExists}}
	}
	if len(p.Affinity.Required) == 0 {
		p.Affinity.Required = []shipper.ClusterTerm{{}}
	}
	for i := range p.Affinity.Required {
		term := &p.Affinity.Required[i]
		if term.LabelSelector == nil {
			term.LabelSelector = &metav1.LabelSelector{}
		}
		term.LabelSelector.MatchExpressions = append(term.LabelSelector.MatchExpressions,
			metav1.LabelSelectorRequirement{Key: label, Operator: metav1.LabelSelectorOpExists})
	}
}

// waitForRun holds the first placement of an Application whose placement has the strategy External, and reports how to begin it.
func waitForRun(d document, app *shipper.Application, report *report) error {
	p, label := app.Spec.Template.ClusterRequirements.Placement, startLabel(app)
	wasType := p.Type
	holdUntilStarted(p, label)
	if errs := placement.Validate(p, field.NewPath("placement")); len(errs) > 0 {
		return d.failed(policyField, "with the label that holds External back makes a placement that Shipper refuses: %w", errs.ToAggregate())
	}
	const at = "spec.strategy.type"
	report.add(at, "External places nothing before a staged run, and there are none here: the placement requires the label %s, which no "+
		"Cluster has. To begin in all clusters: `%s`. To begin in stages, label the clusters of one stage after the other: `%s`. Those "+
		"labelled together are written together, where a stage has one at a time unless maxConcurrency is more", label,
		labelCommand("--all", label), labelCommand("-l SELECTOR", label))
	report.add(at, "becomes follow: OnRefresh: content is taken when the Application is created, and again when its template is edited or "+
		"the annotation %s gets another value; then it goes to all labelled clusters, as many at a time as strategy.rolling lets it (25%%), "+
		"without stages and approvals", shipper.AppResourcesRefreshAnnotation)
	switch wasType {
	case shipper.PickN:
		report.add(at, "with PickN chooses %d of the labelled clusters, and keeps them: label those first that KubeFleet has chosen", *p.Count)
	case shipper.PickFixed:
		report.add(at, "with PickFixed becomes PickAll of the same names, whatever their taints: a cluster that is cordoned or not ready waits")
	}
	return nil
}
