// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/member/drift"
	"shipper.dev/shipper/reconciler/member/rights"
	"shipper.dev/shipper/reconciler/retry"
)

// maxRefusal bounds what an API server says in a message that says more, in bytes.
const maxRefusal = 512

// refusal is an error of an API server that refuses an object of the chart for what is in it, or by a policy of the cluster.
type refusal struct {
	error
	reason string
}

// Unwrap is the error.
func (r *refusal) Unwrap() error { return r.error }

// Classify implements retry.Classified: a policy of the cluster may change, and no event says so.
func (r *refusal) Classify() (reason string, action retry.Action) { return r.reason, retry.Recheck }

// refused is the error of a request about an object of the chart, with what was being done.
func (i *installer) refused(ctx context.Context, s step, doing string, err error) error {
	said := i.about(doing, err)
	switch {
	case rights.Denied(err) || !retry.Rejected(err):
		return said
	case s.live != nil && retry.Immutable(err):
		message := fmt.Sprintf("%s is there and cannot become what the chart says: %s%s. %s", i.called(s.item),
			retry.Within(i.discreet(err), maxRefusal), i.changedFields(ctx, s, err), remedyOf(s.item))
		return &problem{shipper.ObjectConflict, retry.Recheck, message}
	case retry.Invalid(err):
		return &refusal{said, shipper.ChartError}
	}
	return &refusal{said, shipper.ObjectRefused}
}

// remedyOf is what a user does about fields of an object that cannot change.
func remedyOf(of item) string {
	const keep = "Keep the fields that cannot change by values of the chart, or give it another name"
	switch of.Kind {
	case "Job":
		return keep + ", or make it a hook of the chart, which runs anew each time"
	case "ClusterRoleBinding", "ConfigMap", "PriorityClass", "RoleBinding", "Secret", "StorageClass":
		return keep + ", or delete it in the cluster: Shipper creates it again"
	}
	return keep
}

// mutable matches the names of fields that Kubernetes before 1.33 lists as those that can change, where others cannot.
var mutable = regexp.MustCompile(`'([A-Za-z]+)'`)

// changedFields names the fields of a specification that differ and cannot change, where the API server says only which others can.
func (i *installer) changedFields(ctx context.Context, s step, err error) string {
	_, list, found := strings.Cut(err.Error(), "spec for fields other than ")
	if !found {
		return ""
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(s.item.gvk())
	if i.member.Live().Get(ctx, s.item.key(), live) != nil {
		return "" // the next pass may say it
	}
	fields := differing(section(s.content, "spec"), section(live, "spec"), list)
	if len(fields) == 0 {
		return ""
	}
	return "; what differs is spec." + strings.Join(fields, ", spec.")
}

// differing are the fields that are wanted otherwise than they are, without those of a list of fields that can change. What is there and
// not wanted is a default of the API server.
func differing(wanted, is map[string]any, list string) []string {
	var can, out []string
	for _, match := range mutable.FindAllStringSubmatch(list, -1) {
		can = append(can, match[1])
	}
	of := func(spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	}
	for _, d := range drift.Differences(of(wanted), of(is)) {
		name := strings.TrimPrefix(d.Path[1], "f:")
		if d.Want != nil && !slices.Contains(can, name) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
