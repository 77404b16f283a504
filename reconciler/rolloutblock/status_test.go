// SPDX-License-Identifier: Apache-2.0

package rolloutblock

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	rules "shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/fleet/report"
)

func TestStatus(t *testing.T) {
	const global = "everywhere"
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{
			shipper.RolloutBlockOverrideAnnotation: "everywhere/stop,a/stop",
			shipper.RolloutBlockOverrideStampAnnotation: rules.FormatRecords([]rules.Record{
				{Block: "a/stop", UID: "this", User: "ann", Time: metav1.Unix(60, 0), Reason: "outage"},
			}),
		}}
	}
	app := func(namespace, name string) shipper.Application {
		return shipper.Application{ObjectMeta: meta(namespace, name)}
	}
	rel := func(namespace, name string) shipper.Release {
		return shipper.Release{ObjectMeta: meta(namespace, name)}
	}
	record := func(kind, name string) shipper.RolloutBlockOverrideRecord {
		return shipper.RolloutBlockOverrideRecord{Kind: kind, Name: name, User: "ann", Time: metav1.Unix(60, 0), Reason: "outage"}
	}
	many := namers{}
	for i := range 2 * maxRecords {
		many.releases = append(many.releases, rel("a", fmt.Sprintf("%03d", i)))
	}
	manyNames, manyRecords := []string{}, []shipper.RolloutBlockOverrideRecord{}
	for i := range 2 * maxRecords {
		manyNames = append(manyNames, fmt.Sprintf("a/%03d", i))
	}
	for i := range maxRecords {
		manyRecords = append(manyRecords, record("Release", fmt.Sprintf("a/%03d", i)))
	}
	by := namers{
		applications: []shipper.Application{app("b", "x"), app("a", "z"), app("a", "y")},
		releases:     []shipper.Release{rel("a", "y-1"), rel("b", "x-1")},
	}
	tests := map[string]struct {
		namespace string
		uid       types.UID
		policy    shipper.RolloutBlockOverridePolicy
		by        namers
		want      shipper.RolloutBlockOverrides
	}{
		"a global block counts all namespaces": {
			namespace: global, by: by, want: shipper.RolloutBlockOverrides{Application: "a/y,a/z,b/x", Release: "a/y-1,b/x-1"},
		},
		"a local block counts its own, with what is known of each": {
			namespace: "a", uid: "this", by: by, want: shipper.RolloutBlockOverrides{
				Application: "a/y,a/z", Release: "a/y-1", Records: []shipper.RolloutBlockOverrideRecord{
					record("Application", "a/y"), record("Application", "a/z"), record("Release", "a/y-1"),
				},
			},
		},
		"of many, all are named and some described": {
			namespace: "a", uid: "this", by: many,
			want: shipper.RolloutBlockOverrides{Release: strings.Join(manyNames, ","), Records: manyRecords},
		},
		"a block of the same name that came later counts none": {namespace: "a", uid: "later", by: by},
		"a block without overrides counts none":                {namespace: "a", uid: "this", policy: "Nobody", by: by},
		"no override":                                          {namespace: "a"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := &shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: "stop", Generation: 3, UID: tc.uid}}
			b.Spec.OverridePolicy = tc.policy
			want := shipper.RolloutBlockStatus{ObservedGeneration: 3, Active: ptr.To(true), Overrides: tc.want}
			if diff := cmp.Diff(want, status(b, tc.by, global, rules.Timing{Active: true}, nil)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestChanges(t *testing.T) {
	block := func(applications, releases string) *shipper.RolloutBlock {
		return &shipper.RolloutBlock{Status: shipper.RolloutBlockStatus{
			Overrides: shipper.RolloutBlockOverrides{Application: applications, Release: releases},
		}}
	}
	event := func(note string) report.Event {
		return report.Event{Type: "Normal", Reason: "RolloutBlockOverridesChanged", Action: "UpdateStatus", Note: note}
	}
	got := changes(block("a/x", ""), block("a/x,a/y", "a/y-1"))
	want := []report.Event{
		event("Overriding Applications: [a/x] -> [a/x,a/y]"), event("Overriding Releases: [] -> [a/y-1]"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := changes(block("a/x", ""), block("a/x", "")); got != nil {
		t.Errorf("nothing changed, but: %v", got)
	}
}

func TestStatusTellsWhen(t *testing.T) {
	at := func(seconds int64) *metav1.Time { return &metav1.Time{Time: time.Unix(seconds, 0).UTC()} }
	for sentence, tc := range map[string]struct {
		timing rules.Timing
		wrong  error
		want   shipper.RolloutBlockStatus
	}{
		"in effect for ever": {rules.Timing{Active: true}, nil, shipper.RolloutBlockStatus{Active: ptr.To(true)}},
		"in effect, and again": {
			rules.Timing{Active: true, NextEnd: at(60).Time, NextStart: at(120).Time}, nil,
			shipper.RolloutBlockStatus{Active: ptr.To(true), NextEnd: at(60), NextStart: at(120)},
		},
		"not in effect yet": {
			rules.Timing{NextStart: at(120).Add(time.Nanosecond)}, nil, shipper.RolloutBlockStatus{Active: ptr.To(false), NextStart: at(120)},
		},
		"never again": {rules.Timing{}, nil, shipper.RolloutBlockStatus{Active: ptr.To(false)}},
		"not to be read": {rules.Timing{Active: true}, errors.New("no cron"), shipper.RolloutBlockStatus{
			Active: ptr.To(true), Message: "in effect, because its schedule cannot be read: no cron",
		}},
		"not to be read, and over": {rules.Timing{}, errors.New("no cron"), shipper.RolloutBlockStatus{
			Active: ptr.To(false), Message: "its schedule cannot be read: no cron",
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := status(&shipper.RolloutBlock{}, namers{}, "everywhere", tc.timing, tc.wrong)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestEventsOfABlock(t *testing.T) {
	record := func(name, reason string) shipper.RolloutBlockOverrideRecord {
		return shipper.RolloutBlockOverrideRecord{Kind: "Application", Name: name, User: "ann", Reason: reason}
	}
	block := func(active *bool, records ...shipper.RolloutBlockOverrideRecord) *shipper.RolloutBlock {
		b := &shipper.RolloutBlock{}
		b.Status.Active, b.Status.Overrides.Records = active, records
		return b
	}
	until := func(b *shipper.RolloutBlock, end, start int64) *shipper.RolloutBlock {
		b.Status.NextEnd, b.Status.NextStart = moment(time.Unix(end, 0)), moment(time.Unix(start, 0))
		return b
	}
	yes, no := ptr.To(true), ptr.To(false)
	for sentence, tc := range map[string]struct {
		was, is *shipper.RolloutBlock
		want    []string
	}{
		"it is seen for the first time": {block(nil), block(yes), nil},
		"it comes into effect":          {block(no), block(yes), []string{"Normal RolloutBlockStarted Turn: in effect"}},
		"it comes into effect until": {block(no), until(block(yes), 60, 120), []string{
			"Normal RolloutBlockStarted Turn: in effect, until 1970-01-01T00:01:00Z; the next time from 1970-01-01T00:02:00Z",
		}},
		"it ceases to be": {block(yes), block(no), []string{"Normal RolloutBlockEnded Turn: not in effect any more"}},
		"two override it, each with an action of its own": {block(yes), block(yes, record("a/x", ""), record("a/y", "outage")), []string{
			"Warning RolloutBlockOverridden Override for Application a/x: ann overrides the block for Application a/x",
			"Warning RolloutBlockOverridden Override for Application a/y: ann overrides the block for Application a/y: outage",
		}},
		"one overrides it still": {block(yes, record("a/x", "")), block(yes, record("a/x", "")), nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got []string
			for _, e := range changes(tc.was, tc.is) {
				got = append(got, fmt.Sprintf("%s %s %s: %s", e.Type, e.Reason, e.Action, e.Note))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestOverrideKeys(t *testing.T) {
	app := func(annotation string) *shipper.Application {
		return &shipper.Application{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{shipper.RolloutBlockOverrideAnnotation: annotation},
		}}
	}
	if diff := cmp.Diff([]string{"a/x", "b/y"}, overrideKeys(app("b/y, a/x"))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := overrideKeys(app("nonsense")); got != nil {
		t.Errorf("an annotation that cannot be read names %v", got)
	}
}
