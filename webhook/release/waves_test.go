// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/apis/rules/position"
	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/response"
)

// waved is a Release with three waves of two steps, at a position.
func waved(wave, step int32, edits ...func(*shipper.Release)) *shipper.Release {
	app := ask.Application()
	app.Spec.Template.Strategy = &shipper.RolloutStrategy{
		Steps: []shipper.RolloutStrategyStep{ask.Step("preview", 100, 20, 100, 0), ask.Step("full on", 0, 100, 0, 100)},
		Waves: []shipper.Wave{
			{Name: "canary", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{shipper.RegionLabel: "eu"}}},
			{Name: "half", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{shipper.RegionLabel: "us"}}}, {Name: "rest"},
		},
	}
	r := ask.Release(app, nil)
	r.Generation, r.Status.ObservedGeneration = 3, 3
	r.Spec.TargetWave, r.Spec.TargetStep = &wave, step
	r.Status.Progress = &shipper.ReleaseProgress{Wave: wave, Step: step}
	for _, edit := range edits {
		edit(r)
	}
	return r
}

// done says that the position is achieved.
func done(r *shipper.Release) {
	r.Status.AchievedStep = &shipper.AchievedStep{Step: r.Spec.TargetStep, Wave: *r.Spec.TargetWave}
	r.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseStrategyExecuted, Status: "True"}}
}

// placed is a Release with resources in its first wave.
func placed(edits ...func(*shipper.Release)) *shipper.Release {
	return waved(0, 0, append(edits, func(r *shipper.Release) {
		env := &r.Spec.Environment
		env.Strategy.Steps, env.Chart, env.Values, env.ResourcesDigest = nil, shipper.Chart{}, nil, "x"
		env.Resources = &shipper.Resources{Select: []shipper.ResourceSelector{{Kind: "ConfigMap", Name: "a"}}}
	})...)
}

// notDoneOf is the refusal of a move past the first wave of a Release.
func notDoneOf(r *shipper.Release) string {
	return "wave canary is not done. To skip it, ask a user with the verb skip on releases (kubectl auth can-i skip " +
		"releases.shipper.booking.com/" + r.Name + " -n default)"
}

// to is a Release that a request moves.
func to(wave, step int32, old *shipper.Release) *shipper.Release {
	out := old.DeepCopy()
	out.Spec.TargetWave, out.Spec.TargetStep = &wave, step
	return out
}

// byWave is what the reconciler sends when it moves a Release by itself.
func byWave(wave, step int32, old *shipper.Release) *shipper.Release {
	out := to(wave, step, old)
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, shipper.ReleaseMovedAnnotation, stamp.Move(old, out, "somebody", "StepDue", metav1.Now()))
	return out
}

// approved is a Release at the end of a wave that one user has to approve, and that these have.
func approved(users ...string) *shipper.Release {
	return waved(0, 1, done, func(r *shipper.Release) {
		r.Spec.Environment.Strategy.Waves[0].AfterTasks = &shipper.WaveTasks{Approvals: 1}
		r.Status.Progress.Approvals = &shipper.ReleaseApprovals{Required: 1, Users: users}
	})
}

// begins is a Release at the first step of a wave that one user has to approve before it begins, and that these have.
func begins(wave int32, users ...string) *shipper.Release {
	return waved(wave, 0, done, func(r *shipper.Release) {
		for i := range r.Spec.Environment.Strategy.Waves {
			r.Spec.Environment.Strategy.Waves[i].BeforeTasks = &shipper.WaveTasks{Approvals: 1}
		}
		r.Status.Progress.BeforeApprovals = &shipper.ReleaseApprovals{Required: 1, Users: users}
	})
}

// endOf is a Release at the end of its first wave, before another that has to be approved before it begins.
func endOf() *shipper.Release {
	r := begins(0)
	r.Spec.TargetStep, r.Status.Progress.Step = 1, 1
	done(r)
	return r
}

// refused has a user refuse that a wave begins.
func refused(r *shipper.Release) *shipper.Release {
	r.Status.Progress.BeforeApprovals.RejectedBy = "eve"
	return r
}

// fails lets clusters of a Release fail.
func fails(r *shipper.Release, budget string) *shipper.Release {
	r.Spec.Environment.Strategy.MaxFailures = new(intstr.Parse(budget))
	return r
}

func TestWavesHold(t *testing.T) {
	name := waved(0, 0).Name
	ask403 := ". To skip it, ask a user with the verb skip on releases (kubectl auth can-i skip " +
		"releases.shipper.booking.com/" + name + " -n default)"
	notDone := "wave canary is not done" + ask403
	retreat := ask.Block("global/dns")
	retreat.Spec.Allow = []shipper.RolloutBlockChange{shipper.RolloutBlockRetreat}
	blocked := "rollouts blocked by: global/dns (DNS issues, troubleshooting in progress; jdoe, 12m ago; lets pass: Retreat). " +
		"To override: kubectl annotate rel " + name + " shipper.booking.com/rollout-block.override=global/dns -n default" + needed
	byItself := "Shipper advances by itself from an achieved step to the next, and nowhere while spec.hold is set: it asked to go from "
	goesBack := []string{"this is a retreat: nothing advances by itself until targetStep is raised"}
	ends := waved(0, 1, done)
	stale := waved(0, 1, done, func(r *shipper.Release) { r.Generation = 4 })
	ofAnother := waved(1, 1, func(r *shipper.Release) {
		r.Status.AchievedStep = &shipper.AchievedStep{Step: 1}
		r.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseStrategyExecuted, Status: "True"}}
	})
	oldFigures := waved(1, 1, done, func(r *shipper.Release) { r.Status.Progress.Wave = 0 })
	paused := waved(0, 0, func(r *shipper.Release) { r.Spec.Hold = "lunch" })
	gate := waved(0, 1, done)
	unaware, unawareAtFirst := to(1, 1, waved(1, 0)), to(0, 1, waved(0, 0))
	unaware.Spec.TargetWave, unawareAtFirst.Spec.TargetWave = nil, nil
	gate.Spec.Environment.Strategy.Steps[0].Gate = &shipper.StepGate{}
	for sentence, tc := range map[string]row{
		"the next wave begins when one is done": {req: ask.Update("dev", to(1, 0, ends), ends)},
		"the next wave of resources begins when one is done": {
			req:    ask.Update("dev", to(1, 0, placed(done)), placed(done)),
			warned: []string{"it advances by itself to wave rest when wave half is done"},
		},
		"a wave of resources that is not done is not passed": {
			req: ask.Update("dev", to(1, 0, placed()), placed()), decision: response.Forbidden, message: notDoneOf(placed()),
		},
		"no wave of resources is passed over": {
			req: ask.Update("dev", to(2, 0, placed(done)), placed(done)), decision: response.Forbidden,
			message: strings.Replace(strings.ReplaceAll(notDoneOf(placed()), "canary", "half"), ". To skip", ". Go to wave half first: kubectl "+
				"patch rel "+placed().Name+" -n default --type=merge -p "+`'{"spec":{"targetStep":0,"targetWave":1}}'`+". To skip", 1),
		},
		"a wave that begins at a later step": {
			req:    ask.Update("dev", to(1, 1, ends), ends),
			warned: []string{"this begins wave half at step 1 (full on): set targetStep to 0 to go through the steps before"},
		},
		"a move under a hold waits for its end": {
			req:    ask.Update("dev", to(0, 1, paused), paused),
			warned: []string{"spec.hold is set: no further cluster begins until it is removed (shipperctl rollout resume)"},
		},
		"a wave that is not done is not passed": {
			req: ask.Update("dev", to(1, 0, waved(0, 1)), waved(0, 1)), decision: response.Forbidden, message: notDone,
		},
		"no wave is passed before its last step": {
			req: ask.Update("dev", to(1, 0, waved(0, 0, done)), waved(0, 0, done)), decision: response.Forbidden,
			message: "wave canary is not done. Go to step 1 of wave canary first: kubectl patch rel " + name + " -n default --type=merge -p " +
				`'{"spec":{"targetStep":1,"targetWave":0}}'` + ask403,
		},
		"no wave is passed over": {
			req: ask.Update("dev", to(2, 0, ends), ends), decision: response.Forbidden,
			message: "wave half is not done. Go to step 1 of wave half first: kubectl patch rel " + name + " -n default --type=merge -p " +
				`'{"spec":{"targetStep":1,"targetWave":1}}'` + ask403,
		},
		"a gate of the next wave is not passed with the wave": {
			req: ask.Update("dev", to(1, 1, gate), gate), decision: response.Forbidden,
			message: "step 0 of wave half (preview) is a gate and is not achieved. Go to step 0 of wave half first: kubectl patch rel " + name +
				" -n default --type=merge -p " + `'{"spec":{"targetStep":0,"targetWave":1}}'` + ask403,
		},
		"a status of an earlier spec opens no wave": {
			req: ask.Update("dev", to(1, 0, stale), stale), decision: response.Forbidden, message: notDone,
		},
		"the end of an earlier wave opens no other": {
			req: ask.Update("dev", to(2, 0, ofAnother), ofAnother), decision: response.Forbidden,
			message: strings.Replace(notDone, "canary", "half", 1),
		},
		"figures of an earlier wave open no other": {
			req: ask.Update("dev", to(2, 0, oldFigures), oldFigures), decision: response.Forbidden,
			message: strings.Replace(notDone, "canary", "half", 1),
		},
		"more clusters may fail only by an edit of the Application": {
			req: ask.Update("dev", fails(to(1, 0, ends), "9"), ends), decision: response.Invalid,
			message: `Release.shipper.booking.com "` + name + `" is invalid: spec.environment: Forbidden: the Release environment must not be ` +
				"changed; edit the Application instead",
		},
		"Shipper does not raise it either": {
			req: ask.Update(ask.Reconciler, fails(byWave(1, 0, ends), "100%"), ends), decision: response.Invalid,
			message: `Release.shipper.booking.com "` + name + `" is invalid: spec.environment: Forbidden: the Release environment must not be ` +
				"changed; edit the Application instead",
		},
		"a wave that has to be approved, and is": {req: ask.Update("dev", to(1, 0, approved("ann")), approved("ann"))},
		"a wave that has to be approved, by a status that lacks it": {
			req: ask.Update("dev", to(1, 0, approved()), approved()), decision: response.Forbidden, message: notDone,
		},
		"Shipper does not pass it either": {
			req: ask.Update(ask.Reconciler, byWave(1, 0, approved()), approved()), decision: response.Forbidden,
			message: byItself + "step 1 of wave canary to step 0 of wave half",
		},
		"a user with the verb skip passes a wave": {
			req: ask.Update("ann", to(1, 0, waved(0, 0)), waved(0, 0)), rights: []string{"ann skip releases default/" + name},
		},
		"a wave that has to be approved before it begins, and is": {req: ask.Update("dev", to(1, 1, begins(1, "ann")), begins(1, "ann"))},
		"one that is not, by a status that lacks it": {
			req: ask.Update("dev", to(1, 1, begins(1)), begins(1)), decision: response.Forbidden,
			message: "step 0 of wave half (preview) is a gate and is not achieved" + ask403,
		},
		"one that a user has refused": {
			req: ask.Update("dev", to(0, 1, refused(begins(0, "ann"))), refused(begins(0, "ann"))), decision: response.Forbidden,
			message: "step 0 of wave canary (preview) is a gate and is not achieved" + ask403,
		},
		"Shipper does not go on in it either": {
			req: ask.Update(ask.Reconciler, byWave(1, 1, begins(1)), begins(1)), decision: response.Forbidden,
			message: byItself + "step 0 of wave half to step 1 of wave half",
		},
		"a user with the verb skip passes its beforeTasks": {
			req: ask.Update("ann", to(1, 1, begins(1)), begins(1)), rights: []string{"ann skip releases default/" + name},
		},
		"a wave is entered at its first step":     {req: ask.Update("dev", to(1, 0, endOf()), endOf())},
		"by Shipper, too":                         {req: ask.Update(ask.Reconciler, byWave(1, 0, endOf()), endOf())},
		"the way back from it is open to anybody": {req: ask.Update("dev", to(0, 1, begins(1)), begins(1)), warned: goesBack},
		"no wave with beforeTasks is entered at a later step": {
			req: ask.Update("dev", to(1, 1, endOf()), endOf()), decision: response.Forbidden,
			message: "step 0 of wave half (preview) is a gate and is not achieved. Go to step 0 of wave half first: kubectl patch rel " + name +
				" -n default --type=merge -p " + `'{"spec":{"targetStep":0,"targetWave":1}}'` + ask403,
		},
		"a lower wave is a move back, whatever the step": {req: ask.Update("dev", to(0, 1, waved(1, 0)), waved(1, 0)), warned: goesBack},
		"a lower wave passes a block that allows Retreat": {
			req: ask.Update("dev", to(0, 1, waved(1, 0)), waved(1, 0)), known: []client.Object{retreat}, warned: goesBack,
		},
		"a later wave with a lower step does not pass it": {
			req: ask.Update("dev", to(1, 0, ends), ends), known: []client.Object{retreat}, decision: response.Blocked, message: blocked,
		},
		"a client that does not know of waves": {
			req: ask.Update("dev", unaware, waved(1, 0)), decision: response.Invalid,
			message: `Release.shipper.booking.com "` + name + `" is invalid: spec.targetWave: Required value: it is 1 (half): write it as it is, ` +
				"or 0 to go back to wave canary",
		},
		"that client, in the first wave": {req: ask.Update("dev", unawareAtFirst, waved(0, 0))},
		"a wave that there is not": {
			req: ask.Update("dev", to(3, 0, ends), ends), decision: response.Invalid,
			message: `Release.shipper.booking.com "` + name + `" is invalid: spec.targetWave: Invalid value: 3: must be a wave of the strategy: ` +
				"0 (canary), 1 (half), 2 (rest)",
		},
		"a negative wave": {
			req: ask.Update("dev", to(-1, 0, ends), ends), decision: response.Invalid,
			message: `Release.shipper.booking.com "` + name + `" is invalid: spec.targetWave: Invalid value: -1: must be a wave of the strategy: ` +
				"0 (canary), 1 (half), 2 (rest)",
		},
		"a wave of a strategy without waves": {
			req: ask.Update("dev", to(1, 0, gated()), gated()), decision: response.Invalid,
			message: `Release.shipper.booking.com "` + gated().Name + `" is invalid: ` +
				"spec.targetWave: Invalid value: 1: the strategy has no waves: leave it out",
		},
		"Shipper begins the next wave by itself": {req: ask.Update(ask.Reconciler, byWave(1, 0, ends), ends)},
		"Shipper passes no wave that is not done": {
			req: ask.Update(ask.Reconciler, byWave(1, 0, waved(0, 1)), waved(0, 1)), decision: response.Forbidden,
			message: byItself + "step 1 of wave canary to step 0 of wave half",
		},
		"Shipper passes over no step of a wave": {
			req: ask.Update(ask.Reconciler, byWave(1, 1, ends), ends), decision: response.Forbidden,
			message: byItself + "step 1 of wave canary to step 1 of wave half",
		},
	} {
		t.Run(sentence, tc.throughBoth)
	}
}

// inClusters has eu-1 and us-1 in the first wave, and ap-1 in the second.
func inClusters(r *shipper.Release) {
	metav1.SetMetaDataAnnotation(&r.ObjectMeta, shipper.ReleaseClustersAnnotation, "ap-1,eu-1,us-1")
	metav1.SetMetaDataAnnotation(&r.ObjectMeta, shipper.ReleaseWavesAnnotation, "ap-1=1,eu-1=0,us-1=0")
}

func TestBlocksThatNameClustersHoldTheseAlone(t *testing.T) {
	name := waved(0, 0).Name
	naming := func(clusters ...string) *shipper.RolloutBlock {
		b := ask.Block("global/dns")
		b.Spec.Scope = &shipper.RolloutBlockScope{Clusters: clusters}
		return b
	}
	edited := func(b *shipper.RolloutBlock, edit func(*shipper.RolloutBlock)) *shipper.RolloutBlock {
		edit(b)
		return b
	}
	allows := func(b *shipper.RolloutBlock) {
		b.Spec.Allow = []shipper.RolloutBlockChange{shipper.RolloutBlockRetreat}
	}
	conditional := func(b *shipper.RolloutBlock) {
		b.Spec.MatchConditions = []shipper.RolloutBlockMatchCondition{{Name: "users", Expression: "true"}}
	}
	blocked := "rollouts blocked by: global/dns (DNS issues, troubleshooting in progress; jdoe, 12m ago). " +
		"To override: kubectl annotate rel " + name + " shipper.booking.com/rollout-block.override=global/dns -n default" + needed
	stays := func(which string, of string) string {
		return which + " stays as it is until its block ends, the others of " + of + " clusters change: rollouts blocked by: global/dns"
	}
	first := waved(0, 0, inClusters)
	end := waved(0, 1, inClusters, done)
	held := waved(0, 0, inClusters, func(r *shipper.Release) { r.Spec.Hold = "lunch" })
	resumed := held.DeepCopy()
	resumed.Spec.Hold = ""
	delete(resumed.Annotations, shipper.ReleaseHeldByAnnotation)
	hooks := first.DeepCopy()
	metav1.SetMetaDataAnnotation(&hooks.ObjectMeta, shipper.ReleaseHooksRetryAnnotation, "1")
	unplaced := waved(0, 0)
	goesBack := "this is a retreat: nothing advances by itself until targetStep is raised"
	for sentence, tc := range map[string]row{
		"a step is taken in the others": {
			req: ask.Update("dev", to(0, 1, first), first), known: []client.Object{naming("eu-1")}, warned: []string{stays("eu-1", "2")},
		},
		"no step is taken where all are held": {
			req: ask.Update("dev", to(0, 1, first), first), known: []client.Object{naming("eu-1", "us-1")},
			decision: response.Blocked, message: blocked,
		},
		"a block of a cluster of another wave": {
			req: ask.Update("dev", to(1, 0, end), end), known: []client.Object{naming("eu-1", "us-1")},
		},
		"a wave does not begin where all are held": {
			req: ask.Update("dev", to(1, 0, end), end), known: []client.Object{naming("ap-1")}, decision: response.Blocked, message: blocked,
		},
		"a wave that no cluster is in is passed": {
			req:   ask.Update("ann", to(2, 0, waved(1, 1, inClusters, done)), waved(1, 1, inClusters, done)),
			known: []client.Object{naming("ap-1", "eu-1", "us-1")},
		},
		"a block with conditions stops all: nothing would hold the cluster afterwards": {
			req: ask.Update("dev", to(0, 1, first), first), known: []client.Object{edited(naming("eu-1"), conditional)},
			decision: response.Blocked, message: blocked,
		},
		"before clusters are chosen all is stopped": {
			req: ask.Update("dev", to(0, 1, unplaced), unplaced), known: []client.Object{naming("eu-1")},
			decision: response.Blocked, message: blocked,
		},
		"a move back leaves one out": {
			req: ask.Update("dev", to(0, 0, end), end), known: []client.Object{naming("eu-1")}, warned: []string{stays("eu-1", "2"), goesBack},
		},
		"a move back where all are held": {
			req: ask.Update("dev", to(0, 0, end), end), known: []client.Object{naming("eu-1", "us-1")},
			decision: response.Blocked, message: blocked,
		},
		"a move back that the block allows": {
			req: ask.Update("dev", to(0, 0, end), end), known: []client.Object{edited(naming("eu-1", "us-1"), allows)}, warned: []string{goesBack},
		},
		"a hold ends for the others": {
			req: ask.Update("dev", resumed, held), known: []client.Object{naming("us-1")}, warned: []string{stays("us-1", "2")},
		},
		"a hold does not end where all are held": {
			req: ask.Update("dev", resumed, held), known: []client.Object{naming("eu-1", "us-1")}, decision: response.Blocked, message: blocked,
		},
		"hooks run in all clusters, and do not begin": {
			req: ask.Update("dev", hooks, first), known: []client.Object{naming("eu-1")}, decision: response.Blocked, message: blocked,
		},
		"Shipper begins no wave whose clusters are all held": {
			req: ask.Update(ask.Reconciler, byWave(1, 0, end), end), known: []client.Object{naming("ap-1")},
			decision: response.Blocked, message: blocked,
		},
	} {
		t.Run(sentence, tc.throughBoth)
	}
	t.Run("a deletion returns all clusters", row{
		req: ask.Delete("dev", first), known: []client.Object{ask.Application(), first, naming("eu-1")},
		decision: response.Blocked, message: blocked,
	}.check)
}

func TestAMoveToAnotherWaveIsNoted(t *testing.T) {
	old := waved(0, 1, done)
	a := &response.Response{}
	req := ask.Update("dev", to(1, 0, old), old)
	if err := webhookOf(t, ask.Grant()).Default(t.Context(), req, a); err != nil {
		t.Fatal(err)
	}
	note := stamp.Moved(ask.Patched[shipper.Release](t, req, a))
	from, end := stamp.Ends(note)
	if note.By != "dev" || from != position.Of(old) || end != (position.Position{Wave: 1}) || note.Count != 1 {
		t.Errorf("it is noted as %+v", note)
	}
	for sentence, edit := range map[string]func(*shipper.Release){
		"the waves of clusters": annotated(shipper.ReleaseWavesAnnotation, "a=0"),
		"a move that was none": annotated(shipper.ReleaseMovedAnnotation,
			`{"by":"dev","time":"2026-11-25T10:00:00Z","from":1,"to":1,"toWave":1,"count":1}`),
	} {
		t.Run(sentence, row{req: ask.Update("dev", waved(0, 1, done, edit), old)}.refusedSomehow)
	}
}

// refusedSomehow checks that a request is refused, whatever the message.
func (r row) refusedSomehow(t *testing.T) {
	t.Helper()
	w, a := webhookOf(t, ask.Grant()), &response.Response{}
	if w.Default(t.Context(), r.req, a) == nil && w.Validate(t.Context(), patched(t, r.req, a), a) == nil {
		t.Error("it is admitted")
	}
}
