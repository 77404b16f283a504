// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
)

// direct speaks to replicas without an API server in between. Whose certificate they have is not what is tested with it.
var direct = &http.Client{Transport: &http.Transport{
	TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
	ForceAttemptHTTP2: true,
}}

// asks asks r itself whether an Application may be made in namespace.
func (r *replica) asks(ctx context.Context, namespace string) (*admissionv1.AdmissionResponse, error) {
	app := ask.Application(func(app *shipper.Application) { app.Namespace = namespace })
	return r.review(ctx, "/validate-application?timeout=5s", app)
}

// review asks r itself, at path, whether app may be made.
func (r *replica) review(
	ctx context.Context, path string, app *shipper.Application,
) (*admissionv1.AdmissionResponse, error) {
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request:  &ask.Create("dev", app).AdmissionRequest,
	})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+r.Address+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := direct.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(answer.Body).Decode(&review); err != nil || review.Response == nil {
		return nil, fmt.Errorf("%s answered %s: %w", r.Name, answer.Status, err)
	}
	return review.Response, nil
}

// knows asks r until it refuses for b, or lets pass when it should, and returns when that was.
func (r *replica) knows(t *testing.T, b *shipper.RolloutBlock, wanted bool) time.Time {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		answer, err := r.asks(ctx, b.Namespace)
		if err != nil {
			t.Fatalf("asking %s: %v", r.Name, err)
		}
		if refusedFor(answer, b) == wanted {
			return time.Now()
		}
	}
}

// refusedFor tells whether answer is a refusal that names b.
func refusedFor(answer *admissionv1.AdmissionResponse, b *shipper.RolloutBlock) bool {
	return !answer.Allowed && answer.Result.Code == http.StatusForbidden &&
		strings.Contains(answer.Result.Message, b.Namespace+"/"+b.Name+" ")
}
