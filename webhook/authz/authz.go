// SPDX-License-Identifier: Apache-2.0

// Package authz asks the API server for rights of users beyond writing objects: to override a RolloutBlock, or to write
// metadata that Shipper otherwise stamps. Both are verbs that administrators grant with RBAC.
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

	"shipper.dev/shipper/apis/rules/rights"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Verbs of Shipper.
const (
	// Override on rolloutblocks permits naming the block in an override annotation.
	Override = "override"
	// Stamp on applications, releases and the kinds of targets permits writing the annotations and labels that Shipper writes,
	// and creating Releases and targets from a backup.
	Stamp = "stamp"
	// Skip on releases permits moving a Release past the gate of a step that is not achieved.
	Skip = "skip"
	// Place is rights.Place.
	Place = rights.Place
)

// Action is rights.Action.
type Action = rights.Action

// Get is the right to get the object of resource (a plural of the core group, such as secrets) and key.
func Get(resource string, key types.NamespacedName) Action {
	return Action{Verb: "get", Resource: resource, Namespace: key.Namespace, Name: key.Name}
}

// On is a right on the object of resource (a plural of Shipper's group) and key.
func On(verb, resource string, key types.NamespacedName) Action {
	return Action{Verb: verb, Group: shipper.GroupName, Resource: resource, Namespace: key.Namespace, Name: key.Name}
}

// SecretRefused is the error of a user who names a Secret that they may not get in an object; empty if they may.
func SecretRefused(ctx context.Context, a Authorizer, who authenticationv1.UserInfo, secret types.NamespacedName) (string, error) {
	allowed, err := a.May(ctx, who, Get("secrets", secret))
	if err != nil || allowed {
		return "", err
	}
	return fmt.Sprintf("user %q may not get secrets/%s in %s: the author must be allowed to get a Secret that the object names; %s",
		who.Username, secret.Name, secret.Namespace, rights.Remedy(Get("secrets", secret), who.Username)), nil
}

// RetryAfter is the retry hint when the API server could not say what a user may do.
const RetryAfter = time.Second

// How long answers are cached. A denial is cached briefly, because a user may wait for the right to be granted.
const (
	allowTTL = 30 * time.Second
	denyTTL  = 2 * time.Second
)

// Authorizer reports whether a user may do something.
type Authorizer interface {
	May(ctx context.Context, who authenticationv1.UserInfo, what Action) (bool, error)
}

// Delegated uses SubjectAccessReviews and caches the answers for a while.
func Delegated(client authorizationclient.AuthorizationV1Interface) (Authorizer, error) {
	config := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client,
		AllowCacheTTL:             allowTTL,
		DenyCacheTTL:              denyTTL,
		// One quick retry: the user waits, and the whole review has only seconds.
		WebhookRetryBackoff: &wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1, Steps: 2},
	}
	a, err := config.New()
	if err != nil {
		return nil, fmt.Errorf("building authorizer: %w", err)
	}
	return From(a), nil
}

// From returns an Authorizer that uses a.
func From(a authorizer.Authorizer) Authorizer { return delegated{a} }

type delegated struct{ authorizer authorizer.Authorizer }

// May asks the authorizer.
func (d delegated) May(ctx context.Context, who authenticationv1.UserInfo, what Action) (bool, error) {
	decision, _, err := d.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: userOf(who), ResourceRequest: true, Verb: what.Verb, APIGroup: what.Group, APIVersion: "*", Resource: what.Resource,
		Namespace: what.Namespace, Name: what.Name,
	})
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
