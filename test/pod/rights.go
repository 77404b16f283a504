// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/manifests"
	"shipper.dev/shipper/test/fleet"
)

// decision is the annotation in which the API server notes what its authorizer has said.
const decision = "authorization.k8s.io/decision"

// right is to do something to a resource.
type right struct{ verb, group, resource, namespace, name string }

func (r right) String() string {
	out := r.verb + " " + strings.TrimSuffix(r.resource+"."+r.group, ".")
	if r.name != "" {
		out += " " + r.name
	}
	if r.namespace != "" {
		out += " in " + r.namespace
	}
	return out
}

// Refused lists what Shipper has asked for in a cluster and had no right to, as an account of shipper-system. What it was
// allowed at another time is not listed: an API server that has just been started does not know of any right yet.
func Refused(c *fleet.Cluster, account string) ([]string, error) {
	allowed := map[right]bool{}
	err := requests(c, account, func(r right, e auditv1.Event) { allowed[r] = allowed[r] || e.Annotations[decision] != "forbid" })
	var out []string
	for r, ever := range allowed {
		if !ever {
			out = append(out, r.String())
		}
	}
	slices.Sort(out)
	return out, err
}

// reading are verbs that are worth the same. Which of them a watch begins with depends on the API server.
var reading = []string{"get", "list", "watch"}

// Unused lists the rights in the management cluster that Shipper has not made use of.
func Unused(c *fleet.Cluster) ([]string, error) {
	all := map[right]bool{}
	if err := requests(c, shipper.ManagementServiceAccount, func(r right, _ auditv1.Event) { all[r] = true }); err != nil {
		return nil, err
	}
	used := slices.Collect(maps.Keys(all))
	var out []string
	for _, kind := range []string{"ClusterRole", "Role"} {
		o, err := manifests.Object(manifests.RBAC, kind, "shipper:management-cluster")
		if err != nil {
			return nil, err
		}
		var role rbacv1.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			return nil, fmt.Errorf("reading the %s: %w", kind, err)
		}
		for _, rule := range role.Rules {
			out = append(out, unused(rule, kind == "Role", used)...)
		}
	}
	return out, nil
}

// is reports whether r is made use of by used.
func (r right) is(used right) bool {
	same := r.verb == used.verb || slices.Contains(reading, r.verb) && slices.Contains(reading, used.verb)
	return same && r.group == used.group && r.resource == used.resource &&
		(r.namespace == "" || r.namespace == used.namespace) && (r.name == "" || r.name == used.name)
}

// unused are the rights of a rule, which holds in shipper-system alone if local, that are not among used.
func unused(rule rbacv1.PolicyRule, local bool, used []right) []string {
	var out []string
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				want := right{verb: verb, group: group, resource: resource, name: strings.Join(rule.ResourceNames, ",")}
				if local {
					want.namespace = shipper.SystemNamespace
				}
				if !slices.ContainsFunc(used, want.is) {
					out = append(out, want.String())
				}
			}
		}
	}
	return out
}

// Written lists what an account of shipper-system has written to a cluster, in order, but for Leases and core events, which leading makes.
// What the API server refused is not listed: a write that was under way when a process was suspended is sent when it resumes, and
// its resourceVersion is out of date by then.
func Written(c *fleet.Cluster, account string) ([]string, error) {
	var out []string
	err := requests(c, account, func(r right, e auditv1.Event) {
		if e.ResponseStatus == nil || e.ResponseStatus.Code >= http.StatusBadRequest {
			return
		}
		if !slices.Contains(reading, r.verb) && r.resource != "leases" && (r.resource != "events" || r.group != "") {
			out = append(out, r.String())
		}
	})
	return out, err
}

// requests returns every request of an account of shipper-system about objects of a cluster.
func requests(c *fleet.Cluster, account string, tell func(right, auditv1.Event)) error {
	file, err := os.Open(c.AuditLog)
	if err != nil {
		return fmt.Errorf("reading what was asked of %s: %w", c.Name, err)
	}
	defer file.Close()
	user := serviceaccount.MakeUsername(shipper.SystemNamespace, account)
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e auditv1.Event
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.User.Username != user || e.ObjectRef == nil || e.ImpersonatedUser != nil {
			continue
		}
		resource := e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			resource += "/" + e.ObjectRef.Subresource
		}
		tell(right{e.Verb, e.ObjectRef.APIGroup, resource, e.ObjectRef.Namespace, e.ObjectRef.Name}, e)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading what was asked of %s: %w", c.Name, err)
	}
	return nil
}
