// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"net/http"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/webhook/answer"
	"shipper.dev/shipper/webhook/application"
	"shipper.dev/shipper/webhook/bounds"
	"shipper.dev/shipper/webhook/cluster"
	"shipper.dev/shipper/webhook/condition"
	"shipper.dev/shipper/webhook/control"
	"shipper.dev/shipper/webhook/facts"
	"shipper.dev/shipper/webhook/gate"
	"shipper.dev/shipper/webhook/namespace"
	"shipper.dev/shipper/webhook/release"
	"shipper.dev/shipper/webhook/rights"
	"shipper.dev/shipper/webhook/rolloutblock"
	"shipper.dev/shipper/webhook/target"
)

// Options are what the judges need.
type Options struct {
	// Facts are the objects that are known, Ready says why they are not to be relied on, if so.
	Facts *facts.Facts
	Ready func(context.Context) error
	// Rights tell what users may do beyond writing objects.
	Rights rights.Rights
	// Charts resolve constraints.
	Charts application.Resolver
	// Sources reads ConfigMaps and Secrets that hold values.
	Sources application.Sources
	// Reconciler is the user name of Shipper's reconciler.
	Reconciler string
	// Namespace is Shipper's own, which nothing is judged in. Empty: there is none.
	Namespace string
	// Registry takes the metrics.
	Registry prometheus.Registerer
	Clock    clock.PassiveClock
	Log      logr.Logger
}

// Server takes handlers by their path.
type Server interface {
	Register(path string, hook http.Handler)
}

// Setup registers everything that is served with server. This is the one list of it; manifests/webhook has the same
// paths.
func Setup(server Server, o Options) error {
	metrics, err := answer.NewMetrics(o.Registry)
	if err != nil {
		return err
	}
	conditions := condition.New()
	blocks := &gate.Gate{Blocks: o.Facts, Rights: o.Rights, Clock: o.Clock, Conditions: conditions}
	guard := &control.Guard{Rights: o.Rights, Reconciler: o.Reconciler}
	limits := bounds.New(o.Clock)
	serve := func(path string, phase answer.Phase, kind string, judge answer.Judge) *answer.Endpoint {
		endpoint := &answer.Endpoint{
			Phase: phase, Kind: kind, Judge: judge, Unwarned: o.Reconciler, Reserved: o.Namespace,
			Ready: o.Ready, Metrics: metrics, Clock: o.Clock, Log: o.Log,
		}
		server.Register(path, limits.Handler(&admission.Webhook{Handler: endpoint}))
		return endpoint
	}

	app := &application.Webhook{Gate: blocks, Guard: guard, Facts: o.Facts, Charts: o.Charts, Sources: o.Sources}
	serve("/mutate-application", answer.Mutate, "Application", app.Default)
	serve("/validate-application", answer.Validate, "Application", app.Validate)

	rel := &release.Webhook{Gate: blocks, Guard: guard, Facts: o.Facts}
	serve("/mutate-release", answer.Mutate, "Release", rel.Default)
	serve("/validate-release", answer.Validate, "Release", rel.Validate)

	for path, kind := range map[string]target.Kind{
		"/validate-installationtarget": target.Installation,
		"/validate-capacitytarget":     target.Capacity,
		"/validate-traffictarget":      target.Traffic,
	} {
		t := &target.Webhook{Kind: kind, Gate: blocks, Facts: o.Facts, Guard: guard}
		serve(path, answer.Validate, kind.Name, t.Validate)
	}

	cl := &cluster.Webhook{Facts: o.Facts}
	serve("/validate-cluster", answer.Validate, "Cluster", cl.Validate)

	ns := &namespace.Webhook{Gate: blocks, Facts: o.Facts, Ready: o.Ready}
	serve("/validate-namespace", answer.Validate, "Namespace", ns.Validate).Ready = always // it says so itself

	rb := &rolloutblock.Webhook{
		GlobalNamespace: o.Facts.GlobalNamespace(), Conditions: conditions, Clock: o.Clock, Log: o.Log,
	}
	// A block is judged by itself, and can be made whatever else is not known.
	serve("/mutate-rolloutblock", answer.Mutate, "RolloutBlock", rb.Default).Ready = always
	serve("/validate-rolloutblock", answer.Validate, "RolloutBlock", rb.Validate).Ready = always
	return nil
}

// always is ready.
func always(context.Context) error { return nil }
