// SPDX-License-Identifier: Apache-2.0

package block

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// env is an environment of a chart for regions.
func env(chart string, regions ...string) *shipper.ReleaseEnvironment {
	e := &shipper.ReleaseEnvironment{Chart: shipper.Chart{Name: chart}}
	for _, r := range regions {
		e.ClusterRequirements.Regions = append(e.ClusterRequirements.Regions, shipper.RegionRequirement{Name: r})
	}
	return e
}

// fixed is an environment that is placed on named clusters.
func fixed(clusters ...string) *shipper.ReleaseEnvironment {
	e := env("nginx")
	e.ClusterRequirements.Placement = &shipper.Placement{Type: shipper.PickFixed, Clusters: clusters}
	return e
}

// picked is an environment that is placed on n clusters.
func picked(n int32) *shipper.ReleaseEnvironment {
	e := env("nginx")
	e.ClusterRequirements.Placement = &shipper.Placement{Type: shipper.PickN, Count: &n}
	return e
}

// rel is a Release of a generation with an environment.
func rel(generation int, e *shipper.ReleaseEnvironment, edits ...func(*shipper.Release)) *shipper.Release {
	r := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "frontend", Name: fmt.Sprint("r", generation)}}
	r.Labels = map[string]string{
		"tier": "then", shipper.AppLabel: "shop", shipper.ReleaseLabel: r.Name, shipper.ReleaseHashLabel: "cafe",
	}
	r.Annotations = map[string]string{shipper.ReleaseGenerationAnnotation: strconv.Itoa(generation)}
	r.Spec.Environment = *e
	for _, edit := range edits {
		edit(r)
	}
	return r
}

func completed(r *shipper.Release) {
	r.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseComplete, Status: corev1.ConditionTrue}}
}

// stepped sets a Release's targetStep and its achieved step; -1 is none.
func stepped(target, achieved int32) func(*shipper.Release) {
	return func(r *shipper.Release) {
		r.Spec.TargetStep = target
		if achieved >= 0 {
			r.Status.AchievedStep = &shipper.AchievedStep{Step: achieved}
		}
	}
}

func in(clusters string) func(*shipper.Release) {
	return func(r *shipper.Release) { r.Annotations[shipper.ReleaseClustersAnnotation] = clusters }
}

func returnedTo(step string) func(*shipper.Release) {
	return func(r *shipper.Release) { r.Annotations[shipper.ReleaseReturnedAnnotation] = step }
}

func shop(rels ...*shipper.Release) App {
	return App{
		Name: "shop", Labels: []map[string]string{{"tier": "now"}}, Releases: rels,
		Clusters: func() []shipper.Cluster {
			var out []shipper.Cluster
			for _, region := range []string{"eu", "us"} {
				c := shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: region + "-1"}}
				c.Spec.Region = region
				out = append(out, c)
			}
			return out
		},
	}
}

// described is a Change in words.
func described(c Change) string {
	var parts []string
	add := func(what string, values []string) { parts = append(parts, what+" "+strings.Join(values, ",")) }
	var kinds, labels, charts []string
	for _, k := range c.Kinds {
		kinds = append(kinds, string(k))
	}
	for _, set := range c.Labels() {
		labels = append(labels, strings.ReplaceAll(fmt.Sprint(set), "map", ""))
	}
	for _, e := range c.Environments {
		charts = append(charts, e.Chart.Name)
	}
	clusters := []string{"unknown"}
	if known := c.Clusters(); known != nil {
		clusters = known
	}
	add("kinds", kinds)
	add("labels", labels)
	add("charts", charts)
	add("clusters", clusters)
	return strings.Join(parts, "; ")
}

func TestChangesOfAnApp(t *testing.T) {
	a, b, c := env("a", "eu"), env("b", "us"), env("c", "eu", "us")
	first := rel(0, a, completed, in("eu-1"))
	second := rel(1, b, completed, in("us-1"))
	broken := rel(2, c, stepped(1, 0), in("eu-1,us-1"))
	back := rel(3, a)
	for sentence, tc := range map[string]struct {
		change Change
		want   string
	}{
		"a first Application is placed": {
			shop().Edit(nil, a), "kinds ; labels [tier:now]; charts a; clusters eu-1",
		},
		"an edit affects the running and the new Release": {
			shop(first).Edit(a, b), "kinds ; labels [tier:now],[tier:then]; charts a,a,b; clusters eu-1,us-1",
		},
		"an edit concerns all that serve, and no more": {
			shop(first, second, broken).Edit(c, env("d", "eu")),
			"kinds ; labels [tier:now],[tier:then],[tier:then]; charts b,c,c,d; clusters us-1,eu-1,us-1,eu-1",
		},
		"an edit that cannot be placed is anywhere": {
			shop(first).Edit(a, env("b", "mars")), "kinds ; labels [tier:now],[tier:then]; charts a,a,b; clusters unknown",
		},
		"an edit to a template that completed before is a rollback": {
			shop(first, second).Edit(b, a), "kinds Rollback; labels [tier:now],[tier:then]; charts b,b,a; clusters us-1,eu-1",
		},
		"an edit back to the running template is a rollback": {
			shop(first).Edit(b, a), "kinds Rollback; labels [tier:now],[tier:then]; charts a,b,a; clusters eu-1,eu-1",
		},
		"an edit to a template that never completed is no rollback": {
			shop(first, broken, rel(3, b)).Edit(b, c),
			"kinds ; labels [tier:now],[tier:then],[tier:then],[tier:then]; charts a,c,b,b,c; clusters eu-1,eu-1,us-1,us-1,eu-1,us-1",
		},
		"an edit of anything but the template is none": {
			shop(first).Edit(a, a), "kinds ; labels [tier:now],[tier:then]; charts a,a,a; clusters eu-1,eu-1",
		},
		"a deletion of a completed Release is no abort": {
			shop(first).Edit(a, nil), "kinds ; labels [tier:now],[tier:then]; charts a,a; clusters eu-1",
		},

		"a new Release affects the one it replaces": {
			shop(first).Step(rel(1, b)), "kinds ; labels [tier:now],[tier:then],[tier:then]; charts b,a; clusters eu-1,us-1",
		},
		"a new Release of a completed template is a rollback": {
			shop(first, second).Step(rel(2, a)), "kinds Rollback; labels [tier:now],[tier:then],[tier:then]; charts a,b; clusters us-1,eu-1",
		},
		"a step of the newest affects the one it replaces": {
			shop(first, broken).Step(broken), "kinds ; labels [tier:now],[tier:then],[tier:then]; charts c,a; clusters eu-1,us-1,eu-1",
		},
		"a step of an older one concerns that one": {
			shop(first, broken).Step(first), "kinds ; labels [tier:now],[tier:then]; charts a; clusters eu-1",
		},
		"a step of a rollback is one": {
			shop(first, second, broken, back).Step(back),
			"kinds Rollback; labels [tier:now],[tier:then],[tier:then],[tier:then]; charts a,b,c; clusters us-1,eu-1,us-1,eu-1",
		},
		"a running Release is no rollback to itself": {
			shop(first).Step(first), "kinds ; labels [tier:now],[tier:then]; charts a; clusters eu-1",
		},

		"a rollout goes on": {
			shop(first, broken).Rollout(), "kinds ; labels [tier:now],[tier:then],[tier:then]; charts c,a; clusters eu-1,us-1,eu-1",
		},
		"a rollout that has not achieved anything goes on": {
			shop(rel(0, a, stepped(0, -1))).Rollout(), "kinds ; labels [tier:now],[tier:then]; charts a; clusters eu-1",
		},
		"a rollout stays where it has been": {
			shop(rel(0, a, stepped(1, 1))).Rollout(), "kinds Abort,Retreat; labels [tier:now],[tier:then]; charts a; clusters eu-1",
		},
		"a rollout goes back": {
			shop(rel(0, a, stepped(0, 2))).Rollout(), "kinds Abort,Retreat; labels [tier:now],[tier:then]; charts a; clusters eu-1",
		},
		"a rollout goes where an abort found it": {
			shop(rel(0, a, stepped(1, 0), returnedTo("1"))).Rollout(),
			"kinds Abort,Retreat; labels [tier:now],[tier:then]; charts a; clusters eu-1",
		},
		"a rollout goes further than an abort found it": {
			shop(rel(0, a, stepped(2, 1), returnedTo("1"))).Rollout(), "kinds ; labels [tier:now],[tier:then]; charts a; clusters eu-1",
		},
		"a rollout of a template that completed before is a rollback": {
			shop(first, second, back).Rollout(), "kinds Rollback; labels [tier:now],[tier:then],[tier:then]; charts a,b; clusters us-1,eu-1",
		},

		"the deletion of the newest is an abort": {
			shop(first, broken).Deletion(broken), "kinds Abort; labels [tier:now],[tier:then],[tier:then]; charts c,a; clusters eu-1,us-1,eu-1",
		},
		"the deletion of the only one is none": {
			shop(first).Deletion(first), "kinds ; labels [tier:now],[tier:then]; charts a; clusters eu-1",
		},
		"the deletion of an older one is none, nor a rollback": {
			shop(first, second, back).Deletion(first), "kinds ; labels [tier:now],[tier:then]; charts a; clusters eu-1",
		},
		"the deletion of a rollback is an abort alone": {
			shop(first, second, back).Deletion(back), "kinds Abort; labels [tier:now],[tier:then],[tier:then]; charts a,b; clusters us-1,eu-1",
		},

		"an incomplete Release is deleted by the rollback that replaces it": {
			shop(first, broken, back).Trimming(broken), "kinds Rollback; labels [tier:now],[tier:then]; charts c; clusters eu-1,us-1",
		},
		"an incomplete Release is not deleted by another rollout": {
			shop(first, broken, rel(3, b)).Trimming(broken), "kinds ; labels [tier:now],[tier:then]; charts c; clusters eu-1,us-1",
		},
		"a completed Release is not deleted by a rollback": {
			shop(first, second, back).Trimming(first), "kinds ; labels [tier:now],[tier:then]; charts a; clusters eu-1",
		},
		"with no Releases known there is nothing it goes with": {
			shop().Trimming(broken), "kinds ; labels [tier:now],[tier:then]; charts c; clusters eu-1,us-1",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, described(tc.change)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWithoutClustersThePlacementIsUnknown(t *testing.T) {
	app := shop()
	app.Clusters = nil
	if got := app.Edit(nil, env("a", "eu")).Clusters(); got != nil {
		t.Errorf("got %v", got)
	}
	if got := app.Step(rel(0, env("a", "eu"), in("eu-7"))).Clusters(); !cmp.Equal(got, []string{"eu-7"}) {
		t.Errorf("of what was placed: got %v", got)
	}
}

func TestNewestAndPrevious(t *testing.T) {
	first, second := rel(0, env("a")), rel(1, env("b"))
	if a := shop(); a.Newest() != nil || a.Previous() != nil {
		t.Error("there are some of none")
	}
	if a := shop(first); a.Newest() != first || a.Previous() != nil {
		t.Error("there is one before the first")
	}
	if a := shop(first, second); a.Newest() != second || a.Previous() != first {
		t.Error("they are not in order")
	}
}
