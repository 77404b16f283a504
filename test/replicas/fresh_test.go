// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/test/env"
	"shipper.dev/shipper/webhook/state"
)

// TestABlockHoldsEverywhereAtOnce makes blocks, one after the other, and asks every replica until it refuses. How long
// that takes is shown and not judged, for machines differ; `make bench ROW=admission` judges it. That replicas are told, and do
// not ask, is judged: they have sent the API server no request about RolloutBlocks.
func TestABlockHoldsEverywhereAtOnce(t *testing.T) {
	blocks := 20
	if env.IsNightly() {
		blocks = 200
	}
	ns := namespace(t, "fresh-")
	before := len(requestsAboutBlocks(t))
	var holds, lifted []time.Duration
	for i := range blocks {
		b := &shipper.RolloutBlock{Spec: ask.Block("x/y").Spec}
		b.Namespace, b.Name = ns, fmt.Sprintf("block-%d", i)
		if err := world.Management.Create(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		holds = append(holds, everywhere(t, b, true))
		if err := world.Management.Delete(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		lifted = append(lifted, everywhere(t, b, false))
	}
	for what, took := range map[string][]time.Duration{"a block holds": holds, "a block is lifted": lifted} {
		slices.Sort(took)
		t.Logf("%s on all of %d replicas after: p50 %s, p99 %s, longest %s (%d blocks)", what, len(world.replicas),
			quantile(took, 50), quantile(took, 99), took[len(took)-1].Round(10*time.Microsecond), blocks)
	}
	if asked := requestsAboutBlocks(t)[before:]; len(asked) > 0 {
		t.Errorf("replicas have asked for what they are told:\n%s", strings.Join(asked, "\n"))
	}
}

// everywhere is how long it takes until all replicas know of b.
func everywhere(t *testing.T, b *shipper.RolloutBlock, wanted bool) time.Duration {
	t.Helper()
	began := time.Now()
	var wg sync.WaitGroup
	for _, r := range world.replicas {
		wg.Go(func() { r.knows(t, b, wanted) })
	}
	wg.Wait()
	return time.Since(began)
}

// requestsAboutBlocks are those that replicas have sent to the API server and that were answered with objects.
func requestsAboutBlocks(t *testing.T) []string {
	t.Helper()
	file, err := os.Open(world.Fleet.Management.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var out []string
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var event auditv1.Event
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil || event.ObjectRef == nil {
			continue
		}
		if event.ObjectRef.Resource == "rolloutblocks" && strings.HasPrefix(event.UserAgent, "shipper-webhook") &&
			event.Stage == auditv1.StageResponseComplete && event.Verb != "watch" {
			out = append(out, event.Verb+" "+event.RequestURI)
		}
	}
	return out
}

// probe asks one replica whether an Application may be made in a namespace.
type probe struct {
	replica   *replica
	namespace string
}

// answer is what it says.
func (p probe) answer(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), env.Patience)
	defer cancel()
	a, err := p.replica.asks(ctx, p.namespace)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case a.Allowed:
		return "allowed"
	case a.Result.Code == http.StatusServiceUnavailable && a.Result.Details.RetryAfterSeconds == 1:
		return "not now: " + a.Result.Message
	}
	return a.Result.Message
}

// until asks until it is not said any more, and returns what is said then and when the last time was that it was.
func (p probe) until(t *testing.T, said string) (last time.Time, now string) {
	t.Helper()
	env.Within(t, 3*state.MaxStaleness, p.replica.Name+" to say something else", func(context.Context) error {
		asked := time.Now()
		if now = p.answer(t); !strings.HasPrefix(now, said) {
			return nil
		}
		last = asked
		return errors.New(now)
	})
	return last, now
}

// lost is what a replica says that knows nothing.
const lost = "not now: shipper's webhook has lost the API server and does not know the RolloutBlocks of this moment"

// A replica that the API server cannot reach any more cannot know of blocks. It must not go on as if there were none.
func TestAReplicaThatIsCutOffLetsNobodyThrough(t *testing.T) {
	p := probe{world.replicas[len(world.replicas)-1], namespace(t, "cut-")}
	if got := p.answer(t); got != "allowed" {
		t.Fatalf("before anything has happened: %s", got)
	}
	p.replica.api.Cut()
	cut := time.Now()
	b := &shipper.RolloutBlock{Spec: ask.Block("x/y").Spec}
	b.Namespace, b.Name = p.namespace, "dns-outage"
	if err := world.Management.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	last, got := p.until(t, "allowed")
	took := last.Sub(cut).Round(time.Millisecond)
	t.Logf("it has let pass until %s after it was cut off; %s are promised", took, state.MaxStaleness)
	if took > state.MaxStaleness+time.Second { // what a busy machine may add
		t.Errorf("it has let pass for %s", took)
	}
	if !strings.HasPrefix(got, lost) {
		t.Errorf("it answers %q, want %q", got, lost)
	}
	if p.replica.Ready(t.Context()) {
		t.Error("it says that it is ready")
	}

	p.replica.api.Mend()
	mended := time.Now()
	_, got = p.until(t, lost)
	t.Logf("it knows again %s after it was reachable", time.Since(mended).Round(time.Millisecond))
	if want := "rollouts blocked by: " + b.Namespace + "/" + b.Name; !strings.HasPrefix(got, want) {
		t.Errorf("it answers %q, want %q", got, want)
	}
	if err := p.replica.AwaitReady(t.Context()); err != nil {
		t.Error(err)
	}
	if err := world.Management.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	p.replica.knows(t, b, false)
}

// Clients wait longer and longer before they watch again, so an API server that is back may not be heard of for a while.
// It can be asked.
func TestAReplicaWithoutAWatchAsks(t *testing.T) {
	p := probe{world.replicas[0], namespace(t, "away-")}
	p.replica.api.Lead("127.0.0.1:1")
	p.replica.api.Break()
	_, got := p.until(t, "allowed")
	if !strings.HasPrefix(got, lost) {
		t.Errorf("without an API server it answers %q, want %q", got, lost)
	}
	b := &shipper.RolloutBlock{Spec: ask.Block("x/y").Spec}
	b.Namespace, b.Name = p.namespace, "dns-outage"
	if err := world.Management.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	p.replica.api.Lead(strings.TrimPrefix(world.Fleet.Management.Config.Host, "https://"))
	if got, want := p.answer(t), "rollouts blocked by: "+b.Namespace+"/"+b.Name; !strings.HasPrefix(got, want) {
		t.Errorf("the first answer is %q, want %q", got, want)
	}
	if err := p.replica.AwaitReady(t.Context()); err != nil {
		t.Error(err)
	}
	if err := world.Management.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	p.replica.knows(t, b, false)
}
