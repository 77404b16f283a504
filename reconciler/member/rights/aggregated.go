// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// aggregateTo begins the labels by which Kubernetes adds the rules of a ClusterRole to its roles admin, edit and view.
const aggregateTo = rbacv1.GroupName + "/aggregate-to-"

// AggregateLabel is the first label of a ClusterRole that adds its rules to a role of Kubernetes; empty if there is none.
func AggregateLabel(of map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(of)) {
		if strings.HasPrefix(key, aggregateTo) {
			return key
		}
	}
	return ""
}

// Aggregated is why the labels of a ClusterRole give its rules to subjects that no granted binding names: with them, another role of the
// cluster has its rules, too. It is empty if no role has. The API server asks for no right to do so.
func Aggregated(of map[string]string, roles []rbacv1.ClusterRole) string {
	if label := AggregateLabel(of); label != "" {
		return fmt.Sprintf("has the label %s, which adds its rules to those of another ClusterRole", label)
	}
	for i := range roles {
		rule := roles[i].AggregationRule
		if rule == nil {
			continue
		}
		if slices.ContainsFunc(rule.ClusterRoleSelectors, func(s metav1.LabelSelector) bool {
			selector, err := metav1.LabelSelectorAsSelector(&s)
			return err == nil && selector.Matches(labels.Set(of))
		}) {
			return fmt.Sprintf("has labels which add its rules to those of the ClusterRole %q", roles[i].Name)
		}
	}
	return ""
}
