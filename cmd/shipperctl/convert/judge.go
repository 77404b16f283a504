// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/environment"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/manifests"
	"shipper.dev/shipper/outward/expression"
	"shipper.dev/shipper/webhook/check/definition"
	"shipper.dev/shipper/webhook/templatecheck"
)

// judge adds to the reviews what an API server with Shipper's schemas and webhook would refuse of the objects that were made.
func (r *result) judge(ctx context.Context) error {
	for i := range r.checks {
		one := &r.checks[i]
		if one.check == nil {
			continue
		}
		errs, err := checkErrors(ctx, one.check)
		if err != nil {
			return fmt.Errorf("validating Check %s: %w", one.check.Name, err)
		}
		if one.reviews, err = refused(one.check, "Check", one.check.Name, errs, one.reviews); err != nil {
			return err
		}
	}
	for i := range r.fleet {
		one := &r.fleet[i]
		var errs field.ErrorList
		if app, is := one.object.(*shipper.Application); is {
			errs = templatecheck.Validate(&app.Spec.Template, field.NewPath("spec", "template"))
		}
		var err error
		if one.reviews, err = refused(one.object, one.kind, one.name, errs, one.reviews); err != nil {
			return err
		}
	}
	for i := range r.yards {
		one := &r.yards[i]
		if one.shipyard == nil { // a file beside a shipyard
			continue
		}
		var err error // the rules of the webhook have been reviewed
		if one.reviews, err = refused(one.shipyard, kindOfShipyards, one.shipyard.Name, nil, one.reviews); err != nil {
			return err
		}
	}
	for i := range r.all {
		one := &r.all[i]
		errs := templatecheck.Validate(&one.app.Spec.Template, field.NewPath("spec", "template"))
		var err error
		if one.reviews, err = refused(one.app, kindOfApplications, one.app.Name, errs, one.reviews); err != nil {
			return err
		}
	}
	return nil
}

// checkErrors are those of a Check, wherever its server is: which servers are allowed, the operator of Shipper decides.
func checkErrors(ctx context.Context, check *shipper.Check) (field.ErrorList, error) {
	errs, err := definition.Validate(ctx, &check.Spec, check.Namespace, definition.Servers{All: true})
	if err != nil {
		return nil, fmt.Errorf("its definition: %w", err)
	}
	compile := func(text string) error {
		return expression.Check(ctx, text, definition.Inputs(&check.Spec), environment.NewExpressions)
	}
	more, err := definition.Expressions(ctx, &check.Spec, check.Namespace, compile)
	if err != nil {
		return nil, fmt.Errorf("its expressions: %w", err)
	}
	return append(errs, more...), nil
}

// refused adds to reviews the errors of an object, and those of its schema. A field that has a review already is left out.
func refused(object any, kind, name string, errs field.ErrorList, reviews []string) ([]string, error) {
	more, err := schemaErrors(object, kind)
	if err != nil {
		return nil, fmt.Errorf("validating %s %s: %w", kind, name, err)
	}
	report := &report{object: kind + " " + name}
	seen := map[string]bool{}
	for _, err := range append(errs, more...) {
		known := func(review string) bool { return strings.Contains(review, ": "+err.Field+": is refused: ") }
		if seen[err.Field] || slices.ContainsFunc(reviews, known) {
			continue
		}
		seen[err.Field] = true
		report.add(err.Field, "is refused: %s", err.ErrorBody())
	}
	return append(reviews, report.reviews...), nil
}

// schemaErrors are those of an object, as it is printed, by the schema of its kind.
func schemaErrors(object any, kind string) (field.ErrorList, error) {
	validators, err := schemas()
	if err != nil {
		return nil, err
	}
	text, err := manifest(object)
	if err != nil {
		return nil, err
	}
	printed, err := parse([]byte(text))
	if err != nil {
		return nil, err
	}
	return validation.ValidateCustomResource(nil, printed, validators[kind]), nil
}

// judged are the kinds that are made.
var judged = []string{"Check", kindOfClusters, kindOfEnvelopes, kindOfOverrides, kindOfShipyards, kindOfApplications}

// schemas are the validators of these kinds. They are compiled once, which takes a good part of a second.
var schemas = sync.OnceValues(func() (map[string]validation.SchemaValidator, error) {
	definitions, err := manifests.Objects(manifests.CRD)
	if err != nil {
		return nil, fmt.Errorf("reading the definitions of kinds: %w", err)
	}
	out := map[string]validation.SchemaValidator{}
	for _, d := range definitions {
		crd, internal := &apiextensionsv1.CustomResourceDefinition{}, &apiextensions.CustomResourceValidation{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.Object, crd); err != nil {
			return nil, fmt.Errorf("reading the definition %s: %w", d.GetName(), err)
		}
		kind, schema := crd.Spec.Names.Kind, crd.Spec.Versions[0].Schema
		if !slices.Contains(judged, kind) {
			continue
		}
		err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(schema, internal, nil)
		if err != nil {
			return nil, fmt.Errorf("converting the schema of %s: %w", kind, err)
		}
		if out[kind], _, err = validation.NewSchemaValidator(internal.OpenAPIV3Schema); err != nil {
			return nil, fmt.Errorf("reading the schema of %s: %w", kind, err)
		}
	}
	return out, nil
})
