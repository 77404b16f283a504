// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// TestPruningRacesInstalling removes what an older target installed while a newer one installs the same: whichever is first, the
// newer one has it in the end, and nothing else is left.
func TestPruningRacesInstalling(t *testing.T) {
	t.Parallel()
	publishPrunable(t)
	publishHooked(t)
	t.Run("the newer one lists it and has not taken it over", func(t *testing.T) {
		s := begin(t, west)
		older := s.hooked("web-1")
		s.installed("web-1")
		was := &corev1.Service{}
		s.find(west, "gizmo", was)
		s.takeOver("web-1", false)
		s.hooked("web-2", map[string]any{"name": "migrate", "on": "pre-upgrade", "suspended": true})
		s.awaits("web-2", "pre-upgrade", "migrate")
		s.must(s.management.Delete(s.ctx, older))
		s.gone(older)
		is := &corev1.Service{}
		if s.find(west, "gizmo", is); is.UID != was.UID || is.DeletionTimestamp != nil {
			t.Errorf("while the newer one waits for its hook the Service is gone, or about to go: %+v", is.ObjectMeta)
		}
		s.letGo("migrate")
		s.installed("web-2")
		if s.find(west, "gizmo", is); is.UID != was.UID || is.Labels[shipper.OwnedByLabel] != "web-2" || is.DeletionTimestamp != nil {
			t.Errorf("in the end the Service is another, or not the newer one's: %+v", is.ObjectMeta)
		}
	})
	t.Run("it is going when the newer one comes", func(t *testing.T) {
		s := begin(t, west)
		older := s.install("web-1", "prunable", "0.0.1", shipper.ChartValues{"plain": []any{"shared"}}, west)
		s.installed("web-1")
		was := &corev1.ConfigMap{}
		s.find(west, "shared", was)
		s.meddle(west, was, func() { was.Finalizers = []string{"example.com/slow"} })
		s.must(s.management.Delete(s.ctx, older))
		s.soon("it does not go", func() string {
			if s.find(west, "shared", was); was.DeletionTimestamp == nil {
				return fmt.Sprint(was.ObjectMeta)
			}
			return ""
		})
		s.install("web-2", "prunable", "0.0.1", shipper.ChartValues{"plain": []any{"shared"}}, west)
		s.notInstalled("web-2", west, shipper.InProgress)
		s.meddle(west, was, func() { was.Finalizers = nil })
		s.gone(older)
		s.installed("web-2")
		is := &corev1.ConfigMap{}
		if s.find(west, "shared", is); is.UID == was.UID || is.Labels[shipper.OwnedByLabel] != "web-2" || is.DeletionTimestamp != nil {
			t.Errorf("it was not made again: %+v", is.ObjectMeta)
		}
	})
	t.Run("both at once", func(t *testing.T) {
		s := begin(t, west)
		before := s.install("web-0", "prunable", "0.0.1", shipper.ChartValues{"plain": []any{"only-0", "shared"}}, west)
		s.installed("web-0")
		for i := 1; i <= 10; i++ {
			s.takeOver(before.Name, false)
			name := fmt.Sprintf("web-%d", i)
			plain := []any{fmt.Sprintf("only-%d", i), "shared"}
			deleted := make(chan error)
			go func() { deleted <- s.management.Delete(s.ctx, before) }()
			next := s.install(name, "prunable", "0.0.1", shipper.ChartValues{"plain": plain}, west)
			s.must(<-deleted)
			s.gone(before)
			s.installed(name)
			s.soon("what is left in round "+name, func() string {
				return cmp.Diff([]string{fmt.Sprintf("only-%d", i), "shared"}, s.shared(name+"-anchor"))
			})
			cm := &corev1.ConfigMap{}
			if s.find(west, "shared", cm); cm.Labels[shipper.OwnedByLabel] != name || cm.DeletionTimestamp != nil {
				t.Errorf("it is not the newer one's: %+v", cm.ObjectMeta)
			}
			before = next
		}
	})
}
