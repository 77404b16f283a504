// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"shipper.dev/shipper/reconciler/fleet"
	"shipper.dev/shipper/reconciler/recorder"
)

// toldIn are the events of a namespace as both APIs show them: reporter, reason, object and count.
func (s *fixture) toldIn() []string {
	s.Helper()
	var list eventsv1.EventList
	s.must(s.management.List(s.ctx, &list, client.InNamespace(s.namespace)))
	var older corev1.EventList
	s.must(s.management.List(s.ctx, &older, client.InNamespace(s.namespace)))
	var out []string
	for _, e := range list.Items {
		text := fmt.Sprintf("%s: %s %s by %s of %s %s: %s", e.ReportingController, e.Type, e.Reason, e.Action, e.Regarding.Kind,
			e.Regarding.Name, e.Note)
		for _, o := range older.Items {
			if o.UID == e.UID && (o.Message != e.Note || o.InvolvedObject.UID != e.Regarding.UID || !o.EventTime.Equal(&e.EventTime)) {
				s.Errorf("the older API shows %+v", o)
			}
		}
		if e.Series != nil {
			text += fmt.Sprintf(" x%d", e.Series.Count)
		}
		out = append(out, text)
	}
	return out
}

func TestAnEventThatRepeatsIsCounted(t *testing.T) {
	s := begin(t)
	mgr, err := ctrl.NewManager(world.members[self].Config, manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	s.must(err)
	mgr, err = recorder.Manager(mgr, fleet.UserAgent, nil)
	s.must(err)
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	<-mgr.Elected()

	ns := &corev1.Namespace{}
	s.must(s.management.Get(s.ctx, client.ObjectKey{Name: s.namespace}, ns))
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name, account.UID = s.namespace, "web", ns.UID
	tell := func(note string) {
		mgr.GetEventRecorder(fleet.UserAgent).Eventf(account, nil, "Warning", "Held", "Hold "+note, "%s", note)
	}
	shows := func(want string) {
		s.Helper()
		s.soon("the event", func() string { return cmp.Diff([]string{want}, s.toldIn()) })
	}
	const event = "shipper-reconciler: Warning Held by Hold by a of ServiceAccount web: by a"
	for _, want := range []string{event, event + " x2"} {
		tell("by a")
		shows(want)
	}

	tell("by b")
	began := time.Now()
	cancel()
	s.must(<-ended)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the end took %s", took)
	}
	if got := len(s.toldIn()); got != 2 {
		t.Errorf("at the end %d events are reported", got)
	}
}
