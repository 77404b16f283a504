// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/rights"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/access"
	"shipper.dev/shipper/reconciler/retry"
)

// reviewsAtOnce bounds the reviews of one pass that run at the same time.
const reviewsAtOnce = 8

// asker asks the API server what users may do.
type asker struct {
	// reviews takes SubjectAccessReviews.
	reviews client.Writer
}

// permit returns a *Problem unless the user whose rights an Application has may still do what is needed.
func (a *asker) permit(ctx context.Context, app *shipper.Application, needs []rights.Need) error {
	who, ok := rights.ParseSelector(app.Annotations[shipper.AppSelectedByAnnotation])
	if !ok {
		return problemf(shipper.SelectionNotAllowed, retry.Wait, "annotation %s names no user whose rights the content could be taken with: "+
			"set annotation %s to a new value. What is placed stays", shipper.AppSelectedByAnnotation, shipper.AppResourcesRefreshAnnotation)
	}
	allowed, err := a.allowed(ctx, who, needs)
	if err != nil {
		return err
	}
	var lacks []string
	for _, n := range needs {
		if !allowed[n.Action] {
			where := "the content: "
			if n.Index >= 0 {
				where = fmt.Sprintf("spec.template.resources.select[%d]: ", n.Index)
			}
			lacks = append(lacks, where+rights.Lacks(n.Action, rights.Chooser(who.Username, app.Namespace, app.Name), who.Username))
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	return problemf(shipper.SelectionNotAllowed, retry.Recheck, "%s; or set annotation %s to a new value as a user who has the right. "+
		"What is placed stays", rights.List(lacks), shipper.AppResourcesRefreshAnnotation)
}

// allowed asks for each right once, however many selectors need it.
func (a *asker) allowed(ctx context.Context, who authenticationv1.UserInfo, needs []rights.Need) (map[rights.Action]bool, error) {
	out := map[rights.Action]bool{}
	for _, n := range needs {
		out[n.Action] = false
	}
	var actions []rights.Action
	for action := range out {
		actions = append(actions, action)
	}
	answers := make([]bool, len(actions))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(reviewsAtOnce)
	for i, action := range actions {
		group.Go(func() error {
			var err error
			answers[i], err = access.May(ctx, a.reviews, who, action)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i, action := range actions {
		out[action] = answers[i]
	}
	return out, nil
}
