// SPDX-License-Identifier: Apache-2.0

// Package scale measures what Shipper takes as Applications grow in number: the memory of each and the time of one change among
// many; and with all of them there, how soon a reconciler that was killed is of use again, and how soon a RolloutBlock is reported.
package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/bench/rollout"
	"shipper.dev/shipper/test/bench/table"
	"shipper.dev/shipper/test/bench/world"
)

const (
	writers  = 32               // writes at a time, when Applications are created
	patience = 30 * time.Minute // for all of them
	changes  = 7                // of which the median is taken
)

// The goals.
const (
	maxGrowth     = 1.3 // of how much longer a change is with more Applications, to how much longer it is by hand
	maxReconciler = 75  // KiB in use for each Application
	maxWebhook    = 8
	maxCores      = 0.5 // percent of one, at rest
)

// Growth is more and more Applications of one Pod in each cluster.
type Growth struct {
	// Applications are how many there are when it is measured, in rising order.
	Applications []int
	// Clusters is how many each is in.
	Clusters int
	// Profiles is a folder for profiles of Shipper. Empty: none are taken.
	Profiles string
}

// stage is a world with Applications.
type stage struct {
	*world.World
	sight    *world.Sight
	clusters int
	keys     []client.ObjectKey
	upgrades int // of the first
	hand     *rollout.Hand
}

// Run measures, and keeps out informed.
func (g Growth) Run(ctx context.Context, out io.Writer) (lines []table.Line, err error) {
	w, err := world.Begin(ctx, world.Options{Clusters: g.Clusters, Profiles: g.Profiles})
	defer func() { err = errors.Join(err, w.End()) }()
	if err != nil {
		return nil, err
	}
	s := &stage{World: w, clusters: g.Clusters}
	if s.sight, err = w.Look(ctx); err != nil {
		return nil, err
	}
	var first measured
	for i, n := range g.Applications {
		m, err := s.measure(ctx, out, n)
		if err != nil {
			return lines, fmt.Errorf("with %d Applications: %w", n, err)
		}
		if i == 0 {
			first = m
		}
		lines = append(lines, m.lines(first)...)
	}
	for _, row := range []func(context.Context, io.Writer) ([]table.Line, error){s.restart, s.block} {
		found, err := row(ctx, out)
		if lines = append(lines, found...); err != nil {
			return lines, err
		}
	}
	return lines, nil
}

// measured is what it takes when there are so many Applications.
type measured struct {
	applications        int
	change              float64 // seconds
	byHand              float64 // seconds that an upgrade by hand took, in turn with the change
	late                int     // EndpointSlices, while these were measured
	reconciler, webhook world.Memory
	rest                world.Rest
}

// measure makes Applications until there are n, and measures when all is at rest.
func (s *stage) measure(ctx context.Context, out io.Writer, n int) (m measured, err error) {
	m.applications = n
	began := time.Now()
	if err := s.grow(ctx, n); err != nil {
		return m, err
	}
	fmt.Fprintf(out, "%d Applications were there after %s\n", n, time.Since(began).Round(time.Second))
	if err := s.change(ctx, &m); err != nil {
		return m, err
	}
	if _, err = s.AtRest(ctx, 5*time.Second); err != nil { // what the change left to do
		return m, err
	}
	if m.rest, err = s.AtRest(ctx, world.Collected); err != nil {
		return m, err
	}
	m.reconciler = m.rest.Memory
	if m.webhook, err = world.MemoryOf(ctx, s.Pod.Webhook); err != nil {
		return m, err
	}
	return m, s.Heaps(ctx, fmt.Sprint(n))
}

// lines of the table: how it compares to the first measurement.
func (m measured) lines(first measured) []table.Line {
	of := fmt.Sprintf("%d Applications, ", m.applications)
	lines := m.rest.Lines(fmt.Sprintf("growth, %d Applications", m.applications), maxCores)
	change := table.Line{Row: "growth", Of: of + "one change", Ours: m.change, Unit: table.Seconds}
	hand := table.Line{Row: "growth", Of: of + "an upgrade by hand, in three steps", Ours: m.byHand, Unit: table.Seconds}
	late := table.Line{Row: "growth", Of: of + "EndpointSlices late for a second, in all of these", Ours: float64(m.late)}
	if m.applications == first.applications {
		return append(lines, change, hand, late)
	}
	lines = append(lines, change, hand, late, table.Line{
		Row: "growth", Of: of + fmt.Sprintf("how many times longer than with %d, and by hand", first.applications),
		Ours: m.change / first.change, Floor: m.byHand / first.byHand, Most: table.Goal(maxGrowth),
	})
	for _, p := range []struct {
		name       string
		has, first world.Memory
		most       float64
	}{{"reconciler", m.reconciler, first.reconciler, maxReconciler}, {"webhook", m.webhook, first.webhook, maxWebhook}} {
		more, each := p.has.Minus(p.first), float64(m.applications-first.applications)*1024
		lines = append(lines,
			table.Line{Row: "growth", Of: of + "memory of the " + p.name + " for each", Ours: float64(more.Resident) / each, Unit: table.KiB},
			table.Line{Row: "growth", Of: of + "of it in use", Ours: float64(more.Live) / each, Unit: table.KiB, Most: table.Goal(p.most)})
	}
	return lines
}

// grow creates Applications until there are n, and waits until all have been rolled out.
func (s *stage) grow(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it takes longer than %s", patience))
	defer cancel()
	known := len(s.keys)
	for i := known; i < n; i++ {
		s.keys = append(s.keys, client.ObjectKey{Namespace: fmt.Sprintf("app-%d", i), Name: "app"})
	}
	err := world.AtMost(writers, n-known, func(i int) error {
		namespace := s.keys[known+i].Namespace
		if err := s.MakeNamespace(ctx, namespace, s.clusters); err != nil {
			return err
		}
		return s.Management.Create(ctx, s.Application(namespace, s.clusters, 1, fullOn))
	})
	if err != nil {
		return err
	}
	return s.sight.Until(ctx, s.keys[known:], func(_ *shipper.Application, rel *shipper.Release) bool { return world.Achieved(rel, 0, 0) })
}

// fullOn is the only step of the strategy.
var fullOn = world.Step("full on", 0, 100, 0, 100)

// change upgrades the first Application again and again, and as often the program written by hand, whose Pods are two in each cluster. It
// notes the medians of the seconds that took, and how often Kubernetes wrote EndpointSlices a second late meanwhile.
func (s *stage) change(ctx context.Context, m *measured) (err error) {
	if s.hand == nil {
		if s.hand, err = rollout.NewHand(ctx, s.World, "by-hand", s.clusters, 2); err != nil {
			return fmt.Errorf("rolling out by hand: %w", err)
		}
	}
	before, err := s.SlicesLate()
	if err != nil {
		return err
	}
	var took, byHand []time.Duration
	for range changes {
		began := time.Now()
		if err := s.upgrade(ctx); err != nil {
			return err
		}
		if err := s.upgraded(ctx); err != nil {
			return err
		}
		took = append(took, time.Since(began))
		d, err := s.hand.Upgrade(ctx)
		if err != nil {
			return fmt.Errorf("upgrading by hand: %w", err)
		}
		byHand = append(byHand, d)
	}
	after, err := s.SlicesLate()
	m.change, m.byHand, m.late = table.Median(took), table.Median(byHand), after-before
	return err
}

// upgrade asks for the next version of the first Application.
func (s *stage) upgrade(ctx context.Context) error {
	s.upgrades++
	return s.Upgrade(ctx, s.keys[0], s.upgrades, fullOn)
}

// upgraded waits until it is there.
func (s *stage) upgraded(ctx context.Context) error {
	return s.sight.Until(ctx, s.keys[:1], func(_ *shipper.Application, rel *shipper.Release) bool {
		return world.Achieved(rel, s.upgrades, 0)
	})
}

// blocked waits until all Applications and their Releases say that they are blocked, or that they are not.
func (s *stage) blocked(ctx context.Context, blocked bool) error {
	says := func(conditions []shipper.Condition) bool {
		return shipper.ConditionTrue(conditions, shipper.ApplicationBlocked) == blocked
	}
	return s.sight.Until(ctx, s.keys, func(app *shipper.Application, rel *shipper.Release) bool {
		return says(app.Status.Conditions) && rel != nil && says(rel.Status.Conditions)
	})
}
