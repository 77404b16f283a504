// SPDX-License-Identifier: Apache-2.0

package response

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Phase is the phase of admission that a request is in.
type Phase string

// The phases.
const (
	Mutate   Phase = "mutate"
	Validate Phase = "validate"
)

// retryUnknown is the retry hint while the caches are not reliable.
const retryUnknown = time.Second

// Judge judges one request. It adds warnings, patches and audit annotations to a. It returns nil to admit the request, a
// *Refusal made by Invalidate, Forbid, Refuse or Later to refuse it, or any other error when it failed.
type Judge func(ctx context.Context, req *admission.Request, a *Response) error

// Endpoint serves one judge: it answers, counts, logs, and recovers from panics.
type Endpoint struct {
	Phase Phase
	Kind  string
	Judge Judge
	// Unwarned is the name of the user who gets no warnings: the reconciler would log, at each step, the warnings that the user
	// already got for the rollout. Audit annotations are the same.
	Unwarned string
	// Reserved is Shipper's own namespace, which the webhook configurations exempt: a review of it is forged.
	Reserved string
	// Ready returns an error if the caches are not reliable. Requests are then refused with a retry hint.
	Ready   func(context.Context) error
	Metrics *Metrics
	Clock   clock.PassiveClock
	Log     logr.Logger
}

var _ admission.Handler = &Endpoint{}

// Handle answers req.
func (e *Endpoint) Handle(ctx context.Context, req admission.Request) admission.Response {
	start := e.Clock.Now()
	a := &Response{}
	err := e.judge(ctx, &req, a)
	decision := Allowed
	response := admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true}}
	if err == nil {
		response.Patches, err = a.Patch()
	}
	if err != nil {
		response.Allowed = false
		refusal := refusalOf(err)
		decision = refusal.Decision
		response.Result = refusal.Status.DeepCopy()
	}
	a.Audit(AuditDecision, string(decision))
	response.AuditAnnotations = a.audit
	if req.UserInfo.Username != e.Unwarned {
		response.Warnings = a.warnings
	}
	took := e.Clock.Since(start)
	e.Metrics.observe(e.Phase, e.Kind, string(req.Operation), decision, took)
	e.log(&req, decision, response.Result, took)
	return response
}

// judge calls the judge, unless there is nothing to judge or the caches are not reliable.
func (e *Endpoint) judge(ctx context.Context, req *admission.Request, a *Response) (err error) {
	defer func() {
		if p := recover(); p != nil {
			e.Metrics.countPanic(e.Phase, e.Kind)
			e.Log.Error(fmt.Errorf("panic: %v", p), "Recovered from a panic", "kind", e.Kind, "phase", e.Phase,
				"object", klog.KRef(req.Namespace, req.Name), "stack", string(debug.Stack()))
			err = fmt.Errorf("judging this object made it panic; its log says where")
		}
	}()
	if e.Reserved != "" && (req.Namespace == e.Reserved || req.Kind.Kind == "Namespace" && req.Name == e.Reserved) {
		return Forbid(req.Resource.Resource, req.Name, fmt.Sprintf(
			"reviews of namespace %s are refused: no API server sends them, for the webhook configurations exempt that namespace", e.Reserved))
	}
	if req.SubResource != "" { // status is the reconciler's report, not a requested change
		return nil
	}
	if err := e.Ready(ctx); err != nil {
		return Later(err.Error(), retryUnknown)
	}
	return e.Judge(ctx, req, a)
}

func (e *Endpoint) log(req *admission.Request, decision Decision, status *metav1.Status, took time.Duration) {
	level := 1
	if decision != Allowed {
		level = 0
	}
	log := e.Log.V(level)
	if !log.Enabled() {
		return
	}
	message := ""
	if status != nil {
		message = status.Message
	}
	log.Info("Answered an admission request", "decision", decision, "reason", message, "phase", e.Phase,
		"kind", e.Kind, "object", klog.KRef(req.Namespace, req.Name), "operation", req.Operation,
		"user", req.UserInfo.Username, "took", took.String(), "dryRun", req.DryRun != nil && *req.DryRun, "uid", req.UID)
}
