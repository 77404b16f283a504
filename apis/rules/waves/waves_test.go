// SPDX-License-Identifier: Apache-2.0

package waves_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"shipper.dev/shipper/apis/rules/waves"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// cluster is a Cluster with a label.
func cluster(name, tier string) shipper.Cluster {
	c := shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tier": tier}}}
	c.Spec.Region = "eu"
	return c
}

// wave selects by a label; all the rest without a value.
func wave(name, key, value string) shipper.Wave {
	if key == "" {
		return shipper.Wave{Name: name}
	}
	return shipper.Wave{Name: name, ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}}
}

func TestAssign(t *testing.T) {
	clusters := []shipper.Cluster{cluster("a", "canary"), cluster("b", "prod"), cluster("c", "lab")}
	names := []string{"a", "b", "c", "gone"}
	for name, test := range map[string]struct {
		waves []shipper.Wave
		known waves.Assigned
		want  waves.Assigned
	}{
		"a cluster is in the first wave that selects it": {
			[]shipper.Wave{wave("one", "tier", "canary"), wave("all", shipper.RegionLabel, "eu")}, nil, waves.Assigned{"a": 0, "b": 1, "c": 1},
		},
		"a wave without a selector has the rest, wherever it stands": {
			[]shipper.Wave{wave("rest", "", ""), wave("canary", "tier", "canary")}, nil, waves.Assigned{"a": 1, "b": 0, "c": 0},
		},
		"a cluster that no wave selects has none": {
			[]shipper.Wave{wave("canary", "tier", "canary"), wave("prod", "tier", "prod")}, nil, waves.Assigned{"a": 0, "b": 1},
		},
		"a cluster is found by its name": {
			[]shipper.Wave{wave("one", shipper.ClusterLabel, "c"), wave("rest", "", "")}, nil, waves.Assigned{"a": 1, "b": 1, "c": 0},
		},
		"a cluster keeps its wave when its labels change, and when it is gone": {
			[]shipper.Wave{wave("canary", "tier", "canary"), wave("rest", "", "")}, waves.Assigned{"b": 0, "gone": 1},
			waves.Assigned{"a": 0, "b": 0, "c": 1, "gone": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := waves.Assign(&shipper.RolloutStrategy{Waves: test.waves}, names, test.known, clusters)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{shipper.ReleaseWavesAnnotation: got.String()}}}
			if diff := cmp.Diff(test.want, waves.Parse(rel)); diff != "" {
				t.Errorf("read from %q (-want +got):\n%s", got, diff)
			}
		})
	}
}

func TestParseLeavesOutWhatItCannotRead(t *testing.T) {
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		shipper.ReleaseWavesAnnotation: "a=0, b=1,c,d=,e=-1,f=x,=",
	}}}
	if diff := cmp.Diff(waves.Assigned{"a": 0, "b": 1}, waves.Parse(rel)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBoundIsRoundedUpAndAtLeastOne(t *testing.T) {
	for text, want := range map[string]int{"0": 1, "1": 1, "3": 3, "0%": 1, "10%": 1, "25%": 3, "100%": 10, "lots": 1} {
		n := intstr.Parse(text)
		if got := waves.Bound(&shipper.Wave{MaxConcurrency: &n}, 10); got != want {
			t.Errorf("%s of 10 is %d, want %d", text, got, want)
		}
	}
	if got := waves.Bound(&shipper.Wave{}, 10); got != 1 {
		t.Errorf("the default is %d", got)
	}
}

func TestBegin(t *testing.T) {
	two := intstr.FromInt32(2)
	s := &shipper.RolloutStrategy{Waves: []shipper.Wave{{Name: "canary"}, {Name: "prod", MaxConcurrency: &two}}}
	is := func(name string, wave int32, state waves.State) waves.Cluster {
		return waves.Cluster{Name: name, Wave: wave, State: state}
	}
	free := func(c waves.Cluster) waves.Cluster {
		c.Unbounded = true
		return c
	}
	for name, test := range map[string]struct {
		clusters []waves.Cluster
		want     []string
	}{
		"as many begin as may": {
			[]waves.Cluster{is("a", 0, waves.Done), is("b", 1, waves.Waiting), is("c", 1, waves.Waiting), is("d", 1, waves.Waiting)},
			[]string{"b", "c"},
		},
		"clusters that are moving count": {
			[]waves.Cluster{is("b", 1, waves.Moving), is("c", 1, waves.Waiting), is("d", 1, waves.Waiting)}, []string{"c"},
		},
		"none begins while more are moving than may": {
			[]waves.Cluster{is("b", 1, waves.Moving), is("c", 1, waves.Moving), is("d", 1, waves.Moving), is("e", 1, waves.Waiting)}, nil,
		},
		"what is not known to be ready counts, and goes first": {
			[]waves.Cluster{is("b", 1, waves.Waiting), is("c", 1, waves.Unready), is("d", 1, waves.Waiting)}, []string{"c", "b"},
		},
		"what is not known to be ready does not begin beside as many as may be moving": {
			[]waves.Cluster{is("b", 1, waves.Moving), is("c", 1, waves.Moving), is("d", 1, waves.Unready)}, nil,
		},
		"each wave has a bound of its own": {
			[]waves.Cluster{is("a", 0, waves.Waiting), is("b", 1, waves.Moving), is("c", 1, waves.Waiting)}, []string{"a", "c"},
		},
		"none begins while too many of the waves before are not done": {
			[]waves.Cluster{is("a", 0, waves.Moving), is("b", 0, waves.Moving), is("c", 0, waves.Moving), is("d", 1, waves.Waiting)}, nil,
		},
		"some begin while no more of the waves before are not done than may be moving": {
			[]waves.Cluster{is("a", 0, waves.Moving), is("b", 0, waves.Moving), is("d", 1, waves.Waiting)}, []string{"d"},
		},
		"a cluster in which no other Release runs takes no slot, and waits for none": {
			[]waves.Cluster{free(is("b", 1, waves.Moving)), is("c", 1, waves.Moving), is("d", 1, waves.Waiting), free(is("e", 1, waves.Waiting))},
			[]string{"d", "e"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, waves.Begin(s, test.clusters)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestStepIn(t *testing.T) {
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{shipper.ReleaseWavesAnnotation: "a=0,b=1,c=2"}}}
	rel.Spec.Environment.Strategy = &shipper.RolloutStrategy{
		Steps: make([]shipper.RolloutStrategyStep, 3), Waves: make([]shipper.Wave, 3),
	}
	rel.Spec.TargetStep, rel.Spec.TargetWave = 1, new(int32(1))
	type answer struct {
		Step    int32
		Reached bool
	}
	want := map[string]answer{"a": {2, true}, "b": {1, true}, "c": {}, "in no wave": {}}
	got := map[string]answer{}
	for name := range want {
		step, reached := waves.StepIn(rel, name)
		got[name] = answer{step, reached}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	rel.Spec.Environment.Strategy.Waves = nil
	if step, reached := waves.StepIn(rel, "anywhere"); step != 1 || !reached {
		t.Errorf("without waves: step %d, %t", step, reached)
	}
}
