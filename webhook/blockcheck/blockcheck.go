// SPDX-License-Identifier: Apache-2.0

// Package blockcheck refuses rollouts while a RolloutBlock is in effect, and validates the overrides that let them pass.
package blockcheck

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/block"
	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/response"
)

// maxReason bounds, in bytes, the reason for an override.
const maxReason = 1024

// OverridePath and ReasonPath are the paths of the override annotation and of its reason.
var (
	OverridePath = field.NewPath("metadata", "annotations").Key(shipper.RolloutBlockOverrideAnnotation)
	ReasonPath   = field.NewPath("metadata", "annotations").Key(shipper.RolloutBlockOverrideReasonAnnotation)
)

// Blocks reads RolloutBlocks.
type Blocks interface {
	BlocksFor(namespace string) ([]*shipper.RolloutBlock, error)
	// Block is nil when there is none.
	Block(ctx context.Context, key types.NamespacedName) (*shipper.RolloutBlock, error)
	GlobalNamespace() string
}

// Conditions evaluates matchConditions.
type Conditions interface {
	Match(ctx context.Context, req *admission.Request) func([]shipper.RolloutBlockMatchCondition) bool
}

// Checker checks changes against blocks and overrides.
type Checker struct {
	Blocks Blocks
	Authz  authz.Authorizer
	Clock  clock.PassiveClock
	// Conditions evaluates the matchConditions of blocks.
	Conditions Conditions
}

// Judge refuses a change of the object of resource (a plural) and name while a block in effect stops it and is not in
// overrides. Blocks that only warn or audit do so. It ignores overrides of other blocks: Check refused them when they were
// added.
func (g *Checker) Judge(
	a *response.Response, resource, name string, overrider response.Overrider, overrides []block.Override, c block.Change,
) error {
	v, err := g.Verdict(overrider.Namespace, overrides, c)
	if err != nil {
		return err
	}
	return g.Decide(a, resource, name, overrider, v)
}

// Decide refuses when v has an effective block, and records its other blocks.
func (g *Checker) Decide(a *response.Response, resource, name string, overrider response.Overrider, v block.Verdict) error {
	for key, blocks := range map[string][]*shipper.RolloutBlock{
		response.AuditBlocksOverridden: v.Overridden, response.AuditBlocksWarned: v.Warning,
		response.AuditBlocksAudited: v.Auditing, response.AuditBlocksMet: v.Effective,
	} {
		if len(blocks) > 0 {
			a.Audit(key, block.FormatOverrides(block.Names(blocks)))
		}
	}
	if len(v.Warning) > 0 {
		a.Warn("%s", response.WarnOfBlocks(v, g.Clock.Now()))
	}
	if len(v.Effective) == 0 {
		return nil
	}
	return response.Refuse(resource, name, overrider, v, g.Clock.Now())
}

// Early refuses, during mutation, what judge refuses because of blocks or missing rights; other errors wait for validation. In
// between, the API server evaluates Shipper's ValidatingAdmissionPolicy, whose messages say less. Without blocks it judges if placed is
// true: rights to place resources may be missing.
func (g *Checker) Early(a *response.Response, namespace string, placed bool, judge func(*response.Response) error) error {
	bearing, err := g.Blocks.BlocksFor(namespace)
	if err != nil || len(bearing) == 0 && !placed {
		return err
	}
	ahead := &response.Response{}
	err = judge(ahead)
	var refusal *response.Refusal
	if !errors.As(err, &refusal) || (refusal.Decision != response.Blocked && refusal.Decision != response.Forbidden) {
		return nil
	}
	for key, value := range ahead.AuditAnnotations() {
		a.Audit(key, value)
	}
	return err
}

// Verdict is the effect of a namespace's blocks on a change now.
func (g *Checker) Verdict(namespace string, overrides []block.Override, c block.Change) (block.Verdict, error) {
	bearing, err := g.Blocks.BlocksFor(namespace)
	if err != nil {
		return block.Verdict{}, err
	}
	return block.Judge(bearing, overrides, c, g.Clock.Now()), nil
}

// Preview warns of the next block that will stop such a change in a namespace and is not overridden.
func (g *Checker) Preview(a *response.Response, namespace string, overrides []block.Override, c block.Change) error {
	bearing, err := g.Blocks.BlocksFor(namespace)
	if err != nil {
		return err
	}
	now := g.Clock.Now()
	if b, at := block.Upcoming(bearing, overrides, c, now); b != nil {
		a.Warn(shipper.Planned+"RolloutBlock %s will stop rollouts from %s on, in %s: %s",
			block.Name(b), at.UTC().Format(time.RFC3339), duration.HumanDuration(at.Sub(now)), b.Spec.Message)
	}
	return nil
}

// Requested returns a function that reports whether a block's matchConditions match a request.
func (g *Checker) Requested(ctx context.Context, req *admission.Request) func(*shipper.RolloutBlock) bool {
	match := g.Conditions.Match(ctx, req)
	return func(b *shipper.RolloutBlock) bool { return match(b.Spec.MatchConditions) }
}

// Check validates the overrides in annotations: they must be well-formed, and every added name must be that of a RolloutBlock
// that applies to namespace, with a reason if the block requires one. Names in before were checked when they were added: a user
// can remove one of them although the blocks of others are gone.
func (g *Checker) Check(
	ctx context.Context, namespace string, annotations map[string]string, before []types.NamespacedName,
) ([]types.NamespacedName, field.ErrorList) {
	annotation := annotations[shipper.RolloutBlockOverrideAnnotation]
	reason := annotations[shipper.RolloutBlockOverrideReasonAnnotation]
	names, err := block.ParseOverrides(annotation)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(OverridePath, annotation,
			err.Error()+"; list the blocks to override as namespace/name, separated by commas")}
	}
	added := Added(before, names)
	if len(added) > 0 && len(reason) > maxReason {
		return names, field.ErrorList{field.TooLong(ReasonPath, "", maxReason)}
	}
	var errs field.ErrorList
	for _, name := range added {
		if errs = append(errs, g.checkName(ctx, namespace, name, reason)...); len(errs) > 0 {
			return names, errs
		}
	}
	return names, nil
}

// suggest adds the block of a similar name to a refusal. It names only blocks that refusals in the namespace name, too.
func (g *Checker) suggest(namespace string, name types.NamespacedName) string {
	blocks, err := g.Blocks.BlocksFor(namespace)
	if err != nil {
		return ""
	}
	nearest := placement.Nearest(name.String(), func(yield func(string) bool) {
		for _, b := range blocks {
			if !yield(b.Namespace + "/" + b.Name) {
				return
			}
		}
	})
	if nearest == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", nearest)
}

func (g *Checker) checkName(
	ctx context.Context, namespace string, name types.NamespacedName, reason string,
) field.ErrorList {
	b, err := g.Blocks.Block(ctx, name)
	switch {
	case err != nil:
		return field.ErrorList{field.InternalError(OverridePath, err)}
	case b == nil:
		return field.ErrorList{field.Invalid(OverridePath, name.String(),
			fmt.Sprintf("there is no RolloutBlock %s: take it out of the annotation", name)+g.suggest(namespace, name))}
	case !block.Bears(b, namespace, g.Blocks.GlobalNamespace()):
		return field.ErrorList{field.Invalid(OverridePath, name.String(), fmt.Sprintf(
			"RolloutBlock %s does not stop rollouts in namespace %s: only blocks in that namespace and in %s do; "+
				"take it out of the annotation", name, namespace, g.Blocks.GlobalNamespace()))}
	case b.Spec.RequireOverrideReason && strings.TrimSpace(reason) == "":
		return field.ErrorList{field.Required(ReasonPath, fmt.Sprintf(
			"RolloutBlock %s wants to know why it is overridden: say it in this annotation", name))}
	}
	return nil
}

// Permit refuses a user who may not override one of names, which were added to the object of resource (a plural) and name. The
// block's overridePolicy decides; by default the user needs the verb override on it. Permit audits what it permits.
func (g *Checker) Permit(
	ctx context.Context, a *response.Response, who authenticationv1.UserInfo, resource string, meta *metav1.ObjectMeta,
	added []types.NamespacedName,
) error {
	if len(added) == 0 {
		return nil
	}
	if err := g.permitAll(ctx, who, resource, meta.Name, added); err != nil {
		return err
	}
	a.Audit(response.AuditOverride, block.FormatOverrides(added))
	if reason := meta.Annotations[shipper.RolloutBlockOverrideReasonAnnotation]; reason != "" {
		a.Audit(response.AuditOverrideReason, reason)
	}
	return nil
}

func (g *Checker) permitAll(
	ctx context.Context, who authenticationv1.UserInfo, resource, name string, added []types.NamespacedName,
) error {
	for _, key := range added {
		b, err := g.Blocks.Block(ctx, key)
		if err != nil {
			return response.Later(err.Error(), authz.RetryAfter)
		}
		switch {
		case b == nil: // Check has refused it
		case b.Spec.OverridePolicy == shipper.RolloutBlockAnyone:
			continue
		case b.Spec.OverridePolicy == shipper.RolloutBlockNobody:
			return response.Forbid(resource, name, fmt.Sprintf("RolloutBlock %s may not be overridden (its overridePolicy is %s)",
				key, shipper.RolloutBlockNobody))
		}
		if err := g.permitOne(ctx, who, resource, name, key); err != nil {
			return err
		}
	}
	return nil
}

func (g *Checker) permitOne(
	ctx context.Context, who authenticationv1.UserInfo, resource, name string, b types.NamespacedName,
) error {
	allowed, err := g.Authz.May(ctx, who, authz.On(authz.Override, "rolloutblocks", b))
	if err != nil {
		return response.Later(err.Error(), authz.RetryAfter)
	}
	if !allowed {
		return response.Forbid(resource, name, fmt.Sprintf(
			"user %q may not override RolloutBlock %s: "+
				"the verb %s on resource rolloutblocks.%s named %s in namespace %s is needed",
			who.Username, b, authz.Override, shipper.GroupName, b.Name, b.Namespace))
	}
	return nil
}
