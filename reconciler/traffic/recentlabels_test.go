// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestPodsAreShownAsTheyWereLabelledLast(t *testing.T) {
	pod := func(uid types.UID, version, value string) corev1.Pod {
		out := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: uid, ResourceVersion: version}}
		if value != "" {
			out.Labels = map[string]string{shipper.TrafficStatusLabel: value}
		}
		return out
	}
	began := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for sentence, tc := range map[string]struct {
		cached corev1.Pod
		after  time.Duration
		want   string
	}{
		"the cache does not know it yet":       {pod("1", "9", ""), fresh - 1, "enabled"},
		"nor that it was let in again":         {pod("1", "9", "disabled"), 0, "enabled"},
		"the cache knows it":                   {pod("1", "10", "enabled"), 0, "enabled"},
		"somebody wrote another one since":     {pod("1", "11", "disabled"), 0, "disabled"},
		"the cache does not know it for long":  {pod("1", "9", "disabled"), fresh, "disabled"},
		"it is another Pod":                    {pod("2", "9", "disabled"), 0, "disabled"},
		"what the cache says has no order yet": {pod("1", "", "disabled"), 0, "disabled"},
	} {
		l, wrote := newRecentLabels(), pod("1", "10", "enabled")
		l.wrote(&wrote, began)
		for range 2 { // looking changes nothing
			pods := []corev1.Pod{*tc.cached.DeepCopy()}
			l.show(pods, began.Add(tc.after))
			if got := pods[0].Labels[shipper.TrafficStatusLabel]; got != tc.want {
				t.Errorf("%s: it is shown as %q, want %q", sentence, got, tc.want)
			}
		}
	}
	l := newRecentLabels()
	first, second := pod("1", "10", "enabled"), pod("2", "11", "enabled")
	l.wrote(&first, began)
	l.wrote(&second, began.Add(fresh))
	if _, is := l.pods["1"]; is {
		t.Error("a Pod that nobody asks for is remembered for ever")
	}
}
