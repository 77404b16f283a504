// SPDX-License-Identifier: Apache-2.0

package resourceoverride

import (
	"context"
	"fmt"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/override"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/response"
)

const requestedBy = shipper.OverrideRequestedByAnnotation

// Default records the user who writes the spec, whose approval of a Release with it does not count. Other writes keep the record.
func (w *Webhook) Default(ctx context.Context, req *admission.Request, a *response.Response) error {
	now, old, err := response.Decode[shipper.ResourceOverride](req)
	if err != nil {
		return err
	}
	if err := a.Complete(req.Object.Raw, now); err != nil {
		return err
	}
	switch {
	case old == nil:
		if err := w.guard().Ignore(ctx, req, a, protected.Override, &now.ObjectMeta); err != nil {
			return err
		}
		if now.Annotations[requestedBy] != "" { // restored by a user who may
			return nil
		}
	case sameSpec(now, old):
		return w.guard().Keep(ctx, req, a, protected.Override, &old.ObjectMeta, &now.ObjectMeta)
	}
	response.Annotate(&now.ObjectMeta, requestedBy, req.UserInfo.Username)
	return nil
}

// checkAuthor refuses a write that does not record its author, or changes the record of another, unless the user may stamp.
func (w *Webhook) checkAuthor(ctx context.Context, req *admission.Request, now, old *shipper.ResourceOverride) error {
	given, user := now.Annotations[requestedBy], req.UserInfo.Username
	same := old != nil && sameSpec(now, old)
	if utf8.RuneCountInString(given) > override.MaxAuthor && (!same || given != old.Annotations[requestedBy]) {
		return response.Invalidate(kind, req.Name, field.ErrorList{field.Forbidden(
			field.NewPath("metadata", "annotations").Key(requestedBy), fmt.Sprintf("each Release copies the author's name, in at most %d "+
				"characters: write it as a user with a shorter name, such as a ServiceAccount", override.MaxAuthor),
		)})
	}
	if same {
		return w.guard().Check(ctx, req, protected.Override, &old.ObjectMeta, &now.ObjectMeta)
	}
	if given == user {
		return nil
	}
	if may, err := w.guard().MayStamp(ctx, req, protected.Override); may || err != nil {
		return err
	}
	return response.Invalidate(kind, req.Name, field.ErrorList{field.Forbidden(
		field.NewPath("metadata", "annotations").Key(requestedBy), fmt.Sprintf("must name the author of this write, who does not count as an "+
			"approver then: leave it out, or set it to %q", user),
	)})
}

func (w *Webhook) guard() *protected.Guard { return &protected.Guard{Authz: w.Authz} }

func sameSpec(a, b *shipper.ResourceOverride) bool {
	return equality.Semantic.DeepEqual(a.Spec, b.Spec)
}
