// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// untolerated returns the taints that no toleration tolerates.
func untolerated(taints []shipper.ClusterTaint, tolerations []shipper.ClusterToleration) []shipper.ClusterTaint {
	var out []shipper.ClusterTaint
next:
	for _, taint := range taints {
		for i := range tolerations {
			if tolerates(&tolerations[i], taint) {
				continue next
			}
		}
		out = append(out, taint)
	}
	return out
}

// tolerates reports whether the toleration matches the taint, as for Pods.
func tolerates(t *shipper.ClusterToleration, taint shipper.ClusterTaint) bool {
	if t.Effect != "" && t.Effect != effectOf(taint) || t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Operator {
	case shipper.TolerationExists:
		return true
	case "", shipper.TolerationEqual:
		return t.Key != "" && t.Value == taint.Value
	default:
		return false
	}
}

// effectOf is the effect of the taint, with its default.
func effectOf(taint shipper.ClusterTaint) shipper.ClusterTaintEffect {
	return cmp.Or(taint.Effect, shipper.TaintNoSchedule)
}

// DescribeTaint is the taint as kubectl writes it: key=value:effect, or key:effect without a value.
func DescribeTaint(taint shipper.ClusterTaint) string {
	text := taint.Key
	if taint.Value != "" {
		text += "=" + taint.Value
	}
	return text + ":" + string(effectOf(taint))
}

// tainted names the taints.
func tainted(taints []shipper.ClusterTaint) string {
	texts := make([]string, len(taints))
	for i, taint := range taints {
		texts[i] = DescribeTaint(taint)
	}
	return "tainted " + listed(texts)
}

func itOrThem(taints []shipper.ClusterTaint) string {
	if len(taints) == 1 {
		return "it"
	}
	return "them"
}
