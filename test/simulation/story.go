// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strconv"
	"strings"
)

// Story is what users do, and what must hold meanwhile.
type Story struct {
	// Name is what STORY names.
	Name string
	// Clusters is how many application clusters there are. 0: two.
	Clusters int
	// Services are the production Services of its charts. Nil: test-nginx-prod.
	Services []string
	// Begin makes what the parts need. Nothing disturbs it.
	Begin func(*Fixture)
	// Parts follow one another. Each is disturbed, and its end is compared with that of an undisturbed run.
	Parts []Part
	// Fails says that rollouts fail in this story by themselves: law 8 allows moves back, failures and aborts by the reconciler.
	Fails bool
	// Shared says that the story reaches other Applications, whose statuses may change: a cluster is lost, or a block begins.
	Shared bool
}

// Part is one part of a story.
type Part struct {
	// Name is unique in its story.
	Name string
	// Before prepares the part. Nothing disturbs it.
	Before func(*Fixture)
	// Floor is how many Pods serve in each cluster throughout: what the smallest of its steps asks for. 0: no number is required.
	Floor int
	// Loose says that the end depends on what was first: it is not compared with that of the undisturbed run, and Check judges it.
	Loose bool
	// Act is what users do. It returns when what they wait for is there.
	Act func(*Fixture)
	// Check looks at the end, when nothing is written any more. Nil: the comparison with the undisturbed run is enough.
	Check func(*Fixture)
}

// Stories are all stories. To add one, write it in a file of its own and name it here.
func Stories() []Story {
	return []Story{
		rolloutStory(),
		rollbackStory(),
		switchStory(),
		servicesStory(),
		soakStory(),
		checksStory(),
		failureStory(),
		hooksStory(),
		placementStory(),
		healthStory(),
		runStory(),
		blockStory(),
		deletionStory(),
		deleteHooksStory(),
		scopedStory(),
		overrideStory(),
		anchorStory(),
		lostStory(),
		addressStory(),
		joinStory(),
		foreignStory(),
		abortStory(),
		inPlaceStory(),
		labelsStory(),
		deadlineStory(),
		wavesStory(),
		wavesByThemselvesStory(),
		wavesBlockedStory(),
		wavesApprovedStory(),
		wavesStaleStory(),
		wavesWaitStory(),
		wavesFailingStory(),
		placedWavesStory(),
		wavesBeforeStory(),
		walkStory(1),
		olderStory(1),
	}
}

// services are the production Services of its charts.
func (s Story) services() []string {
	if s.Services == nil {
		return []string{serviceName}
	}
	return s.Services
}

// numbered are the stories of which there is one for each number, by the beginning of their names. No end of theirs is compared.
var numbered = map[string]func(number uint64) Story{walkName: walkStory, olderName: olderStory}

// isNumbered reports whether a name is that of one of them.
func isNumbered(name string) bool {
	for prefix := range numbered {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// withNumber is the story of another number, if it is one of those.
func (s Story) withNumber(number uint64) Story {
	for prefix, story := range numbered {
		if strings.HasPrefix(s.Name, prefix) {
			return story(number)
		}
	}
	return s
}

// find is the story of a name.
func find(name string) (Story, bool) {
	for prefix, story := range numbered {
		if number, is := strings.CutPrefix(name, prefix); is {
			n, err := strconv.ParseUint(number, 10, 64)
			return story(n), err == nil
		}
	}
	all := Stories()
	i := slices.IndexFunc(all, func(s Story) bool { return s.Name == name })
	if i < 0 {
		return Story{}, false
	}
	return all[i], true
}
