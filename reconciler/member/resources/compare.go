// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	overrides "shipper.dev/shipper/chart/override"
	"shipper.dev/shipper/reconciler/fleet/report"
	"shipper.dev/shipper/reconciler/member/applyset"
	"shipper.dev/shipper/reconciler/member/drift"
	"shipper.dev/shipper/reconciler/member/survey"
	"shipper.dev/shipper/reconciler/retry"
)

// addDiff adds an object to the diff in status.
func (p *pass) addDiff(c drift.Comparison) {
	if p.out.Diff == nil {
		p.out.Diff = &shipper.InstalledDrift{}
	}
	drift.Add(p.out.Diff, c)
}

// fieldOf names an object in a status.
func (p *pass) fieldOf(e entry) shipper.DriftedField {
	out := shipper.DriftedField{APIVersion: e.APIVersion, Kind: e.Kind, Name: e.Name}
	if e.Namespace != p.Target.Namespace {
		out.Namespace = e.Namespace
	}
	return out
}

// compareForeign compares an object that is not the Application's with its manifest, unless it has not changed since that was done.
func (p *pass) compareForeign(ctx context.Context, s *item) error {
	target := client.ObjectKeyFromObject(p.Target)
	known := p.worker.diffs.Of(target, p.Name).Recall(s.want.key())
	if known.Session == p.Cluster.Session() && known.UID == s.live.UID && known.Edit == s.live.ResourceVersion &&
		known.Digest == s.want.Digest {
		s.compared = &known
		return nil
	}
	live, err := p.get(ctx, s.want)
	if err != nil {
		return err
	}
	out := drift.Comparison{
		Session: p.Cluster.Session(), UID: live.GetUID(), Edit: live.GetResourceVersion(), Digest: s.want.Digest,
	}
	managed, full, err := p.differ(ctx, manifest(s.object), live)
	if out.Problem = problemOfComparison(s.want, err); out.Problem == "" && err != nil {
		return err
	}
	out.Fields = p.fields(s.want, append(managed, full...), live)
	p.worker.diffs.Of(target, p.Name).Note(s.want.key(), out)
	s.compared, s.live = &out, metadataOf(live)
	return nil
}

// get reads a whole object from the API server.
func (p *pass) get(ctx context.Context, e entry) (*unstructured.Unstructured, error) {
	live := fromContent(map[string]any{})
	live.SetGroupVersionKind(e.gvk())
	if err := p.Cluster.Live().Get(ctx, e.name(), live); err != nil {
		return nil, fmt.Errorf("reading it: %w", err)
	}
	return live, nil
}

func metadataOf(live *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		UID: live.GetUID(), ResourceVersion: live.GetResourceVersion(), Labels: live.GetLabels(), Annotations: live.GetAnnotations(),
		DeletionTimestamp: live.GetDeletionTimestamp(),
	}}
}

// differ returns the fields of an object that a write would change, and with comparison Full those that the manifest lacks.
func (p *pass) differ(ctx context.Context, wanted, live *unstructured.Unstructured) (managed, full []drift.Difference, err error) {
	rehearsed := wanted.DeepCopy()
	drift.WithoutScaled(rehearsed, live.GetManagedFields())
	released := rehearsed.DeepCopy()
	if err := applyset.Apply(ctx, p.writer(rehearsed), rehearsed, client.ForceOwnership, client.DryRunAll); err != nil {
		return nil, nil, err
	}
	managed = drift.WithoutLaterWrites(drift.Differences(rehearsed, live), released)
	if p.how.Comparison != shipper.ComparisonFull {
		return managed, nil, nil
	}
	full = slices.DeleteFunc(asTheyStand(wanted, live), func(d drift.Difference) bool {
		return slices.ContainsFunc(managed, func(m drift.Difference) bool { return m.Text == d.Text })
	})
	return managed, full, nil
}

// asTheyStand are the differences of two objects without a dry run, apart from what the API server and Shipper add.
func asTheyStand(wanted, live *unstructured.Unstructured) []drift.Difference {
	bare := func(o *unstructured.Unstructured) *unstructured.Unstructured {
		out := objects.Normalise(o)
		unstructured.RemoveNestedField(out.Object, "metadata", "annotations", shipper.LastAppliedAnnotation)
		for _, path := range [][]string{{"metadata", "labels"}, {"metadata", "annotations"}, {"spec"}, {"data"}} {
			if m, _, err := unstructured.NestedMap(out.Object, path...); err == nil && len(m) == 0 {
				unstructured.RemoveNestedField(out.Object, path...)
			}
		}
		return out
	}
	return drift.Differences(bare(wanted), bare(live))
}

// problemOfComparison says why an object cannot be compared; empty if another try may succeed.
func problemOfComparison(e entry, err error) string {
	if retry.Rejected(err) {
		return report.Shorten(fmt.Sprintf("%s cannot be compared: %s", e.key(), retry.Within(err, survey.MaxText/2)), survey.MaxText)
	}
	return ""
}

func (p *pass) fields(e entry, list []drift.Difference, live *unstructured.Unstructured) []shipper.DriftedField {
	return drift.Fields(p.fieldOf(e), list, live.GetManagedFields(), false)
}

// reportDiff compares all objects, and writes nothing.
func (p *pass) reportDiff(ctx context.Context) error {
	all, err := p.load(ctx)
	if overrides.Failed(err) { // of this cluster alone
		return err
	}
	if err != nil {
		p.out.General = err
		return nil
	}
	each(p.worker.Parallel, len(all), func(i int) { all[i].failed = p.diffOne(ctx, all[i]) })
	var problems []error
	for _, s := range all {
		switch {
		case s.failed != nil:
			problems = append(problems, p.explain(s.want.key(), s.want.gvk(), s.failed))
		default:
			p.addDiff(*s.compared)
			if s.compared.Problem != "" {
				problems = append(problems, &problem{shipper.ObjectRefused, retry.Recheck, s.compared.Problem})
			}
		}
	}
	if p.out.Diff != nil && p.out.Diff.Objects == 0 && p.out.Diff.Message == "" {
		p.out.Diff = nil
	}
	p.pollForeign(all)
	p.out.Reason, p.out.Message = shipper.DiffReported, fmt.Sprintf("%d objects were compared and none was written", len(all))
	return together(problems)
}

// diffOne compares one object. One that is not there differs as a whole, in the field ".".
func (p *pass) diffOne(ctx context.Context, s *item) error {
	_, err := p.Cluster.Mapping(s.want.gvk())
	if err == nil {
		s.live, err = p.Cluster.LiveMetadata(ctx, s.want.gvk(), s.want.name())
	}
	switch {
	case isGone(err):
		whole := drift.Difference{Place: drift.Place{Text: "."}, Want: manifest(s.object).Object}
		s.compared = &drift.Comparison{Fields: drift.Fields(p.fieldOf(s.want), []drift.Difference{whole}, nil, false)}
		return nil
	case err != nil:
		return err
	}
	return p.compareForeign(ctx, s)
}
