// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"io"
	"net/http"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// evict deletes a Pod as its eviction does. PodDisruptionBudgets are not looked at.
func (s *Server) evict(w http.ResponseWriter, c call) {
	var eviction policyv1.Eviction
	body, err := io.ReadAll(c.request.Body)
	if err == nil {
		_, _, err = builtinCodecs.UniversalDeserializer().Decode(body, nil, &eviction) // JSON, or protobuf
	}
	if err != nil {
		refuse(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := c.get(c.space(), c.info.Name)
	if o == nil {
		refuse(w, apierrors.NewNotFound(c.kind.resource().GroupResource(), c.info.Name))
		return
	}
	if d := eviction.DeleteOptions; d != nil && d.Preconditions != nil && d.Preconditions.UID != nil && string(*d.Preconditions.UID) != o.uid {
		refuse(w, apierrors.NewConflict(c.kind.resource().GroupResource(), c.info.Name, nil))
		return
	}
	if enter := s.options.Enter; enter != nil {
		leave, err := enter(c.request)
		if err != nil {
			refuse(w, apierrors.NewInternalError(err))
			return
		}
		defer func() { leave(true) }()
	}
	s.erase(c.table, o)
	write(w, http.StatusCreated, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
}
