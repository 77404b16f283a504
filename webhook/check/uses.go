// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	rules "shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/outward/expression"
	"shipper.dev/shipper/webhook/check/definition"
)

const (
	// maxNamed bounds the Checks that an error offers.
	maxNamed = 10
	// maxUses bounds the different uses of Checks in one strategy, each of which has up to 5 queries parsed.
	maxUses = 100
	// maxValue bounds the value of an argument, in bytes.
	maxValue = 1024
)

// Definitions has the Checks.
type Definitions interface {
	Check(ctx context.Context, key types.NamespacedName) (*shipper.Check, error)
	Checks(namespace string) ([]*shipper.Check, error)
}

// Uses validates the checks that strategies name. A nil *Uses finds nothing wrong.
type Uses struct {
	definitions Definitions
	shared      string
	compiled    *expression.Cache
}

// NewUses returns Uses. Checks in the namespace shared may be named in all namespaces.
func NewUses(definitions Definitions, shared string) *Uses {
	return &Uses{definitions: definitions, shared: shared, compiled: expression.NewCache()}
}

// Find is the Check that a strategy in namespace names; nil when there is none or it may not be named.
func (u *Uses) Find(ctx context.Context, name, namespace string) *shipper.CheckSpec {
	if u == nil {
		return nil
	}
	key, err := rules.KeyOf(name, namespace, u.shared)
	if err != nil {
		return nil
	}
	if found, err := u.definitions.Check(ctx, key); err == nil && found != nil {
		return &found.Spec
	}
	return nil
}

// Validate returns the errors of the checks that a strategy, which is at path and otherwise valid, names in namespace. The other error is
// temporary.
func (u *Uses) Validate(
	ctx context.Context, s *shipper.RolloutStrategy, namespace string, path *field.Path,
) (field.ErrorList, error) {
	if u == nil || s == nil {
		return nil, nil
	}
	var errs field.ErrorList
	seen, p := map[string]bool{}, definition.NewParser(namespace)
	validate := func(checks []shipper.StepCheck, path *field.Path) error {
		for i, c := range checks {
			key := fmt.Sprintf("%q %q", c.Check, c.Args)
			if seen[key] {
				continue
			}
			if seen[key] = true; len(seen) > maxUses {
				errs = append(errs, field.TooMany(path, len(seen), maxUses))
				return nil
			}
			more, err := u.validate(ctx, c, namespace, path.Index(i), p)
			if err != nil {
				return err
			}
			if errs = append(errs, more...); p.Exhausted() {
				return nil
			}
		}
		return nil
	}
	for i := range s.Steps {
		if err := validate(s.Steps[i].Checks, path.Child("steps").Index(i).Child("checks")); err != nil || len(seen) > maxUses || p.Exhausted() {
			return errs, err
		}
	}
	for i, wave := range s.Waves {
		if wave.AfterTasks == nil {
			continue
		}
		at := path.Child("waves").Index(i).Child("afterTasks", "checks")
		if err := validate(wave.AfterTasks.Checks, at); err != nil || len(seen) > maxUses || p.Exhausted() {
			return errs, err
		}
	}
	return errs, validate(s.Checks, path.Child("checks"))
}

// validate returns the errors of one use of a Check.
func (u *Uses) validate(
	ctx context.Context, c shipper.StepCheck, namespace string, path *field.Path, p *definition.Parser,
) (field.ErrorList, error) {
	key, err := rules.KeyOf(c.Check, namespace, u.shared)
	if err != nil {
		return field.ErrorList{field.Invalid(path.Child("check"), c.Check, err.Error())}, nil
	}
	found, err := u.definitions.Check(ctx, key)
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return u.missing(c.Check, key, namespace, path.Child("check"))
	}
	values, errs := resolve(&found.Spec, c.Args, path.Child("args"))
	if len(errs) > 0 {
		return errs, nil
	}
	wrong, err := definition.Substituted(ctx, &found.Spec, specPath, values, p)
	if err != nil {
		return nil, err
	}
	compile := func(text string) error {
		_, err := u.compiled.Compile(ctx, text, definition.Inputs(&found.Spec))
		return err
	}
	more, err := definition.Expressions(ctx, &found.Spec, namespace, compile)
	if err != nil {
		return nil, err
	}
	for _, e := range append(wrong, more...) {
		errs = append(errs, field.Invalid(path, c.Check, fmt.Sprintf("with these arguments, %s of Check %s: %s", e.Field, key, e.Detail)))
	}
	return errs, nil
}

// missing is the error for a Check that is not there, with those that are.
func (u *Uses) missing(name string, key types.NamespacedName, namespace string, path *field.Path) (field.ErrorList, error) {
	known, err := u.definitions.Checks(key.Namespace)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(known))
	for i, c := range known {
		names[i] = c.Name
	}
	slices.Sort(names)
	if len(names) > maxNamed {
		names = append(names[:maxNamed], "…")
	}
	there := "there are none"
	if len(names) > 0 {
		there = "there are: " + strings.Join(names, ", ")
	}
	why := fmt.Sprintf("there is no Check %s in %s; %s", key.Name, key.Namespace, there)
	if u.shared != "" && key.Namespace == namespace && namespace != u.shared {
		why += fmt.Sprintf("; shared ones are named %s/NAME", u.shared)
	}
	return field.ErrorList{field.Invalid(path, name, why+"; apply the Check first")}, nil
}

// resolve returns the values of all arguments, predefined ones included, and the errors of those given at path.
func resolve(spec *shipper.CheckSpec, given map[string]string, path *field.Path) (map[string]string, field.ErrorList) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if len(given[name]) > maxValue {
			return nil, field.ErrorList{field.TooLong(path.Key(name), "", maxValue)}
		}
	}
	var errs field.ErrorList
	given = maps.Clone(given)
	for _, name := range rules.Predefined() {
		if _, is := given[name]; is {
			errs = append(errs, field.Forbidden(path.Key(name), "Shipper sets "+name+" itself: leave it out"))
			delete(given, name)
		}
	}
	values, wrong := rules.Resolve(spec.Args, given)
	for _, e := range wrong {
		if e.Missing {
			errs = append(errs, field.Required(path.Key(e.Name), e.Message))
		} else {
			errs = append(errs, field.Invalid(path.Key(e.Name), given[e.Name], e.Message))
		}
	}
	all := rules.Samples(nil)
	maps.Copy(all, values)
	return all, errs
}
