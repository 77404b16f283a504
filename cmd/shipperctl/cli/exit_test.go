// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestCode(t *testing.T) {
	releases := schema.GroupResource{Group: "shipper.booking.com", Resource: "releases"}
	blocked := apierrors.NewForbidden(releases, "web-0", errors.New("rollouts blocked by: shop/freeze"))
	for sentence, c := range map[string]struct {
		err  error
		want int
	}{
		"nothing went wrong":                    {nil, 0},
		"something went wrong":                  {errors.New("no"), 1},
		"an object is not there":                {apierrors.NewNotFound(releases, "web-0"), 1},
		"there is no such command":              {errors.New(`unknown command "rolout" for "shipperctl"`), 2},
		"a flag is missing":                     {errors.New(`required flag(s) "message" not set`), 2},
		"the command knows that it was misused": {fmt.Errorf("creating a block: %w", WithCode(Misused, errors.New("--message is needed"))), 2},
		"a name that no object has":             {errors.New(`reading cluster a/b: invalid resource name "a/b": [may not contain '/']`), 2},
		"a name that is empty":                  {errors.New("reading application shop/: resource name may not be empty"), 2},
		"a block is in effect":                  {fmt.Errorf("moving release web-0: %w", blocked), 3},
		"one of several was refused":            {errors.Join(errors.New("no"), blocked), 3},
		"a rule is broken":                      {apierrors.NewInvalid(schema.GroupKind{Kind: "Release"}, "web-0", nil), 3},
		"it knows that it waited in vain":       {WithCode(TimedOut, errors.New("no token within 30s")), 4},
		"the API server did not answer in time": {fmt.Errorf("listing: %w", context.DeadlineExceeded), 4},
		"it was interrupted":                    {fmt.Errorf("waiting for the token: %w", context.Canceled), 130},
		"it was interrupted while it waited":    {WithCode(TimedOut, context.Canceled), 130},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := ExitCode(c.err); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
	if WithCode(Failed, nil) != nil {
		t.Error("no error has become one")
	}
}

func TestMeaningsAreThoseOfAllCodes(t *testing.T) {
	want := []int{Done, Failed, Misused, Refused, TimedOut, NotPassed, Interrupted}
	for i, m := range ExitCodes {
		if len(ExitCodes) != len(want) || m.Code != want[i] || m.Meaning == "" {
			t.Errorf("meaning %d is of code %d: %q", i, m.Code, m.Meaning)
		}
	}
}
