// SPDX-License-Identifier: Apache-2.0

package application_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gomodules.xyz/jsonpatch/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/application"
	"shipper.dev/shipper/webhook/check"
	"shipper.dev/shipper/webhook/response"
)

func webhookOf(t testing.TB, rights *ask.Rights, charts application.Resolver, known ...client.Object) *application.Webhook {
	t.Helper()
	known = append(known, &shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "here"}, Spec: shipper.ClusterSpec{Region: "local"}})
	w := ask.Know(t, rights, known...)
	return &application.Webhook{
		BlockCheck: w.BlockCheck, Guard: w.Guard, State: w.State, Charts: charts, Checks: check.NewUses(w.State, "shipper-checks"),
	}
}

func exact() *catalog { return &catalog{found: repository.Resolution{Version: "0.0.1"}} }

func ptrTo[T any](v T) *T { return &v }

func limited(n *int32) func(*shipper.Application) {
	return func(app *shipper.Application) { app.Spec.RevisionHistoryLimit = n }
}

func TestRevisionHistoryLimit(t *testing.T) {
	for name, tc := range map[string]struct {
		limit, want *int32
		warned      []string
	}{
		"absent becomes 20":      {nil, ptrTo[int32](20), nil},
		"within bounds it stays": {ptrTo[int32](3), ptrTo[int32](3), nil},
		"the bounds are allowed": {ptrTo[int32](1000), ptrTo[int32](1000), nil},
		"below the lower bound": {
			ptrTo[int32](0), ptrTo[int32](1), []string{"spec.revisionHistoryLimit 0 was set to 1: it is bounded by 1 and 1000"},
		},
		"above the upper bound": {
			ptrTo[int32](1001), ptrTo[int32](1000),
			[]string{"spec.revisionHistoryLimit 1001 was set to 1000: it is bounded by 1 and 1000"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, req := &response.Response{}, ask.Create(ask.Developer, ask.Application(limited(tc.limit)))
			if err := webhookOf(t, ask.Grant(), exact()).Default(t.Context(), req, a); err != nil {
				t.Fatal(err)
			}
			if got := ask.Patched[shipper.Application](t, req, a).Spec.RevisionHistoryLimit; *got != *tc.want {
				t.Errorf("limit %d, want %d", *got, *tc.want)
			}
			if diff := cmp.Diff(tc.warned, a.Warnings()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatAnEditLeavesAloneIsNotPatched(t *testing.T) {
	old := ask.Application(limited(nil), ask.Version("9.0.0")) // stored long ago, and unbounded
	now := ask.Application(limited(nil), ask.Version("9.0.0"), ask.Annotated("team", "web"))
	a := &response.Response{}
	if err := webhookOf(t, ask.Grant(), exact()).Default(t.Context(), ask.Update(ask.Developer, now, old), a); err != nil {
		t.Fatal(err)
	}
	if len(patchOf(t, a)) > 0 {
		t.Errorf("patched %v", patchOf(t, a))
	}
}

func TestUnknownFieldsSurvive(t *testing.T) {
	req := ask.Create(ask.Developer, ask.Application())
	req.Object.Raw = []byte(strings.Replace(string(req.Object.Raw), `"spec":{`, `"spec":{"future":{"a":1.50},`, 1))
	a := &response.Response{}
	if err := webhookOf(t, ask.Grant(), exact()).Default(t.Context(), req, a); err != nil {
		t.Fatal(err)
	}
	got := ask.Patched[struct {
		Spec struct{ Future map[string]any }
	}](t, req, a)
	if got.Spec.Future["a"] != 1.5 {
		t.Errorf("future fields became %v", got.Spec.Future)
	}
}

func TestTheRequesterIsNoted(t *testing.T) {
	old := ask.Application(ask.Pinned("0.0.1"))
	for name, tc := range map[string]struct {
		user string
		now  *shipper.Application
		want string
	}{
		"any user who changes the template": {"ann", ask.Application(ask.Pinned("0.0.1"), changed), "ann"},
		"not a user who changes spec besides": {"ann", ask.Application(ask.Pinned("0.0.1"), func(app *shipper.Application) {
			app.Spec.RevisionHistoryLimit = new(int32(7))
		}), ask.Developer},
		"not a user who changes only metadata": {
			"ann", ask.Application(ask.Pinned("0.0.1"), ask.Annotated("a", "b")), ask.Developer,
		},
		"not the reconciler that aborts":            {ask.Reconciler, ask.Application(ask.Pinned("0.0.1"), changed), ask.Developer},
		"a user who leaves the annotation out, too": {"ann", ask.Application(changed), "ann"},
	} {
		t.Run(name, func(t *testing.T) {
			a, req := &response.Response{}, ask.Update(tc.user, tc.now, old)
			if err := webhookOf(t, ask.Grant(), exact()).Default(t.Context(), req, a); err != nil {
				t.Fatal(err)
			}
			got := ask.Patched[shipper.Application](t, req, a).Annotations[shipper.AppRequestedByAnnotation]
			if got != tc.want {
				t.Errorf("requested by %q, want %q", got, tc.want)
			}
		})
	}
}

// TestWhoWritesAnApprovedTemplateOtherwiseIsNoted: the policy compares texts, and demands the name of the user who changes one with
// approvals.
func TestWhoWritesAnApprovedTemplateOtherwiseIsNoted(t *testing.T) {
	approved := func(app *shipper.Application) {
		app.Spec.Template.Strategy.Steps[0].Gate = &shipper.StepGate{Approvals: 1}
	}
	spelledOut := func(app *shipper.Application) {
		app.Spec.Template.ClusterRequirements.Regions[0].Replicas = new(int32(1))
	}
	shorterHistory := func(app *shipper.Application) { app.Spec.RevisionHistoryLimit = new(int32(3)) }
	reported := func(app *shipper.Application) { app.Spec.DriftPolicy = shipper.DriftReport }
	pinned := ask.Pinned("0.0.1")
	for name, tc := range map[string]struct {
		now, old *shipper.Application
		text     string // in place of the user's text of the version
		want     string
	}{
		"a default that is spelled out": {ask.Application(pinned, approved, spelledOut), ask.Application(pinned, approved), "", "ann"},
		"a zero that is spelled out": {
			ask.Application(pinned, approved), ask.Application(pinned, approved), `"version":"0.0.1","provenance":""`, "ann",
		},
		"a default that is spelled out, and a shorter history": {
			ask.Application(pinned, approved, spelledOut, shorterHistory), ask.Application(pinned, approved), "", "ann",
		},
		"a default that is spelled out, and another policy": {
			ask.Application(pinned, approved, spelledOut, reported), ask.Application(pinned, approved), "", "ann",
		},
		"a shorter history alone": {
			ask.Application(pinned, approved, shorterHistory), ask.Application(pinned, approved), "", ask.Developer,
		},
		"the same":         {ask.Application(pinned, approved), ask.Application(pinned, approved), "", ask.Developer},
		"the constraint":   {ask.Application(pinned, approved), ask.Application(pinned, approved), `"version":"~0.0"`, ask.Developer},
		"without approval": {ask.Application(pinned, spelledOut), ask.Application(pinned), "", ask.Developer},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(tc.text, "~") {
				ask.Annotated(shipper.AppChartVersionRawAnnotation, "~0.0")(tc.old)
				ask.Annotated(shipper.AppChartVersionRawAnnotation, "~0.0")(tc.now)
			}
			a, req := &response.Response{}, ask.Update("ann", tc.now, tc.old)
			if tc.text != "" {
				req.Object.Raw = []byte(strings.Replace(string(req.Object.Raw), `"version":"0.0.1"`, tc.text, 1))
			}
			if err := webhookOf(t, ask.Grant(), exact()).Default(t.Context(), req, a); err != nil {
				t.Fatal(err)
			}
			got := ask.Patched[shipper.Application](t, req, a).Annotations[shipper.AppRequestedByAnnotation]
			if got != tc.want {
				t.Errorf("requested by %q, want %q", got, tc.want)
			}
		})
	}
}

func TestControlAnnotationsOfApplications(t *testing.T) {
	const observed = shipper.AppHighestObservedGenerationAnnotation
	stamper := "ann stamp applications default/super-server"
	old := ask.Application(ask.Pinned("0.0.1"), ask.Annotated(observed, "3"))
	for name, tc := range map[string]struct {
		user   string
		old    *shipper.Application
		now    *shipper.Application
		want   map[string]string // of the annotations after
		refuse string
		warned []string
	}{
		"left out, they come back": {
			user: "bob", old: old, now: ask.Application(), want: old.Annotations,
		},
		"left out by the reconciler, they go": {
			user: ask.Reconciler, old: old, now: ask.Application(ask.Pinned("0.0.1")),
			want: ask.Application(ask.Pinned("0.0.1")).Annotations,
		},
		"changed by a user, they are refused": {
			user: "bob", old: old, now: ask.Application(ask.Pinned("0.0.1"), ask.Annotated(observed, "9")),
			refuse: `Application.shipper.booking.com "super-server" is invalid: ` +
				`metadata.annotations[` + observed + `]: Forbidden: is written by Shipper; leave it out, or at "3"`,
		},
		"added by a user, they are refused": {
			user: "bob", old: ask.Application(), now: ask.Application(ask.Annotated(observed, "9")),
			refuse: `Application.shipper.booking.com "super-server" is invalid: ` +
				`metadata.annotations[` + observed + `]: Forbidden: is written by Shipper; leave it out`,
		},
		"changed by a user who may stamp, they change": {
			user: "ann", old: old, now: ask.Application(ask.Pinned("0.0.1"), ask.Annotated(observed, "9")),
			want: ask.Application(ask.Pinned("0.0.1"), ask.Annotated(observed, "9")).Annotations,
		},
		"given by a user on creation, they are ignored": {
			user: "bob", now: ask.Application(ask.Annotated(observed, "9")),
			want:   with(ask.Application(ask.Pinned("0.0.1")).Annotations, shipper.AppRequestedByAnnotation, "bob"),
			warned: []string{"annotation " + observed + " is written by Shipper; what the manifest says was ignored"},
		},
		"set on creation by a user who may stamp, they are kept": {
			user: "ann", now: ask.Application(ask.Pinned("~0.0"), ask.Annotated(observed, "9")),
			want: ask.Application(ask.Pinned("~0.0"), ask.Annotated(observed, "9")).Annotations,
		},
		"a user who may stamp and does not set it is the requester": {
			user: "ann", now: ask.Application(),
			want: with(ask.Application(ask.Pinned("0.0.1")).Annotations, shipper.AppRequestedByAnnotation, "ann"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, req := &response.Response{}, ask.Create(tc.user, tc.now)
			if tc.old != nil {
				req = ask.Update(tc.user, tc.now, tc.old)
			}
			err := webhookOf(t, ask.Grant(stamper), exact()).Default(t.Context(), req, a)
			if tc.refuse != "" {
				ask.CheckRefusal(t, err, response.Invalid, tc.refuse)
				return
			}
			ask.CheckRefusal(t, err, "", "")
			if diff := cmp.Diff(tc.want, ask.Patched[shipper.Application](t, req, a).Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.warned, a.Warnings()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func with(annotations map[string]string, key, value string) map[string]string {
	annotations[key] = value
	return annotations
}

func TestOverridesAreNormalisedAndPruned(t *testing.T) {
	known := []client.Object{ask.Block("global/dns"), ask.Block("default/demo")}
	for name, tc := range map[string]struct {
		old, now *shipper.Application
		want     string
		warned   []string
	}{
		"blanks, order and repetitions": {
			now: ask.Application(ask.Overriding(" global/dns ,default/demo,global/dns")), want: "default/demo,global/dns",
		},
		"one that is malformed is left for validation": {
			now: ask.Application(ask.Overriding("dns,global/dns")), want: "dns,global/dns",
		},
		"a block that is gone leaves the override when spec changes": {
			old:    ask.Application(ask.Pinned("0.0.1"), ask.Overriding("default/demo,default/gone,global/dns")),
			now:    ask.Application(ask.Pinned("0.0.1"), ask.Overriding("default/demo,default/gone,global/dns"), changed),
			want:   "default/demo,global/dns",
			warned: []string{"RolloutBlock default/gone is gone and was taken out of the override annotation"},
		},
		"it stays when spec does not change": {
			old:  ask.Application(ask.Pinned("0.0.1"), ask.Overriding("default/gone")),
			now:  ask.Application(ask.Pinned("0.0.1"), ask.Overriding("default/gone"), ask.Annotated("a", "b")),
			want: "default/gone",
		},
		"it stays when the override itself changes, for validation to refuse": {
			old:  ask.Application(ask.Pinned("0.0.1")),
			now:  ask.Application(ask.Pinned("0.0.1"), ask.Overriding("default/gone"), changed),
			want: "default/gone",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, req := &response.Response{}, ask.Create(ask.Developer, tc.now)
			if tc.old != nil {
				req = ask.Update(ask.Developer, tc.now, tc.old)
			}
			// Validation reports the blocks; a resolved chart needs no check here.
			if err := webhookOf(t, ask.Grant(), exact(), known...).Default(t.Context(), req, a); err != nil && tc.old != nil {
				t.Fatal(err)
			}
			got := ask.Patched[shipper.Application](t, req, a).Annotations[shipper.RolloutBlockOverrideAnnotation]
			if got != tc.want {
				t.Errorf("override %q, want %q", got, tc.want)
			}
			if diff := cmp.Diff(tc.warned, a.Warnings()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnOverrideOfNothingButGoneBlocksGoes(t *testing.T) {
	old := ask.Application(ask.Pinned("0.0.1"), ask.Overriding("default/gone"))
	now := ask.Application(ask.Pinned("0.0.1"), ask.Overriding("default/gone"), changed)
	a, req := &response.Response{}, ask.Update(ask.Developer, now, old)
	if err := webhookOf(t, ask.Grant(), exact()).Default(t.Context(), req, a); err != nil {
		t.Fatal(err)
	}
	if v, there := ask.Patched[shipper.Application](t, req, a).Annotations[shipper.RolloutBlockOverrideAnnotation]; there {
		t.Errorf("override is still there: %q", v)
	}
}

// patchOf is the patch that a has so far.
func patchOf(t *testing.T, a *response.Response) []jsonpatch.JsonPatchOperation {
	t.Helper()
	patch, err := a.Patch()
	if err != nil {
		t.Fatal(err)
	}
	return patch
}
