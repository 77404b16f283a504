// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler"
)

const (
	// appName is the Application of every story, and serviceName the Service of its chart.
	appName, serviceName = "super-server", "test-nginx-prod"
	// replicaCount is how many Pods it has in each cluster.
	replicaCount = 4
)

// Fixture is one run of a story, with what its users do and see.
type Fixture struct {
	*World
	// User is the client of a user: the webhook reviews its writes.
	User client.Client
	// Ctx lasts as long as the run.
	Ctx context.Context

	story      Story
	bystanders map[string]string // versions of objects that Shipper must not touch
}

func newFixture(w *World, story Story) *Fixture {
	f := &Fixture{World: w, Ctx: context.Background(), story: story}
	f.User = f.clientOf(userName)
	return f
}

// clientOf is the client of a user, by the name of its process.
func (f *Fixture) clientOf(name string) client.Client {
	scheme, err := reconciler.NewScheme()
	f.must("building a scheme", err)
	c, err := client.New(&rest.Config{
		Host: "http://" + management, BearerToken: name, QPS: -1, UserAgent: "kubectl", Transport: f.Network.newClient(f.Ctx, name),
	}, client.Options{Scheme: scheme})
	f.must("building a client", err)
	return c
}

// steps make a strategy.
type steps []shipper.RolloutStrategyStep

// step has percentages of Pods, and weights, of incumbent and contender.
func step(name string, oldCapacity, newCapacity, oldTraffic, newTraffic int32) shipper.RolloutStrategyStep {
	return shipper.RolloutStrategyStep{
		Name:     name,
		Capacity: shipper.RolloutStrategyStepValue{Incumbent: oldCapacity, Contender: newCapacity},
		Traffic:  shipper.RolloutStrategyStepValue{Incumbent: oldTraffic, Contender: newTraffic},
	}
}

// allIn has one step; vanguard has one Pod without traffic, then half, then all.
func allIn() steps { return steps{step("full on", 0, 100, 0, 100)} }

func vanguard() steps {
	return steps{step("staging", 100, 1, 100, 0), step("50/50", 50, 50, 50, 50), step("full on", 0, 100, 0, 100)}
}

// Application is the Application of a story, of a version of the chart test-nginx, in all clusters.
func (f *Fixture) Application(name, version string, replicas int, s steps) *shipper.Application {
	values := shipper.ChartValues{"replicaCount": int64(replicas)}
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	app.Spec.RevisionHistoryLimit = ptr.To[int32](20)
	app.Spec.Template = shipper.ReleaseEnvironment{
		Chart: shipper.Chart{Name: "test-nginx", Version: version, RepoURL: chartsURL}, Values: &values,
		Strategy: &shipper.RolloutStrategy{Steps: s},
	}
	for n := range len(f.Clusters) {
		app.Spec.Template.ClusterRequirements.Regions = append(app.Spec.Template.ClusterRequirements.Regions,
			shipper.RegionRequirement{Name: region(n)})
	}
	return app
}

// persist repeats what a user does until it succeeds, or is refused for a reason.
func (f *Fixture) persist(doing string, do func() error) {
	f.T.Helper()
	for began := time.Now(); ; time.Sleep(time.Second) {
		err := do()
		if err == nil {
			return
		}
		f.history.Note("user", "%s: %v", doing, err)
		if !transient(err) || time.Since(began) > patience {
			f.must(doing, err)
		}
	}
}

// transient reports whether a person would try again.
func transient(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return true // of the network
	}
	return apierrors.IsInternalError(err) || apierrors.IsConflict(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err)
}

// Creates creates an object.
func (f *Fixture) Creates(o client.Object) {
	f.T.Helper()
	again := false
	f.persist("creating "+o.GetName(), func() error {
		err := f.User.Create(f.Ctx, o.DeepCopyObject().(client.Object), client.FieldOwner("kubectl-create"))
		if again && apierrors.IsAlreadyExists(err) {
			return nil // the answer was lost
		}
		again = true
		return err
	})
}

// Deletes deletes an object.
func (f *Fixture) Deletes(o client.Object) {
	f.T.Helper()
	f.persist("deleting "+o.GetName(), func() error { return client.IgnoreNotFound(f.User.Delete(f.Ctx, o)) })
}

// Edits changes the Application as a user who read it a moment ago would.
func (f *Fixture) Edits(edit func(*shipper.Application)) {
	f.T.Helper()
	f.persist("editing the application", func() error { return f.TryEdit(edit) })
}

// TryEdit is Edits for a request that may be refused.
func (f *Fixture) TryEdit(edit func(*shipper.Application)) error {
	app := &shipper.Application{}
	if err := f.User.Get(f.Ctx, f.Key(appName), app); err != nil {
		return err
	}
	before := app.DeepCopy()
	edit(app)
	return f.User.Patch(f.Ctx, app, client.MergeFrom(before))
}

// Steps requests a step of a Release.
func (f *Fixture) Steps(release string, target int32) {
	f.T.Helper()
	f.persist("requesting a step", func() error { return f.TryStep(release, target) })
}

// TryStep is Steps for a request that may be refused.
func (f *Fixture) TryStep(release string, target int32) error {
	rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: release}}
	patch := fmt.Appendf(nil, `{"spec":{"targetStep":%d}}`, target)
	return f.User.Patch(f.Ctx, rel, client.RawPatch(types.MergePatchType, patch))
}

// Moves requests a position of a Release.
func (f *Fixture) Moves(release string, wave, step int32) {
	f.T.Helper()
	f.persist("requesting a wave", func() error {
		rel := &shipper.Release{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: release}}
		patch := fmt.Appendf(nil, `{"spec":{"targetStep":%d,"targetWave":%d}}`, step, wave)
		return f.User.Patch(f.Ctx, rel, client.RawPatch(types.MergePatchType, patch))
	})
}

// WaitsAt waits until a Release has achieved a position and waits for the next command.
func (f *Fixture) WaitsAt(release string, wave, step int32) {
	f.T.Helper()
	f.Eventually("achieved position of "+release, fmt.Sprintf("wave %d step %d, waiting for command True", wave, step), func() string {
		rel := f.Get(release)
		if rel.Status.AchievedStep == nil || rel.Status.Strategy == nil || rel.Status.ObservedGeneration != rel.Generation {
			return "none"
		}
		return fmt.Sprintf("wave %d step %d, waiting for command %s", rel.Status.AchievedStep.Wave, rel.Status.AchievedStep.Step,
			rel.Status.Strategy.State.WaitingForCommand)
	})
}

// Key names an object of the story's namespace.
func (f *Fixture) Key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: name}
}

// kindOf is memory.Kind.ID of a resource of Shipper.
func kindOf(resource string) string { return shipper.GroupName + "/" + resource }

// Eventually waits until look returns what is expected.
func (f *Fixture) Eventually(what, expected string, look func() string) {
	f.T.Helper()
	for began := time.Now(); ; {
		f.mu.Lock()
		changed := f.changed
		f.mu.Unlock()
		is := look()
		if is == expected {
			return
		}
		if time.Since(began) > patience {
			f.T.Fatalf("%s: %q, want %q\n%s\n%s\n%s\n%s", what, is, expected, f.plan, strings.Join(f.laws.all(), "\n"), f.history, f.everything())
		}
		timer := time.NewTimer(time.Second)
		select {
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// everything are all objects of Shipper, with their messages.
func (f *Fixture) everything() string {
	var out strings.Builder
	for _, kind := range compared[true] {
		for _, o := range f.hosts[management].all(kind) {
			raw, _ := yaml.Marshal(o.Object) // it was read from JSON
			fmt.Fprintf(&out, "--- %s\n%s", kind, raw)
		}
	}
	return out.String()
}

// Release waits until the Application has its n-th Release, counting from 0, and names it.
func (f *Fixture) Release(n int) string {
	f.T.Helper()
	return f.ReleaseOf(appName, n)
}

// ReleaseOf is Release for another Application.
func (f *Fixture) ReleaseOf(name string, n int) (release string) {
	f.T.Helper()
	f.Eventually("Releases in the history of "+name, fmt.Sprint(n+1), func() string {
		history := f.ReleasesOf(name)
		if len(history) > n {
			release = history[n]
		}
		return fmt.Sprint(len(history))
	})
	return release
}

// ReleasesOf are the Releases in the history of an Application, the oldest first.
func (f *Fixture) ReleasesOf(name string) []string {
	var app shipper.Application
	f.hosts[management].read(kindOf("applications"), namespace, name, &app)
	return app.Status.History
}

// Get reads a Release; it is empty if there is none.
func (f *Fixture) Get(release string) *shipper.Release {
	rel := &shipper.Release{}
	f.hosts[management].read(kindOf("releases"), namespace, release, rel)
	return rel
}

// Completes waits until a Release is complete.
func (f *Fixture) Completes(release string) {
	f.T.Helper()
	f.Eventually("completion of "+release, "True", func() string {
		c := shipper.FindCondition(f.Get(release).Status.Conditions, shipper.ReleaseComplete)
		if c == nil {
			return "absent"
		}
		return strings.TrimSpace(string(c.Status) + " " + c.Message)
	})
}

// WaitsForCommand waits until a Release has achieved a step and waits for the next command.
func (f *Fixture) WaitsForCommand(release string, target int32) {
	f.T.Helper()
	f.Eventually("achieved step of "+release, fmt.Sprintf("step %d, waiting for command True", target), func() string {
		rel := f.Get(release)
		if rel.Status.AchievedStep == nil || rel.Status.Strategy == nil {
			return "none"
		}
		return fmt.Sprintf("step %d, waiting for command %s", rel.Status.AchievedStep.Step, rel.Status.Strategy.State.WaitingForCommand)
	})
}

// IsGone waits until an object of a resource of Shipper does not exist.
func (f *Fixture) IsGone(resource, name string) {
	f.T.Helper()
	f.Eventually(resource+" "+name, "gone", func() string {
		if f.hosts[management].get(kindOf(resource), namespace, name) == nil {
			return "gone"
		}
		return "there"
	})
}

// Settles waits until a Release waits for nothing, and no other exists.
func (f *Fixture) Settles(release string) {
	f.T.Helper()
	f.Eventually("state of "+release, "alone, False False False False", func() string {
		rel, history := f.Get(release), f.ReleasesOf(appName)
		if rel.Status.Strategy == nil || !slices.Equal(history, []string{release}) {
			return "none, or not alone"
		}
		s := rel.Status.Strategy.State
		return fmt.Sprint("alone, ", s.WaitingForInstallation, " ", s.WaitingForCapacity, " ", s.WaitingForTraffic, " ", s.WaitingForCommand)
	})
}

// rests waits until reconcilers have written nothing for a while.
func (f *Fixture) rests() {
	f.T.Helper()
	began := time.Now()
	for before := -1; ; time.Sleep(quiet) {
		n := f.Network.total()
		if n == before {
			return
		}
		if before = n; time.Since(began) > patience {
			f.T.Fatalf("the reconcilers write for ever\n%s\n%s", f.plan, f.history)
		}
	}
}
