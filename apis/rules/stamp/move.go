// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"bytes"
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"shipper.dev/shipper/apis/rules/position"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// Moved is the last noted change of a Release's targetStep; the zero value when none was noted.
func Moved(rel *shipper.Release) shipper.ReleaseMove {
	var m shipper.ReleaseMove
	if json.Unmarshal([]byte(rel.Annotations[shipper.ReleaseMovedAnnotation]), &m) != nil {
		return shipper.ReleaseMove{}
	}
	return m
}

// WentBack reports whether the last change of a Release's position was to lower it. A change that no webhook has noted is known by the
// figures of the position before, or by the one that was achieved.
func WentBack(rel *shipper.Release) bool {
	target, m, p := position.Of(rel), Moved(rel), rel.Status.Progress
	from, to := Ends(m)
	var was position.Position
	if p != nil {
		was = position.Position{Wave: p.Wave, Step: p.Step}
	}
	switch {
	case p != nil && was == target && p.Move == m.Count:
		return p.MovedBack
	case m.Count > 0 && to == target && (p == nil || p.Move != m.Count):
		return to.Before(from)
	case p != nil:
		return target.Before(was)
	}
	return target.Before(position.Achieved(rel))
}

// Ends are the positions before and after a move.
func Ends(m shipper.ReleaseMove) (from, to position.Position) {
	return position.Position{Wave: m.FromWave, Step: m.From}, position.Position{Wave: m.ToWave, Step: m.To}
}

// Move is the note of a change of targetStep and targetWave from old's to rel's.
func Move(old, rel *shipper.Release, by, why string, now metav1.Time) string {
	return note(shipper.ReleaseMove{
		By: by, Time: metav1.Time{Time: now.UTC()}.Rfc3339Copy(), From: old.Spec.TargetStep, To: rel.Spec.TargetStep,
		FromWave: position.Wave(old), ToWave: position.Wave(rel), Count: Moved(old).Count + 1, Why: why,
	})
}

// note writes a user's name as it is: a policy looks for it.
func note(m shipper.ReleaseMove) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(m) != nil {
		return ""
	}
	return strings.TrimSpace(out.String())
}
