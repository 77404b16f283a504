// SPDX-License-Identifier: Apache-2.0

package resourceoverride

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/override"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/response"
)

const (
	requestedBy    = shipper.OverrideRequestedByAnnotation
	earlierWriters = shipper.OverrideEarlierWritersAnnotation
)

// Default records the user who writes the spec beside those who have written it before: their approvals of a Release with it do not count.
// Other writes keep the record.
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
	delete(now.Annotations, earlierWriters)
	if text := override.RecordWriters(old, req.UserInfo.Username); text != "" {
		response.Annotate(&now.ObjectMeta, earlierWriters, text)
	}
	return nil
}

// checkAuthor refuses a write that does not record its author, or changes the record of another, unless the user may stamp.
func (w *Webhook) checkAuthor(ctx context.Context, req *admission.Request, now, old *shipper.ResourceOverride) error {
	given, user := now.Annotations[requestedBy], req.UserInfo.Username
	path := field.NewPath("metadata", "annotations")
	same := old != nil && sameSpec(now, old)
	recorded := same && given == old.Annotations[requestedBy] && now.Annotations[earlierWriters] == old.Annotations[earlierWriters]
	if err := override.CheckWriters(now); err != nil && !recorded {
		return response.Invalidate(kind, req.Name, field.ErrorList{field.Forbidden(path.Key(requestedBy), err.Error())})
	}
	if same {
		return w.guard().Check(ctx, req, protected.Override, &old.ObjectMeta, &now.ObjectMeta)
	}
	earlier := override.RecordWriters(old, user)
	if given == user && now.Annotations[earlierWriters] == earlier {
		return nil
	}
	if may, err := w.guard().MayStamp(ctx, req, protected.Override); may || err != nil {
		return err
	}
	if given == user {
		return response.Invalidate(kind, req.Name, field.ErrorList{field.Forbidden(path.Key(earlierWriters), fmt.Sprintf("must name the users "+
			"who have written the ResourceOverride before, and do not count as approvers, either: leave it out, or set it to %q", earlier))})
	}
	return response.Invalidate(kind, req.Name, field.ErrorList{field.Forbidden(path.Key(requestedBy), fmt.Sprintf("must name the author of "+
		"this write, who does not count as an approver then: leave it out, or set it to %q", user))})
}

func (w *Webhook) guard() *protected.Guard { return &protected.Guard{Authz: w.Authz} }

func sameSpec(a, b *shipper.ResourceOverride) bool {
	return equality.Semantic.DeepEqual(a.Spec, b.Spec)
}
