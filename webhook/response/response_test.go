// SPDX-License-Identifier: Apache-2.0

package response_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	evanphx "github.com/evanphx/json-patch/v5"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/block"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/response"
)

func blocked() error {
	return response.Refuse("releases", "x-0", response.Overrider{Short: "rel", Namespace: "default", Name: "x-0"},
		block.Judge([]*shipper.RolloutBlock{ask.Block("global/dns")}, nil, block.Change{}, ask.Now), ask.Now)
}

func TestResponses(t *testing.T) {
	for sentence, tc := range map[string]struct {
		judge response.Judge
		sub   string
		busy  bool
		want  admissionv1.AdmissionResponse
	}{
		"allowed, with a warning": {
			judge: func(_ context.Context, _ *admission.Request, a *response.Response) error {
				a.Warn("mind the %s", "gap\nand more")
				a.Audit(response.AuditChartPinned, "nginx 0.0.1")
				return nil
			},
			want: admissionv1.AdmissionResponse{
				Allowed: true, Warnings: []string{"mind the gap and more"},
				AuditAnnotations: map[string]string{"decision": "allowed", "chart-pinned": "nginx 0.0.1"},
			},
		},
		"invalid": {
			judge: func(context.Context, *admission.Request, *response.Response) error {
				return response.Invalidate("Release", "x-0", field.ErrorList{field.Invalid(field.NewPath("spec", "targetStep"), 7, "\x1bno\u2066")})
			},
			want: admissionv1.AdmissionResponse{
				AuditAnnotations: map[string]string{"decision": "invalid"},
				Result: &metav1.Status{
					Status: "Failure", Code: 422, Reason: "Invalid",
					Message: `Release.shipper.booking.com "x-0" is invalid: spec.targetStep: Invalid value: 7: no`,
					Details: &metav1.StatusDetails{
						Group: "shipper.booking.com", Kind: "Release", Name: "x-0",
						Causes: []metav1.StatusCause{{Type: "FieldValueInvalid", Message: "Invalid value: 7: no", Field: "spec.targetStep"}},
					},
				},
			},
		},
		"blocked, however the refusal is wrapped": {
			judge: func(context.Context, *admission.Request, *response.Response) error {
				return fmt.Errorf("judging: %w", blocked())
			},
			want: admissionv1.AdmissionResponse{
				AuditAnnotations: map[string]string{"decision": "blocked"},
				Result: &metav1.Status{
					Status: "Failure", Code: 403, Reason: "Forbidden",
					Message: "rollouts blocked by: global/dns (DNS issues, troubleshooting in progress; jdoe, 12m ago). To override: " +
						"kubectl annotate rel x-0 shipper.booking.com/rollout-block.override=global/dns -n default " +
						"(the verb override on these rolloutblocks is needed)",
					Details: &metav1.StatusDetails{
						Group: "shipper.booking.com", Kind: "releases", Name: "x-0",
						Causes: []metav1.StatusCause{{Type: "RolloutBlock", Field: "global/dns",
							Message: "global/dns: DNS issues, troubleshooting in progress"}},
					},
				},
			},
		},
		"forbidden": {
			judge: func(context.Context, *admission.Request, *response.Response) error {
				return response.Forbid("releases", "x-0", "not you")
			},
			want: admissionv1.AdmissionResponse{
				AuditAnnotations: map[string]string{"decision": "forbidden"},
				Result: &metav1.Status{
					Status: "Failure", Code: 403, Reason: "Forbidden", Message: "not you",
					Details: &metav1.StatusDetails{Group: "shipper.booking.com", Kind: "releases", Name: "x-0"},
				},
			},
		},
		"later": {
			judge: func(context.Context, *admission.Request, *response.Response) error {
				return response.Later("not now", 2*time.Second)
			},
			want: admissionv1.AdmissionResponse{
				AuditAnnotations: map[string]string{"decision": "unavailable"},
				Result: &metav1.Status{
					Status: "Failure", Code: 503, Reason: "ServiceUnavailable", Message: "not now",
					Details: &metav1.StatusDetails{RetryAfterSeconds: 2},
				},
			},
		},
		"unable": {
			judge: func(context.Context, *admission.Request, *response.Response) error { return response.Unable("not\tow") },
			want: admissionv1.AdmissionResponse{
				AuditAnnotations: map[string]string{"decision": "unavailable"},
				Result: &metav1.Status{
					Status: "Failure", Code: 503, Reason: "ServiceUnavailable", Message: "not ow",
				},
			},
		},
		"failed": {
			judge: func(context.Context, *admission.Request, *response.Response) error { return errors.New("oh\nno") },
			want: admissionv1.AdmissionResponse{
				AuditAnnotations: map[string]string{"decision": "failed"},
				Result:           &metav1.Status{Status: "Failure", Code: 500, Reason: "InternalError", Message: "the webhook failed: oh no"},
			},
		},
		"panicking": {
			judge: func(context.Context, *admission.Request, *response.Response) error {
				var none *shipper.Application
				return errors.New(none.Name)
			},
			want: admissionv1.AdmissionResponse{
				AuditAnnotations: map[string]string{"decision": "failed"},
				Result: &metav1.Status{
					Status: "Failure", Code: 500, Reason: "InternalError",
					Message: "the webhook failed: judging this object made it panic; its log says where",
				},
			},
		},
		"not judged: a report": {
			sub: "status", judge: func(context.Context, *admission.Request, *response.Response) error {
				return errors.New("must not be asked")
			},
			want: admissionv1.AdmissionResponse{Allowed: true, AuditAnnotations: map[string]string{"decision": "allowed"}},
		},
		"not judged: nothing is known yet": {
			busy: true, judge: func(context.Context, *admission.Request, *response.Response) error { return nil },
			want: admissionv1.AdmissionResponse{
				AuditAnnotations: map[string]string{"decision": "unavailable"},
				Result: &metav1.Status{
					Status: "Failure", Code: 503, Reason: "ServiceUnavailable",
					Message: "the RolloutBlocks are not known yet",
					Details: &metav1.StatusDetails{RetryAfterSeconds: 1},
				},
			},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			e, _ := endpoint(t, tc.judge)
			if tc.busy {
				e.Ready = func(context.Context) error { return errors.New("the RolloutBlocks are not known yet") }
			}
			req := *ask.Create("dev", ask.Application())
			req.SubResource = tc.sub
			if diff := cmp.Diff(tc.want, e.Handle(t.Context(), req).AdmissionResponse); diff != "" {
				t.Errorf("response (-want +got):\n%s", diff)
			}
		})
	}
}

func endpoint(t *testing.T, judge response.Judge) (*response.Endpoint, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewRegistry()
	metrics, err := response.NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	return &response.Endpoint{
		Phase: response.Validate, Kind: "Application", Judge: judge, Metrics: metrics, Clock: ask.Clock(),
		Ready: func(context.Context) error { return nil }, Log: funcr.New(func(_, _ string) {}, funcr.Options{Verbosity: 1}),
	}, registry
}

func TestOnlyPeopleAreWarned(t *testing.T) {
	e, _ := endpoint(t, func(_ context.Context, _ *admission.Request, a *response.Response) error {
		a.Warn("mind the gap")
		a.Audit(response.AuditBlocksWarned, "x/y")
		return nil
	})
	e.Unwarned = "the-reconciler"
	for user, want := range map[string][]string{"dev": {"mind the gap"}, "the-reconciler": nil} {
		got := e.Handle(t.Context(), *ask.Create(user, ask.Application()))
		if diff := cmp.Diff(want, got.Warnings); diff != "" {
			t.Errorf("%s is warned (-want +got):\n%s", user, diff)
		}
		if got.AuditAnnotations[response.AuditBlocksWarned] != "x/y" {
			t.Errorf("what %s asks is not left to auditors: %v", user, got.AuditAnnotations)
		}
	}
}

func TestAnswersAreCounted(t *testing.T) {
	answers := []error{nil, nil, blocked(), errors.New("no")}
	e, registry := endpoint(t, func(context.Context, *admission.Request, *response.Response) error {
		next := answers[0]
		answers = answers[1:]
		if len(answers) == 0 {
			panic(next)
		}
		return next
	})
	for range 4 {
		e.Handle(t.Context(), *ask.Create("dev", ask.Application()))
	}
	const of = `,kind="Application",operation="CREATE",phase="validate"} `
	want := strings.Join([]string{
		"# HELP shipper_webhook_panics_total Panics while judging that were recovered and answered with 500. " +
			"phase is mutate or validate; kind is the kind judged.",
		"# TYPE shipper_webhook_panics_total counter",
		`shipper_webhook_panics_total{kind="Application",phase="validate"} 1`,
		"# HELP shipper_webhook_requests_total Admission requests answered. phase is mutate or validate; " +
			"kind is the kind judged; operation is CREATE, UPDATE or DELETE; decision is allowed, invalid (422), " +
			"blocked (403, a RolloutBlock), forbidden (403, the user), unavailable (503) or failed (500).",
		"# TYPE shipper_webhook_requests_total counter",
		`shipper_webhook_requests_total{decision="allowed"` + of + "2",
		`shipper_webhook_requests_total{decision="blocked"` + of + "1",
		`shipper_webhook_requests_total{decision="failed"` + of + "1",
		"",
	}, "\n")
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want),
		"shipper_webhook_requests_total", "shipper_webhook_panics_total"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(registry, "shipper_webhook_request_duration_seconds"); err != nil || n != 1 {
		t.Errorf("%d histograms, %v; want 1", n, err)
	}
	if _, err := response.NewMetrics(registry); err == nil {
		t.Error("the same metrics were registered twice")
	}
}

func TestRefusalsTeach(t *testing.T) {
	dns, demo := ask.Block("global/dns"), ask.Block("default/demo")
	plain := ask.Block("default/plain")
	plain.Spec = shipper.RolloutBlockSpec{Message: "two\n\x1b[2J\u202elines\x7f"}
	plain.CreationTimestamp.Time = ask.Now.Add(time.Second) // clocks differ
	blocks := []*shipper.RolloutBlock{dns, demo, plain}
	app := ask.Application(ask.Overriding("default/demo"))
	app.Name = "x"
	overrider := response.OverriderOf("app", &app.ObjectMeta)
	v := block.Judge(blocks, []block.Override{{Name: block.Name(demo)}}, block.Change{}, ask.Now)
	err := response.Refuse("applications", "x", overrider, v, ask.Now)
	const want = "rollouts blocked by: default/plain (two [2J lines; unknown author, 0s ago), " +
		"global/dns (DNS issues, troubleshooting in progress; jdoe, 12m ago). To override: kubectl annotate app x " +
		"shipper.booking.com/rollout-block.override=default/demo,default/plain,global/dns -n default --overwrite " +
		"(the verb override on these rolloutblocks is needed)"
	ask.CheckRefusal(t, err, response.Blocked, want)
}

func TestRefusalsSayHowToGoOn(t *testing.T) {
	freeze := func(key string, edits ...func(*shipper.RolloutBlock)) *shipper.RolloutBlock {
		b := ask.Block(key)
		for _, edit := range edits {
			edit(b)
		}
		return b
	}
	policy := func(p shipper.RolloutBlockOverridePolicy) func(*shipper.RolloutBlock) {
		return func(b *shipper.RolloutBlock) { b.Spec.OverridePolicy = p }
	}
	reasons := func(b *shipper.RolloutBlock) { b.Spec.RequireOverrideReason = true }
	expires := func(b *shipper.RolloutBlock) { b.Spec.ExpiresAt = &metav1.Time{Time: ask.Now.Add(time.Hour)} }
	allows := func(b *shipper.RolloutBlock) {
		b.Spec.Allow = []shipper.RolloutBlockChange{shipper.RolloutBlockAbort, shipper.RolloutBlockRetreat}
	}
	var many []*shipper.RolloutBlock
	var manyTold, manyNames []string
	for i := range 12 {
		name := fmt.Sprintf("global/b%02d", i)
		many, manyNames = append(many, freeze(name)), append(manyNames, name)
		if i < 10 {
			manyTold = append(manyTold, name+" (DNS issues, troubleshooting in progress; jdoe, 12m ago)")
		}
	}
	const (
		dns      = "global/dns (DNS issues, troubleshooting in progress; jdoe, 12m ago"
		annotate = "kubectl annotate app super-server shipper.booking.com/rollout-block.override="
		right    = " (the verb override on these rolloutblocks is needed)"
	)
	for sentence, tc := range map[string]struct {
		blocks []*shipper.RolloutBlock
		app    *shipper.Application
		isNew  bool
		want   string
	}{
		"of what is new": {
			blocks: []*shipper.RolloutBlock{freeze("global/dns")}, isNew: true,
			want: dns + "). To override: add the annotation shipper.booking.com/rollout-block.override: global/dns" + right,
		},
		"of what is new, with a reason": {
			blocks: []*shipper.RolloutBlock{freeze("global/dns", reasons)}, isNew: true,
			want: dns + "). To override: add the annotation shipper.booking.com/rollout-block.override: global/dns, " +
				"and shipper.booking.com/rollout-block.override-reason: <why>" + right,
		},
		"with a reason": {
			blocks: []*shipper.RolloutBlock{freeze("global/dns", reasons)},
			want: dns + "). To override: " + annotate + "global/dns -n default " +
				"shipper.booking.com/rollout-block.override-reason='<why>'" + right,
		},
		"with another reason": {
			blocks: []*shipper.RolloutBlock{freeze("global/dns", reasons)},
			app:    ask.Application(ask.Annotated(shipper.RolloutBlockOverrideReasonAnnotation, "the last one")),
			want: dns + "). To override: " + annotate + "global/dns -n default " +
				"shipper.booking.com/rollout-block.override-reason='<why>' --overwrite" + right,
		},
		"beside overrides of what is asleep": {
			blocks: []*shipper.RolloutBlock{freeze("global/dns")}, app: ask.Application(ask.Overriding("default/asleep")),
			want: dns + "). To override: " + annotate + "default/asleep,global/dns -n default --overwrite" + right,
		},
		"which anyone may": {
			blocks: []*shipper.RolloutBlock{freeze("global/dns", policy("Anyone"))},
			want:   dns + "). To override: " + annotate + "global/dns -n default",
		},
		"which cannot be overridden": {
			blocks: []*shipper.RolloutBlock{freeze("global/dns"), freeze("global/law", policy("Nobody"))},
			want: dns + "), global/law (DNS issues, troubleshooting in progress; jdoe, 12m ago). " +
				"Nobody may override global/law: wait until it ends, or ask its author to lift it",
		},
		"which lets something pass": {
			blocks: []*shipper.RolloutBlock{freeze("global/dns", allows)},
			want:   dns + "; lets pass: Abort, Retreat). To override: " + annotate + "global/dns -n default" + right,
		},
		"which ends": {
			blocks: []*shipper.RolloutBlock{freeze("global/dns", allows, expires)},
			want: dns + "; lets pass: Abort, Retreat; until 2026-11-21T13:00:00Z). To override: " + annotate +
				"global/dns -n default" + right,
		},
		"of which there are many": {
			blocks: many,
			want: strings.Join(manyTold, ", ") + " and 2 more. To override: " + annotate + strings.Join(manyNames, ",") +
				" -n default" + right,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if tc.app == nil {
				tc.app = ask.Application()
			}
			overrider := response.OverriderOf("app", &tc.app.ObjectMeta)
			overrider.New = tc.isNew
			v := block.Judge(tc.blocks, nil, block.Change{}, ask.Now)
			err := response.Refuse("applications", "super-server", overrider, v, ask.Now)
			ask.CheckRefusal(t, err, response.Blocked, "rollouts blocked by: "+tc.want)
			v = block.Verdict{Warning: v.Effective}
			stories, _, _ := strings.Cut(tc.want, ". ")
			if diff := cmp.Diff("rollouts are asked to wait by: "+stories, response.WarnOfBlocks(v, ask.Now)); diff != "" {
				t.Errorf("were it only asked for (-want +got):\n%s", diff)
			}
		})
	}
}

func TestThePatchIsWhatCompletingChanges(t *testing.T) {
	block := &shipper.RolloutBlock{ObjectMeta: metav1.ObjectMeta{Name: "x", Annotations: map[string]string{"gone": "1", "stays": "1"}}}
	a := &response.Response{}
	sent := `{"metadata":{"name":"x","annotations":{"gone":"1","stays":"1"}},"spec":{"future":1.50}}`
	if err := a.Complete([]byte(sent), block); err != nil {
		t.Fatal(err)
	}
	if patch, err := a.Patch(); err != nil || len(patch) > 0 {
		t.Errorf("before anything is changed: patch %v, error %v", patch, err)
	}
	response.Annotate(&block.ObjectMeta, "k/e~y", "1")
	delete(block.Annotations, "gone")
	response.Label(&block.ObjectMeta, "l", "3")
	block.Spec.Message = "no"
	block.Spec.Author = shipper.RolloutBlockAuthor{Name: "ann", Type: "User"} // its empty fields were not sent
	patch, err := a.Patch()
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(patch, func(a, b jsonpatch.JsonPatchOperation) int { return strings.Compare(a.Path, b.Path) })
	text, err := json.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"op":"remove","path":"/metadata/annotations/gone"},{"op":"add","path":"/metadata/annotations/k~1e~0y","value":"1"},` +
		`{"op":"add","path":"/metadata/labels","value":{"l":"3"}},{"op":"add","path":"/spec/author","value":{"name":"ann","type":"User"}},` +
		`{"op":"add","path":"/spec/message","value":"no"}]`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
}

// TestPatchesMakeWhatWasMeant: lists that shrink, grow and change their order are what differences get wrong.
func TestPatchesMakeWhatWasMeant(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		before, after := randomApplication(random), randomApplication(random)
		sent, err := json.Marshal(before)
		if err != nil {
			t.Fatal(err)
		}
		a := &response.Response{}
		if err := a.Complete(sent, before); err != nil {
			t.Fatal(err)
		}
		*before = *after
		operations, err := a.Patch()
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(operations)
		if err != nil {
			t.Fatal(err)
		}
		got := sent
		if len(operations) > 0 {
			patch, err := evanphx.DecodePatch(text)
			if err != nil {
				t.Fatal(err)
			}
			if got, err = patch.Apply(sent); err != nil {
				t.Fatalf("seed %d: applying %s to %s: %v", seed, text, sent, err)
			}
		}
		want, err := json.Marshal(after)
		if err != nil {
			t.Fatal(err)
		}
		if !evanphx.Equal(want, got) {
			t.Fatalf("seed %d: %s makes\n%s of\n%s, want\n%s", seed, text, got, sent, want)
		}
	}
}

// randomApplication has few names, so that two have much in common.
func randomApplication(random *rand.Rand) *shipper.Application {
	name := func() string { return string(rune('a' + random.IntN(4))) }
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{}}}
	for range random.IntN(4) {
		app.Annotations[name()+"/~"] = name()
		app.OwnerReferences = append(app.OwnerReferences, metav1.OwnerReference{Name: name(), UID: types.UID(name())})
		app.Finalizers = append(app.Finalizers, name())
		app.Spec.Template.ClusterRequirements.Regions = append(app.Spec.Template.ClusterRequirements.Regions,
			shipper.RegionRequirement{Name: name()})
	}
	steps := make([]shipper.RolloutStrategyStep, random.IntN(4))
	for i := range steps {
		steps[i].Name = name()
		steps[i].Capacity.Contender = int32(random.IntN(3))
	}
	app.Spec.Template.Strategy = &shipper.RolloutStrategy{Steps: steps}
	list := make([]any, random.IntN(4))
	for i := range list {
		list[i] = map[string]any{name(): int64(random.IntN(3)), "n": name()}
	}
	app.Spec.Template.Values = &shipper.ChartValues{name(): list, name(): name(), name(): nil}
	return app
}

func TestDecode(t *testing.T) {
	req := ask.Update("dev", ask.Application(), ask.Application())
	for sentence, edit := range map[string]func(*admission.Request){
		"the object":     func(r *admission.Request) { r.Object.Raw = []byte("{") },
		"the old object": func(r *admission.Request) { r.OldObject.Raw = []byte("[]") },
	} {
		broken := *req
		edit(&broken)
		if _, _, err := response.Decode[shipper.Application](&broken); err == nil || !strings.HasPrefix(err.Error(), "decoding "+sentence) {
			t.Errorf("decoding %s: got error %v", sentence, err)
		}
	}
	for sentence, edit := range map[string]func(*admission.Request){
		"the request has no object":     func(r *admission.Request) { r.Object.Raw = []byte("null") },
		"the request has no old object": func(r *admission.Request) { r.OldObject.Raw = nil },
	} {
		broken := *req
		edit(&broken)
		_, _, err := response.Decode[shipper.Application](&broken)
		ask.CheckRefusal(t, err, response.Invalid, sentence)
	}
	deletion := ask.Delete("dev", ask.Application())
	deletion.OldObject.Raw = nil
	_, _, err := response.Decode[shipper.Application](deletion)
	ask.CheckRefusal(t, err, response.Invalid, "the request has no old object")
	req = ask.Create("dev", ask.Application())
	req.OldObject.Raw = []byte("null")
	now, old, err := response.Decode[shipper.Application](req)
	if err != nil || now == nil || old != nil {
		t.Errorf("got %v, %v, %v", now, old, err)
	}
	if v := (*now.Spec.Template.Values)["replicaCount"]; v != int64(3) {
		t.Errorf("a number was decoded as %T", v)
	}
}

// The API server takes a status out of a write only after the mutating webhooks were asked: one that makes no sense must
// not keep them from reading the rest.
func TestAStatusThatMakesNoSenseIsLeftOut(t *testing.T) {
	named := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
	for sentence, tc := range map[string]struct {
		raw  string
		want *shipper.Application
	}{
		"a status": {`{"metadata":{"name":"x"},"status":{"history":["a"]}}`, &shipper.Application{
			ObjectMeta: metav1.ObjectMeta{Name: "x"}, Status: shipper.ApplicationStatus{History: []string{"a"}},
		}},
		"a status of the wrong type":   {`{"metadata":{"name":"x"},"status":7}`, named},
		"a status with wrong fields":   {`{"status":{"history":["a"],"conditions":"x"},"metadata":{"name":"x"}}`, named},
		"a spec of the wrong type":     {`{"metadata":{"name":"x"},"spec":7}`, nil},
		"both of them":                 {`{"metadata":{"name":"x"},"spec":7,"status":7}`, nil},
		"a status of another spelling": {`{"metadata":{"name":"x"},"Status":7}`, named},
	} {
		t.Run(sentence, func(t *testing.T) {
			req := ask.Create("dev", ask.Application())
			req.Object.Raw = []byte(tc.raw)
			got, _, err := response.Decode[shipper.Application](req)
			if (err == nil) != (tc.want != nil) {
				t.Fatalf("got error %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("decoded (-want +got):\n%s", diff)
			}
		})
	}
}
