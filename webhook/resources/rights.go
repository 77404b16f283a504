// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"shipper.dev/shipper/apis/rules/rights"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/response"
)

// all is every group or resource in RBAC.
const all = "*"

// need is a right that a selector or a manifest needs.
type need struct {
	authz.Action
	path *field.Path
}

// authorNeeds is what a user needs to select the items.
func (s *Selection) authorNeeds() []need {
	selected := make([]rights.Selected, len(s.items))
	for i := range s.items {
		selected[i] = s.items[i].selected()
	}
	var out []need
	for _, n := range rights.ToPlace(s.namespace, selected) {
		out = append(out, need{n.Action, Path.Index(n.Index)})
	}
	for _, what := range s.Content {
		out = append(out, need{what, Path})
	}
	return out
}

// selected is the item as rights judge it.
func (i *item) selected() rights.Selected {
	return rights.Selected{
		Index: i.index, Group: i.kind.Group, Resource: i.kind.Resource, Namespaced: i.kind.Namespaced, Namespace: i.namespace, Name: i.Name,
	}
}

// Use is a request to do something with what is selected: to place it, to place it otherwise, or to remove it.
type Use struct {
	Who authenticationv1.UserInfo
	// Resource and Name are those of the object that the request writes, such as applications.
	Resource, Name string
	// What the request does, for a refusal: `deleting it removes what it has placed`. Empty: it selects.
	What string
	// SelectedBy is the annotation app.selected-by before the request; empty if there is none.
	SelectedBy string
}

// Permit refuses, with 403, a user who may not place all that is selected.
func (j *Judge) Permit(ctx context.Context, use Use, selections ...*Selection) error {
	var needs []need
	for _, s := range selections {
		if len(s.Late) > 0 { // an unknown kind may be one that the user may not place
			return response.Later(strings.Join(s.Late, "; "), authz.RetryAfter)
		}
		for _, n := range s.authorNeeds() {
			if !slices.ContainsFunc(needs, func(other need) bool { return other.Action == n.Action }) {
				needs = append(needs, n)
			}
		}
	}
	missing, err := j.missing(ctx, use.Who, needs)
	if err != nil || len(missing) == 0 {
		return err
	}
	return use.forbid(missing)
}

// missing are the needs that a user has no right for.
func (j *Judge) missing(ctx context.Context, who authenticationv1.UserInfo, needs []need) ([]need, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	// Each right is asked for once, however many selectors need it.
	index, distinct := map[authz.Action]int{}, []authz.Action(nil)
	for _, n := range needs {
		if _, there := index[n.Action]; !there {
			index[n.Action] = len(distinct)
			distinct = append(distinct, n.Action)
		}
	}
	allowed, errs := make([]bool, len(distinct)), make([]error, len(distinct))
	each(len(distinct), func(i int) { allowed[i], errs[i] = j.Authz.May(ctx, who, distinct[i]) })
	for _, err := range errs {
		if err != nil {
			return nil, response.Later(err.Error(), authz.RetryAfter)
		}
	}
	var out []need
	for _, n := range needs {
		if !allowed[index[n.Action]] {
			out = append(out, n)
		}
	}
	return out, nil
}

// each calls f for 0 to n-1, atOnce at a time.
func each(n int, f func(i int)) {
	slots := make(chan struct{}, atOnce)
	var wait sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
	wait.Wait()
}

// forbid refuses for the rights that a user lacks.
func (u Use) forbid(missing []need) error {
	texts, causes := make([]string, len(missing)), make([]metav1.StatusCause, len(missing))
	for i, n := range missing {
		text := rights.Lacks(n.Action, "you", u.Who.Username)
		if n.path == Path {
			text = "an Envelope has objects of others: " + text
		}
		texts[i] = n.path.String() + ": " + text
		causes[i] = metav1.StatusCause{Type: metav1.CauseType(shipper.SelectionNotAllowed), Field: n.path.String(), Message: text}
	}
	message := rights.List(texts)
	if u.What != "" {
		message = u.What + ": " + message
	}
	if by, ok := rights.ParseSelector(u.SelectedBy); ok && by.Username != u.Who.Username {
		message += "; " + rights.Could(missing[0].Action, by.Username)
	}
	err := response.Forbid(u.Resource, u.Name, message)
	if refusal, ok := err.(*response.Refusal); ok { //nolint:errorlint // it was made here
		refusal.Status.Details.Causes = causes
	}
	return err
}

// shipperNeeds is what Shipper needs to read the items.
func (s *Selection) shipperNeeds() []need {
	var out []need
	for i := range s.items {
		one := &s.items[i]
		out = append(out, need{authz.Action{
			Verb: "list", Group: one.kind.Group, Resource: one.kind.Resource, Namespace: one.namespace,
		}, one.path()})
		if one.hasContent() {
			// Namespaces by labels come and go: Shipper has to read all of them.
			out = append(out, need{authz.Action{Verb: "list", Group: all, Resource: all, Namespace: one.Name}, one.path()})
		}
	}
	return out
}

// Readable refuses selectors of what Shipper may not read.
func (j *Judge) Readable(ctx context.Context, s *Selection) (field.ErrorList, error) {
	missing, err := j.missing(ctx, j.reconciler(), s.shipperNeeds())
	var errs field.ErrorList
	for _, n := range missing {
		errs = append(errs, field.Forbidden(n.path, j.unreadable(n.Action)))
	}
	return errs, err
}

// reconciler is Shipper's reconciler as the API server authenticates it.
func (j *Judge) reconciler() authenticationv1.UserInfo {
	groups := []string{user.AllAuthenticated}
	if namespace, _, err := serviceaccount.SplitUsername(j.Reconciler); err == nil {
		groups = append(serviceaccount.MakeGroupNames(namespace), groups...)
	}
	return authenticationv1.UserInfo{Username: j.Reconciler, Groups: groups}
}

// unreadable says what Shipper may not read, and the command that lets it.
func (j *Judge) unreadable(what authz.Action) string {
	object := schema.GroupResource{Group: what.Group, Resource: what.Resource}.String()
	if what.Resource == all {
		object = "all kinds"
	}
	subject := "--user=" + j.Reconciler
	if namespace, name, err := serviceaccount.SplitUsername(j.Reconciler); err == nil {
		subject = "--serviceaccount=" + namespace + ":" + name
	}
	if what.Namespace == "" {
		return fmt.Sprintf("Shipper may not read %s in all namespaces; kubectl create clusterrolebinding %s --clusterrole=%s %s",
			object, shipper.ResourceSelectorRole, shipper.ResourceSelectorRole, subject)
	}
	// Whether there is such a namespace is not said: who may not read it need not know.
	return fmt.Sprintf("Shipper may not read %s in namespace %s, or there is none of that name; kubectl -n %s create rolebinding %s "+
		"--clusterrole=%s %s",
		object, what.Namespace, what.Namespace, shipper.ResourceSelectorRole, shipper.ResourceSelectorRole, subject)
}
