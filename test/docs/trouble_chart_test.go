// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
)

// TestAChartThatIsGone takes the charts away under a running Release, and all that Shipper remembers of them. Nothing of
// running Releases become False; a new Release says what it lacks, can be aborted, and a later one goes on when charts are back.
func TestAChartThatIsGone(t *testing.T) {
	u := begin(t)
	u.alone() // Shipper is restarted
	repository := charts.Serve(t)
	u.applies(u.application(repository.URL, "0.0.1", "stable"))
	running := u.newest(1)
	u.completes(running)
	u.awaits("rel/"+running, shipper.ReleaseHealthy) // it is written a moment later

	flips := u.watchesForFlips(running)
	repository.Break(charts.NoArchives)
	u.restartShipper(func() {
		for _, name := range shipperBinaries {
			u.Must("forgetting charts", os.RemoveAll(filepath.Join(shipperFolder(), name+"-charts")))
		}
	})

	u.applies(u.application(repository.URL, "0.0.2", "stable"))
	lost := u.newest(2)
	u.Eventually("Scheduled of the new release", "False ChartFetchFailure, naming the archive and the answer",
		func() (string, error) {
			rel := &shipper.Release{}
			err := world.management.Get(u.Ctx, client.ObjectKey{Namespace: u.Namespace, Name: lost}, rel)
			c := shipper.FindCondition(rel.Status.Conditions, shipper.ReleaseScheduled)
			if c == nil {
				return "nothing", err
			}
			for _, word := range []string{repository.URL + "/test-nginx-0.0.2.tgz", "404"} {
				if !strings.Contains(c.Message, word) {
					return fmt.Sprintf("no word of %s: %s %s: %s", word, c.Status, c.Reason, c.Message), err
				}
			}
			return fmt.Sprintf("%s %s, naming the archive and the answer", c.Status, c.Reason), err
		})
	u.describes("rel", lost, "Reason: ChartFetchFailure Status: False Type: Scheduled",
		"step 0 (staging) waits for clusters to be chosen and targets to be created")

	u.waitsBecauseOf(lost, repository.URL)

	if seen := flips(); len(seen) > 0 {
		t.Errorf("what ran became False:\n%s", strings.Join(seen, "\n"))
	}

	// The abort needs no chart either. It asks of the Release that becomes the newest again that shared objects be its own.
	u.kubectl("delete", "rel", lost)
	u.Eventually("the version in the template", "0.0.1", func() (string, error) {
		app := &shipper.Application{}
		err := world.management.Get(u.Ctx, client.ObjectKey{Namespace: u.Namespace, Name: appName}, app)
		return app.Spec.Template.Chart.Version, err
	})
	u.awaits("rel/"+running, "StrategyExecuted")
	if n := u.serving(running); n != 6 {
		t.Errorf("%d pods serve, want 6", n)
	}

	repository.Heal()
	u.applies(u.application(repository.URL, "0.0.2", "stable"))
	next := u.newest(2)
	u.completes(next)
}

// watchesForFlips watches a Release and its targets; what it returns ends that and lists the conditions that were not True.
func (u *user) watchesForFlips(release string) func() []string {
	u.Helper()
	seen := make(chan string, 100)
	var watches []watch.Interface
	var ended []chan struct{}
	for kind, list := range map[string]client.ObjectList{
		"rel": &shipper.ReleaseList{}, "it": &shipper.InstallationTargetList{},
		"ct": &shipper.CapacityTargetList{}, "tt": &shipper.TrafficTargetList{},
	} {
		w, err := world.management.Watch(u.Ctx, list, client.InNamespace(u.Namespace))
		u.Must("watching "+kind, err)
		end := make(chan struct{})
		watches, ended = append(watches, w), append(ended, end)
		go func() {
			defer close(end)
			for event := range w.ResultChan() {
				object, ok := event.Object.(client.Object)
				if !ok || object.GetName() != release {
					continue
				}
				for _, wrong := range untrue(object) {
					select {
					case seen <- string(event.Type) + " " + kind + " " + wrong:
					default:
					}
				}
			}
		}()
	}
	return func() []string {
		for i, w := range watches {
			w.Stop()
			<-ended[i]
		}
		close(seen)
		var out []string
		for wrong := range seen {
			out = append(out, wrong)
		}
		return out
	}
}

// untrue lists the conditions of an object and of its clusters that should be True and are not.
func untrue(object client.Object) []string {
	var out []string
	add := func(of string, conditions []shipper.Condition) {
		for _, c := range conditions {
			if c.Status != corev1.ConditionTrue && c.Type != shipper.ReleaseBlocked {
				out = append(out, fmt.Sprintf("%s %s is %s: %s %s", of, c.Type, c.Status, c.Reason, c.Message))
			}
		}
	}
	switch o := object.(type) {
	case *shipper.Release:
		add("", o.Status.Conditions)
	case *shipper.InstallationTarget:
		add("", o.Status.Conditions)
		for _, c := range o.Status.Clusters {
			add(c.Name, c.Conditions)
		}
	case *shipper.CapacityTarget:
		add("", o.Status.Conditions)
		for _, c := range o.Status.Clusters {
			add(c.Name, c.Conditions)
		}
	case *shipper.TrafficTarget:
		add("", o.Status.Conditions)
		for _, c := range o.Status.Clusters {
			add(c.Name, c.Conditions)
		}
	}
	return out
}
