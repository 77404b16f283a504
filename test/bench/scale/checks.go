// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/check"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/bench/table"
	"shipper.dev/shipper/test/bench/world"
	"shipper.dev/shipper/test/pod"
)

// The goals of Checks.
const (
	maxCheckLag    = time.Second // of 99 of 100, from when a measurement is due until it begins
	maxCheckCores  = 30          // percent of a core
	maxCheckWrites = 1           // of status, for each Release in 30 s
	statusInterval = 30 * time.Second
)

// Checks is many Releases on two clusters that are checked every minute, each by two Checks in each cluster.
type Checks struct {
	// Releases is how many there are.
	Releases int
	// Window is how long they are watched.
	Window time.Duration
}

// Run measures.
func (c Checks) Run(ctx context.Context, out, _ io.Writer) (lines []table.Line, err error) {
	w, err := world.Begin(ctx, world.Options{Clusters: 2, Podless: true})
	defer func() { err = errors.Join(err, w.End()) }()
	if err != nil {
		return nil, err
	}
	sight, err := w.Look(ctx)
	if err != nil {
		return nil, err
	}
	asked := &atomic.Int64{}
	prometheus := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		rw.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(rw, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"0.01"]}]}}`)
	}))
	defer prometheus.Close()
	keys, err := c.begin(ctx, w, prometheus.URL)
	if err != nil {
		return nil, err
	}
	if err := sight.Until(ctx, keys, func(_ *shipper.Application, rel *shipper.Release) bool {
		return rel != nil && rel.Status.Progress != nil && len(rel.Status.Progress.Checks) == 2 &&
			rel.Status.Progress.Checks[0].Phase == shipper.CheckRunning
	}); err != nil {
		return nil, err
	}
	if _, err := w.AtRest(ctx, statusInterval); err != nil { // what the beginning left to do
		return nil, err
	}
	before, err := lagOf(ctx, w.Pod.Reconciler)
	if err != nil {
		return nil, err
	}
	first := asked.Load()
	rest, err := w.AtRest(ctx, c.Window)
	if err != nil {
		return nil, err
	}
	after, err := lagOf(ctx, w.Pod.Reconciler)
	if err != nil {
		return nil, err
	}
	rest.Asked.Explain(out)
	row, statuses := fmt.Sprintf("checks, %d Releases", c.Releases), 0
	for kind, n := range rest.Asked.Kinds {
		if strings.Contains(kind, "patch") && strings.Contains(kind, "status") {
			statuses += n
		}
	}
	each := float64(statuses) / float64(c.Releases) / (c.Window.Seconds() / statusInterval.Seconds())
	return []table.Line{
		{Row: row, Of: "measurements a second", Ours: float64(asked.Load()-first) / c.Window.Seconds()},
		{Row: row, Of: "lag of 99 of 100", Ours: percentile(before, after, 0.99), Unit: table.Seconds, Most: table.Goal(maxCheckLag.Seconds())},
		{Row: row, Of: "a core", Ours: rest.Cores * 100, Unit: table.Percent, Most: table.Goal(maxCheckCores)},
		{Row: row, Of: "status writes for a Release in 30 s", Ours: each, Most: table.Goal(maxCheckWrites)},
		{Row: row, Of: "memory of the reconciler in use", Ours: float64(rest.Memory.Live) / (1 << 20), Unit: table.MiB},
	}, nil
}

// begin makes two shared Checks, and the Applications, each with a Release of no Pods.
func (c Checks) begin(ctx context.Context, w *world.World, prometheus string) (keys []client.ObjectKey, err error) {
	var clusters shipper.ClusterList
	if err := w.Management.List(ctx, &clusters); err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	for i := range clusters.Items {
		patch := fmt.Appendf(nil, `{"spec":{"metrics":{"address":%q,"tenantLabel":"namespace"}}}`, prometheus)
		if err := w.Management.Patch(ctx, &clusters.Items[i], client.RawPatch(types.MergePatchType, patch)); err != nil {
			return nil, fmt.Errorf("naming the metrics of a cluster: %w", err)
		}
	}
	shared := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: check.SharedNamespace}}
	if err := w.Management.Create(ctx, shared); err != nil {
		return nil, fmt.Errorf("making the namespace of shared Checks: %w", err)
	}
	var uses []shipper.StepCheck
	for _, name := range []string{"errors", "latency"} {
		query := `sum(rate(http_requests_total{shipper_release="$(release)",code=~"5.."}[5m])) / sum(rate(http_requests_total[5m]))`
		one := &shipper.Check{ObjectMeta: metav1.ObjectMeta{Namespace: check.SharedNamespace, Name: name}, Spec: shipper.CheckSpec{
			Interval: "1m", Count: 1000, Pass: "new <= 0.05",
			Prometheus: &shipper.PrometheusCheck{Queries: map[string]shipper.CheckQuery{"new": shipper.CheckQuery(query)}},
		}}
		if err := w.Management.Create(ctx, one); err != nil {
			return nil, fmt.Errorf("making a Check: %w", err)
		}
		uses = append(uses, shipper.StepCheck{Check: check.SharedNamespace + "/" + name})
	}
	for i := range c.Releases {
		keys = append(keys, client.ObjectKey{Namespace: fmt.Sprintf("checked-%d", i), Name: "app"})
	}
	return keys, world.AtMost(writers, c.Releases, func(i int) error {
		if err := w.MakeNamespace(ctx, keys[i].Namespace, 2); err != nil {
			return err
		}
		half := world.Step("half", 50, 50, 50, 50)
		half.Checks = uses
		return w.Management.Create(ctx, w.Application(keys[i].Namespace, 2, 0, half, fullOn))
	})
}

// lag is how many measurements began at most so many seconds late, by that bound.
type lag struct {
	bounds []float64
	counts []float64
}

// lagOf reads the histogram of a reconciler.
func lagOf(ctx context.Context, p *pod.Process) (out lag, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Metrics, nil)
	if err != nil {
		return out, fmt.Errorf("reading metrics: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return out, fmt.Errorf("reading metrics: %w", err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		rest, is := strings.CutPrefix(lines.Text(), `shipper_check_lag_seconds_bucket{le="`)
		if !is {
			continue
		}
		bound, count, _ := strings.Cut(rest, `"} `)
		le, err := strconv.ParseFloat(bound, 64)
		if err != nil {
			return out, fmt.Errorf("reading the bound of a bucket: %w", err)
		}
		n, err := strconv.ParseFloat(count, 64)
		if err != nil {
			return out, fmt.Errorf("reading the count of a bucket: %w", err)
		}
		out.bounds, out.counts = append(out.bounds, le), append(out.counts, n)
	}
	if len(out.bounds) == 0 {
		return out, errors.New("the reconciler does not say how late checks are")
	}
	return out, nil
}

// percentile is the bound that a share of the measurements between two times did not exceed.
func percentile(before, after lag, share float64) float64 {
	last := len(after.counts) - 1
	all := after.counts[last] - before.counts[last]
	for i, bound := range after.bounds {
		if after.counts[i]-before.counts[i] >= share*all {
			return bound
		}
	}
	return after.bounds[last]
}
