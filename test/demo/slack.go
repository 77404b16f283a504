// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// slack is a local server that receives what Slack would.
type slack struct {
	*httptest.Server
	mu    sync.Mutex
	texts []string
}

func newSlack() *slack {
	s := &slack{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		message := struct{ Text string }{}
		if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.texts = append(s.texts, message.Text)
	}))
	return s
}

// received returns the texts so far.
func (s *slack) received() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.texts)
}

// notify has Shipper send messages to the local server, as the owner of a namespace would.
func (s *fixture) notify(ctx context.Context) error {
	s.slack = newSlack()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "slack"}, StringData: map[string]string{"url": s.slack.URL + "/services/T0"},
	}
	if err := s.management.Create(ctx, secret); err != nil {
		return fmt.Errorf("creating the Secret: %w", err)
	}
	if _, err := s.show(ctx, s.kubectl, "create", "rolebinding", shipper.NamespaceReader, "--clusterrole="+shipper.NamespaceReader,
		"--serviceaccount="+shipper.SystemNamespace+":"+shipper.ManagementServiceAccount); err != nil {
		return err
	}
	file := filepath.Join(s.dir, "slack.yaml")
	if err := os.WriteFile(file, []byte(`apiVersion: shipper.booking.com/v1alpha1
kind: Notification
metadata:
  name: slack
spec:
  to: {secretName: slack}
  format: Slack
  events: [Waiting, Blocked, Failed, WentBack, Aborted, Completed]
`), 0o600); err != nil {
		return fmt.Errorf("writing the Notification: %w", err)
	}
	_, err := s.show(ctx, s.kubectl, "apply", "-f", file)
	return err
}

// slackReceived waits until the local server has received the messages about the rollouts, and prints them.
func (s *fixture) slackReceived(ctx context.Context) error {
	if err := s.slackHas(ctx,
		"of Application "+application+" has achieved step 0 (preview) and waits for a user",
		"is stopped at step 0 (preview) by RolloutBlocks",
		s.contender+" of Application "+application+" has failed at step 0 (preview)",
		s.contender+" of Application "+application+" was aborted at step 0",
	); err != nil {
		return err
	}
	_, err := s.show(ctx, s.kubectl, "get", "notification")
	return err
}

// slackHas waits until the local server has received messages with these words, and prints all that it has.
func (s *fixture) slackHas(ctx context.Context, all ...string) error {
	for _, words := range all {
		if err := s.await(ctx, patience, "whether Slack received: "+words, "true", func(context.Context) (string, error) {
			return fmt.Sprint(slices.ContainsFunc(s.slack.received(), func(text string) bool { return strings.Contains(text, words) })), nil
		}); err != nil {
			return err
		}
	}
	texts := s.slack.received()
	for _, text := range texts {
		fmt.Fprintln(s.out, "    "+text)
	}
	s.fact("a local server in Slack's place received these %d messages", len(texts))
	return nil
}
