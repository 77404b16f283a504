// SPDX-License-Identifier: Apache-2.0

package shipperctl

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/cmd/shipperctl/cli"
	"shipper.dev/shipper/cmd/shipperctl/root"
)

// rolloutStatusWaits waits for a Release that is not complete: in vain, until it is interrupted, and until it is complete.
func rolloutStatusWaits(t *testing.T) {
	s := open(t, "waits", "eu-west-1")
	complete := s.rel.Status.DeepCopy()
	s.rel.Status.Conditions, s.rel.Status.AchievedStep = nil, nil
	c := management(t)
	if err := c.Status().Update(t.Context(), s.rel); err != nil {
		t.Fatal(err)
	}
	status := strings.Fields("rollout status web -n waits --wait")

	_, err := shipperctl(t, "", "", append(status, "--timeout", "1s")...)
	if cli.ExitCode(err) != cli.TimedOut || !strings.Contains(err.Error(), "was not achieved within 1s: it waits for ") {
		t.Errorf("when the time is over: exit code %d, %v", cli.ExitCode(err), err)
	}
	_, err = shipperctl(t, "", "", append(status, "--step", "7")...)
	if cli.ExitCode(err) != cli.Failed || !strings.Contains(err.Error(), "has no step 7: its last one is 0") {
		t.Errorf("for a step that there is not: exit code %d, %v", cli.ExitCode(err), err)
	}
	_, err = shipperctl(t, "", "", "rollout", "status", "nothing", "-n", "waits", "--wait")
	if cli.ExitCode(err) != cli.Failed {
		t.Errorf("for an application that there is not: exit code %d, %v", cli.ExitCode(err), err)
	}

	out := &shown{text: make(chan string, 100)}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	finished := make(chan error, 1)
	go func() {
		cmd := root.NewCommand(out)
		cmd.SetArgs(append(status, "--watch", "--kubeconfig", fleetOf(t).Kubeconfig))
		finished <- cmd.ExecuteContext(ctx)
	}()
	out.shows(t, "complete: false\n")
	interrupt()
	if err := <-finished; cli.ExitCode(err) != cli.Interrupted {
		t.Errorf("when it is interrupted: exit code %d, %v", cli.ExitCode(err), err)
	}

	out = &shown{text: make(chan string, 100)}
	go func() {
		cmd := root.NewCommand(out)
		cmd.SetArgs(append(status, "--watch", "--timeout", "1m", "--kubeconfig", fleetOf(t).Kubeconfig))
		finished <- cmd.ExecuteContext(t.Context())
	}()
	out.shows(t, "complete: false\n")
	s.rel.Status = *complete
	if err := c.Status().Update(t.Context(), s.rel); err != nil {
		t.Fatal(err)
	}
	if err := <-finished; err != nil {
		t.Errorf("when it is complete: %v", err)
	}
	out.shows(t, "complete: true\n")

	holds(t, works(t, "rollout", "status", "-A"), "NAMESPACE", "STATE", "waits", s.rel.Name, "0/0 full on")
	ended(t, append(append([]client.Object{s.app, s.rel}, s.targets...), s.namespace)...)
}

// shown is the output of a command that goes on.
type shown struct {
	all  bytes.Buffer
	text chan string
}

// Write keeps what is written.
func (s *shown) Write(b []byte) (int, error) {
	s.text <- string(b)
	return len(b), nil
}

// shows waits until a text was written.
func (s *shown) shows(t *testing.T, want string) {
	t.Helper()
	for !strings.Contains(s.all.String(), want) {
		select {
		case text := <-s.text:
			s.all.WriteString(text)
		case <-t.Context().Done():
			t.Fatalf("written was\n%s\nand not\n%s", s.all.String(), want)
		}
	}
}
