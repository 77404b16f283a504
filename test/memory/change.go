// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// change carries out a write, and returns the object as it is afterwards.
func (s *Server) change(c call) (status int, raw []byte, err error) {
	body, err := io.ReadAll(c.request.Body)
	if err != nil {
		return 0, nil, apierrors.NewBadRequest(err.Error())
	}
	for range attempts {
		s.mu.Lock()
		w, err := s.prepare(c, body)
		s.mu.Unlock()
		if err == nil {
			err = s.review(c, w)
		}
		if err != nil {
			return 0, nil, err
		}
		raw, err := s.commit(c, w)
		if !errors.Is(err, errChanged) {
			return w.status, raw, err
		}
	}
	return 0, nil, apierrors.NewConflict(c.resource(), c.name, errors.New(modified))
}

// modified is the message of a real API server.
const modified = "the object has been modified; please apply your changes to the latest version and try again"

// attempts is how often a write is computed again because the stored object changed during its review; a real API server gives up, too.
const attempts = 5

// errChanged says that the stored object is not the one a write was computed from.
var errChanged = errors.New("the stored object has changed")

// pending is a write that is computed, but not stored.
type pending struct {
	operation string // CREATE, UPDATE or DELETE
	status    int    // of the response
	seen      *object
	u         *unstructured.Unstructured // the object to be stored; nil when it is deleted
	body      []byte
}

// prepare computes a write. The server's mutex is held.
func (s *Server) prepare(c call, body []byte) (*pending, error) {
	w := &pending{operation: "UPDATE", status: http.StatusOK, seen: c.get(c.namespace, c.name), body: body}
	method := c.request.Method
	kind, _, _ := mime.ParseMediaType(c.request.Header.Get("Content-Type")) // none: no patch
	var err error
	switch {
	case method == http.MethodPost && c.name == "":
		if w.u, err = decode(kind, body); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		w.operation, w.status = "CREATE", http.StatusCreated
		w.u.SetNamespace(c.namespace)
		w.u.SetAPIVersion(c.kind.groupVersion())
		w.u.SetKind(c.kind.Kind)
	case method == http.MethodPatch && types.PatchType(kind) == types.ApplyYAMLPatchType:
		if w.seen == nil {
			w.operation, w.status = "CREATE", http.StatusCreated
		}
		w.u, err = s.applied(c, w.seen, body)
	case w.seen == nil:
		return nil, apierrors.NewNotFound(c.resource(), c.name)
	case method == http.MethodDelete:
		w.operation = "DELETE"
	case method == http.MethodPut:
		if w.u, err = decode(kind, body); err != nil {
			err = apierrors.NewBadRequest(err.Error())
		}
	case method == http.MethodPatch:
		w.u, err = c.patched(w.seen, types.PatchType(kind), body)
	default:
		err = apierrors.NewMethodNotSupported(c.resource(), method)
	}
	if err == nil && w.operation == "UPDATE" {
		err = c.check(w.seen, w.u)
	}
	return w, err
}

// commit stores a write, if the stored object is still the one that it was computed from.
func (s *Server) commit(c call, w *pending) (raw []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.operation != "CREATE" && c.get(c.namespace, c.name) != w.seen {
		return nil, errChanged
	}
	if c.dryRun() {
		if w.u == nil {
			return w.seen.raw, nil
		}
		return json.Marshal(w.u.Object)
	}
	if s.options.Enter != nil {
		leave, err := s.options.Enter(c.request)
		if err != nil {
			return nil, err
		}
		defer func() { leave(err == nil) }()
	}
	switch w.operation {
	case "CREATE":
		return s.create(c, w.u)
	case "DELETE":
		return s.delete(c, w.seen, w.body)
	}
	return s.update(c, w.seen, w.u)
}

// check compares an object with the stored one that it would replace, and takes from the stored one what the request cannot change.
func (c call) check(now *object, u *unstructured.Unstructured) error {
	old := now.read()
	if version := u.GetResourceVersion(); version != "" && version != old.GetResourceVersion() {
		return apierrors.NewConflict(c.resource(), c.name, errors.New(modified))
	}
	if uid := u.GetUID(); uid != "" && uid != old.GetUID() {
		return apierrors.NewConflict(c.resource(), c.name, errors.New("it is another one"))
	}
	switch {
	case c.subresource == "status":
		status := u.Object["status"]
		u.Object = old.Object
		u.Object["status"] = status
	case c.kind.Status:
		if u.Object["status"] = old.Object["status"]; u.Object["status"] == nil {
			delete(u.Object, "status")
		}
	}
	return nil
}

func (c call) dryRun() bool { return c.request.URL.Query().Has("dryRun") }

// decode reads an object that was sent, by typed clients in protobuf.
func decode(kind string, body []byte) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if kind != runtime.ContentTypeProtobuf {
		return u, json.Unmarshal(body, &u.Object)
	}
	typed, gvk, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("reading an object: %w", err)
	}
	u.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	u.SetGroupVersionKind(*gvk)
	return u, err
}

// patched is an object with a patch.
func (c call) patched(now *object, kind types.PatchType, patch []byte) (*unstructured.Unstructured, error) {
	var raw []byte
	var err error
	switch kind {
	case types.MergePatchType:
		raw, err = jsonpatch.MergePatch(now.raw, patch)
	case types.JSONPatchType:
		var p jsonpatch.Patch
		if p, err = jsonpatch.DecodePatch(patch); err == nil {
			raw, err = p.Apply(now.raw)
		}
		if err != nil {
			err = apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch", c.resource(), "", err.Error(), 0, true)
		}
	default:
		err = apierrors.NewBadRequest(fmt.Sprintf("this API server does not know %q", kind))
	}
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	return u, json.Unmarshal(raw, &u.Object)
}

// create stores an object that was not there.
func (s *Server) create(c call, u *unstructured.Unstructured) ([]byte, error) {
	if u.GetName() == "" && u.GetGenerateName() != "" {
		u.SetName(u.GetGenerateName() + string(s.id())[:5])
	}
	if c.get(c.namespace, u.GetName()) != nil {
		return nil, apierrors.NewAlreadyExists(c.resource(), u.GetName())
	}
	u.SetNamespace(c.namespace)
	u.SetAPIVersion(c.kind.groupVersion())
	u.SetKind(c.kind.Kind)
	u.SetUID(s.id())
	u.SetCreationTimestamp(metav1.NewTime(time.Now()))
	if c.kind.Counted {
		u.SetGeneration(1)
	}
	if c.kind.Status {
		delete(u.Object, "status")
	}
	return s.put(c.table, u).raw, nil
}

// update stores another form of an object. An equal object changes nothing.
func (s *Server) update(c call, now *object, u *unstructured.Unstructured) ([]byte, error) {
	old := now.read()
	if err := c.check(now, u); err != nil {
		return nil, err
	}
	u.SetResourceVersion(old.GetResourceVersion())
	u.SetGeneration(old.GetGeneration())
	if reflect.DeepEqual(u.Object, old.Object) {
		return now.raw, nil
	}
	if c.kind.Counted && c.subresource == "" && !reflect.DeepEqual(content(u), content(old)) {
		u.SetGeneration(old.GetGeneration() + 1)
	}
	if u.GetDeletionTimestamp() != nil && len(u.GetFinalizers()) == 0 {
		s.remove(c.table, u)
		return now.raw, nil
	}
	return s.put(c.table, u).raw, nil
}

// content is what is neither metadata nor status.
func content(u *unstructured.Unstructured) map[string]any {
	out := map[string]any{}
	for k, v := range u.Object {
		if k != "metadata" && k != "status" {
			out[k] = v
		}
	}
	return out
}

// delete takes an object away, or marks it when it has finalizers. What it owned goes after it, however it is asked for.
func (s *Server) delete(c call, now *object, body []byte) ([]byte, error) {
	options := metav1.DeleteOptions{}
	if len(body) > 0 && body[0] == '{' { // typed clients send protobuf, with no preconditions in Shipper
		if err := json.Unmarshal(body, &options); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	u := now.read()
	if p := options.Preconditions; p != nil && (p.UID != nil && *p.UID != u.GetUID() ||
		p.ResourceVersion != nil && *p.ResourceVersion != u.GetResourceVersion()) {
		return nil, apierrors.NewConflict(c.resource(), c.name, fmt.Errorf("it is another one"))
	}
	if len(u.GetFinalizers()) == 0 {
		s.remove(c.table, u)
		return now.raw, nil
	}
	if u.GetDeletionTimestamp() == nil {
		at := metav1.NewTime(time.Now())
		u.SetDeletionTimestamp(&at)
		return s.put(c.table, u).raw, nil
	}
	return now.raw, nil
}

// applied merges what a manager wants into an object, or makes it. Lists are replaced, and what a manager does not want any more
// stays: Shipper applies an object of a Release once, and again when it is the same.
func (s *Server) applied(c call, now *object, body []byte) (*unstructured.Unstructured, error) {
	wanted := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON(body)
	if err == nil {
		err = json.Unmarshal(raw, &wanted.Object)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	fields, err := json.Marshal(fieldsOf(wanted.Object))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	at := metav1.NewTime(time.Now())
	entry := metav1.ManagedFieldsEntry{
		Time:    &at,
		Manager: c.request.URL.Query().Get("fieldManager"), Operation: metav1.ManagedFieldsOperationApply, APIVersion: wanted.GetAPIVersion(),
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(fields)),
	}
	if now == nil {
		wanted.SetManagedFields([]metav1.ManagedFieldsEntry{entry})
		wanted.SetName(c.name)
		wanted.SetNamespace(c.namespace)
		return wanted, nil
	}
	u := now.read()
	merge(u.Object, wanted.Object)
	if old := u.GetManagedFields(); len(old) != 1 || old[0].FieldsV1.GetRawString() != string(fields) {
		u.SetManagedFields([]metav1.ManagedFieldsEntry{entry})
	}
	return u, nil
}

// merge puts what is in from into to.
func merge(to, from map[string]any) {
	for k, v := range from {
		inner, ok := v.(map[string]any)
		there, also := to[k].(map[string]any)
		if ok && also {
			merge(there, inner)
			continue
		}
		to[k] = v
	}
}

// fieldsOf is what is in a list of managed fields, lists as a whole.
func fieldsOf(of map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range of {
		if k == "apiVersion" || k == "kind" || k == "name" || k == "namespace" || strings.HasPrefix(k, "f:") {
			continue
		}
		inner, _ := v.(map[string]any) // other values have no fields
		out["f:"+k] = fieldsOf(inner)
	}
	return out
}
