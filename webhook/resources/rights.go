// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"fmt"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/response"
)

// maxListed bounds the rights that a refusal lists.
const maxListed = 5

// all is every group or resource in RBAC.
const all = "*"

// need is a right that a selector or a manifest needs.
type need struct {
	authz.Action
	path *field.Path
}

// authorNeeds is what a user needs to select the items: to read what is in the Application's own namespace, and to place all else.
func (s *Selection) authorNeeds() []need {
	var out []need
	for i := range s.items {
		one := &s.items[i]
		action := authz.Action{Verb: authz.Place, Group: one.kind.Group, Resource: one.kind.Resource, Name: one.Name}
		switch {
		case !one.kind.Namespaced: // of kind Namespace, too: the right covers the content
		case one.namespace != s.namespace:
			action = placeNamespace(one.namespace)
		case one.Name != "":
			action.Verb, action.Namespace = "get", one.namespace
		default:
			action.Verb, action.Namespace = "list", one.namespace
		}
		out = append(out, need{action, one.path()})
	}
	return out
}

// placeNamespace is the right to place the content of a namespace.
func placeNamespace(name string) authz.Action {
	return authz.Action{Verb: authz.Place, Resource: "namespaces", Name: name}
}

// Permit refuses, with 403, a user who may not place what is selected. stored is true for the user in the annotation app.selected-by, whose
// rights are judged again when Shipper takes the content.
func (j *Judge) Permit(ctx context.Context, who authenticationv1.UserInfo, s *Selection, stored bool) error {
	if len(s.Late) > 0 { // an unknown kind may be one that the user may not place
		return response.Later(strings.Join(s.Late, "; "), authz.RetryAfter)
	}
	missing, err := j.missing(ctx, who, s.authorNeeds())
	if err != nil || len(missing) == 0 {
		return err
	}
	subject, remedy := "you", ""
	if stored {
		remedy = fmt.Sprintf("; or set annotation %s to a new value as a user who has the right", shipper.AppResourcesRefreshAnnotation)
		subject = fmt.Sprintf("user %q, who chose the resources of Application %s/%s,", who.Username, s.namespace, s.app)
	}
	return forbid("applications", s.app, subject, who.Username, remedy, missing)
}

// PermitStored is Permit for the reconciler, which takes the content with the rights of the user who selected it.
func (j *Judge) PermitStored(ctx context.Context, annotation string, s *Selection) error {
	who, ok := ParseSelector(annotation)
	if !ok {
		return forbidden("applications", s.app, fmt.Sprintf("annotation %s names no user whose rights the content could be taken with: "+
			"set annotation %s to a new value", shipper.AppSelectedByAnnotation, shipper.AppResourcesRefreshAnnotation), nil)
	}
	return j.Permit(ctx, who, s, true)
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

// forbid refuses for the rights that a user lacks. remedy ends the message.
func forbid(resource, name, subject, username, remedy string, missing []need) error {
	var texts []string
	var causes []metav1.StatusCause
	for i, n := range missing {
		text := lacks(n.Action, subject, username)
		causes = append(causes, metav1.StatusCause{
			Type: metav1.CauseType(shipper.SelectionNotAllowed), Field: n.path.String(), Message: text,
		})
		if i < maxListed {
			texts = append(texts, n.path.String()+": "+text)
		}
	}
	if more := len(missing) - maxListed; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return forbidden(resource, name, strings.Join(texts, "; ")+remedy, causes)
}

// Allowed refuses a pin that only asks whether the content may be taken: it may.
func Allowed(app string) error {
	const why = "this pin only asks, and is not stored: the content may be taken"
	return forbidden("applications", app, why, []metav1.StatusCause{{Type: shipper.SelectionAllowed, Message: why}})
}

// forbidden is a 403 whose cause the reconciler finds by its type.
func forbidden(resource, name, why string, causes []metav1.StatusCause) error {
	err := response.Forbid(resource, name, why)
	if refusal, ok := err.(*response.Refusal); ok { //nolint:errorlint // it was made here
		if len(causes) == 0 {
			causes = []metav1.StatusCause{{Type: metav1.CauseType(shipper.SelectionNotAllowed), Message: refusal.Status.Message}}
		}
		refusal.Status.Details.Causes = causes
	}
	return err
}

// lacks says which right a user lacks, and which commands grant it.
func lacks(what authz.Action, subject, username string) string {
	if what.Verb == authz.Place {
		return fmt.Sprintf("%s may not place %s on clusters: that needs the verb %q on it; %s", subject, what.Object(), what.Verb,
			authz.Commands(what, username))
	}
	return fmt.Sprintf("%s may not %s %s in namespace %s, and only what its author may read is placed; %s", subject, what.Verb,
		what.Object(), what.Namespace, authz.Commands(what, username))
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
