// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/test/pod"
)

// asks asks r itself whether an Application may be made in namespace.
func (r *replica) asks(ctx context.Context, namespace string) (*admissionv1.AdmissionResponse, error) {
	app := ask.Application(func(app *shipper.Application) { app.Namespace = namespace })
	return r.review(ctx, "/validate-application?timeout=5s", app)
}

// review asks r itself, at the path of a webhook, whether app may be made.
func (r *replica) review(
	ctx context.Context, hook string, app *shipper.Application,
) (*admissionv1.AdmissionResponse, error) {
	path, err := pod.ReviewPath(ctx, world.Management, hook)
	if err != nil {
		return nil, err
	}
	return r.Review(ctx, path, &ask.Create("dev", app).AdmissionRequest)
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

// refusedFor reports whether answer is a refusal that names b.
func refusedFor(answer *admissionv1.AdmissionResponse, b *shipper.RolloutBlock) bool {
	return !answer.Allowed && answer.Result.Code == http.StatusForbidden &&
		strings.Contains(answer.Result.Message, b.Namespace+"/"+b.Name+" ")
}
