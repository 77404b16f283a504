// SPDX-License-Identifier: Apache-2.0

// Package application judges Applications: it pins their chart to a version, says which Release an edit makes, and lets
// nothing through that could not be rolled out or that a RolloutBlock holds back.
package application

import (
	"context"
	"encoding/json"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/webhook/blockcheck"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/response"
)

const (
	kind     = "Application"
	resource = "applications"
	short    = "app"
)

// Resolver knows which version of a chart a constraint means.
type Resolver interface {
	Resolve(ctx context.Context, namespace string, want shipper.Chart) (chart.Resolution, error)
	// Replicas is how many Pods a Release has in a place when all of it runs.
	Replicas(ctx context.Context, rel *shipper.Release, in chart.Place) (int32, error)
	// Judge says why no cluster can run a Release in a place, by an error that is not to be tried again, and what is doubtful about it.
	Judge(ctx context.Context, rel *shipper.Release, in chart.Place) (doubts []string, err error)
	// Allows is nil when charts may be fetched from the repository.
	Allows(repoURL string) error
	// Verifiable says what keeps a chart from being verified that is known without its repository; chart.ErrKeys, chart.ErrProvenance.
	Verifiable(ctx context.Context, namespace string, of shipper.Chart, digest string) error
	// Refresh makes the next Resolve know what the chart's repository has now, if it can be asked.
	Refresh(ctx context.Context, namespace string, of shipper.Chart) error
}

// State are what is known of the objects around an Application.
type State interface {
	Releases(app types.NamespacedName) ([]*shipper.Release, error)
	Clusters() []shipper.Cluster
	NamespaceTerminating(namespace string) bool
}

// Webhook judges Applications.
type Webhook struct {
	BlockCheck *blockcheck.Checker
	Guard      *protected.Guard
	State      State
	Charts     Resolver
	// Sources reads what valuesFrom names. Nil: Applications that name something are refused.
	Sources Sources
}

// Default judges and completes what a user sent.
func (w *Webhook) Default(ctx context.Context, req *admission.Request, a *response.Response) error {
	app, old, err := response.Decode[shipper.Application](req)
	if err != nil {
		return nil // the schema refuses it in better words
	}
	if app == nil {
		return w.BlockCheck.Early(a, req.Namespace, func(a *response.Response) error { return w.validateDelete(ctx, req, a, old) })
	}
	if err := w.complete(ctx, req, a, app, old); err != nil {
		return err
	}
	completed := len(a.Patch()) > 0
	return w.BlockCheck.Early(a, req.Namespace, func(a *response.Response) error {
		if completed {
			req = with(req, app)
		}
		return w.validateWrite(ctx, req, a, app, old)
	})
}

// with is req as it will be asked to validate app: what blocks ask of a request they ask of what is to be stored.
func with(req *admission.Request, app *shipper.Application) *admission.Request {
	out := *req
	if raw, err := json.Marshal(app); err == nil { // it was JSON before
		out.Object.Raw = raw
	}
	return &out
}

// Validate judges what is about to be stored or deleted.
func (w *Webhook) Validate(ctx context.Context, req *admission.Request, a *response.Response) error {
	app, old, err := response.Decode[shipper.Application](req)
	if err != nil {
		return err
	}
	if req.Operation == admissionv1.Delete {
		return w.validateDelete(ctx, req, a, old)
	}
	return w.validateWrite(ctx, req, a, app, old)
}

func subject(app *shipper.Application, isNew bool) response.Subject {
	out := response.SubjectOf(short, &app.ObjectMeta)
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
