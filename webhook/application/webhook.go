// SPDX-License-Identifier: Apache-2.0

// Package application validates Applications: it pins their chart to a version, reports which Release an edit creates, and
// refuses changes that could not be rolled out or that a RolloutBlock stops.
package application

import (
	"context"
	"encoding/json"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/lots"
	"shipper.dev/shipper/chart/render"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/webhook/blockcheck"
	"shipper.dev/shipper/webhook/check"
	"shipper.dev/shipper/webhook/enumerated"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/resources"
	"shipper.dev/shipper/webhook/response"
)

const (
	kind     = "Application"
	resource = "applications"
	short    = "app"
)

// Resolver resolves and checks charts.
type Resolver interface {
	Resolve(ctx context.Context, namespace string, want shipper.Chart) (repository.Resolution, error)
	// Replicas is the number of Pods of a Release in a place at full capacity.
	Replicas(ctx context.Context, rel *shipper.Release, in render.Cluster) (int32, error)
	// Judge returns a permanent error if a Release cannot be rolled out in a cluster, and doubts to warn of.
	Judge(ctx context.Context, rel *shipper.Release, in render.Cluster) (doubts []string, err error)
	// Naming decides how the objects of the first Release of an Application are named in these clusters.
	Naming(ctx context.Context, rel *shipper.Release, clusters []render.Cluster) (shipper.ChartNaming, error)
	// Lots are what becomes of the objects of a Release that is named by Application, in a cluster.
	Lots(ctx context.Context, rel *shipper.Release, in render.Cluster) (lots.Table, error)
	// Allows is nil when charts may be fetched from the repository.
	Allows(repoURL string) error
	// Verifiable returns an error if a chart cannot be verified for a reason known without its repository; chart.ErrKeys,
	// chart.ErrProvenance.
	Verifiable(ctx context.Context, namespace string, of shipper.Chart, digest string) error
	// Refresh refreshes the index of the chart's repository for the next Resolve, if it answers.
	Refresh(ctx context.Context, namespace string, of shipper.Chart) error
}

// State has the objects related to an Application.
type State interface {
	Releases(app types.NamespacedName) ([]*shipper.Release, error)
	Clusters() []shipper.Cluster
	// Around is an Application with its own Releases, oldest first, which can choose clusters.
	Around(app string, rels []*shipper.Release) block.App
	NamespaceTerminating(namespace string) bool
	// OverridesBearing are the copies of ResourceOverrides that a Release of app would have now, with the clusters of their rules alone.
	OverridesBearing(ctx context.Context, app *shipper.Application, mandatoryAlone bool) ([]shipper.ReleaseOverride, error)
	// SequenceRunNow is a run, read from the API server; nil when there is none.
	SequenceRunNow(ctx context.Context, key types.NamespacedName) (*shipper.SequenceRun, error)
	// StrategyNow is a Strategy, read from the API server; nil when there is none. StrategiesNow are the names of some of a namespace.
	StrategyNow(ctx context.Context, key types.NamespacedName) (*shipper.Strategy, error)
	StrategiesNow(ctx context.Context, namespace string, limit int64) ([]string, error)
	// GlobalNamespace is the namespace whose Strategies all Applications may take.
	GlobalNamespace() string
}

// Webhook validates Applications.
type Webhook struct {
	BlockCheck *blockcheck.Checker
	Guard      *protected.Guard
	State      State
	Charts     Resolver
	// Sources reads valuesFrom. Nil: Applications with valuesFrom are refused.
	Sources Sources
	// Checks validates the checks that strategies name.
	Checks *check.Uses
	// Resources judges what templates place in place of a chart. Nil: Applications with resources are refused.
	Resources *resources.Judge
}

// Default checks and completes a user's write.
func (w *Webhook) Default(ctx context.Context, req *admission.Request, a *response.Response) error {
	app, old, err := response.Decode[shipper.Application](req)
	if err != nil {
		return nil // the schema refuses it with a better message
	}
	if app == nil {
		return w.BlockCheck.Early(a, req.Namespace, old.Spec.Template.Resources != nil, func(a *response.Response) error {
			return w.validateDelete(ctx, req, a, old)
		})
	}
	if err := enumerated.Check(kind, app.Name, app, old); err != nil {
		return err
	}
	if app.Namespace == "" {
		app.Namespace = req.Namespace
	}
	if err := a.Complete(req.Object.Raw, app); err != nil {
		return err
	}
	if err := w.complete(ctx, req, a, app, old); err != nil {
		return err
	}
	placed := old != nil && (app.Spec.Template.Resources != nil || old.Spec.Template.Resources != nil)
	return w.BlockCheck.Early(a, req.Namespace, placed, func(a *response.Response) error {
		return w.validateWrite(ctx, with(req, app), a, app, old)
	})
}

// with is req with app as its object, as validation will see it: blocks evaluate the object that will be stored.
func with(req *admission.Request, app *shipper.Application) *admission.Request {
	out := *req
	if raw, err := json.Marshal(app); err == nil { // it was decoded from JSON
		out.Object.Raw = raw
	}
	return &out
}

// Validate validates an object before it is stored or deleted.
func (w *Webhook) Validate(ctx context.Context, req *admission.Request, a *response.Response) error {
	app, old, err := response.Decode[shipper.Application](req)
	if err != nil {
		return err
	}
	if req.Operation == admissionv1.Delete {
		return w.validateDelete(ctx, req, a, old)
	}
	if err := w.validateWrite(ctx, req, a, app, old); err != nil {
		return err
	}
	w.describeResources(ctx, req, a, app, old)
	return nil
}

func overrider(app *shipper.Application, isNew bool) response.Overrider {
	out := response.OverriderOf(short, &app.ObjectMeta)
	out.New = isNew
	return out
}

func key(app *shipper.Application) types.NamespacedName {
	return types.NamespacedName{Namespace: app.Namespace, Name: app.Name}
}

// metaOf is the metadata of old, which is nil on creation.
func metaOf(old *shipper.Application) *metav1.ObjectMeta {
	if old == nil {
		return &metav1.ObjectMeta{}
	}
	return &old.ObjectMeta
}
