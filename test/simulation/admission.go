// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/uuid"

	"shipper.dev/shipper/test/memory"
)

// replicas are those of the webhook that run.
type replicas struct {
	mu    sync.Mutex
	all   []*replica
	asked int
}

func (rs *replicas) add(r *replica) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.all = append(rs.all, r)
}

func (rs *replicas) remove(r *replica) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.all = slices.DeleteFunc(rs.all, func(o *replica) bool { return o == r })
}

// ready counts those that are ready.
func (rs *replicas) ready() (count int) {
	rs.mu.Lock()
	all := slices.Clone(rs.all)
	rs.mu.Unlock()
	for _, r := range all {
		if r.ready(context.Background()) == nil {
			count++
		}
	}
	return count
}

// choose takes the replicas in turn that are ready, as the endpoints of their Service are.
func (rs *replicas) choose(ctx context.Context) *replica {
	rs.mu.Lock()
	rs.asked++
	all, first := slices.Clone(rs.all), rs.asked
	rs.mu.Unlock()
	for i := range all {
		if r := all[(first+i)%len(all)]; r.ready(ctx) == nil {
			return r
		}
	}
	return nil
}

// mutate is memory.Options.Mutate of the management cluster.
func (w *World) mutate(r *memory.Review) error {
	w.byEarlier(r)
	return w.review(r, admissionRules().mutating)
}

// validate is memory.Options.Review of it.
func (w *World) validate(r *memory.Review) error { return w.review(r, admissionRules().validating) }

// reviewed is memory.Options.Reviewed of it: no webhook is for a subresource.
func reviewed(k memory.Kind, subresource string) bool {
	rules := admissionRules()
	of := func(x rule) bool { return x.group == k.Group && x.resource == k.Resource }
	return subresource == "" && (slices.ContainsFunc(rules.mutating, of) || slices.ContainsFunc(rules.validating, of))
}

// review asks the webhooks of a write one after the other.
func (w *World) review(r *memory.Review, rules []rule) error {
	if w.plan.Webhooks == 0 {
		return nil
	}
	for _, rule := range rules {
		matches, err := rule.matches(r)
		if err != nil {
			return err
		}
		if !matches {
			continue
		}
		response, err := w.call(r, rule)
		switch {
		case err != nil && rule.ignore:
			continue
		case err != nil:
			return apierrors.NewInternalError(fmt.Errorf("failed calling webhook %q: %w", rule.name, err))
		case !response.Allowed:
			w.history.Note("refused", "%s %s %s %s/%s: %s", r.User.GetName(), r.Operation, r.Kind.Resource, r.Namespace, r.Name,
				response.Result.Message)
			w.laws.refused(r, response)
			return refusedBy(rule, response)
		}
		if err := patched(r, response); err != nil {
			return err
		}
	}
	return nil
}

// call sends one review to a replica.
func (w *World) call(r *memory.Review, to rule) (*admissionv1.AdmissionResponse, error) {
	ctx, cancel := context.WithTimeout(r.Request.Context(), to.timeout)
	defer cancel()
	replica := w.replicas.choose(ctx)
	if replica == nil {
		return nil, errRefused
	}
	if f, ok := w.Network.fault(replica.name, to.path, apiServer, Hang, Refuse); ok {
		if f.Kind == Refuse {
			return nil, errRefused
		}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: admissionRequest(r),
	})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+replica.name+to.path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	a := newAnswer()
	replica.ServeHTTP(a, request)
	a.begin()
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(a.buffer.Bytes(), &answer); err != nil || answer.Response == nil {
		return nil, fmt.Errorf("%s answers %d %s", to.path, a.status, a.buffer.Bytes())
	}
	return answer.Response, context.Cause(ctx)
}

// admissionRequest is a write as the API server describes it.
func admissionRequest(r *memory.Review) *admissionv1.AdmissionRequest {
	raw := func(u *unstructured.Unstructured) runtime.RawExtension {
		if u == nil {
			return runtime.RawExtension{}
		}
		out, err := json.Marshal(u.Object)
		if err != nil {
			panic(err) // it was read from JSON
		}
		return runtime.RawExtension{Raw: out}
	}
	extra := map[string]authenticationv1.ExtraValue{}
	for key, value := range r.User.GetExtra() {
		extra[key] = value
	}
	kind := metav1.GroupVersionKind{Group: r.Kind.Group, Version: r.Kind.Version, Kind: r.Kind.Kind}
	resource := metav1.GroupVersionResource{Group: r.Kind.Group, Version: r.Kind.Version, Resource: r.Kind.Resource}
	return &admissionv1.AdmissionRequest{
		UID: uuid.NewUUID(), Kind: kind, Resource: resource, RequestKind: &kind, RequestResource: &resource,
		Name: r.Name, Namespace: r.Namespace, Operation: admissionv1.Operation(r.Operation), SubResource: r.Subresource,
		UserInfo: authenticationv1.UserInfo{
			Username: r.User.GetName(), UID: r.User.GetUID(), Groups: r.User.GetGroups(), Extra: extra,
		},
		Object: raw(r.Object), OldObject: raw(r.Old), DryRun: &r.DryRun,
		Options: runtime.RawExtension{Raw: writeOptions(r)},
	}
}

// writeOptions are the options of the request, of which webhooks read fieldManager.
func writeOptions(r *memory.Review) []byte {
	kinds := map[string]string{"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}
	options := map[string]string{"apiVersion": "meta.k8s.io/v1", "kind": kinds[r.Operation]}
	if r.Request.Method == http.MethodPatch {
		options["kind"] = "PatchOptions"
	}
	if manager := r.Request.URL.Query().Get("fieldManager"); manager != "" {
		options["fieldManager"] = manager
	}
	raw, err := json.Marshal(options)
	if err != nil {
		panic(err) // of strings
	}
	return raw
}

// refusedBy is the error of a request that a webhook refuses.
func refusedBy(rule rule, response *admissionv1.AdmissionResponse) error {
	status := metav1.Status{}
	if response.Result != nil {
		status = *response.Result
	}
	status.Status = metav1.StatusFailure
	if status.Code == 0 {
		status.Code = http.StatusForbidden
	}
	if status.Reason == "" {
		status.Reason = metav1.StatusReasonForbidden
	}
	status.Message = fmt.Sprintf("admission webhook %q denied the request: %s", rule.name, status.Message)
	return &apierrors.StatusError{ErrStatus: status}
}

// patched changes the object as a mutating webhook wants it.
func patched(r *memory.Review, response *admissionv1.AdmissionResponse) error {
	if len(response.Patch) == 0 {
		return nil
	}
	if r.Object == nil {
		return errors.New("a webhook patches an object that is deleted")
	}
	patch, err := jsonpatch.DecodePatch(response.Patch)
	if err != nil {
		return err
	}
	before, err := json.Marshal(r.Object.Object)
	if err != nil {
		return err
	}
	after, err := patch.Apply(before)
	if err != nil {
		return err
	}
	r.Object = &unstructured.Unstructured{}
	return kjson.Unmarshal(after, &r.Object.Object)
}
