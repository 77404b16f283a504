// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/chart/values"
	"shipper.dev/shipper/webhook/response"
	"shipper.dev/shipper/webhook/templatecheck"
)

// judgeTime bounds the wait for the chart to be fetched and rendered. A slower chart is admitted, and conditions of the Application and
// its Release report its faults.
const judgeTime = time.Second

// judgeChart refuses a new Release that cannot be rolled out in some of the clusters that it would get, with their versions and APIs, and
// warns of doubts. It does not know values from ConfigMaps and Secrets. Without clusters the chart is rendered as
// for any; values that depend on the cluster are then unknown, and it only warns.
func (w *Webhook) judgeChart(
	ctx context.Context, req *admission.Request, a *response.Response, app *shipper.Application, p plan,
) error {
	template, rel := &app.Spec.Template, p.next
	if template.Resources != nil || req.UserInfo.Username == w.Guard.Reconciler || len(template.ValuesFrom) > 0 ||
		app.DeletionTimestamp != nil || templatecheck.Wanted(template.ClusterRequirements) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, judgeTime)
	defer cancel()
	layers, chosen := values.LayersOf(template), render.ClustersOf(w.State.Clusters(), p.choice.Chosen)
	if p.undecided {
		naming, err := w.Charts.Naming(ctx, rel, chosen)
		if failure, ok := errors.AsType[*chart.Error](err); ok && !failure.Retry {
			return refuseChart(app, failure.Message)
		}
		if err != nil {
			return nil // the reconciler decides, and says why it cannot
		}
		rel.Spec.Environment.Chart.Naming = stamp.Recorded(naming)
	}
	groups := render.Group(layers, chosen)
	doubts, failures := remarks{of: len(groups)}, remarks{of: len(groups)}
	for _, in := range groups {
		found, err := w.Charts.Judge(ctx, rel, in.Cluster)
		if err, ok := errors.AsType[*chart.Error](err); ok && !err.Retry {
			failures.add(in, err.Message)
		}
		for _, doubt := range found {
			doubts.add(in, doubt)
		}
	}
	certain := len(chosen) > 0 || !layers.Differ()
	if len(failures.list) > 0 && certain {
		return refuseChart(app, failures.refusal())
	}
	for _, text := range failures.texts() { // clusters with other values may be chosen later
		a.Warn("%s%s", shipper.MightNotRollOut, text)
	}
	for _, text := range doubts.texts() {
		a.Warn("%s", text)
	}
	w.warnOfShare(ctx, a, rel, groups)
	return nil
}

// refuseChart refuses the chart of an Application, and says why.
func refuseChart(app *shipper.Application, why string) error {
	of := app.Spec.Template.Chart
	return response.Invalidate(kind, app.Name, field.ErrorList{field.Invalid(chartPath, of.Name+" "+of.Version, why)})
}

// remarks are findings in some of the groups of clusters in which a chart renders to the same, each once.
type remarks struct {
	// of is the number of groups.
	of   int
	list []remark
}

// remark is a finding, with the number of groups that have it, and their clusters.
type remark struct {
	text  string
	in    int
	names []string
}

func (r *remarks) add(in render.Alike, text string) {
	at := slices.IndexFunc(r.list, func(one remark) bool { return one.text == text })
	if at < 0 {
		at, r.list = len(r.list), append(r.list, remark{text: text})
	}
	r.list[at].in++
	r.list[at].names = append(r.list[at].names, in.Names...)
}

// texts are the findings, with the names of their clusters unless all have them.
func (r *remarks) texts() []string {
	var out []string
	for _, one := range r.list {
		text := one.text
		if one.in < r.of {
			text = "in " + abridged(one.names) + ": " + text
		}
		out = append(out, text)
	}
	return out
}

// refusal is the findings as one text. What only some clusters have can be avoided there.
func (r *remarks) refusal() string {
	text, found := strings.Join(r.texts(), "; "), 0
	for _, one := range r.list {
		found += one.in
	}
	if found < r.of {
		text += "; change the chart or its values, give these clusters others by valuesPerCluster, " +
			"or choose other clusters by clusterRequirements"
	}
	return text
}
