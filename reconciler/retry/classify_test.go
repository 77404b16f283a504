// SPDX-License-Identifier: Apache-2.0

package retry_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart"
	"shipper.dev/shipper/reconciler/fence"
	"shipper.dev/shipper/reconciler/retry"
)

var (
	rels     = shipper.Resource("releases")
	conflict = apierrors.NewConflict(rels, "web-0", errors.New("changed"))
	invalid  = apierrors.NewInvalid(schema.GroupKind{}, "web-0", nil)
	refused  = &net.OpError{Op: "dial", Err: errors.New("connection refused")}
)

// lost is the error of a cluster that cannot be worked with.
type lost struct{}

func (lost) Error() string                             { return "no answer" }
func (lost) Classify() (reason string, _ retry.Action) { return shipper.ClusterUnreachable, retry.Wait }

func forbidden(why string) error { return apierrors.NewForbidden(rels, "web-0", errors.New(why)) }

func TestErrorsOfTheManagementClusterHaveAnAction(t *testing.T) {
	const gate = `admission webhook "r" denied the request: rollouts blocked by: a/b (no; eve, 1m ago), c/d (no). To override: x`
	policy := apierrors.NewInvalid(schema.GroupKind{}, "rollouts blocked by: a/b", nil)
	broken := &chart.Error{Reason: shipper.BrokenChartSpec, Cause: errors.Join(conflict, refused)}
	type verdict struct {
		Action   retry.Action
		Blocked  string
		Conflict bool
	}
	cases := map[string]struct {
		err  error
		want verdict
	}{
		"nothing went wrong":                       {nil, verdict{}},
		"a conflict":                               {conflict, verdict{retry.Requeue, "", true}},
		"it is there already":                      {apierrors.NewAlreadyExists(rels, "web-0"), verdict{Action: retry.Requeue}},
		"it is gone already":                       {apierrors.NewNotFound(rels, "web-0"), verdict{Action: retry.Requeue}},
		"the pass is over":                         {context.Canceled, verdict{Action: retry.Requeue}},
		"a right is missing":                       {forbidden("User x cannot patch"), verdict{Action: retry.Retry}},
		"the webhook says blocked":                 {forbidden(gate), verdict{retry.Requeue, "rollouts blocked by: a/b", false}},
		"the policy says blocked":                  {policy, verdict{retry.Requeue, "rollouts blocked by: a/b", false}},
		"the object is not valid":                  {invalid, verdict{Action: retry.Wait}},
		"the request is nonsense":                  {apierrors.NewBadRequest("what?"), verdict{Action: retry.Wait}},
		"the object is too large":                  {apierrors.NewRequestEntityTooLargeError("12 MB"), verdict{Action: retry.Wait}},
		"the server is overwhelmed":                {apierrors.NewTooManyRequests("later", 1), verdict{Action: retry.Retry}},
		"the webhook is down":                      {apierrors.NewInternalError(errors.New("no webhook")), verdict{Action: retry.Retry}},
		"a chart cannot be fetched":                {&chart.Error{Retry: true}, verdict{Action: retry.Retry}},
		"a chart is none":                          {broken, verdict{Action: retry.Wait}},
		"an unknown error":                         {errors.New("?"), verdict{Action: retry.Retry}},
		"a message that names blocks":              {errors.New(gate), verdict{Action: retry.Retry}},
		"conflicts joined":                         {errors.Join(conflict, conflict), verdict{retry.Requeue, "", true}},
		"a conflict joined with a missing right":   {errors.Join(conflict, forbidden("no")), verdict{Action: retry.Retry}},
		"a missing right joined with a conflict":   {errors.Join(forbidden("no"), conflict), verdict{Action: retry.Retry}},
		"an invalid object joined with a conflict": {errors.Join(invalid, conflict), verdict{Action: retry.Requeue}},
		"a conflict joined with a block": {
			errors.Join(conflict, forbidden(gate)), verdict{retry.Requeue, "rollouts blocked by: a/b", false},
		},
		"two errors in one text": {fmt.Errorf("%w, then %w", conflict, refused), verdict{Action: retry.Retry}},
		"a join in a join": {
			errors.Join(invalid, fmt.Errorf("x: %w", errors.Join(conflict, refused))), verdict{Action: retry.Retry},
		},
		"a broken chart joined with another failure": {errors.Join(broken, invalid), verdict{Action: retry.Wait}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.err
			if err != nil {
				err = fmt.Errorf("doing something: %w", err)
			}
			got := verdict{retry.Classify(err), retry.Blocked(err), retry.Conflict(err)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestErrorsOfApplicationClustersHaveAReasonAndAnAction(t *testing.T) {
	type verdict struct {
		Reason   string
		Action   retry.Action
		Conflict bool
	}
	const internal = shipper.InternalError
	terminating := apierrors.NewForbidden(rels, "x", errors.New("x"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	denied := forbidden("no")
	aConflict := verdict{shipper.InProgress, retry.Requeue, true}
	for name, tc := range map[string]struct {
		err  error
		want verdict
	}{
		"no connection":                {lost{}, verdict{Reason: shipper.ClusterUnreachable, Action: retry.Wait}},
		"credentials ran out":          {apierrors.NewUnauthorized("x"), verdict{Reason: shipper.CredentialsRefused, Action: retry.Retry}},
		"an unknown kind":              {&meta.NoKindMatchError{}, verdict{Reason: shipper.ChartError, Action: retry.Recheck}},
		"another writer was faster":    {conflict, aConflict},
		"another process leads":        {fence.ErrNotLeader, verdict{Reason: shipper.InProgress, Action: retry.Retry}},
		"the namespace is going":       {terminating, verdict{Reason: shipper.NamespaceMissing, Action: retry.Retry}},
		"no right":                     {denied, verdict{Reason: internal, Action: retry.Recheck}},
		"not there":                    {apierrors.NewNotFound(rels, "x"), verdict{Reason: internal, Action: retry.Recheck}},
		"invalid":                      {invalid, verdict{Reason: internal, Action: retry.Recheck}},
		"too many requests":            {apierrors.NewTooManyRequestsError("x"), verdict{Reason: internal, Action: retry.Retry}},
		"the API server is in trouble": {apierrors.NewInternalError(errors.New("x")), verdict{Reason: internal, Action: retry.Retry}},
		"no answer":                    {refused, verdict{Reason: shipper.ClusterUnreachable, Action: retry.Retry}},
		"no answer in time":            {context.DeadlineExceeded, verdict{Reason: shipper.ClusterUnreachable, Action: retry.Retry}},
		"a chart cannot be fetched": {
			&chart.Error{Reason: shipper.ChartFetchFailure, Retry: true}, verdict{Reason: shipper.ChartFetchFailure, Action: retry.Retry},
		},
		"anything else":    {errors.New("x"), verdict{Reason: internal, Action: retry.Retry}},
		"conflicts joined": {errors.Join(conflict, conflict), aConflict},
		"a refusal joined with a conflict": {
			errors.Join(denied, conflict), verdict{Reason: internal, Action: retry.Requeue},
		},
		"a conflict joined with a refusal": {
			errors.Join(conflict, denied), verdict{Reason: internal, Action: retry.Requeue},
		},
		"no answer joined with an unknown kind": {
			errors.Join(refused, &meta.NoKindMatchError{}), verdict{Reason: shipper.ChartError, Action: retry.Retry},
		},
		"a conflict joined with no answer": {
			errors.Join(conflict, refused), verdict{Reason: shipper.ClusterUnreachable, Action: retry.Retry},
		},
		"a conflict joined with a lost connection": {
			errors.Join(conflict, lost{}), verdict{Reason: shipper.ClusterUnreachable, Action: retry.Requeue},
		},
		"of equally serious errors, the first": {
			errors.Join(conflict, &meta.NoKindMatchError{}, denied), verdict{Reason: shipper.ChartError, Action: retry.Requeue},
		},
		"a join in a join": {
			errors.Join(conflict, fmt.Errorf("x: %w", errors.Join(conflict, denied))), verdict{Reason: internal, Action: retry.Requeue},
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := fmt.Errorf("doing something: %w", tc.err)
			got := verdict{Conflict: retry.Conflict(err)}
			got.Reason, got.Action = retry.ClassifyInCluster(err)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if reason, action := retry.ClassifyInCluster(nil); reason != "" || action != retry.Wait {
		t.Errorf("no error is %q, %d", reason, action)
	}
}
