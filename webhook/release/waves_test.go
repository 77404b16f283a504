// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	r.Spec.TargetWave, r.Spec.TargetStep = wave, step
	r.Status.Progress = &shipper.ReleaseProgress{Wave: wave, Step: step}
	for _, edit := range edits {
		edit(r)
	}
	return r
}

// done says that the position is achieved.
func done(r *shipper.Release) {
	r.Status.AchievedStep = &shipper.AchievedStep{Step: r.Spec.TargetStep, Wave: r.Spec.TargetWave}
	r.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseStrategyExecuted, Status: "True"}}
}

// to is a Release that a request moves.
func to(wave, step int32, old *shipper.Release) *shipper.Release {
	out := old.DeepCopy()
	out.Spec.TargetWave, out.Spec.TargetStep = wave, step
	return out
}

// byWave is what the reconciler sends when it moves a Release by itself.
func byWave(wave, step int32, old *shipper.Release) *shipper.Release {
	out := to(wave, step, old)
	metav1.SetMetaDataAnnotation(&out.ObjectMeta, shipper.ReleaseMovedAnnotation, stamp.Move(old, out, "somebody", "StepDue", metav1.Now()))
	return out
}

func TestWavesHold(t *testing.T) {
	name := waved(0, 0).Name
	ask403 := ". To pass it all the same, ask a user with the verb skip on releases (kubectl auth can-i skip " +
		"releases.shipper.booking.com/" + name + " -n default)"
	notDone := "wave canary is not done" + ask403
	retreat := ask.Block("global/dns")
	retreat.Spec.Allow = []shipper.RolloutBlockChange{shipper.RolloutBlockRetreat}
	blocked := "rollouts blocked by: global/dns (DNS issues, troubleshooting in progress; jdoe, 12m ago; lets pass: Retreat). " +
		"To override: kubectl annotate rel " + name + " shipper.booking.com/rollout-block.override=global/dns -n default" + needed
	byItself := "Shipper goes on by itself from an achieved step to the next, and nowhere while spec.hold is set: it asked to go from "
	goesBack := []string{"this goes back: nothing goes on by itself until targetStep is raised"}
	ends := waved(0, 1, done)
	stale := waved(0, 1, done, func(r *shipper.Release) { r.Generation = 4 })
	ofAnother := waved(1, 1, func(r *shipper.Release) {
		r.Status.AchievedStep = &shipper.AchievedStep{Step: 1}
		r.Status.Conditions = []shipper.Condition{{Type: shipper.ReleaseStrategyExecuted, Status: "True"}}
	})
	oldFigures := waved(1, 1, done, func(r *shipper.Release) { r.Status.Progress.Wave = 0 })
	gate := waved(0, 1, done)
	gate.Spec.Environment.Strategy.Steps[0].Gate = &shipper.StepGate{}
	for sentence, tc := range map[string]row{
		"the next wave begins when one is done": {req: ask.Update("dev", to(1, 0, ends), ends)},
		"a wave that begins at a later step": {
			req:    ask.Update("dev", to(1, 1, ends), ends),
			warned: []string{"this begins wave half at step 1 (full on): set targetStep to 0 to go through the steps before"},
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
		"a user with the verb skip passes a wave": {
			req: ask.Update("ann", to(1, 0, waved(0, 0)), waved(0, 0)), rights: []string{"ann skip releases default/" + name},
		},
		"a lower wave is a move back, whatever the step": {req: ask.Update("dev", to(0, 1, waved(1, 0)), waved(1, 0)), warned: goesBack},
		"a lower wave passes a block that allows Retreat": {
			req: ask.Update("dev", to(0, 1, waved(1, 0)), waved(1, 0)), known: []client.Object{retreat}, warned: goesBack,
		},
		"a later wave with a lower step does not pass it": {
			req: ask.Update("dev", to(1, 0, ends), ends), known: []client.Object{retreat}, decision: response.Blocked, message: blocked,
		},
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
