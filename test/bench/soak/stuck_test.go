// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestStuck(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*shipper.Application, *shipper.Release)
		want   string // part of what is said; empty: it is at rest
	}{
		"at the step that is wanted": {func(*shipper.Application, *shipper.Release) {}, ""},
		"on its way": {func(_ *shipper.Application, rel *shipper.Release) {
			rel.Spec.TargetStep = 2
		}, "not at step 2"},
		"waiting for an image that cannot be pulled, as it says": {func(_ *shipper.Application, rel *shipper.Release) {
			rel.Spec.TargetStep, rel.Spec.Environment.Values = 2, &shipper.ChartValues{"image": map[string]any{"tag": broken}}
			rel.Status.Strategy = &shipper.ReleaseStrategyStatus{Conditions: []shipper.ReleaseStrategyCondition{{Condition: shipper.Condition{
				Type: shipper.StrategyContenderAchievedCapacity, Status: corev1.ConditionFalse, Message: `1x"app" containers with [ImagePullBackOff]`,
			}}}}
		}, ""},
		"waiting for an image that cannot be pulled, without a word": {func(_ *shipper.Application, rel *shipper.Release) {
			rel.Spec.TargetStep, rel.Spec.Environment.Values = 2, &shipper.ChartValues{"image": map[string]any{"tag": broken}}
		}, "does not say"},
		"a change of the Application was not seen": {func(app *shipper.Application, _ *shipper.Release) {
			app.Generation++
		}, "Application's last change"},
		"a change of the Release was not seen": {func(_ *shipper.Application, rel *shipper.Release) {
			rel.Generation++
		}, "last change of Release"},
		"blocked, without a block": {func(app *shipper.Application, _ *shipper.Release) {
			app.Status.Conditions = append(app.Status.Conditions, shipper.Condition{Type: shipper.ApplicationBlocked, Status: corev1.ConditionTrue})
		}, "blocked"},
		"going": {func(app *shipper.Application, _ *shipper.Release) { app.DeletionTimestamp = &metav1.Time{} }, "no such Application"},
	} {
		t.Run(name, func(t *testing.T) {
			app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
			app.Status.ObservedGeneration = 3
			app.Status.Conditions = []shipper.Condition{{Type: shipper.ApplicationReleaseSynced, Status: corev1.ConditionTrue}}
			rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Name: "app-1", Generation: 1}, Spec: shipper.ReleaseSpec{TargetStep: 1}}
			rel.Status.ObservedGeneration, rel.Status.AchievedStep = 1, &shipper.AchievedStep{Step: 1}
			rel.Status.Conditions = []shipper.Condition{
				{Type: shipper.ReleaseScheduled, Status: corev1.ConditionTrue}, {Type: shipper.ReleaseStrategyExecuted, Status: corev1.ConditionTrue},
			}
			tc.change(app, rel)
			got := stuck(app, rel)
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("it says %q, want %q", got, tc.want)
			}
		})
	}
}
