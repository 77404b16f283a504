// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/bench/world"
)

// The goals of a rollout in waves as KubeFleet measured its staged runs: 100 clusters in waves of 20, 30 and 50, half of a wave at a time,
// answers that take 2 ms. KubeFleet took 96 s alone, 135 s for 100 at once, and 11 GiB of memory.
const (
	stagedAlone    = 30 * time.Second
	stagedTogether = 60 * time.Second
	stagedMemory   = 2 << 10 // MiB
	stagedWrites   = 0.5     // of the status of a Release in a second, beside two for each wave and two for the Release: it begins, it is done
)

// waveLabel on a Cluster has the number of its wave.
const waveLabel = "wave"

// sizes is a flag: the number of clusters of each wave, with commas between them.
type sizes []int

func (w *sizes) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]int(*w)), " ", ","), "[]")
}

// Set implements flag.Value.
func (w *sizes) Set(list string) error {
	*w = nil
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return errors.New("want numbers of clusters from 1 on")
		}
		*w = append(*w, n)
	}
	return nil
}

// clusters are those of all waves.
func (w sizes) clusters() (n int) {
	for _, size := range w {
		n += size
	}
	return n
}

// of is the wave of a cluster.
func (w sizes) of(cluster int) string {
	for i, size := range w {
		if cluster < size {
			return strconv.Itoa(i)
		}
		cluster -= size
	}
	return strconv.Itoa(len(w))
}

// strategy rolls out in the waves by itself, half of a wave at a time.
func (w sizes) strategy() *shipper.RolloutStrategy {
	half := intstr.FromString("50%")
	out := &shipper.RolloutStrategy{Steps: []shipper.RolloutStrategyStep{fullOn}, Advance: shipper.AdvanceAutomatic}
	for i := range w {
		number := strconv.Itoa(i)
		out.Waves = append(out.Waves, shipper.Wave{
			Name: "wave-" + number, MaxConcurrency: ptr.To(half),
			ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{waveLabel: number}},
		})
	}
	return out
}

// runStaged measures rollouts in waves: tries of one Application, then of all at once.
func (s *simulation) runStaged(ctx context.Context) error {
	s.completed = newCompletions()
	go s.management.Follow(ctx, shipper.GroupVersion.Group, "releases", s.completed.release)
	if err := s.connect(ctx); err != nil {
		return err
	}
	if err := s.stage(ctx); err != nil {
		return err
	}
	var took, rates []float64
	for try := range s.tries {
		d, writes, err := s.stagedOnce(ctx, []int{0}, try+1)
		if err != nil {
			return err
		}
		took, rates = append(took, d.Seconds()), append(rates, writes)
	}
	problems := []error{
		s.judge("alone, the p90 of all tries", percentile(took, 90), stagedAlone.Seconds(), "s"),
		s.judge("alone, writes of the status of a Release in a second beside its turns, at most", slices.Max(rates), stagedWrites, ""),
	}
	if s.applications > 1 {
		rest := make([]int, s.applications-1)
		for i := range rest {
			rest[i] = i + 1
		}
		d, writes, err := s.stagedOnce(ctx, rest, 1)
		if err != nil {
			return err
		}
		problems = append(problems, s.judge(fmt.Sprintf("%d at once", len(rest)), d.Seconds(), stagedTogether.Seconds(), "s"),
			s.judge("at once, writes of the status of a Release in a second beside its turns", writes, stagedWrites, ""))
	}
	after, err := s.reconciler.used(ctx)
	if err != nil {
		return err
	}
	return errors.Join(append(problems, s.judge("memory", after.resident, stagedMemory, " MiB"))...)
}

// judge prints a figure beside its goal, and returns an error if it is missed and the run is as large as the one of the goals.
func (s *simulation) judge(what string, is, most float64, unit string) error {
	s.tell("%s: %.2f%s, the goal is %g%s", what, is, unit, most, unit)
	if is > most {
		return fmt.Errorf("%s: %.2f%s, and the goal is %g%s", what, is, unit, most, unit)
	}
	return nil
}

// percentile is the smallest value that so many percent do not exceed.
func percentile(of []float64, percent int) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[max((len(sorted)*percent+99)/100-1, 0)]
}

// stage makes all Applications and waits until their first Release is complete.
func (s *simulation) stage(ctx context.Context) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	began := time.Now()
	for i := range s.applications {
		if err := s.stagedApplication(i); err != nil {
			return err
		}
	}
	all := make([]int, s.applications)
	for i := range all {
		all[i] = i
	}
	if err := s.completed.await(ctx, all, 0); err != nil {
		return err
	}
	s.tell("first rollouts of %d Applications in waves of %s: %s", s.applications, &s.waves, time.Since(began).Round(100*time.Millisecond))
	pass(ctx, 3*time.Second)
	return nil
}

// stagedApplication makes an Application on all clusters.
func (s *simulation) stagedApplication(i int) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace(i)}}
	if err := s.management.Create("", "namespaces", ns); err != nil {
		return err
	}
	template := s.ofChart()
	template.Strategy = s.waves.strategy()
	for n, server := range s.servers {
		if err := server.Create("", "namespaces", ns); err != nil {
			return err
		}
		template.ClusterRequirements.Regions = append(template.ClusterRequirements.Regions, shipper.RegionRequirement{Name: world.Region(n)})
	}
	return s.management.Create(shipper.GroupVersion.Group, "applications", &shipper.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "app"},
		Spec:       shipper.ApplicationSpec{RevisionHistoryLimit: ptr.To[int32](1), Template: template},
	})
}

// stagedOnce upgrades Applications at once, and returns how long that took, and how often the status of each Release was written in a
// second.
func (s *simulation) stagedOnce(ctx context.Context, of []int, generation int) (time.Duration, float64, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	usedBefore, err := s.reconciler.used(ctx)
	if err != nil {
		return 0, 0, err
	}
	before, kinds := s.management.Requests.Kinds(), s.kinds()
	profiling, stop := context.WithCancel(ctx)
	profiled := make(chan error, 1)
	go func() { profiled <- s.profile(profiling, fmt.Sprintf("%d at once in waves", len(of))) }()
	defer stop()
	began := time.Now()
	for _, i := range of {
		if err := s.upgrade(i, generation); err != nil {
			return 0, 0, err
		}
	}
	if err := s.completed.await(ctx, of, generation); err != nil {
		return 0, 0, err
	}
	took := time.Since(began)
	stop()
	if err := <-profiled; err != nil {
		return 0, 0, err
	}
	writes := 0
	for kind, n := range s.management.Requests.Kinds() {
		if strings.HasSuffix(kind, " releases/status") {
			writes += n - before[kind]
		}
	}
	usedAfter, err := s.reconciler.used(ctx)
	if err != nil {
		return 0, 0, err
	}
	turns := float64(2 * (len(s.waves) + 1))
	rate := max(float64(writes)/float64(len(of))-turns, 0) / took.Seconds()
	s.tell("%d at once: %.2f s, %.1f s of a processor; the status of a Release was written %.1f times, "+
		"%.2f times a second beside its turns; all requests: %s",
		len(of), took.Seconds(), (usedAfter.processor - usedBefore.processor).Seconds(), float64(writes)/float64(len(of)), rate, s.most(kinds))
	pass(ctx, 3*time.Second)
	return took, rate, nil
}

// completions are the generations whose Release was complete, by the namespace of the Application.
type completions struct {
	mu      sync.Mutex
	changed chan struct{} // closed with the next change
	newest  map[string]int
}

func newCompletions() *completions {
	return &completions{changed: make(chan struct{}), newest: map[string]int{}}
}

func (c *completions) release(raw []byte, gone bool) {
	var rel struct {
		Metadata metav1.ObjectMeta     `json:"metadata"`
		Status   shipper.ReleaseStatus `json:"status"`
	}
	if gone || json.Unmarshal(raw, &rel) != nil || !shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseComplete) {
		return
	}
	generation, err := strconv.Atoi(rel.Metadata.Annotations[shipper.ReleaseGenerationAnnotation])
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, is := c.newest[rel.Metadata.Namespace]; is && known >= generation {
		return
	}
	c.newest[rel.Metadata.Namespace] = generation
	close(c.changed)
	c.changed = make(chan struct{})
}

// await waits until the Release of a generation is complete in each of some Applications.
func (c *completions) await(ctx context.Context, of []int, generation int) error {
	for {
		missing := 0
		c.mu.Lock()
		for _, i := range of {
			if known, is := c.newest[namespace(i)]; !is || known < generation {
				missing++
			}
		}
		changed := c.changed
		c.mu.Unlock()
		if missing == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d rollouts in waves are not complete: %w", missing, len(of), context.Cause(ctx))
		}
	}
}
