// SPDX-License-Identifier: Apache-2.0

// Package authz asks the API server what a user may do beyond writing objects: override a RolloutBlock, or stamp what
// Shipper otherwise stamps. Both are verbs that administrators grant with RBAC like any other.
package authz

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Verbs of our own.
const (
	// Override on rolloutblocks allows to name the block in an override annotation.
	Override = "override"
	// Stamp on applications, releases and the kinds of targets allows to write the annotations and labels that Shipper
	// writes, and to make Releases and targets that a backup has.
	Stamp = "stamp"
)

// How long answers are kept. A right that is granted is waited for by somebody, one that is taken away is not.
const (
	allowTTL = 30 * time.Second
	denyTTL  = 2 * time.Second
)

// Authorizer tell whether a user may do verb to the object of resource (a plural of Shipper's group) and key.
type Authorizer interface {
	Allowed(
		ctx context.Context, who authenticationv1.UserInfo, verb, resource string, key types.NamespacedName,
	) (bool, error)
	// MayGet reports whether a user may get the object of resource (a plural of the core group, such as secrets) and key.
	MayGet(ctx context.Context, who authenticationv1.UserInfo, resource string, key types.NamespacedName) (bool, error)
}

// Delegated asks with SubjectAccessReviews and keeps the answers for a while.
func Delegated(client authorizationclient.AuthorizationV1Interface) (Authorizer, error) {
	config := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client,
		AllowCacheTTL:             allowTTL,
		DenyCacheTTL:              denyTTL,
		// One more try, soon: the user waits, and the whole answer has seconds.
		WebhookRetryBackoff: &wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1, Steps: 2},
	}
	a, err := config.New()
	if err != nil {
		return nil, fmt.Errorf("building authorizer: %w", err)
	}
	return From(a), nil
}

// From asks authorizer.
func From(a authorizer.Authorizer) Authorizer { return delegated{a} }

type delegated struct{ authorizer authorizer.Authorizer }

// Allowed asks the authorizer.
func (d delegated) Allowed(
	ctx context.Context, who authenticationv1.UserInfo, verb, resource string, key types.NamespacedName,
) (bool, error) {
	return d.ask(ctx, who, authorizer.AttributesRecord{
		Verb: verb, APIGroup: shipper.GroupName, APIVersion: shipper.GroupVersion.Version, Resource: resource,
		Namespace: key.Namespace, Name: key.Name,
	})
}

// MayGet asks the authorizer.
func (d delegated) MayGet(
	ctx context.Context, who authenticationv1.UserInfo, resource string, key types.NamespacedName,
) (bool, error) {
	return d.ask(ctx, who, authorizer.AttributesRecord{
		Verb: "get", APIVersion: "v1", Resource: resource, Namespace: key.Namespace, Name: key.Name,
	})
}

func (d delegated) ask(ctx context.Context, who authenticationv1.UserInfo, what authorizer.AttributesRecord) (bool, error) {
	what.User, what.ResourceRequest = userOf(who), true
	decision, _, err := d.authorizer.Authorize(ctx, what)
	if decision == authorizer.DecisionAllow {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking whether %s may %s %s %s: %w", who.Username, what.Verb, what.Resource,
			types.NamespacedName{Namespace: what.Namespace, Name: what.Name}, err)
	}
	return false, nil
}

func userOf(who authenticationv1.UserInfo) user.Info {
	extra := make(map[string][]string, len(who.Extra))
	for k, v := range who.Extra {
		extra[k] = v
	}
	return &user.DefaultInfo{Name: who.Username, UID: who.UID, Groups: who.Groups, Extra: extra}
}
