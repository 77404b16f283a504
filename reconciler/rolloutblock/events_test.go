// SPDX-License-Identifier: Apache-2.0

package rolloutblock

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// recorder keeps what it is given.
type recorder struct{ got []string }

func (r *recorder) Eventf(_, _ runtime.Object, kind, reason, action, note string, args ...any) {
	r.got = append(r.got, strings.Join([]string{kind, reason, action, fmt.Sprintf(note, args...)}, " | "))
}

func TestEventsAboutABlockComeFromWhatTheWatchDelivers(t *testing.T) {
	block := func(edits ...func(*shipper.RolloutBlock)) *shipper.RolloutBlock {
		b := &shipper.RolloutBlock{
			ObjectMeta: metav1.ObjectMeta{Namespace: "global", Name: "dns", UID: types.UID("1")},
			Spec:       shipper.RolloutBlockSpec{Message: "DNS issues", Author: shipper.RolloutBlockAuthor{Type: "user", Name: "jdoe"}},
		}
		for _, edit := range edits {
			edit(b)
		}
		return b
	}
	warns := func(b *shipper.RolloutBlock) { b.Spec.Enforcement = shipper.RolloutBlockWarn }
	aborts := func(b *shipper.RolloutBlock) { b.Spec.Allow = []shipper.RolloutBlockChange{shipper.RolloutBlockAbort} }
	another := func(b *shipper.RolloutBlock) { b.UID = "2" }
	says := func(text string) func(*shipper.RolloutBlock) {
		return func(b *shipper.RolloutBlock) { b.Spec.Message = text }
	}
	creator := func(name string) func(*shipper.RolloutBlock) {
		return func(b *shipper.RolloutBlock) {
			b.Annotations = map[string]string{shipper.RolloutBlockCreatedByAnnotation: name}
		}
	}
	const audit = "; the API server's audit log has who did it"
	const weakened = "Warning | RolloutBlockWeakened | Update of "
	const lifted = "Warning | RolloutBlockLifted | Delete | the block of jdoe"
	for sentence, tc := range map[string]struct {
		was, is *shipper.RolloutBlock
		want    string
	}{
		"it stops less": {
			block(), block(warns), weakened + "enforcement | the block of jdoe was changed and stops less now: enforcement" + audit,
		},
		"it stops less in two ways": {
			block(), block(warns, aborts),
			weakened + "allow, enforcement | the block of jdoe was changed and stops less now: allow, enforcement" + audit,
		},
		"it stops more":                    {block(warns), block(), ""},
		"it has another message":           {block(), block(says("other")), ""},
		"it has another label":             {block(), block(creator("x")), ""},
		"it is another block of that name": {block(), block(warns, another), ""},
		"it is deleted":                    {block(), nil, lifted + " was deleted" + audit + ": DNS issues"},
		"it is deleted, and another than its author had created it": {
			block(creator("bob")), nil, lifted + " (created by bob) was deleted" + audit + ": DNS issues",
		},
		"it is deleted, and its author had created it": {block(creator("jdoe")), nil, lifted + " was deleted" + audit + ": DNS issues"},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := &recorder{}
			if h := observer(r); tc.is == nil {
				h.Delete(t.Context(), event.DeleteEvent{Object: tc.was}, nil)
			} else {
				h.Update(t.Context(), event.UpdateEvent{ObjectOld: tc.was, ObjectNew: tc.is}, nil)
			}
			var want []string
			if tc.want != "" {
				want = []string{tc.want}
			}
			if diff := cmp.Diff(want, r.got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}
