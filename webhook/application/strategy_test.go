// SPDX-License-Identifier: Apache-2.0

package application_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"shipper.dev/shipper/apis/rules/stamp"
	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/application"
	"shipper.dev/shipper/webhook/check"
	"shipper.dev/shipper/webhook/response"
	"shipper.dev/shipper/webhook/state"
)

// shared is a Strategy by `namespace/name`, for a chart.
func shared(key string, edits ...func(*shipper.RolloutStrategy)) *shipper.Strategy {
	namespace, name, _ := strings.Cut(key, "/")
	out := &shipper.Strategy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	out.Spec.Steps = []shipper.RolloutStrategyStep{ask.Step("canary", 100, 10, 90, 10), ask.Step("full on", 0, 100, 0, 100)}
	for _, edit := range edits {
		edit(&out.Spec)
	}
	return out
}

func stepsOf(names ...string) func(*shipper.RolloutStrategy) {
	return func(s *shipper.RolloutStrategy) {
		for i, name := range names {
			s.Steps[i].Name = name
		}
	}
}

func digestOf(t testing.TB, s *shipper.Strategy) string {
	t.Helper()
	digest, err := stamp.StrategyDigest(s.Spec)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// takes makes an Application take a Strategy; an empty digest is that of a manifest.
func takes(namespace, name, digest string) func(*shipper.Application) {
	return func(app *shipper.Application) {
		app.Spec.Template.Strategy = &shipper.RolloutStrategy{
			From: &shipper.StrategyReference{Namespace: namespace, Name: name, Digest: digest},
		}
	}
}

// taking is a webhook for which there are Strategies; read has those that it reads.
func taking(t *testing.T, rights *ask.Rights, read *[]string, there []client.Object, known ...client.Object) *application.Webhook {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := shipper.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	live := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(there...).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if _, is := o.(*shipper.Strategy); is {
				*read = append(*read, key.String())
			}
			return c.Get(ctx, key, o, options...)
		},
	})
	known = append(known, &shipper.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "here"}, Spec: shipper.ClusterSpec{Region: "local"}})
	w := ask.Know(t, rights, known...)
	reader := state.New(w.Indexers, live, "global")
	return &application.Webhook{
		BlockCheck: w.BlockCheck, Guard: w.Guard, State: reader, Charts: exact(), Checks: check.NewUses(reader, "shipper-checks"),
	}
}

// releasedOf is the Release of an Application that takes a Strategy.
func releasedOf(t testing.TB, app *shipper.Application, s *shipper.Strategy, existing ...*shipper.Release) *shipper.Release {
	t.Helper()
	rel := ask.Release(stamp.WithStrategy(app, &s.Spec), existing)
	if rel == nil {
		t.Fatal("it cannot have one")
	}
	return rel
}

func TestAnApplicationTakesAStrategy(t *testing.T) {
	before, after := shared("default/careful"), shared("default/careful", stepsOf("slow"))
	was, is := digestOf(t, before), digestOf(t, after)
	old := now(takes("", "careful", was))
	first := releasedOf(t, old, before)
	newer := now(takes("", "careful", is), changed)
	second := releasedOf(t, newer, after, first)
	refresh := ask.Annotated(shipper.AppStrategyRefreshAnnotation, "again")
	back := func(app *shipper.Application) { app.Spec.RollbackTo = &shipper.RollbackTo{Release: first.Name} }
	update := func(is, old *shipper.Application) *admission.Request { return ask.Update(ask.Developer, is, old) }
	const stampers = ask.Developer + " stamp applications default/super-server"
	for sentence, tc := range map[string]struct {
		req    *admission.Request
		known  []client.Object
		rights *ask.Rights
		want   string
	}{
		"as it is, when the Application is created": {ask.Create(ask.Developer, now(takes("", "careful", ""))), nil, nil, is},
		"whatever digest a manifest has":            {ask.Create(ask.Developer, now(takes("", "careful", was))), nil, nil, is},
		"as it was, when a user who may restores it": {
			ask.Create(ask.Developer, now(takes("", "careful", was), ask.Annotated(shipper.AppHighestObservedGenerationAnnotation, "0"))), nil,
			ask.Grant(stampers), was,
		},
		"and keeps it when a manifest is applied again": {update(now(takes("", "careful", "")), old), []client.Object{first}, nil, was},
		"or when only annotations change": {
			update(now(takes("", "careful", ""), ask.Annotated("a", "b")), old), []client.Object{first}, nil, was,
		},
		"or a limit": {
			update(now(takes("", "careful", ""), limited(ptrTo[int32](3))), old), []client.Object{first}, nil, was,
		},
		"or the digest alone, of something else": {update(now(takes("", "careful", is)), old), []client.Object{first}, nil, was},
		"anew when the template is edited":       {update(now(takes("", "careful", ""), changed), old), []client.Object{first}, nil, is},
		"with a digest of it, too":               {update(now(takes("", "careful", was), changed), old), []client.Object{first}, nil, is},
		"anew when a user requests it":           {update(now(takes("", "careful", ""), refresh), old), []client.Object{first}, nil, is},
		"anew when it took another one":          {update(now(takes("", "careful", "")), now(takes("", "bold", was))), nil, nil, is},
		"for the first time when it had steps":   {update(now(takes("", "careful", "")), now()), nil, nil, is},
		"of the global namespace": {
			ask.Create(ask.Developer, now(takes("global", "all", ""))), nil, nil, digestOf(t, shared("global/all")),
		},
		"as it was, when it goes back": {
			update(now(takes("", "careful", is), changed, back), newer), []client.Object{first, second}, nil, was,
		},
		"as it was, when Shipper aborts": {
			ask.Update(ask.Reconciler, now(takes("", "careful", was), ask.Annotated(shipper.AppHighestObservedGenerationAnnotation, "0")), newer),
			[]client.Object{first}, nil, was,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			var read []string
			rights := tc.rights
			if rights == nil {
				rights = ask.Grant()
			}
			w, a := taking(t, rights, &read, []client.Object{after, shared("global/all")}, tc.known...), &response.Response{}
			if err := w.Default(t.Context(), tc.req, a); err != nil {
				t.Fatal(err)
			}
			app := ask.Patched[shipper.Application](t, tc.req, a)
			from := app.Spec.Template.Strategy.From
			want := &shipper.RolloutStrategy{From: &shipper.StrategyReference{Name: from.Name, Namespace: from.Namespace, Digest: tc.want}}
			if diff := cmp.Diff(want, app.Spec.Template.Strategy); diff != "" {
				t.Errorf("the strategy (-want +got)\n%s", diff)
			}
		})
	}
}

func TestAStrategyThatCannotBeTakenIsRefused(t *testing.T) {
	const path = "Application.shipper.booking.com \"super-server\" is invalid: spec.template.strategy.from"
	rolling := func(app *shipper.Application) { app.Spec.Template.Strategy.Rolling = &shipper.RollingClusters{} }
	gone := func(s *shipper.RolloutStrategy) { s.Checks = []shipper.StepCheck{{Check: "errors"}} }
	for name, tc := range map[string]struct {
		edits []func(*shipper.Application)
		want  string
	}{
		"one that is not there": {
			[]func(*shipper.Application){takes("", "carful", "")}, path + `.name: Invalid value: "carful": there is no Strategy carful in ` +
				"default; there are: careful, checked, placing; apply the Strategy first, or name one that all namespaces share with " +
				"namespace: global",
		},
		"one that is not there for all": {
			[]func(*shipper.Application){takes("global", "careful", "")}, path + `.name: Invalid value: "careful": there is no Strategy ` +
				"careful in global; there are none; apply the Strategy first",
		},
		"without a name": {[]func(*shipper.Application){takes("", "", "")}, path + ".name: Required value: name a Strategy"},
		"beside other fields": {
			[]func(*shipper.Application){takes("", "careful", ""), rolling},
			path + ": Forbidden: not beside other fields of strategy: keep from alone, or take it out",
		},
		"one for resources": {
			[]func(*shipper.Application){takes("", "placing", "")}, path + `: Invalid value: "default/placing": its spec.steps: ` +
				"Required value: a chart needs steps, and this Strategy is for resources",
		},
		"one with a Check that this namespace has not": {
			[]func(*shipper.Application){takes("", "checked", "")}, path + `: Invalid value: "default/checked": its spec.checks[0].check: ` +
				`Invalid value: "errors": there is no Check errors in default; there are none; shared ones are named shipper-checks/NAME; apply ` +
				"the Check first",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var read []string
			resources := shared("default/placing", func(s *shipper.RolloutStrategy) { s.Steps = nil })
			there := []client.Object{shared("default/careful"), resources, shared("default/checked", gone)}
			w, req, a := taking(t, ask.Grant(), &read, there), ask.Create(ask.Developer, now(tc.edits...)), &response.Response{}
			err := w.Default(t.Context(), req, a)
			if err == nil {
				after := ask.Patched[shipper.Application](t, req, a)
				err = w.Validate(t.Context(), ask.Create(ask.Developer, after), &response.Response{})
			}
			ask.CheckRefusal(t, err, response.Invalid, tc.want)
		})
	}
}

func TestAStrategyOfAnotherNamespaceIsNotRead(t *testing.T) {
	var read []string
	w := taking(t, ask.Grant(), &read, []client.Object{shared("elsewhere/careful")})
	err := w.Default(t.Context(), ask.Create(ask.Developer, now(takes("elsewhere", "careful", ""))), &response.Response{})
	ask.CheckRefusal(t, err, response.Invalid, `Application.shipper.booking.com "super-server" is invalid: `+
		`spec.template.strategy.from.namespace: Invalid value: "elsewhere": leave it out for a Strategy of namespace default, or name global, `+
		"whose Strategies all namespaces share")
	if len(read) > 0 {
		t.Errorf("it reads %v", read)
	}
}

// TestWhatIsKnownOfAStrategyIsNotReadAgain for an edit after which the Strategy is the same, and for one that keeps it.
func TestWhatIsKnownOfAStrategyIsNotReadAgain(t *testing.T) {
	careful := shared("default/careful")
	old := now(takes("", "careful", digestOf(t, careful)))
	first := releasedOf(t, old, careful)
	for sentence, tc := range map[string]struct {
		edit func(*shipper.Application)
		want []string
	}{
		"an edit of the template":  {changed, []string{"default/careful"}},
		"an edit beside it":        {limited(ptrTo[int32](3)), nil},
		"an edit of no field":      {ask.Annotated("a", "b"), nil},
		"a manifest applied again": {func(*shipper.Application) {}, nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			var read []string
			w := taking(t, ask.Grant(), &read, []client.Object{careful}, first)
			req, a := ask.Update(ask.Developer, now(takes("", "careful", ""), tc.edit), old), &response.Response{}
			if err := w.Default(t.Context(), req, a); err != nil {
				t.Fatal(err)
			}
			after := ask.Patched[shipper.Application](t, req, a)
			if err := w.Validate(t.Context(), ask.Update(ask.Developer, after, old), &response.Response{}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, read); diff != "" {
				t.Errorf("read (-want +got)\n%s", diff)
			}
		})
	}
}

// TestTheUserWhoTakesAStrategyAgainHasAskedForTheRelease, and a block stops it, as it stops other edits of the template.
func TestTheUserWhoTakesAStrategyAgainHasAskedForTheRelease(t *testing.T) {
	before, after := shared("default/careful"), shared("default/careful", stepsOf("slow"))
	old := now(takes("", "careful", digestOf(t, before)))
	first := releasedOf(t, old, before)
	again := now(takes("", "careful", ""), ask.Annotated(shipper.AppStrategyRefreshAnnotation, "again"))
	var read []string
	req, a := ask.Update("eve", again, old), &response.Response{}
	if err := taking(t, ask.Grant(), &read, []client.Object{after}, first).Default(t.Context(), req, a); err != nil {
		t.Fatal(err)
	}
	if got := ask.Patched[shipper.Application](t, req, a).Annotations[shipper.AppRequestedByAnnotation]; got != "eve" {
		t.Errorf("requested by %q", got)
	}
	w := taking(t, ask.Grant(), &read, []client.Object{after}, first, ask.Block("default/dns"))
	err := w.Default(t.Context(), req, &response.Response{})
	if err == nil || !strings.Contains(err.Error(), shipper.BlockedBy+"default/dns") {
		t.Errorf("under a block: %v", err)
	}
}
