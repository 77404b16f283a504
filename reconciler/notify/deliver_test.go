// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

func TestCloudEventsAreDelivered(t *testing.T) {
	s := newServer(t)
	f := newFixture(t, here, notification(), secret(s.URL+secretPath))
	f.pass()
	if got := f.delivering(); got != "Unknown NotDelivered" {
		t.Errorf("before the first: %s", got)
	}
	f.later(10 * time.Second)
	f.completes("web-1")
	f.pass()
	want := []map[string]any{{
		"specversion": "1.0", "type": "com.booking.shipper.release.completed.v1", "source": "management", "subject": "shop/web-1",
		"time": "2026-05-01T12:00:09Z", "datacontenttype": "application/json",
		"data": map[string]any{
			"application": "web", "release": "web-1", "step": 2.0, "stepName": "full on", "reason": "", "message": "", "user": "ann",
		},
	}}
	if diff := cmp.Diff(want, s.got(), cmpopts.IgnoreMapEntries(func(k string, _ any) bool { return k == "id" })); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if id, _ := s.got()[0]["id"].(string); len(id) != 32 {
		t.Errorf("the id is %q", id)
	}
	head := s.heads[0]
	if head.Get("Authorization") != "Bearer opensesame" || head.Get("Content-Type") != "application/cloudevents+json" {
		t.Errorf("headers: %v", head)
	}
	got := f.status()
	if f.delivering() != "True Delivered" || !got.LastDeliveryTime.Time.Equal(noon.Add(10*time.Second)) ||
		!got.DeliveredUpToTime.Time.Equal(noon.Add(9*time.Second)) || got.ObservedGeneration != 1 || f.counted("delivered") != 1 {
		t.Errorf("status: %+v", got)
	}
	f.completes("web-1")
	f.pass()
	if len(s.got()) != 1 {
		t.Error("the same change is sent twice")
	}
}

func TestSlackGetsASentenceOrTheBody(t *testing.T) {
	for body, want := range map[string]map[string]any{
		"":                                 {"text": "Release shop/web-1 of Application web is complete"},
		`event.release + " <b>"`:           {"text": "web-1 <b>"},
		`{"text": "x", "channel": "#ops"}`: {"text": "x", "channel": "#ops"},
	} {
		s := newServer(t)
		f := newFixture(t, here, notification(func(n *shipper.Notification) {
			n.Spec.Format, n.Spec.Body = shipper.NotificationSlack, body
		}), secret(s.URL+secretPath))
		f.completes("web-1")
		f.pass()
		if diff := cmp.Diff([]map[string]any{want}, s.got()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", body, diff)
		}
	}
}

func TestSentencesMentionNobody(t *testing.T) {
	e := Event{Word: shipper.NotificationFailed, Namespace: "shop", Application: "web", Release: "web-1", Step: 1, StepName: "canary",
		Message: "<!channel> & more"}
	const want = "Release shop/web-1 of Application web has failed at step 1 (canary): &lt;!channel&gt; &amp; more"
	if got := sentence(e); got != want {
		t.Errorf("got %q", got)
	}
}

func TestSentencesOfAWaitEndWithTheCommand(t *testing.T) {
	for reason, want := range map[string]string{
		shipper.AdvancingAwaitingCommand: "has achieved step 1 (canary) and waits for a user: shipperctl rollout advance web -n shop",
		shipper.AdvancingAwaitingApproval: "waits for approvals at step 1 (canary); step 1 has 0 of 2 approvals: " +
			"shipperctl rollout approve web -n shop",
	} {
		e := Event{Word: shipper.NotificationWaiting, Namespace: "shop", Application: "web", Release: "web-1", Step: 1, StepName: "canary",
			Reason: reason, Message: "step 1 has 0 of 2 approvals"}
		if got := sentence(e); got != "Release shop/web-1 of Application web "+want {
			t.Errorf("%s: %s", reason, got)
		}
	}
}

func TestNotificationsAreFilteredByEventApplicationAndNamespace(t *testing.T) {
	labelled := func(value string) func(*shipper.Notification) {
		return func(n *shipper.Notification) { n.Spec.Applications = selector("team", value) }
	}
	for sentence, tc := range map[string]struct {
		edit func(*shipper.Notification)
		want int
	}{
		"one without a selector":         {func(*shipper.Notification) {}, 1},
		"one for the Application":        {labelled("a"), 1},
		"one for other Applications":     {labelled("b"), 0},
		"one for other changes":          {func(n *shipper.Notification) { n.Spec.Events = []shipper.NotificationEvent{"Started"} }, 0},
		"one for this change":            {func(n *shipper.Notification) { n.Spec.Events = []shipper.NotificationEvent{"StepAchieved"} }, 1},
		"one of another namespace":       {func(n *shipper.Notification) { n.Namespace = "other" }, 0},
		"one of Shipper's own namespace": {func(n *shipper.Notification) { n.Namespace = shipper.SystemNamespace }, 1},
	} {
		s := newServer(t)
		n, hidden := notification(tc.edit), secret(s.URL)
		hidden.Namespace = n.Namespace
		f := newFixture(t, here, n, hidden)
		f.key.Namespace = n.Namespace
		f.completes("web-1")
		f.pass()
		if got := len(s.got()); got != tc.want {
			t.Errorf("%s gets %d messages, want %d", sentence, got, tc.want)
		}
	}
}

func TestAServerThatIsDownGetsEachOnceItIsUp(t *testing.T) {
	s := newServer(t)
	f := newFixture(t, here, notification(), secret(s.URL+secretPath))
	s.does(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	f.completes("web-1")
	f.completes("web-2")
	var waits []time.Duration
	for range 11 {
		wait := f.pass()
		waits = append(waits, wait.Round(time.Second))
		f.later(wait)
	}
	seconds := []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}
	for i, want := range seconds {
		if waits[i] != time.Duration(want)*time.Second {
			t.Errorf("attempt %d is repeated after %s", i, waits[i])
		}
	}
	const down = "False DeliveryFailed the server answers 500 Internal Server Error"
	if got := f.status(); f.delivering() != down || got.ConsecutiveFailures != 11 || got.LastDeliveryTime != nil {
		t.Errorf("while it is down: %s %+v", f.delivering(), got)
	}
	s.does(nil)
	f.pass()
	if got := f.status(); len(s.got()) != 2 || f.delivering() != "True Delivered" || got.ConsecutiveFailures != 0 {
		t.Errorf("when it is up: %d messages, %s %+v", len(s.got()), f.delivering(), got)
	}
}

func TestAnEventIsGivenUpAfterAnHour(t *testing.T) {
	f := newFixture(t, here, notification(), secret("http://127.0.0.1:1"+secretPath)) // no server listens there
	f.completes("web-1")
	for f.now.Now().Before(noon.Add(giveUpAfter)) {
		wait := f.pass()
		if wait == 0 {
			t.Fatal("it is not tried again")
		}
		f.later(wait)
	}
	f.pass()
	if got := f.delivering(); !strings.HasPrefix(got, "False DeliveryFailed the server cannot be reached: dial") || f.counted("failed") != 1 {
		t.Errorf("%s, %d failed", got, f.counted("failed"))
	}
	if wait := f.pass(); wait > quietAfter || f.status().ConsecutiveFailures < 15 {
		t.Errorf("it is tried again after %s, or was hardly: %d", wait, f.status().ConsecutiveFailures)
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"120": 2 * time.Minute, "0": time.Second, "-5": time.Second, "x": time.Second, "999999": giveUpAfter,
		noon.Add(90 * time.Second).Format(http.TimeFormat): 90 * time.Second,
	} {
		s := newServer(t)
		s.does(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", header)
			w.WriteHeader(http.StatusTooManyRequests)
		})
		f := newFixture(t, here, notification(), secret(s.URL))
		f.completes("web-1")
		if got := f.pass(); got != want {
			t.Errorf("%s: the next attempt is after %s, want %s", header, got, want)
		}
		f.later(want - time.Nanosecond)
		f.completes("web-2") // a request before that time is none
		f.pass()
		if got := len(s.got()); got != 1 {
			t.Errorf("%s: there are %d attempts", header, got)
		}
	}
}

func TestAMessageThatIsRefusedIsNotSentAgain(t *testing.T) {
	s := newServer(t)
	s.does(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) })
	f := newFixture(t, here, notification(), secret(s.URL))
	f.completes("web-1")
	f.completes("web-2")
	f.pass()
	if f.counted("failed") != 2 || len(s.got()) != 2 || f.delivering() != "False DeliveryFailed the server answers 400 Bad Request" {
		t.Errorf("%d failed, %d sent, %s", f.counted("failed"), len(s.got()), f.delivering())
	}
}

func TestServersThatDoNotAnswer(t *testing.T) {
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })
	s := newServer(t)
	f := newFixture(t, here, notification(), secret(s.URL+secretPath))
	for sentence, tc := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request)
		want   string
	}{
		"no answer": {func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-end:
			case <-r.Context().Done():
			}
		}, "False DeliveryFailed the server cannot be reached: no whole answer in time: context deadline exceeded"},
		"a body without an end": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusAccepted)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-end:
			case <-r.Context().Done():
			}
		}, "True Delivered"},
		"a redirect to a metadata service": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/latest"+secretPath, http.StatusTemporaryRedirect)
		}, "False DeliveryFailed the server answers 307 Temporary Redirect; redirects are not followed"},
	} {
		s.does(tc.answer)
		f.later(2 * giveUpAfter)
		f.completes(sentence)
		f.pass()
		if got := f.delivering(); got != tc.want {
			t.Errorf("%s: %s", sentence, got)
		}
	}
}

func TestTooManyEventsAreDropped(t *testing.T) {
	f := newFixture(t, here, notification(), secret("http://127.0.0.1:1"))
	for i := range maxQueued + 3 {
		f.completes(fmt.Sprintf("web-%d", i))
	}
	if got := f.counted("dropped"); got != 3 {
		t.Errorf("%d are dropped", got)
	}
}
