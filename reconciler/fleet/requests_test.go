// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestPatienceBeginsAnewWhenAWriteSucceeds(t *testing.T) {
	r, req := NewRetries[string](), "a"
	conflict := apierrors.NewConflict(shipper.Resource("clusters"), "a", errors.New("changed"))
	for _, want := range []time.Duration{100, 200, 400} {
		if got, err := r.Persisted(req, conflict); err != nil || got.RequeueAfter != want*time.Millisecond {
			t.Errorf("got %v, %v, want %dms", got, err, want)
		}
	}
	if got, err := r.Persisted(req, nil); err != nil || !got.IsZero() {
		t.Errorf("nothing is to be done: got %v, %v", got, err)
	}
	if n := r.limiter.NumRequeues(req); n != 0 {
		t.Errorf("%d retries of what succeeded are remembered", n)
	}
	if _, err := r.Persisted(req, errors.New("broken")); err == nil {
		t.Error("an error is swallowed")
	}
}
