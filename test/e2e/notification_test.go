// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// hook is a receiver of CloudEvents. While it is down it accepts none.
type hook struct {
	*httptest.Server
	mu       sync.Mutex
	up       bool
	refused  int
	accepted map[string]int    // by id
	words    map[string]string // the last part of the type, with the step, by id
}

func newHook(t *testing.T) *hook {
	t.Helper()
	h := &hook{accepted: map[string]int{}, words: map[string]string{}}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e struct {
			ID, Type string
			Data     struct{ Step int }
		}
		err := json.NewDecoder(r.Body).Decode(&e)
		h.mu.Lock()
		defer h.mu.Unlock()
		if err != nil || !h.up {
			h.refused++
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		h.accepted[e.ID]++
		h.words[e.ID] = fmt.Sprintf("%s %d", strings.TrimSuffix(strings.TrimPrefix(e.Type, "com.booking.shipper.release."), ".v1"), e.Data.Step)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hook) goesUp() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.up = true
}

func (h *hook) wasTried() (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return fmt.Sprint(h.refused > 0), nil
}

// received lists what was accepted, each id once.
func (h *hook) received() (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Values(h.words)), ", "), nil
}

func (h *hook) repeated() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for id, times := range h.accepted {
		if times != 1 {
			out = append(out, fmt.Sprintf("%s %d times", h.words[id], times))
		}
	}
	return out
}

// TestNotificationsArriveThroughALeaderChange is not parallel: all tests share the reconciler. The receiver is down until another
// process leads. It then gets each change once; a further leader makes no other ids.
func TestNotificationsArriveThroughALeaderChange(t *testing.T) {
	const hidden = "/services/n0body-sees-this"
	s := begin(t, []string{west}, []string{westRegion})
	h := newHook(t)
	s.letsShipperRead()
	s.Must("creating the Secret", world.Management.Create(s.Ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "hook"}, StringData: map[string]string{"url": h.URL + hidden},
	}))
	n := &shipper.Notification{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "hook"},
		Spec: shipper.NotificationSpec{
			To:     shipper.NotificationReceiver{SecretName: "hook"},
			Events: append(shipper.DefaultNotificationEvents(), shipper.NotificationStarted, shipper.NotificationStepAchieved),
		},
	}
	s.Must("creating the Notification", world.Management.Create(s.Ctx, n))
	if n.Spec.Format != shipper.NotificationCloudEvents {
		t.Errorf("the format is %q by default", n.Spec.Format)
	}
	s.applies(s.application("0.0.1", 1, vanguard))
	rel := s.Release(0)
	s.WaitsForCommand(rel, 0)
	s.Eventually("whether the receiver was tried", "true", h.wasTried)

	s.Must("stopping the leader", world.Pod.Reconciler.Stop())
	h.goesUp()
	s.Must("starting another", world.Pod.StartReconciler(s.Ctx))
	// The Release shows these until it moves on.
	s.Eventually("what the receiver got", "started 0, stepachieved 0, waiting 0", h.received)
	s.Steps(rel, 1)
	s.WaitsForCommand(rel, 1)
	s.Steps(rel, 2)
	s.Completes(rel)
	const all = "completed 2, started 0, stepachieved 0, stepachieved 1, stepachieved 2, waiting 0, waiting 1"
	s.Eventually("what the receiver got", all, h.received)
	if again := h.repeated(); len(again) > 0 {
		t.Errorf("it got more than once: %v", again)
	}
	s.Eventually("whether messages arrive", "True 0", func() (string, error) {
		err := world.Management.Get(s.Ctx, client.ObjectKeyFromObject(n), n)
		c := shipper.FindCondition(n.Status.Conditions, shipper.NotificationDelivering)
		if c == nil {
			return "not known", err
		}
		return fmt.Sprintf("%s %d", c.Status, n.Status.ConsecutiveFailures), err
	})

	s.Must("asking for a test", world.Management.Patch(s.Ctx, n, client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"`+shipper.NotificationTestAnnotation+`":"1"}}}`))))
	s.Eventually("the test", "accepted", func() (string, error) {
		err := world.Management.Get(s.Ctx, client.ObjectKeyFromObject(n), n)
		if n.Status.Test == nil || !n.Status.Test.Accepted {
			return fmt.Sprintf("%+v", n.Status.Test), err
		}
		return "accepted", err
	})
	tail := world.Pod.Reconciler.Tail()
	s.Must("stopping the leader", world.Pod.Reconciler.Stop())
	s.Must("starting another", world.Pod.StartReconciler(s.Ctx))
	s.Steps(rel, 1)
	s.WaitsForCommand(rel, 1) // by the new leader, which therefore derives this
	s.Eventually("what the receiver got", "completed 2, started 0, stepachieved 0, stepachieved 1, stepachieved 1, stepachieved 2, "+
		"test 0, waiting 0, waiting 1, waiting 1, wentback 1", h.received)

	shown := []string{tail, world.Pod.Reconciler.Tail(), world.Pod.Webhook.Tail()}
	for _, list := range []client.ObjectList{&shipper.NotificationList{}, &shipper.ReleaseList{}, &eventsv1.EventList{}} {
		s.Must("listing what was written", world.Management.List(s.Ctx, list, client.InNamespace(s.Namespace)))
		text, err := json.Marshal(list)
		s.Must("encoding it", err)
		shown = append(shown, string(text))
	}
	for _, text := range shown {
		if strings.Contains(text, hidden) {
			t.Errorf("the URL is shown: %s", text)
		}
	}
}
