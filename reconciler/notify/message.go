// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/cloudevents/sdk-go/v2/event"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/outward/body"
)

// typePrefix and typeVersion surround the word in the type of a CloudEvent.
const typePrefix, typeVersion = "com.booking.shipper.release.", ".v1"

// message is what is posted.
type message struct {
	contentType string
	content     []byte
}

// data is that of a CloudEvent without spec.body.
type data struct {
	Application string `json:"application"`
	Release     string `json:"release"`
	Step        int32  `json:"step"`
	StepName    string `json:"stepName"`
	Reason      string `json:"reason"`
	Message     string `json:"message"`
	User        string `json:"user"`
}

// message is the one of a Notification for an event. source is the id of the management cluster.
func (r *Reconciler) message(ctx context.Context, n *shipper.Notification, source string, e Event) (message, *failure) {
	seen := body.Event{
		ID: e.ID, Type: typePrefix + strings.ToLower(string(e.Word)) + typeVersion, Source: source, Subject: e.Namespace + "/" + e.Release,
		Time: e.Time.UTC(), Event: string(e.Word), Application: e.Application, Namespace: e.Namespace, Release: e.Release,
		Step: e.Step, StepName: e.StepName, Reason: e.Reason, Message: e.Message, User: e.User,
	}
	var content any
	if n.Spec.Body != "" {
		var err error
		if content, err = r.bodies.Of(ctx, n.Spec.Body, seen); err != nil {
			f := failed("spec.body %s", err)
			f.final = !errors.Is(err, body.ErrBusy)
			return message{}, f
		}
	}
	var m message
	var err error
	if n.Spec.Format == shipper.NotificationSlack {
		m, err = slack(e, content)
	} else {
		m, err = cloudEvent(seen, content)
	}
	if err != nil {
		f := failed("building the message: %s", err)
		f.final = true
		return message{}, f
	}
	return m, nil
}

// cloudEvent is a CloudEvent in structured mode.
func cloudEvent(e body.Event, content any) (message, error) {
	out := event.New()
	out.SetID(e.ID)
	out.SetType(e.Type)
	out.SetSource(e.Source)
	out.SetSubject(e.Subject)
	out.SetTime(e.Time)
	contentType := event.ApplicationJSON
	if text, ok := content.(string); ok {
		contentType, content = event.TextPlain, []byte(text)
	} else if content == nil {
		content = data{
			Application: e.Application, Release: e.Release, Step: e.Step, StepName: e.StepName, Reason: e.Reason, Message: e.Message,
			User: e.User,
		}
	}
	if err := out.SetData(contentType, content); err != nil {
		return message{}, fmt.Errorf("encoding data: %w", err)
	}
	if err := out.Validate(); err != nil {
		return message{}, fmt.Errorf("it is no CloudEvent: %w", err)
	}
	text, err := json.Marshal(out)
	return message{event.ApplicationCloudEventsJSON, text}, err
}

// slack is a message for an incoming webhook of Slack.
func slack(e Event, content any) (message, error) {
	switch text := content.(type) {
	case nil:
		content = map[string]any{"text": sentence(e)}
	case string:
		content = map[string]any{"text": text}
	}
	text, err := json.Marshal(content)
	return message{event.ApplicationJSON, text}, err
}

// escape keeps texts from mentioning people and channels of Slack.
var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// sentence is what Slack shows of an event.
func sentence(e Event) string {
	if e.Word == testWord {
		return escape.Replace(e.Message)
	}
	step := fmt.Sprintf("step %d", e.Step)
	if e.StepName != "" {
		step += " (" + e.StepName + ")"
	}
	by := ""
	if e.User != "" {
		by = " by " + e.User
	}
	because := ""
	if e.Message != "" {
		because = ": " + e.Message
	}
	waits, command := "has achieved "+step+" and waits for a user", "advance"
	switch e.Reason {
	case shipper.AdvancingAwaitingApproval:
		waits, command = "waits for approvals at "+step+"; "+e.Message, "approve"
	case shipper.AdvancingCheckUndecided:
		waits, command = "is held at "+step+"; "+e.Message, "retry-checks"
	}
	verb := map[shipper.NotificationEvent]string{
		shipper.NotificationStarted:      "was started" + by,
		shipper.NotificationStepAchieved: "has achieved " + step,
		shipper.NotificationWaiting:      fmt.Sprintf("%s: shipperctl rollout %s %s -n %s", waits, command, e.Application, e.Namespace),
		shipper.NotificationFailed:       "has failed at " + step + because,
		shipper.NotificationWentBack:     "was moved back to " + step + by + because,
		shipper.NotificationAborted:      "was aborted at " + step,
		shipper.NotificationRolledBack:   "was rolled back",
		shipper.NotificationCompleted:    "is complete",
		shipper.NotificationBlocked:      "is stopped at " + step + " by RolloutBlocks" + because,
		shipper.NotificationUnblocked:    "is no longer stopped at " + step,
	}[e.Word]
	return escape.Replace(fmt.Sprintf("Release %s/%s of Application %s %s", e.Namespace, e.Release, e.Application, verb))
}
