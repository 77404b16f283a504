// SPDX-License-Identifier: Apache-2.0

package body_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"shipper.dev/shipper/outward/body"
)

func TestCheck(t *testing.T) {
	for expression, want := range map[string]string{
		`event.message`: "",
		`{"text": event.release + ": " + event.message}`:   "",
		`{"step": dyn(event.step), "at": dyn(event.time)}`: "",
		`{"step": event.step, "at": event.time}`:           "expected type 'int' but found 'timestamp'",
		`event.event == "Failed" ? "down" : "up"`:          "",
		`event.step`:           "must be a map or a text, is int",
		`[event.message]`:      "must be a map or a text, is list(string)",
		`{1: "a"}`:             "must be a map with strings as keys or a text, is map(int, string)",
		`true`:                 "must be a map or a text, is bool",
		`event.mesage`:         "undefined field 'mesage'",
		`object.metadata.name`: "undeclared reference to 'object'",
		`"`:                    "does not compile",
	} {
		err := body.Check(t.Context(), expression)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", expression, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s gives %v, want %q", expression, err, want)
		}
	}
}

func TestOf(t *testing.T) {
	e := body.Event{Event: "Failed", Release: "web-1", Step: 2, Message: `no "Pods"`, Time: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
	all := body.New()
	for expression, want := range map[string]any{
		`event.release + ": " + event.message`: `web-1: no "Pods"`,
		`{"text": dyn(event.message), "step": dyn(event.step), "at": dyn(event.time), "list": dyn([1.5]), ` +
			`"sub": dyn({"none": null})}`: map[string]any{
			"text": `no "Pods"`, "step": 2.0, "at": "2026-05-01T12:00:00Z", "list": []any{1.5}, "sub": map[string]any{"none": nil},
		},
		`dyn("a")`: "a",
	} {
		for range 2 { // the second is cached
			got, err := all.Of(t.Context(), expression, e)
			if err != nil {
				t.Fatalf("%s: %v", expression, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", expression, diff)
			}
		}
	}
	for expression, want := range map[string]string{
		`dyn(1)`:                             "must be a map or a text, is int",
		`{"a": 1 / event.step}`:              "", // it divides
		`event.step`:                         "must be a map or a text, is int",
		`{"a": event.message.split("")[99]}`: "cannot be evaluated",
		`{dyn(1): "a"}`:                      "is no JSON",
		strings.Repeat(`[0,1,2,3,4,5,6,7,8,9].map(a, `, 8) + `1` + strings.Repeat(`)`, 8) + `.size() > 0 ? "a" : "b"`: "cannot be evaluated",
	} {
		_, err := all.Of(t.Context(), expression, e)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", expression, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s gives %v, want %q", expression, err, want)
		}
	}
}
