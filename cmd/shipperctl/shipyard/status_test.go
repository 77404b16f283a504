// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/cli"
)

func TestWaitEndsWithTheRunOrTheDelivery(t *testing.T) {
	passed := func(name, stage, sequence string) *shipper.SequenceRun {
		return ends(running(name, stage, sequence, time.Hour), shipper.ResultPass, shipper.CompletionSucceeded, shipper.RunPassed, "")
	}
	triggers := func(run *shipper.SequenceRun, next shipper.TriggeredRun) *shipper.SequenceRun {
		next.Stage, next.Sequence = "production", "delivery"
		run.Status.Triggered = append(run.Status.Triggered, next)
		return run
	}
	first := func(next shipper.TriggeredRun) *shipper.SequenceRun {
		return triggers(passed("a", "staging", "delivery"), next)
	}
	second := []*shipper.SequenceRun{passed("b", "production", "delivery")}
	follows := shipper.TriggeredRun{Name: "b"}
	warned := ends(running("a", "staging", "delivery", time.Hour), shipper.ResultWarning, shipper.CompletionSucceeded, shipper.RunWarned, "")
	aborted := ends(running("a", "staging", "delivery", time.Hour), shipper.ResultFail, shipper.CompletionAborted, shipper.RunAborted, "no")
	elsewhere := running("z", "production", "delivery", time.Hour)
	elsewhere.Status.Resolved.Context = "c2"
	for sentence, tc := range map[string]struct {
		run    *shipper.SequenceRun
		others []*shipper.SequenceRun
		all    bool
		want   string
	}{
		"it runs":   {running("a", "staging", "delivery", 0), nil, false, "waits: run a is Running"},
		"it passed": {passed("a", "staging", "delivery"), nil, false, "0: "},
		"it warned": {warned, nil, false, "0: "},
		"it failed": {aborted, nil, false, "1: run a has failed (aborted): no"},
		"a follow-up runs": {
			first(follows), []*shipper.SequenceRun{running("b", "production", "delivery", 0)}, true, "waits: run b is Running",
		},
		"a follow-up is not awaited":    {first(follows), nil, false, "0: "},
		"a follow-up is not there yet":  {first(follows), nil, true, "waits: run b is not created yet"},
		"a follow-up passed":            {first(follows), second, true, "0: "},
		"a run of another context runs": {passed("a", "staging", "delivery"), []*shipper.SequenceRun{elsewhere}, true, "0: "},
		"a follow-up was deleted":       {first(shipper.TriggeredRun{Name: "b", CreateTime: ago(0)}), nil, true, "0: "},
		"a follow-up has to soak": {
			first(shipper.TriggeredRun{Name: "b", Message: "until 13:00"}), nil, true,
			"waits: sequence delivery of stage production waits: until 13:00",
		},
		"a follow-up was refused": {
			first(shipper.TriggeredRun{Name: "b", Message: "no", Refused: true}), nil, true,
			"1: sequence delivery of stage production was not run: no",
		},
		"another run has triggered it": {
			first(shipper.TriggeredRun{Name: "b", Message: "not yet"}),
			[]*shipper.SequenceRun{passed("c", "production", "delivery")}, true, "0: ",
		},
		"a follow-up failed, and was taken back": {
			first(shipper.TriggeredRun{Name: "web-q8w1z"}),
			[]*shipper.SequenceRun{ends(running("web-q8w1z", "production", "delivery", 0), shipper.ResultFail, shipper.CompletionSucceeded,
				shipper.RunFailed, "task test: 2 failed"), passed("d", "production", "rollback")}, true,
			"1: run web-q8w1z has failed: task test: 2 failed",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			pending, err := awaited(&observed{run: tc.run, others: values(append(tc.others, tc.run)...)}, tc.all)
			got := "waits: " + strings.Join(pending, "; ")
			if len(pending) == 0 {
				got = string(rune('0'+cli.ExitCode(err))) + ": "
				if err != nil {
					got += err.Error()
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// clientWith is a client with objects.
func clientWith(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := shipper.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func showing(c client.WithWatch, run *shipper.SequenceRun) (*show, *bytes.Buffer) {
	out := &bytes.Buffer{}
	return &show{options: &options{clock: clock.RealClock{}}, client: c, out: out, key: client.ObjectKeyFromObject(run)}, out
}

func TestWaitingSeesTheEnd(t *testing.T) {
	run := blocked()
	c := clientWith(t, run)
	s, out := showing(c, run)
	done := make(chan error, 1)
	go func() { done <- s.await(t.Context(), time.Minute, false) }()
	time.Sleep(50 * time.Millisecond)
	if err := c.Get(t.Context(), s.key, run); err != nil {
		t.Fatal(err)
	}
	ends(run, shipper.ResultFail, shipper.CompletionErrored, shipper.RunTimedOut, "took longer than 24h0m0s")
	if err := c.Update(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	const want = "run web-x7k2p has failed (errored): took longer than 24h0m0s"
	if err := <-done; err == nil || err.Error() != want || cli.ExitCode(err) != cli.Failed {
		t.Errorf("%v, want\n%s", err, want)
	}
	if text := out.String(); !strings.HasPrefix(text, "run        shop/web-x7k2p\n") || strings.Count(text, "shop/web-x7k2p\n") != 1 {
		t.Errorf("it shows\n%s", text)
	}
}

func TestWaitingEndsInTime(t *testing.T) {
	run := waits()
	s, _ := showing(clientWith(t, run), run)
	err := s.await(t.Context(), 50*time.Millisecond, true)
	const want = "not finished within 50ms: run web-production-delivery-0c9f1 is Running"
	if err == nil || err.Error() != want || cli.ExitCode(err) != cli.TimedOut {
		t.Errorf("%v, want\n%s", err, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.await(ctx, time.Minute, false); cli.ExitCode(err) != cli.Interrupted {
		t.Errorf("interrupted: %v", err)
	}
}

func TestAWatchEndsWithTheRun(t *testing.T) {
	run := failed()
	s, out := showing(clientWith(t, run), run)
	s.format = cli.JSON
	if err := s.watch(t.Context()); cli.ExitCode(err) != cli.Failed {
		t.Error(err)
	}
	if strings.Count(out.String(), "\n") != 1 || !strings.Contains(out.String(), `"state":"Failed"`) {
		t.Errorf("it shows\n%s", out)
	}
}
