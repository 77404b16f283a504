// SPDX-License-Identifier: Apache-2.0

package retry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/reconciler/retry"
)

var rels = shipper.Resource("releases")

func forbidden(why string) error { return apierrors.NewForbidden(rels, "web-0", errors.New(why)) }

func TestOf(t *testing.T) {
	const gate = `admission webhook "r" denied the request: rollouts blocked by: a/b (no; eve, 1m ago), c/d (no). To override: x`
	policy := apierrors.NewInvalid(schema.GroupKind{}, "rollouts blocked by: a/b", nil)
	cases := map[string]struct {
		err     error
		want    retry.Action
		blocked string
	}{
		"nothing went wrong":          {nil, retry.Wait, ""},
		"a conflict":                  {apierrors.NewConflict(rels, "web-0", errors.New("changed")), retry.Requeue, ""},
		"it is there already":         {apierrors.NewAlreadyExists(rels, "web-0"), retry.Requeue, ""},
		"it is gone already":          {apierrors.NewNotFound(rels, "web-0"), retry.Requeue, ""},
		"the pass is over":            {context.Canceled, retry.Requeue, ""},
		"a right is missing":          {forbidden("User x cannot patch"), retry.Retry, ""},
		"the gate says blocked":       {forbidden(gate), retry.Requeue, "rollouts blocked by: a/b"},
		"the policy says blocked":     {policy, retry.Requeue, "rollouts blocked by: a/b"},
		"the object is not valid":     {apierrors.NewInvalid(schema.GroupKind{}, "web-0", nil), retry.Wait, ""},
		"the request is nonsense":     {apierrors.NewBadRequest("what?"), retry.Wait, ""},
		"the object is too large":     {apierrors.NewRequestEntityTooLargeError("12 MB"), retry.Wait, ""},
		"the server is overwhelmed":   {apierrors.NewTooManyRequests("later", 1), retry.Retry, ""},
		"the gate is down":            {apierrors.NewInternalError(errors.New("no webhook")), retry.Retry, ""},
		"a chart cannot be fetched":   {&chart.Error{Reason: shipper.ChartFetchFailure, Retry: true}, retry.Retry, ""},
		"a chart is none":             {&chart.Error{Reason: shipper.BrokenChartSpec}, retry.Wait, ""},
		"an unknown error":            {errors.New("?"), retry.Retry, ""},
		"a message that names blocks": {errors.New(gate), retry.Retry, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.err
			if err != nil {
				err = fmt.Errorf("doing something: %w", err)
			}
			if got := retry.Classify(err); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
			if got := retry.Blocked(err); got != tc.blocked {
				t.Errorf("got %q, want %q", got, tc.blocked)
			}
		})
	}
}

func TestResult(t *testing.T) {
	req := ctrl.Request{}
	req.Name = "web"
	again, wait, transient := apierrors.NewConflict(rels, "", errors.New("x")), apierrors.NewBadRequest("x"), errors.New("x")

	judge := retry.NewRetrier()
	if got, err := judge.Result(req, nil, wait, again, transient); err == nil || got != (ctrl.Result{}) {
		t.Errorf("what is to be retried is an error: got %v, %v", got, err)
	}
	for _, want := range []time.Duration{5, 10, 20} {
		if got, err := judge.Result(req, nil, again); err != nil || got.RequeueAfter != want*time.Millisecond {
			t.Errorf("got %v, %v, want %dms", got, err, want)
		}
	}
	if got, err := judge.Result(req, nil, wait); err != nil || got != (ctrl.Result{}) {
		t.Errorf("nothing is to be done: got %v, %v", got, err)
	}
	if got, _ := judge.Result(req, again); got.RequeueAfter != 5*time.Millisecond {
		t.Errorf("the delay begins again after a success: got %v", got)
	}
	for range 40 {
		if got, _ := judge.Result(req, again); got.RequeueAfter > 30*time.Second {
			t.Fatalf("got %v", got)
		}
	}
}
