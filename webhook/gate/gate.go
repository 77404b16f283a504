// SPDX-License-Identifier: Apache-2.0

// Package gate holds rollouts back while a RolloutBlock is in effect, and judges the overrides that let them through.
package gate

import (
	"context"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/answer"
	"shipper.dev/shipper/webhook/rights"
)

// retryRights is when to ask again after the API server could not say what a user may do.
const retryRights = time.Second

// OverridePath is where the override annotation is.
var OverridePath = field.NewPath("metadata", "annotations").Key(shipper.RolloutBlockOverrideAnnotation)

// Blocks are the RolloutBlocks that are known.
type Blocks interface {
	Bearing(namespace string) ([]*shipper.RolloutBlock, error)
	HasBlock(ctx context.Context, key types.NamespacedName) (bool, error)
	GlobalNamespace() string
}

// Gate judges by blocks and overrides.
type Gate struct {
	Blocks Blocks
	Rights rights.Rights
	Clock  clock.PassiveClock
}

// Judge refuses a change of the object of resource (a plural) and name while a block bears on subject's namespace that
// none of overrides names. Overrides that name no bearing block do no harm here: Check has judged them when they were
// set.
func (g *Gate) Judge(
	a *answer.Answer, resource, name string, subject answer.Subject, overrides []types.NamespacedName,
) error {
	bearing, err := g.Blocks.Bearing(subject.Namespace)
	if err != nil {
		return err
	}
	v := block.Judge(bearing, overrides)
	if len(v.Overridden) > 0 {
		a.Audit(answer.AuditBlocksOverridden, block.FormatOverrides(block.Names(v.Overridden)))
	}
	if len(v.Effective) == 0 {
		return nil
	}
	a.Audit(answer.AuditBlocksMet, block.FormatOverrides(block.Names(v.Effective)))
	return answer.Refuse(resource, name, subject, v, g.Clock.Now())
}

// Check judges the overrides in annotation: it must be well-formed, and every name that is not one of before must be
// that of a RolloutBlock that bears on namespace. Names that were there before were judged when they came; if their
// blocks ended since, nobody who takes one of them out must be kept from it by the others.
func (g *Gate) Check(
	ctx context.Context, namespace, annotation string, before []types.NamespacedName,
) ([]types.NamespacedName, field.ErrorList) {
	names, err := block.ParseOverrides(annotation)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(OverridePath, annotation,
			err.Error()+"; list the blocks to override as namespace/name, separated by commas")}
	}
	var errs field.ErrorList
	for _, name := range Added(before, names) {
		if errs = append(errs, g.checkName(ctx, namespace, name)...); len(errs) > 0 {
			return names, errs
		}
	}
	return names, nil
}

func (g *Gate) checkName(ctx context.Context, namespace string, name types.NamespacedName) field.ErrorList {
	there, err := g.Blocks.HasBlock(ctx, name)
	switch {
	case err != nil:
		return field.ErrorList{field.InternalError(OverridePath, err)}
	case !there:
		return field.ErrorList{field.Invalid(OverridePath, name.String(),
			fmt.Sprintf("there is no RolloutBlock %s: take it out of the annotation", name))}
	case !block.Bears(&shipper.RolloutBlock{ObjectMeta: metaOf(name)}, namespace, g.Blocks.GlobalNamespace()):
		return field.ErrorList{field.Invalid(OverridePath, name.String(), fmt.Sprintf(
			"RolloutBlock %s does not stop rollouts in namespace %s: only blocks in that namespace and in %s do; "+
				"take it out of the annotation", name, namespace, g.Blocks.GlobalNamespace()))}
	}
	return nil
}

// Permit refuses when who may not override one of names, which were added to the object of resource (a plural) and
// name.
func (g *Gate) Permit(
	ctx context.Context, who authenticationv1.UserInfo, resource, name string, added []types.NamespacedName,
) error {
	for _, b := range added {
		allowed, err := g.Rights.Allowed(ctx, who, rights.Override, "rolloutblocks", b)
		if err != nil {
			return answer.Later(err.Error(), retryRights)
		}
		if !allowed {
			return answer.Forbid(resource, name, fmt.Sprintf(
				"user %q may not override RolloutBlock %s: "+
					"the verb %s on resource rolloutblocks.%s named %s in namespace %s is needed",
				who.Username, b, rights.Override, shipper.GroupName, b.Name, b.Namespace))
		}
	}
	return nil
}

// Dangling are those of names whose RolloutBlock is gone.
func (g *Gate) Dangling(ctx context.Context, names []types.NamespacedName) ([]types.NamespacedName, error) {
	var gone []types.NamespacedName
	for _, name := range names {
		there, err := g.Blocks.HasBlock(ctx, name)
		if err != nil {
			return nil, err
		}
		if !there {
			gone = append(gone, name)
		}
	}
	return gone, nil
}

// Overrides reads an annotation that was judged when it was written. One that is malformed nonetheless overrides
// nothing.
func Overrides(annotations map[string]string) []types.NamespacedName {
	names, err := block.ParseOverrides(annotations[shipper.RolloutBlockOverrideAnnotation])
	if err != nil {
		return nil
	}
	return names
}

// Added are those of names that were not there before.
func Added(before, names []types.NamespacedName) []types.NamespacedName {
	return slices.DeleteFunc(slices.Clone(names), func(n types.NamespacedName) bool { return slices.Contains(before, n) })
}
