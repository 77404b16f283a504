// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// usual is how many seeds `make test` runs, beside those that are known; SEEDS says another number, and `make nightly` runs thousands.
const usual = 2

// all reports whether everything is to run, which takes minutes.
func all() bool { return os.Getenv("ALL") != "" }

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	debug.SetGCPercent(400) // each life builds its caches again, and little is kept
	os.Exit(m.Run())
}

// number is an environment variable.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if n < 1 {
		t.Fatalf("%s is %d, and has to be 1 or more", name, n)
	}
	return n
}

// chosen are the stories to run: all, or that which STORY names.
func chosen(t *testing.T) []Story {
	t.Helper()
	name := os.Getenv("STORY")
	if name == "" {
		return Stories()
	}
	story, found := find(name)
	if !found {
		t.Fatalf("STORY=%s: there is no such story", name)
	}
	return []Story{story}
}

// calm are the outcomes of undisturbed runs.
var calm struct {
	sync.Mutex
	outcomes map[string]func(*testing.T) *Outcome
}

// undisturbedRun is what disturbed runs of a story are compared with. It is run once.
func undisturbedRun(t *testing.T, story string) *Outcome {
	t.Helper()
	calm.Lock()
	if calm.outcomes == nil {
		calm.outcomes = map[string]func(*testing.T) *Outcome{}
	}
	run := calm.outcomes[story]
	if run == nil {
		var once sync.Mutex
		var out *Outcome
		run = func(t *testing.T) *Outcome {
			once.Lock()
			defer once.Unlock()
			if out == nil {
				out = Run(t, undisturbed(story), nil)
			}
			return out
		}
		calm.outcomes[story] = run
	}
	calm.Unlock()
	return run(t)
}

// check runs a plan, and compares its ends with those of the undisturbed run.
func check(t *testing.T, p Plan) *Outcome {
	t.Helper()
	var ends map[string]string
	if !isNumbered(p.Story) {
		ends = undisturbedRun(t, p.Story).Ends
	}
	out := Run(t, p, ends)
	t.Logf("%d lives, %v writes, %s", out.Lives, out.Writes, out.Virtual)
	if failure := out.Failure(); failure != "" {
		t.Error(failure)
	}
	return out
}

func TestUndisturbedStoriesKeepTheLaws(t *testing.T) {
	for _, story := range chosen(t) {
		if !all() && isNumbered(story.Name) { // nothing is compared with it
			continue
		}
		t.Run(story.Name, func(t *testing.T) {
			t.Parallel()
			out := undisturbedRun(t, story.Name)
			t.Logf("%v writes, %s", out.Writes, out.Virtual)
			if failure := out.Failure(); failure != "" {
				t.Error(failure)
			}
			for _, err := range out.Exits {
				t.Error(err)
			}
		})
	}
}

// TestKilledAtEachKindOfWrite ends a life with the first write of each kind, such as a PATCH of a status of a Release.
func TestKilledAtEachKindOfWrite(t *testing.T) {
	for _, story := range chosen(t) {
		if !all() && strings.HasPrefix(story.Name, olderName) {
			continue // TestOlderStatesOfManagementTakeNothingAway has it
		}
		if !all() && story.Name == "waves-stale" {
			continue // it is long, and its clusters freeze undisturbed
		}
		if !all() && story.Name == everyWrite {
			continue // TestKilledAtEveryWrite ends a life with each kind, too
		}
		t.Run(story.Name, func(t *testing.T) {
			t.Parallel()
			p := undisturbed(story.Name)
			p.KillKinds, p.Death = true, AnswerLost
			out := check(t, p)
			if out.Lives == 0 {
				t.Error("no write ended a life")
			}
			for _, err := range out.Exits {
				t.Error(err)
			}
		})
	}
}

// everyWrite is the story that is killed at every write without ALL=1: a rollout in waves with an approval.
const everyWrite = "waves-approved"

// TestKilledAtEveryWrite ends one life after another, each with one write. Without ALL=1 one story has that, with one death.
func TestKilledAtEveryWrite(t *testing.T) {
	deaths := bothDeaths
	if !all() {
		deaths = deaths[:1]
	}
	for _, story := range chosen(t) {
		if !all() && story.Name != everyWrite {
			continue
		}
		for _, how := range deaths {
			t.Run(fmt.Sprint(story.Name, "/", how), func(t *testing.T) {
				t.Parallel()
				p := undisturbed(story.Name)
				p.KillEvery, p.Death = true, how
				out := check(t, p)
				total := 0
				for _, writes := range out.Writes {
					total += writes
				}
				if out.Lives < total-len(out.Writes) {
					t.Errorf("of %d writes %d ended a life", total, out.Lives)
				}
				for _, err := range out.Exits {
					t.Error(err)
				}
			})
		}
	}
}

// TestKilledAtEachWrite ends one life in each part, by the n-th write of the part.
func TestKilledAtEachWrite(t *testing.T) {
	if !all() {
		t.Skip("ALL is not set")
	}
	for _, story := range chosen(t) {
		most := 0
		for _, writes := range undisturbedRun(t, story.Name).Writes {
			most = max(most, writes)
		}
		for _, how := range bothDeaths {
			for n := 1; n <= most; n++ {
				t.Run(fmt.Sprint(story.Name, "/", how, "/", n), func(t *testing.T) {
					t.Parallel()
					p := undisturbed(story.Name)
					p.KillAt, p.Death = []int{n}, how
					for _, err := range check(t, p).Exits {
						t.Error(err)
					}
				})
			}
		}
	}
}

// TestSeeds draws faults and kills.
func TestSeeds(t *testing.T) {
	stories := chosen(t)
	for i := range number(t, "SEEDS", usual) {
		seed := uint64(number(t, "FIRST", 1) + i)
		story := stories[i%len(stories)].withNumber(seed)
		t.Run(fmt.Sprint(seed, "/", story.Name), func(t *testing.T) {
			t.Parallel()
			check(t, Draw(seed, story))
		})
	}
}

// TestRandomDeletionsLeaveEndpoints has users who move, edit and delete at random, while a fault or two disturb it.
func TestRandomDeletionsLeaveEndpoints(t *testing.T) {
	if !all() {
		t.Skip("ALL is not set; TestKnownSeedsKeepTheLaws has a walk")
	}
	for i := range uint64(20) {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) {
			t.Parallel()
			check(t, Draw(i+1, walkStory(i+1)))
		})
	}
}

// TestOlderStatesOfManagementTakeNothingAway restores the management cluster to any earlier moment, at any moment, with no other fault.
// Usual are numbers that broke a law once: the first lost Pods, the second traffic, the third that of one of several Services.
func TestOlderStatesOfManagementTakeNothingAway(t *testing.T) {
	numbers := []int{7, 8, 10}
	if os.Getenv("SEEDS") != "" {
		numbers = nil
		for i := range number(t, "SEEDS", usual) {
			numbers = append(numbers, number(t, "FIRST", 1)+i)
		}
	}
	for _, n := range numbers {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			check(t, undisturbed(fmt.Sprint(olderName, n)))
		})
	}
}

// TestSeed runs SEED of STORY again, TIMES times: the order of goroutines differs each time.
func TestSeed(t *testing.T) {
	if os.Getenv("SEED") == "" {
		t.Skip("no SEED is given")
	}
	story, found := find(os.Getenv("STORY"))
	if !found {
		t.Fatalf("STORY=%q: there is no such story: a seed has other faults in each", os.Getenv("STORY"))
	}
	for i := range number(t, "TIMES", 1) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			check(t, Draw(uint64(number(t, "SEED", 0)), story))
		})
	}
}

// TestTheNextLeaderGoesOn has two reconcilers, of which the one that leads stands still for longer than its Lease lasts, in each part. It
// goes on later, with what it remembers, and must write nothing. Without ALL=1 the rollout alone has that.
func TestTheNextLeaderGoesOn(t *testing.T) {
	for _, story := range chosen(t) {
		if !all() && story.Name != "rollout" {
			continue
		}
		t.Run(story.Name, func(t *testing.T) {
			t.Parallel()
			p := undisturbed(story.Name)
			p.Replicas, p.Faults = 2, map[string][]Fault{}
			for i, part := range story.Parts {
				p.Faults[part.Name] = []Fault{{
					Kind: StandStill, Process: fmt.Sprint(reconcilers, i%2), After: 20 * mostDelay, For: 30 * 1e9,
				}}
			}
			check(t, p)
		})
	}
}
