// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOutcome(t *testing.T) {
	for sentence, tc := range map[string]struct {
		said []string
		err  error
		want planned
		text string
	}{
		"a rollout": {
			[]string{
				"this makes Release web-1", "plan: Release web-1 of chart nginx 0.0.2", "the last step leaves capacity", "plan: 1 cluster: eu",
			}, nil,
			planned{
				Namespace: "shop", Application: "web", Release: "web-1",
				Plan:     []string{"Release web-1 of chart nginx 0.0.2", "1 cluster: eu"},
				Warnings: []string{"the last step leaves capacity"},
			},
			"application shop/web\n    Release web-1 of chart nginx 0.0.2\n    1 cluster: eu\n  ! the last step leaves capacity\n",
		},
		"nothing": {
			nil, nil, planned{Namespace: "shop", Application: "web", Plan: []string{}, Warnings: []string{}},
			"application shop/web\n    nothing would be rolled out\n",
		},
		"what is refused": {
			nil, errors.New("no"), planned{Namespace: "shop", Application: "web", Plan: []string{}, Warnings: []string{}, Refused: "no"},
			"application shop/web\n",
		},
		"nothing, with ado": {
			[]string{"mind the gap"}, nil,
			planned{Namespace: "shop", Application: "web", Plan: []string{}, Warnings: []string{"mind the gap"}},
			"application shop/web\n    nothing would be rolled out\n  ! mind the gap\n",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := outcomeOf("shop", "web", tc.said, tc.err)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.text, got.text(0)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAPlanThatMayNotRollOutFails(t *testing.T) {
	for text, want := range map[string]string{
		"mind the gap":                        "",
		"might not roll out: no cluster":      "application shop/web might not roll out: its warnings say why",
		"the chart might not roll out: so so": "",
	} {
		o := outcomeOf("shop", "web", []string{text}, nil)
		got := ""
		if err := o.mightNotRollOut(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
