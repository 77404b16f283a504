// SPDX-License-Identifier: Apache-2.0

package rolloutblock

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rules "shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/events"
	"shipper.dev/shipper/reconciler/fleet/report"
)

// maxRecords bounds the overrides with details.
const maxRecords = 100

// status says when a block is in effect, and names the objects that override it: those that name it, this very one, and that
// it bears on, if it can be overridden at all.
func status(
	b *shipper.RolloutBlock, by namers, globalNamespace string, t rules.Timing, wrong error,
) shipper.RolloutBlockStatus {
	var applications, releases overriding
	for i := range by.applications {
		applications.add(b, "Application", &by.applications[i], globalNamespace)
	}
	for i := range by.releases {
		releases.add(b, "Release", &by.releases[i], globalNamespace)
	}
	records := append(applications.sorted(), releases.sorted()...)
	out := shipper.RolloutBlockStatus{
		ObservedGeneration: b.Generation,
		Active:             ptr.To(t.Active), NextStart: moment(t.NextStart), NextEnd: moment(t.NextEnd),
		Overrides: shipper.RolloutBlockOverrides{
			Application: rules.FormatOverrides(applications.names),
			Release:     rules.FormatOverrides(releases.names),
			Records:     records[:min(len(records), maxRecords)],
		},
	}
	if wrong != nil {
		out.Message = "its schedule cannot be read: " + wrong.Error()
		if t.Active {
			out.Message = "in effect, because " + out.Message
		}
	}
	return out
}

// moment is nil for the zero time.
func moment(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t.UTC().Truncate(time.Second)}
}

// overriding are objects of one kind that override a block.
type overriding struct {
	names   []types.NamespacedName
	records []shipper.RolloutBlockOverrideRecord
}

func (o *overriding) add(b *shipper.RolloutBlock, kind string, object client.Object, globalNamespace string) {
	honoured := func(o rules.Override) bool { return o.Honoured(b) }
	if !rules.Bears(b, object.GetNamespace(), globalNamespace) ||
		!slices.ContainsFunc(rules.Overrides(object.GetAnnotations()), honoured) {
		return
	}
	name := client.ObjectKeyFromObject(object)
	o.names = append(o.names, name)
	if r, ok := rules.Recorded(rules.Records(object.GetAnnotations()), rules.Name(b)); ok {
		o.records = append(o.records, shipper.RolloutBlockOverrideRecord{
			Kind: kind, Name: name.String(), User: r.User, Time: r.Time, Reason: r.Reason,
		})
	}
}

func (o *overriding) sorted() []shipper.RolloutBlockOverrideRecord {
	slices.SortFunc(o.records, func(a, b shipper.RolloutBlockOverrideRecord) int { return strings.Compare(a.Name, b.Name) })
	return o.records
}

// changes are the events about new and removed overrides.
func changes(was, is *shipper.RolloutBlock) []report.Event {
	var out []report.Event
	before, after := was.Status.Overrides, is.Status.Overrides
	for _, c := range []struct{ kind, from, to string }{
		{"Applications", before.Application, after.Application},
		{"Releases", before.Release, after.Release},
	} {
		if c.from != c.to {
			out = append(out, report.Event{
				Type: corev1.EventTypeNormal, Reason: "RolloutBlockOverridesChanged", Action: "UpdateStatus",
				Note: fmt.Sprintf("Overriding %s: [%s] -> [%s]", c.kind, c.from, c.to),
			})
		}
	}
	for _, r := range after.Records {
		same := func(o shipper.RolloutBlockOverrideRecord) bool { return equality.Semantic.DeepEqual(o, r) }
		if !slices.ContainsFunc(before.Records, same) {
			out = append(out, overrode(r))
		}
	}
	if was.Status.Active != nil && is.Status.Active != nil && *was.Status.Active != *is.Status.Active {
		out = append(out, turned(is))
	}
	return out
}

// overrode is the event note about the user who overrode the block, and the reason.
func overrode(r shipper.RolloutBlockOverrideRecord) report.Event {
	e := report.Event{
		Type: corev1.EventTypeWarning, Reason: events.Overridden, Action: "Override for " + r.Kind + " " + r.Name,
		Note: fmt.Sprintf("%s overrides the block for %s %s", r.User, r.Kind, r.Name),
	}
	if r.Reason != "" {
		e.Note += ": " + r.Reason
	}
	return e
}

// turned reports that a block came into effect, or ceased to be.
func turned(b *shipper.RolloutBlock) report.Event {
	e := report.Event{Type: corev1.EventTypeNormal, Reason: "RolloutBlockStarted", Action: "Turn", Note: "in effect"}
	if !*b.Status.Active {
		e.Reason, e.Note = "RolloutBlockEnded", "not in effect any more"
	}
	if b.Status.NextEnd != nil {
		e.Note += ", until " + b.Status.NextEnd.UTC().Format(time.RFC3339)
	}
	if b.Status.NextStart != nil {
		e.Note += "; the next time from " + b.Status.NextStart.UTC().Format(time.RFC3339)
	}
	return e
}
