// SPDX-License-Identifier: Apache-2.0

package root

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAdvice(t *testing.T) {
	resource := func(name string) schema.GroupResource {
		return schema.GroupResource{Group: "shipper.booking.com", Resource: name}
	}
	missing := func(kind string) error {
		return fmt.Errorf("reading: %w", apierrors.NewNotFound(resource(kind), "web"))
	}
	forbidden := func(why string) error { return apierrors.NewForbidden(resource("releases"), "web", errors.New(why)) }
	refused := &net.OpError{Op: "dial", Err: errors.New("refused")}
	unanswered := apierrors.NewInternalError(errors.New("failed calling webhook x: refused"))
	for sentence, tc := range map[string]struct {
		err  error
		want string // begins so
	}{
		"it was interrupted":              {fmt.Errorf("reading: %w", context.Canceled), "it was interrupted: run it again to go on"},
		"all is well":                     {nil, ""},
		"an application is not there":     {missing("applications"), "`kubectl get app -A` lists those there are"},
		"it is known where they are":      {fmt.Errorf("%w: there is one in shop: choose with -n", missing("applications")), ""},
		"a cluster is not there":          {missing("clusters"), "`kubectl shipper clusters list` lists those there are"},
		"a release is not there":          {missing("releases"), "`kubectl shipper list release` lists"},
		"a block is not there":            {missing("rolloutblocks"), "`kubectl shipper block list -A` lists"},
		"something else is not there":     {missing("secrets"), ""},
		"a right is missing":              {forbidden(`User "x" cannot get it`), "ask an administrator"},
		"a block refuses":                 {forbidden("rollouts blocked by: x"), ""},
		"credentials are not accepted":    {apierrors.NewUnauthorized("no"), "the cluster does not accept"},
		"the API server is not reached":   {fmt.Errorf("listing: %w", refused), "the API server cannot be reached"},
		"the kinds are not there":         {&meta.NoKindMatchError{}, "this management cluster is not set up"},
		"the webhook does not answer":     {unanswered, "Shipper's webhook does not answer: `kubectl shipper doctor`"},
		"what to do has been said":        {fmt.Errorf("%w\nDo it again", missing("clusters")), ""},
		"nothing is known about an error": {errors.New("no"), ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := adviceFor(tc.err, "kubectl shipper"); !strings.HasPrefix(got, tc.want) || (tc.want == "" && got != "") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
