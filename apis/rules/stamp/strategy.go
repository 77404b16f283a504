// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// From names the Strategy that a template takes; nil if it takes none.
func From(env *shipper.ReleaseEnvironment) *shipper.StrategyReference {
	if env.Strategy == nil {
		return nil
	}
	return env.Strategy.From
}

// StrategyKey is the Strategy that a template in a namespace takes.
func StrategyKey(from *shipper.StrategyReference, namespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(from.Namespace, namespace), Name: from.Name}
}

// SameFrom reports whether two templates take the same Strategy, in whatever version; false if they take none.
func SameFrom(a, b *shipper.ReleaseEnvironment) bool {
	x, y := From(a), From(b)
	return x != nil && y != nil && x.Name == y.Name && x.Namespace == y.Namespace
}

// StrategyDigest is the sha256 (hex) of a strategy without from, as JSON with sorted keys: it does not depend on the order of fields.
func StrategyDigest(s shipper.RolloutStrategy) (string, error) {
	s.From = nil
	text, err := json.Marshal(s)
	var sorted any
	if err == nil {
		err = json.Unmarshal(text, &sorted)
	}
	if err == nil {
		text, err = json.Marshal(sorted)
	}
	if err != nil {
		return "", fmt.Errorf("digest of a strategy: %w", err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(text)), nil
}

// HasContent reports whether a strategy has a field besides from.
func HasContent(s *shipper.RolloutStrategy) bool {
	return s != nil && !equality.Semantic.DeepEqual(*s, shipper.RolloutStrategy{From: s.From})
}

// WithStrategy is app with what its next Release has as strategy: the content of the Strategy that it takes. It is never stored. app itself
// is not changed, and is returned if it takes none or content is nil.
func WithStrategy(app *shipper.Application, content *shipper.RolloutStrategy) *shipper.Application {
	from := From(&app.Spec.Template)
	if from == nil || content == nil {
		return app
	}
	out, filled := *app, *content
	filled.From = from
	out.Spec.Template.Strategy = &filled
	return &out
}

// KnownStrategy is the strategy of a Release of app that has taken the same version of the same Strategy; nil if there is none.
func KnownStrategy(app *shipper.Application, existing []*shipper.Release) *shipper.RolloutStrategy {
	from := From(&app.Spec.Template)
	if from == nil || from.Digest == "" {
		return nil
	}
	for _, rel := range Own(app, existing) {
		taken := From(&rel.Spec.Environment)
		if taken == nil || *taken != *from {
			continue
		}
		if digest, err := StrategyDigest(*rel.Spec.Environment.Strategy); err == nil && digest == from.Digest { // none that was changed since
			return rel.Spec.Environment.Strategy
		}
	}
	return nil
}

// sameStrategy compares strategies. Where one has no content, as in Applications, the digest in from stands for what was taken.
func sameStrategy(a, b *shipper.RolloutStrategy) bool {
	if a != nil && b != nil && a.From != nil && b.From != nil && (!HasContent(a) || !HasContent(b)) {
		return *a.From == *b.From
	}
	return equality.Semantic.DeepEqual(a, b)
}

// withoutTaken is a strategy as an Application has it: without what was taken from a Strategy.
func withoutTaken(s *shipper.RolloutStrategy) *shipper.RolloutStrategy {
	if s == nil || s.From == nil {
		return s
	}
	return &shipper.RolloutStrategy{From: s.From}
}
