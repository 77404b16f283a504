// SPDX-License-Identifier: Apache-2.0

package protected_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/protected"
	"shipper.dev/shipper/webhook/response"
)

const generation = shipper.ReleaseGenerationAnnotation

func meta(annotations map[string]string, labels map[string]string) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{Namespace: "default", Name: "x-0", Annotations: annotations, Labels: labels}
}

type m = map[string]string

func TestKeep(t *testing.T) {
	old := meta(m{generation: "1"}, m{shipper.AppLabel: "x"})
	for sentence, tc := range map[string]struct {
		user     string
		now      *metav1.ObjectMeta
		want     *metav1.ObjectMeta
		decision response.Decision
		message  string
	}{
		"what is the same stays":      {user: "dev", now: meta(m{generation: "1"}, m{shipper.AppLabel: "x"}), want: old},
		"what is left out comes back": {user: "dev", now: meta(nil, nil), want: old},
		"the reconciler leaves out":   {user: ask.Reconciler, now: meta(nil, nil), want: meta(nil, nil)},
		"the reconciler changes": {
			user: ask.Reconciler, now: meta(m{generation: "2"}, nil), want: meta(m{generation: "2"}, nil),
		},
		"who has the right changes": {
			user: "ann", now: meta(m{generation: "2"}, m{shipper.AppLabel: "x"}),
			want: meta(m{generation: "2"}, m{shipper.AppLabel: "x"}),
		},
		"what is others' is left to them": {
			user: "dev", now: meta(m{generation: "1", "a": "b"}, m{shipper.AppLabel: "x"}),
			want: meta(m{generation: "1", "a": "b"}, m{shipper.AppLabel: "x"}),
		},
		"other users cannot change": {
			user: "dev", now: meta(m{generation: "2"}, m{shipper.AppLabel: "x"}), decision: response.Invalid,
			message: `Release.shipper.booking.com "x-0" is invalid: metadata.annotations[` + generation +
				`]: Forbidden: is written by Shipper; leave it out, or at "1"`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			guard := &protected.Guard{Authz: ask.Grant("ann stamp releases default/x-0"), Reconciler: ask.Reconciler}
			req := ask.Update(tc.user, &shipper.Release{ObjectMeta: *tc.now}, &shipper.Release{ObjectMeta: *old})
			a := &response.Response{}
			err := guard.Keep(t.Context(), req, a, protected.Release, old, tc.now)
			ask.CheckRefusal(t, err, tc.decision, tc.message)
			if tc.want == nil {
				return
			}
			if diff := cmp.Diff(tc.want, tc.now); diff != "" {
				t.Errorf("metadata (-want +got):\n%s", diff)
			}
		})
	}
}

// Validation does not rely on an earlier mutation.
func TestCheck(t *testing.T) {
	old := meta(m{generation: "1"}, m{shipper.AppLabel: "x"})
	const invalid = `Release.shipper.booking.com "x-0" is invalid: `
	for sentence, tc := range map[string]struct {
		user     string
		old, now *metav1.ObjectMeta
		message  string
	}{
		"what is the same passes":            {user: "dev", old: old, now: old},
		"what is others' passes":             {user: "dev", old: old, now: meta(m{generation: "1", "a": "b"}, m{shipper.AppLabel: "x"})},
		"the reconciler writes and takes":    {user: ask.Reconciler, old: old, now: meta(m{generation: "2"}, nil)},
		"who has the right writes and takes": {user: "ann", old: old, now: meta(m{generation: "2"}, nil)},
		"nothing is written on creation":     {user: "dev", now: meta(m{"a": "b"}, nil)},
		"other users cannot remove": {user: "dev", old: old, now: meta(nil, nil), message: invalid +
			"[metadata.annotations[" + generation + `]: Required value: is written by Shipper; leave it at "1", ` +
			`metadata.labels[shipper-app]: Required value: is written by Shipper; leave it at "x"]`},
		"other users cannot change": {user: "dev", old: old, now: meta(m{generation: "1"}, m{shipper.AppLabel: "y"}), message: invalid +
			`metadata.labels[shipper-app]: Forbidden: is written by Shipper; leave it out, or at "x"`},
		"other users cannot add": {user: "dev", now: meta(m{generation: "1"}, nil), message: invalid +
			"metadata.annotations[" + generation + "]: Forbidden: is written by Shipper; leave it out"},
	} {
		t.Run(sentence, func(t *testing.T) {
			guard := &protected.Guard{Authz: ask.Grant("ann stamp releases default/x-0"), Reconciler: ask.Reconciler}
			req := ask.Create(tc.user, &shipper.Release{ObjectMeta: *tc.now})
			var decision response.Decision
			if tc.message != "" {
				decision = response.Invalid
			}
			ask.CheckRefusal(t, guard.Check(t.Context(), req, protected.Release, tc.old, tc.now), decision, tc.message)
		})
	}
}

func TestIgnore(t *testing.T) {
	for sentence, tc := range map[string]struct {
		user string
		now  *metav1.ObjectMeta
		want m
	}{
		"a user's is ignored":                {"dev", meta(m{generation: "1", "a": "b"}, nil), m{"a": "b"}},
		"the reconciler's is taken":          {ask.Reconciler, meta(m{generation: "1"}, nil), m{generation: "1"}},
		"that of who may stamp is taken":     {"ann", meta(m{generation: "1"}, nil), m{generation: "1"}},
		"where there is none, none is asked": {"dev", meta(m{"a": "b"}, nil), m{"a": "b"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			rights := ask.Grant("ann stamp releases default/x-0")
			guard := &protected.Guard{Authz: rights, Reconciler: ask.Reconciler}
			req := ask.Create(tc.user, &shipper.Release{ObjectMeta: *tc.now})
			if err := guard.Ignore(t.Context(), req, &response.Response{}, protected.Release, tc.now); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tc.now.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRightsThatCannotBeAsked(t *testing.T) {
	rights := ask.Grant()
	rights.Err = errors.New("API server is away")
	guard := &protected.Guard{Authz: rights}
	now := meta(m{generation: "2"}, nil)
	req := ask.Create("dev", &shipper.Release{ObjectMeta: *now})
	ask.CheckRefusal(t, guard.Keep(t.Context(), req, &response.Response{}, protected.Release, meta(nil, nil), now),
		response.Unavailable, "API server is away")
	ask.CheckRefusal(t, guard.Check(t.Context(), req, protected.Release, nil, now), response.Unavailable, "API server is away")
	ask.CheckRefusal(t, guard.Ignore(t.Context(), req, &response.Response{}, protected.Release, now), response.Unavailable,
		"API server is away")
}
