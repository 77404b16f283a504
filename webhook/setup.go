// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/placement"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/outward"
	"shipper.dev/shipper/webhook/application"
	"shipper.dev/shipper/webhook/approval"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/blockcheck"
	"shipper.dev/shipper/webhook/bounds"
	"shipper.dev/shipper/webhook/check"
	"shipper.dev/shipper/webhook/cluster"
	"shipper.dev/shipper/webhook/enumerated"
	"shipper.dev/shipper/webhook/envelope"
	"shipper.dev/shipper/webhook/matchconditions"
	"shipper.dev/shipper/webhook/namespace"
	"shipper.dev/shipper/webhook/notification"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/release"
	"shipper.dev/shipper/webhook/resourceoverride"
	"shipper.dev/shipper/webhook/resources"
	"shipper.dev/shipper/webhook/response"
	"shipper.dev/shipper/webhook/rolloutblock"
	"shipper.dev/shipper/webhook/sequencerun"
	"shipper.dev/shipper/webhook/shipyard"
	"shipper.dev/shipper/webhook/snapshot"
	"shipper.dev/shipper/webhook/state"
	"shipper.dev/shipper/webhook/strategy"
	"shipper.dev/shipper/webhook/target"
)

// Options configure the webhooks.
type Options struct {
	// State has the cached objects; Ready returns an error if they are not reliable.
	State *state.Reader
	Ready func(context.Context) error
	// Authz checks rights of users beyond writing objects.
	Authz authz.Authorizer
	// Charts resolves constraints.
	Charts application.Resolver
	// Sources reads ConfigMaps and Secrets with values.
	Sources application.Sources
	// Kinds finds the kinds that Applications and Envelopes place, and Placeable is the operator's policy.
	Kinds     resources.Kinds
	Placeable objects.Policy
	// Reconciler is the user name of Shipper's reconciler.
	Reconciler string
	// Outgoing is the policy for servers that Checks and Clusters name. Nil: no URL is listed.
	Outgoing *outward.Policy
	// SharedChecks is the namespace with the Checks that all namespaces share. Empty: there is none.
	SharedChecks string
	// UnhealthyAfter is how long a cluster may be not ready and still be chosen by placements. 0: placement.DefaultUnhealthyAfter.
	UnhealthyAfter time.Duration
	// Namespace is Shipper's own, in which reviews are refused. Empty: there is none.
	Namespace string
	// Registry registers the metrics.
	Registry prometheus.Registerer
	Clock    clock.PassiveClock
	Log      logr.Logger
}

// Server registers handlers by path.
type Server interface {
	Register(path string, hook http.Handler)
}

// register serves what judges requests of a kind at a path.
type register func(path string, phase response.Phase, kind string, judge response.Judge) *response.Endpoint

// Setup registers all webhooks with server. manifests/webhook has the same paths.
func Setup(server Server, o Options) error {
	o.State.SetUnhealthyAfter(cmp.Or(o.UnhealthyAfter, placement.DefaultUnhealthyAfter), o.Clock)
	metrics, err := response.NewMetrics(o.Registry)
	if err = errors.Join(err, enumerated.Prepare()); err != nil {
		return err
	}
	conditions := matchconditions.New()
	blocks := &blockcheck.Checker{Blocks: o.State, Authz: o.Authz, Clock: o.Clock, Conditions: conditions}
	guard := &protected.Guard{Authz: o.Authz, Reconciler: o.Reconciler}
	limits := bounds.New(o.Clock)
	var serve register = func(path string, phase response.Phase, kind string, judge response.Judge) *response.Endpoint {
		endpoint := &response.Endpoint{
			Phase: phase, Kind: kind, Judge: judge, Unwarned: o.Reconciler, Reserved: o.Namespace,
			Ready: o.Ready, Metrics: metrics, Clock: o.Clock, Log: o.Log,
		}
		server.Register(path, limits.Handler(&admission.Webhook{Handler: endpoint}))
		return endpoint
	}

	uses := check.NewUses(o.State, o.SharedChecks)
	placed := &resources.Judge{Authz: o.Authz, Kinds: o.Kinds, Policy: o.Placeable, Reconciler: o.Reconciler}
	app := &application.Webhook{
		BlockCheck: blocks, Guard: guard, State: o.State, Charts: o.Charts, Sources: o.Sources, Checks: uses, Resources: placed,
	}
	serve("/mutate-application", response.Mutate, "Application", app.Default)
	serve("/validate-application", response.Validate, "Application", app.Validate)

	rel := &release.Webhook{BlockCheck: blocks, Guard: guard, State: o.State, Checks: uses, Resources: placed}
	serve("/mutate-release", response.Mutate, "Release", rel.Default)
	serve("/validate-release", response.Validate, "Release", rel.Validate)

	serveTargets(serve, target.Webhook{BlockCheck: blocks, State: o.State, Guard: guard})

	ap := &approval.Webhook{State: o.State, Clock: o.Clock, Reconciler: o.Reconciler}
	serve("/mutate-approval", response.Mutate, "Approval", ap.Default)
	serve("/validate-approval", response.Validate, "Approval", ap.Validate)

	serveShipyards(serve, o, blocks, guard)

	cl := &cluster.Webhook{State: o.State, Outgoing: o.Outgoing}
	serve("/validate-cluster", response.Validate, "Cluster", cl.Validate)

	ns := &namespace.Webhook{BlockCheck: blocks, State: o.State, Ready: o.Ready}
	serve("/validate-namespace", response.Validate, "Namespace", ns.Validate).Ready = always // it checks that itself

	serveBlocks(serve, o, conditions)

	chk := &check.Webhook{State: o.State, Authz: o.Authz, Outgoing: o.Outgoing, Shared: o.SharedChecks}
	serve("/validate-check", response.Validate, "Check", chk.Validate)

	serveResources(serve, placed, guard)

	ro := &resourceoverride.Webhook{Authz: o.Authz, GlobalNamespace: o.State.GlobalNamespace(), State: o.State, Charts: o.Charts}
	serve("/mutate-resourceoverride", response.Mutate, "ResourceOverride", ro.Default).Ready = always
	serve("/validate-resourceoverride", response.Validate, "ResourceOverride", ro.Validate).Ready = always // it needs no other objects

	str := &strategy.Webhook{State: o.State}
	serve("/validate-strategy", response.Validate, "Strategy", str.Validate)

	ntf := &notification.Webhook{Authz: o.Authz}
	serve("/validate-notification", response.Validate, "Notification", ntf.Validate).Ready = always // it needs no other objects
	return nil
}

// serveBlocks serves the webhooks of RolloutBlocks, which need no other objects and can always be created.
func serveBlocks(serve register, o Options, conditions *matchconditions.Conditions) {
	rb := &rolloutblock.Webhook{
		GlobalNamespace: o.State.GlobalNamespace(), Conditions: conditions, Clusters: o.State.Clusters, Clock: o.Clock, Log: o.Log,
	}
	serve("/mutate-rolloutblock", response.Mutate, "RolloutBlock", rb.Default).Ready = always
	serve("/validate-rolloutblock", response.Validate, "RolloutBlock", rb.Validate).Ready = always
}

// serveTargets serves the webhooks of all targets, which differ in the kind.
func serveTargets(serve register, webhook target.Webhook) {
	for path, kind := range map[string]target.Kind{
		"/validate-installationtarget": target.Installation,
		"/validate-capacitytarget":     target.Capacity,
		"/validate-traffictarget":      target.Traffic,
		"/validate-checktarget":        target.Check,
	} {
		t := webhook
		t.Kind = kind
		serve(path, response.Validate, kind.Name, t.Validate)
	}
}

// serveShipyards serves the webhooks of Shipyards and their runs.
func serveShipyards(serve register, o Options, blocks *blockcheck.Checker, guard *protected.Guard) {
	yard := &shipyard.Webhook{State: o.State, Authz: o.Authz, Reconciler: o.Reconciler}
	serve("/validate-shipyard", response.Validate, "Shipyard", yard.Validate)

	run := &sequencerun.Webhook{State: o.State, BlockCheck: blocks, Guard: guard, Charts: o.Charts, Authz: o.Authz, Clock: o.Clock}
	serve("/mutate-sequencerun", response.Mutate, "SequenceRun", run.Default)
	serve("/validate-sequencerun", response.Validate, "SequenceRun", run.Validate)
}

// serveResources serves the webhooks of what Applications with resources have beside them. They need no other objects.
func serveResources(serve register, placed *resources.Judge, guard *protected.Guard) {
	env := &envelope.Webhook{Resources: placed}
	serve("/validate-envelope", response.Validate, "Envelope", env.Validate).Ready = always

	snap := &snapshot.Webhook{Guard: guard}
	serve("/validate-resourcesnapshot", response.Validate, "ResourceSnapshot", snap.Validate).Ready = always
}

// always is ready.
func always(context.Context) error { return nil }
