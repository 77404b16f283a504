// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// walkName begins the names of random walks. STORY=walk-4711 is the one of that number.
const walkName = "walk-"

// walkStory has a user who moves, edits and deletes at random, while what was requested before is under way. How it ends depends on what
// was first, so no end is compared: one Release serves in the end, alone in traffic, and at no time is a cluster without endpoints.
func walkStory(number uint64) Story {
	story := Story{
		Name: fmt.Sprint(walkName, number),
		Begin: func(f *Fixture) {
			f.Bystand()
			f.Creates(f.Application(appName, "0.0.1", replicaCount, vanguard()))
			f.toTheEnd()
		},
	}
	for _, one := range []struct {
		name string
		act  func(*Fixture, *rand.Rand)
	}{
		{"moves", (*Fixture).walk},
		{"deletions", (*Fixture).deletesAtRandom},
		{"moves again", (*Fixture).walk},
	} {
		story.Parts = append(story.Parts, Part{
			Name: one.name, Floor: 1, Loose: true,
			Act: func(f *Fixture) {
				one.act(f, draws(number, one.name))
				f.toTheEnd()
			},
			Check: (*Fixture).oneServes,
		})
	}
	return story
}

// walk makes some moves at random.
func (f *Fixture) walk(r *rand.Rand) {
	for range 3 + r.IntN(4) {
		switch newest := f.laws.newest().Name; r.IntN(4) {
		case 0:
			f.editsAtRandom(r)
		case 1:
			f.deletesIfThere(newest)
		default:
			f.stepsAtRandom(newest, r)
		}
		time.Sleep(time.Duration(r.IntN(12000)) * time.Millisecond)
	}
}

// deletesAtRandom has three Releases, of which the second is at some step, and deletes one to all of them in some order.
func (f *Fixture) deletesAtRandom(r *rand.Rand) {
	for range 2 {
		before := f.laws.newest().Name
		f.editsAtRandom(r)
		f.Eventually("another Release", "there", func() string {
			if f.laws.newest().Name == before {
				return "not there"
			}
			return "there"
		})
		f.stepsAtRandom(f.laws.newest().Name, r)
		time.Sleep(time.Duration(r.IntN(8000)) * time.Millisecond)
	}
	names := f.ReleasesOf(appName)
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:min(len(names), 1+r.IntN(3))] {
		f.deletesIfThere(name)
		time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
	}
}

// walker is the Application of a random walk.
func (f *Fixture) walker(version string, s steps) *shipper.Application {
	app := f.Application(appName, version, replicaCount, s)
	if f.story.Services != nil {
		app = f.shop(version)
		app.Spec.Template.Strategy.Steps = s
	}
	return app
}

// editsAtRandom requests another Release.
func (f *Fixture) editsAtRandom(r *rand.Rand) {
	s, version := vanguard(), fmt.Sprint("0.0.", 1+r.IntN(2))
	if r.IntN(3) == 0 {
		s = allIn()
	}
	note := strconv.FormatUint(r.Uint64(), 36)
	f.Edits(func(app *shipper.Application) {
		next := f.walker(version, s)
		(*next.Spec.Template.Values)["note"] = note
		app.Spec.Template = next.Spec.Template
	})
}

// deletesIfThere deletes a Release that may be gone by then, or may serve.
func (f *Fixture) deletesIfThere(name string) {
	if name == "" {
		return
	}
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	confirm := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, shipper.ConfirmDeletionAnnotation, name)
	f.persist("confirming the deletion of "+name, func() error {
		return client.IgnoreNotFound(f.User.Patch(f.Ctx, rel.DeepCopy(), client.RawPatch(types.MergePatchType, confirm)))
	})
	f.Deletes(rel)
}

// stepsAtRandom requests one of three steps, but never takes all traffic away: while no other Release is complete, one that goes back to
// a step without traffic serves no more, as was requested.
func (f *Fixture) stepsAtRandom(name string, r *rand.Rand) {
	step, rel := int32(r.IntN(3)), f.Get(name)
	if s := rel.Spec.Environment.Strategy; s != nil && step < rel.Spec.TargetStep && s.Steps[step].Traffic.Contender == 0 &&
		!f.othersComplete(name) {
		step = rel.Spec.TargetStep
	}
	f.stepsIfThere(name, step)
}

// othersComplete reports whether the Application has a complete Release besides one, that is not being deleted.
func (f *Fixture) othersComplete(besides string) bool {
	return slices.ContainsFunc(f.hosts[management].all(kindOf("releases")), func(o *unstructured.Unstructured) bool {
		var rel shipper.Release
		return o.GetLabels()[shipper.AppLabel] == appName && o.GetName() != besides && o.GetDeletionTimestamp() == nil &&
			convert(o, &rel) && shipper.ConditionTrue(rel.Status.Conditions, shipper.ReleaseComplete)
	})
}

// stepsIfThere requests a step of a Release that may be gone by then, or may have no such step.
func (f *Fixture) stepsIfThere(name string, step int32) {
	if rel := f.Get(name); rel.Name == "" || rel.Spec.Environment.Strategy == nil {
		return
	} else if last := len(rel.Spec.Environment.Strategy.Steps) - 1; int(step) > last {
		step = int32(last)
	}
	f.persist("requesting a step", func() error {
		err := f.TryStep(name, step)
		if err != nil && f.Get(name).Name == "" {
			return nil // it is gone
		}
		return err
	})
}

// toTheEnd moves the newest Release to its last step, whichever that is, until it is complete and no Release is being deleted.
func (f *Fixture) toTheEnd() {
	f.T.Helper()
	f.Eventually("the newest Release", "complete, and nothing is being deleted", func() string {
		var going []string
		for _, o := range f.hosts[management].all(kindOf("releases")) {
			if o.GetLabels()[shipper.AppLabel] == appName && o.GetDeletionTimestamp() != nil {
				going = append(going, o.GetName())
			}
		}
		newest := f.laws.newest()
		if newest.Name == "" {
			return "absent"
		}
		if newest.Spec.Environment.Strategy == nil || newest.DeletionTimestamp != nil {
			return newest.Name + " is not ready"
		}
		if last := int32(len(newest.Spec.Environment.Strategy.Steps) - 1); newest.Spec.TargetStep != last {
			f.stepsIfThere(newest.Name, last)
			return newest.Name + " is not at its end"
		}
		history := f.ReleasesOf(appName)
		if len(going) > 0 || len(history) == 0 || history[len(history)-1] != newest.Name ||
			!shipper.ConditionTrue(newest.Status.Conditions, shipper.ReleaseComplete) {
			return fmt.Sprintf("%s of %v, being deleted: %v", newest.Name, history, going)
		}
		return "complete, and nothing is being deleted"
	})
}

// oneServes requires that all endpoints in each cluster are those of the newest Release.
func (f *Fixture) oneServes() {
	newest := f.laws.newest().Name
	for name, h := range f.hosts {
		if name == management {
			continue
		}
		ready := map[string]bool{}
		for _, o := range h.all(pods) {
			ready[o.GetName()] = o.GetLabels()[shipper.ReleaseLabel] == newest && podReady(o)
		}
		var serve []string
		for _, endpoint := range h.endpointsOf(serviceName) {
			serve = append(serve, fmt.Sprint(endpoint, "=", ready[endpoint]))
		}
		if all := strings.Join(serve, " "); len(serve) != replicaCount || strings.Contains(all, "=false") {
			f.laws.broken(7, "%s: in the end these serve: %s; want %d Pods of %s", name, all, replicaCount, newest)
		}
	}
}
