// SPDX-License-Identifier: Apache-2.0

// Package ask builds admission requests for tests without an API server, and the objects and rights that the webhook finds.
package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/placement"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/webhook/authz"
	"shipper.dev/shipper/webhook/blockcheck"
	"shipper.dev/shipper/webhook/matchconditions"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/response"
	"shipper.dev/shipper/webhook/state"
)

// The users of tests.
const (
	Developer  = "dev"
	Reconciler = "system:serviceaccount:shipper-system:shipper-mgmt-cluster"
)

// Now is the current time in all tests.
var Now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Clock always returns Now.
func Clock() *testingclock.FakePassiveClock { return testingclock.NewFakePassiveClock(Now) }

// Create returns a request to create now.
func Create(user string, now client.Object) *admission.Request {
	return request(admissionv1.Create, user, now, nil)
}

// Update returns a request to replace old by now.
func Update(user string, now, old client.Object) *admission.Request {
	return request(admissionv1.Update, user, now, old)
}

// Delete returns a request to delete old.
func Delete(user string, old client.Object) *admission.Request {
	return request(admissionv1.Delete, user, nil, old)
}

func request(op admissionv1.Operation, user string, now, old client.Object) *admission.Request {
	subject := now
	if subject == nil {
		subject = old
	}
	return &admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "request", Operation: op, Namespace: subject.GetNamespace(), Name: subject.GetName(),
		UserInfo: authenticationv1.UserInfo{Username: user},
		Object:   raw(now), OldObject: raw(old),
	}}
}

func raw(o client.Object) runtime.RawExtension {
	if o == nil {
		return runtime.RawExtension{}
	}
	text, err := json.Marshal(o)
	if err != nil {
		return runtime.RawExtension{Raw: []byte(err.Error())} // does not decode, which makes the test fail
	}
	return runtime.RawExtension{Raw: text}
}

// Rights are the rights that users have, each as "user verb resource namespace/name". Asked collects those that were checked.
// A nil value fails every check.
type Rights struct {
	Granted map[string]bool
	Asked   []string
	Err     error
	lock    sync.Mutex // rights are asked for side by side
}

// Grant returns the rights listed, and no others.
func Grant(rights ...string) *Rights {
	r := &Rights{Granted: map[string]bool{}}
	for _, g := range rights {
		r.Granted[g] = true
	}
	return r
}

// May is webhook/authz.Authorizer. The right is listed with a group that is not Shipper's, as in
// `ann place clusterroles.rbac.authorization.k8s.io /admin`.
func (r *Rights) May(_ context.Context, who authenticationv1.UserInfo, what authz.Action) (bool, error) {
	resource := schema.GroupResource{Group: strings.TrimPrefix(what.Group, shipper.GroupName), Resource: what.Resource}.String()
	asked := fmt.Sprintf("%s %s %s %s", who.Username, what.Verb, resource, types.NamespacedName{Namespace: what.Namespace, Name: what.Name})
	r.lock.Lock()
	defer r.lock.Unlock()
	r.Asked = append(r.Asked, asked)
	return r.Granted[asked], r.Err
}

// World has the objects and rights that the webhook finds in a test.
type World struct {
	Indexers   state.Indexers
	State      *state.Reader
	Authz      *Rights
	BlockCheck *blockcheck.Checker
	Guard      *protected.Guard
}

// Know returns a World with objects and rights. Blocks in namespace `global` are global.
func Know(t testing.TB, rights *Rights, objects ...client.Object) *World {
	t.Helper()
	w := &World{Indexers: state.NewIndexers(), Authz: rights}
	w.State = state.New(w.Indexers, nil, "global")
	w.State.SetUnhealthyAfter(placement.DefaultUnhealthyAfter, Clock())
	w.BlockCheck = &blockcheck.Checker{Blocks: w.State, Authz: rights, Clock: Clock(), Conditions: matchconditions.New()}
	w.Guard = &protected.Guard{Authz: rights, Reconciler: Reconciler}
	for _, o := range objects {
		if err := w.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// Add makes o visible to the webhook.
func (w *World) Add(o client.Object) error {
	switch o := o.(type) {
	case *shipper.RolloutBlock:
		return w.Indexers.Blocks.Add(o)
	case *shipper.Release:
		return w.Indexers.Releases.Add(o)
	case *shipper.Check:
		return w.Indexers.Checks.Add(o)
	case *shipper.Shipyard:
		return w.Indexers.Shipyards.Add(o)
	case *shipper.SequenceRun:
		return w.Indexers.Runs.Add(o)
	case *shipper.Cluster:
		return w.Indexers.Clusters.Add(o)
	case *shipper.Application:
		return w.Indexers.Applications.Add(&metav1.PartialObjectMetadata{ObjectMeta: o.ObjectMeta})
	case *metav1.PartialObjectMetadata:
		return w.Indexers.Namespaces.Add(o)
	}
	return fmt.Errorf("there is no lister for objects of type %T", o)
}

// Patched applies the patch of a response to the raw object of the request, so that unpatched fields survive, and decodes the
// result.
func Patched[T any](t testing.TB, req *admission.Request, a *response.Response) *T {
	t.Helper()
	text := req.Object.Raw
	operations, err := a.Patch()
	if err != nil {
		t.Fatal(err)
	}
	if len(operations) > 0 {
		ops, err := json.Marshal(operations)
		if err != nil {
			t.Fatal(err)
		}
		patch, err := jsonpatch.DecodePatch(ops)
		if err != nil {
			t.Fatal(err)
		}
		if text, err = patch.Apply(text); err != nil {
			t.Fatalf("applying %s to %s: %v", ops, req.Object.Raw, err)
		}
	}
	out := new(T)
	if err := json.Unmarshal(text, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// CheckRefusal fails unless err is a refusal with this decision and message. An empty decision requires that err is nil.
func CheckRefusal(t testing.TB, err error, decision response.Decision, message string) {
	t.Helper()
	if decision == "" {
		if err != nil {
			t.Fatalf("refused: %v", err)
		}
		return
	}
	var refusal *response.Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("got %v, want a refusal", err)
	}
	if diff := cmp.Diff(message, refusal.Status.Message); diff != "" || refusal.Decision != decision {
		t.Fatalf("%s, want %s (-want +got):\n%s", refusal.Decision, decision, diff)
	}
}
