// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// partial says whether a request accepts metadata alone, in the form of an object or of a list.
func partial(r *http.Request, form string, k Kind) (bool, error) {
	_, as, found := strings.Cut(r.Header.Get("Accept"), ";as=")
	as, _, _ = strings.Cut(as, ";")
	list := "*unstructured.UnstructuredList"
	if !k.custom() {
		list = fmt.Sprintf("*%s.%sList", k.Version, k.Kind)
	}
	switch {
	case !found || as == "Table": // clients that print tables read objects, too
		return false, nil
	case as == form:
		return true, nil
	case as == "PartialObjectMetadata":
		return false, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
			Message: "you requested PartialObjectMetadata, but the requested object is a list (" + list + ")",
		}}
	case as == "PartialObjectMetadataList":
		return false, errors.New("content is not a list")
	}
	return false, nil
}

// form is an object as it was requested.
func (c call) form(raw []byte) json.RawMessage {
	if !c.metadata {
		return raw
	}
	var of struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &of); err != nil {
		return raw
	}
	return fmt.Appendf(nil, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":%s}`, of.Metadata)
}

func write(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if raw, ok := answer.(json.RawMessage); ok {
		_, _ = w.Write(raw)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// refuse responds with an error.
func refuse(w http.ResponseWriter, err error) {
	status := responsewriters.ErrorToAPIStatus(err)
	status.Kind, status.APIVersion = "Status", "v1"
	write(w, int(status.Code), status)
}

// misplaced says whether a method is none for a collection, or none for an object.
func misplaced(method string, info *request.RequestInfo) bool {
	named := info.Name != "" && len(info.Parts) > 1
	if info.Resource == "pods" && info.Subresource == "eviction" {
		return method != http.MethodPost
	}
	return method == http.MethodPost && named || !named && (method == http.MethodPut || method == http.MethodPatch)
}

// noRoute responds to what is not served: as the router of kube-apiserver's own kinds does, or as the one of custom resources.
func noRoute(w http.ResponseWriter, info *request.RequestInfo, code int) {
	own := builtin.IsGroupRegistered(info.APIGroup)
	switch {
	case code == http.StatusNotFound && !own && info.Subresource != "":
		refuse(w, apierrors.NewNotFound(schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}, info.Name))
	case code == http.StatusNotFound && !own:
		notFound(w)
	default:
		message := fmt.Sprintf("%d: %s", code, http.StatusText(code))
		refuse(w, apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", message, 0, false))
	}
}

// notFound responds as kube-apiserver does to a path that it does not serve.
func notFound(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, "404 page not found\n")
}
