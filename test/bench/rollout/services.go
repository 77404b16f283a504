// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"shipper.dev/shipper/test/bench/table"
	"shipper.dev/shipper/test/bench/world"
	"shipper.dev/shipper/test/charts"
)

// Services is one Application of many Deployments, each with a Service in front of it, on one cluster. Beside it the same by hand: each
// Service is upgraded by itself, all at the same time.
type Services struct {
	// Rounds is how many upgrades of each side.
	Rounds int
	// Services is how many Deployments, and how many Services.
	Services int
	// Replicas is how many Pods each Deployment has.
	Replicas int32
}

// Run measures, and prints what was asked for in an upgrade to out. All times are given to samples.
func (o Services) Run(ctx context.Context, out, samples io.Writer) (lines []table.Line, err error) {
	w, err := world.Begin(ctx, world.Options{Clusters: 1})
	defer func() { err = errors.Join(err, w.End()) }()
	if err != nil {
		return nil, err
	}
	archive, err := charts.PackFiles("services", "0.0.1", servicesChart(o.Services))
	if err != nil {
		return nil, err
	}
	w.Charts.Publish(archive)
	ours, err := newRolloutOf(ctx, w, "services", threeSteps, "services", 1, o.Replicas)
	if err != nil {
		return nil, err
	}
	hand := make([]*floor, o.Services)
	if err := world.InParallel(o.Services, func(i int) (err error) {
		hand[i], err = newFloor(ctx, w.Clusters[0], fmt.Sprintf("floor-services-%d", i), o.Replicas)
		return err
	}); err != nil {
		return nil, err
	}
	r, err := compare(ctx, w, fmt.Sprintf("%d services", o.Services), ours, func() (steps [][]func(context.Context) error) {
		for _, f := range hand {
			steps = append(steps, f.steps())
		}
		return steps
	}, o.Rounds)
	if err != nil {
		return nil, fmt.Errorf("upgrading %d services: %w", o.Services, err)
	}
	fmt.Fprintf(out, "what Shipper asked for in an upgrade of %d services:\n", o.Services)
	r.requests.Explain(out)
	for side, times := range map[string][]time.Duration{"shipper": r.ours, "floor": r.floor} {
		if err := table.WriteSamples(samples, "Services/side="+side, times); err != nil {
			return nil, err
		}
	}
	what := fmt.Sprintf("an upgrade of %d Deployments and Services in three steps", o.Services)
	lines = r.lines("services", "", what, goals{
		ratio: maxRatio, management: maxManagement, application: maxApplication * float64(o.Services),
	})
	rest, err := w.AtRest(ctx, afterwards)
	return append(lines, rest.Lines("services", maxCores)...), err
}

// servicesChart are the files of a chart as people write them: nothing in it is there for Shipper.
func servicesChart(services int) map[string]string {
	files := map[string]string{
		"Chart.yaml":  "apiVersion: v2\nname: services\nversion: 0.0.1\n",
		"values.yaml": "replicaCount: 1\nupgrade: 0\n",
	}
	for i := range services {
		files[fmt.Sprintf("templates/service-%d.yaml", i)] = fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: service-%[1]d
spec:
  replicas: {{ .Values.replicaCount }}
  selector:
    matchLabels: {app: service-%[1]d}
  template:
    metadata:
      labels: {app: service-%[1]d}
    spec:
      containers:
      - name: nginx
        image: nginx:stable
        env:
        - {name: UPGRADE, value: {{ .Values.upgrade | quote }}}
---
apiVersion: v1
kind: Service
metadata:
  name: service-%[1]d
spec:
  selector: {app: service-%[1]d}
  ports:
  - port: 80
`, i)
	}
	return files
}
