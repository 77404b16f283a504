// SPDX-License-Identifier: Apache-2.0

package application_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/chart/values"
	"shipper.dev/shipper/test/admission/ask"
	"shipper.dev/shipper/webhook/application"
	"shipper.dev/shipper/webhook/response"
)

const (
	mayHidden = ask.Developer + " get secrets default/hidden"
	hidden    = "Secret/hidden/values.yaml"
)

// hides is a Secret that holds a text.
func hides(text string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hidden"}, Data: map[string][]byte{"values.yaml": []byte(text)},
	}
}

// from has values from that Secret; pinnedTo says what it held.
func from(app *shipper.Application) {
	app.Spec.Template.ValuesFrom = []shipper.ValuesSource{{SecretKeyRef: &shipper.ValuesKeyRef{Name: "hidden"}}}
}

// now is the Application as it is pinned, and edited.
func now(edits ...func(*shipper.Application)) *shipper.Application {
	return ask.Application(append([]func(*shipper.Application){ask.Pinned("0.0.1")}, edits...)...)
}

func digests(t testing.TB, text string) map[string]string {
	t.Helper()
	app := ask.Application(from)
	pinned := values.Pinned{Namespace: app.Namespace, App: app.Name, From: app.Spec.Template.ValuesFrom}
	out, err := pinned.DigestsOf(values.Held{hidden: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func pinnedTo(digests map[string]string) func(*shipper.Application) {
	return func(app *shipper.Application) { from(app); app.Spec.Template.ValuesDigests = digests }
}

// reading is a webhook for which there are objects to be read; read counts how often it does.
func reading(t *testing.T, rights *ask.Rights, read *int, there []client.Object, known ...client.Object) *application.Webhook {
	w := webhookOf(t, rights, exact(), known...)
	objects := fake.NewClientBuilder().WithObjects(there...).Build()
	w.Sources = func(ctx context.Context, namespace string, from []shipper.ValuesSource) (values.Held, error) {
		*read++
		return values.ReadSources(ctx, objects, namespace, from)
	}
	return w
}

func TestValuesArePinnedToWhatTheirSourcesHold(t *testing.T) {
	const before, after = "a: 1", "a: 2"
	was, is := digests(t, before), digests(t, after)
	old := now(pinnedTo(was))
	// The Application as it was, and as it is once what its Secret holds has changed.
	first := ask.Release(old, nil)
	newer := now(pinnedTo(is))
	second := ask.Release(newer, []*shipper.Release{first})
	otherSteps := func(app *shipper.Application) { app.Spec.Template.Strategy.Steps[0].Name = "slowly" }
	refresh := ask.Annotated(shipper.AppValuesRefreshAnnotation, "again")
	back := func(app *shipper.Application) { app.Spec.RollbackTo = &shipper.RollbackTo{Release: first.Name} }
	update := func(is, old *shipper.Application) *admission.Request { return ask.Update(ask.Developer, is, old) }
	for sentence, tc := range map[string]struct {
		req   *admission.Request
		known []client.Object
		read  int
		want  map[string]string
	}{
		"when it is made":                         {ask.Create(ask.Developer, ask.Application(from)), nil, 1, is},
		"whatever a manifest from elsewhere says": {ask.Create(ask.Developer, ask.Application(pinnedTo(was))), nil, 1, is},
		"and not when nothing changes":            {update(old, old), nil, 0, was},
		"nor when a manifest is applied again":    {update(now(from), old), nil, 0, was},
		"nor when only labels change":             {update(now(from, ask.Annotated("a", "b")), old), nil, 0, was},
		"nor for other steps":                     {update(now(from, otherSteps), old), nil, 0, was},
		"again when the template changes":         {update(now(from, changed), old), nil, 1, is},
		"again when the user requests it":         {update(now(from, refresh), old), nil, 1, is},
		"whatever digests the user claims": {
			update(now(pinnedTo(map[string]string{hidden: "x"})), old), nil, 1, is,
		},
		"and not when it goes back": {update(now(from, back, refresh), newer), []client.Object{first, second}, 0, was},
		"nor when an earlier installation is restored": {
			update(now(pinnedTo(was)), newer), []client.Object{first, second}, 0, was,
		},
		"nor when Shipper puts it back on abort": {
			ask.Update(ask.Reconciler, ask.Application(abortedTo(first)), newer), []client.Object{first}, 0, was,
		},
		"but when only a user name says so": {
			ask.Update(ask.Reconciler, now(pinnedTo(was), changed), newer), []client.Object{second}, 1, is,
		},
		"and forgotten when there are none": {
			update(now(func(app *shipper.Application) { app.Spec.Template.ValuesDigests = was }), old), nil, 0, nil,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			read, a := 0, &response.Response{}
			rights := ask.Grant(mayHidden, strings.Replace(mayHidden, ask.Developer, ask.Reconciler, 1))
			w := reading(t, rights, &read, []client.Object{hides(after)}, tc.known...)
			if err := w.Default(t.Context(), tc.req, a); err != nil {
				t.Fatal(err)
			}
			got := ask.Patched[shipper.Application](t, tc.req, a)
			if diff := cmp.Diff(tc.want, got.Spec.Template.ValuesDigests); diff != "" || read != tc.read {
				t.Errorf("read %d times, want %d; digests (-want +got):\n%s", read, tc.read, diff)
			}
			if gone := got.Annotations[shipper.AppRolledBackToAnnotation]; (gone != "") != strings.Contains(sentence, "goes back") {
				t.Errorf("it says it went back to %q", gone)
			}
			patched := *tc.req
			patched.Object.Raw = marshalled(t, got)
			if err := w.Validate(t.Context(), &patched, &response.Response{}); err != nil {
				t.Errorf("what it made of it is refused: %v", err)
			}
		})
	}
}

func marshalled(t testing.TB, o any) []byte {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestValuesNeedTheRightToReadTheirSources(t *testing.T) {
	was := digests(t, "a: 1")
	old := now(pinnedTo(was))
	newer := now(pinnedTo(digests(t, "a: 2")))
	first := ask.Release(old, nil)
	message := `Application.shipper.booking.com "super-server" is invalid: spec.template.valuesFrom[0].secretKeyRef.name: Forbidden: ` +
		ask.Developer + ` may not get Secret default/hidden, and a chart is rendered only with what its requester may read; ` +
		`ask the owner of the namespace to run: kubectl -n default create role get-secrets-hidden --verb=get --resource=secrets ` +
		`--resource-name=hidden; kubectl -n default create rolebinding get-secrets-hidden-dev --role=get-secrets-hidden --user=dev`
	back := func(app *shipper.Application) { app.Spec.RollbackTo = &shipper.RollbackTo{Release: first.Name} }
	update := func(is, old *shipper.Application) *admission.Request { return ask.Update(ask.Developer, is, old) }
	refresh := ask.Annotated(shipper.AppValuesRefreshAnnotation, "x")
	for sentence, tc := range map[string]struct {
		req     *admission.Request
		rights  []string
		refused bool
	}{
		"a user with the right reads them":           {ask.Create(ask.Developer, ask.Application(from)), []string{mayHidden}, false},
		"a user without the right may not name them": {ask.Create(ask.Developer, ask.Application(from)), nil, true},
		"nor adds them":                        {update(now(from), now()), nil, true},
		"nor has them rendered otherwise":      {update(now(pinnedTo(was), changed), old), nil, true},
		"nor refreshes them":                   {update(now(pinnedTo(was), refresh), old), nil, true},
		"but goes back to them":                {update(now(from, back), newer), nil, false},
		"and takes them away":                  {update(now(), old), nil, false},
		"and so does Shipper, without a right": {ask.Update(ask.Reconciler, old, newer), nil, false},
		"a user who restores may set them": {
			ask.Create("ann", now(pinnedTo(was))), []string{"ann stamp applications default/super-server"}, false,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			read := 0
			w := reading(t, ask.Grant(tc.rights...), &read, []client.Object{hides("a: 1")}, first, ask.Release(newer, []*shipper.Release{first}))
			decision, want := response.Decision(""), ""
			if tc.refused {
				decision, want = response.Invalid, message
			}
			ask.CheckRefusal(t, w.Default(t.Context(), tc.req, &response.Response{}), decision, want)
			if tc.refused && read > 0 {
				t.Error("it was read first")
			}
		})
	}
}

// TestAChartPublishedAgainIsAnother has a chart of the same name and version with something else in it render what a Secret held.
func TestAChartPublishedAgainIsAnother(t *testing.T) {
	was := digests(t, "a: 1")
	of := func(digest string) func(*shipper.Application) {
		return ask.Annotated(shipper.AppChartDigestAnnotation, digest)
	}
	republished := ask.Annotated(shipper.AppChartVersionRefreshAnnotation, "x")
	otherSteps := func(app *shipper.Application) { app.Spec.Template.Strategy.Steps[0].Name = "slowly" }
	old := now(pinnedTo(was), of("ours"))
	known := ask.Release(old, nil)
	for sentence, tc := range map[string]struct {
		now, old *shipper.Application
		rights   string
		refused  bool
	}{
		"the user requests a refresh":                    {now(pinnedTo(was), of("ours"), republished), old, "", true},
		"and by a user who may read it":                  {now(pinnedTo(was), of("ours"), republished), old, mayHidden, false},
		"the user requests a refresh, and other steps":   {now(pinnedTo(was), of("ours"), republished, otherSteps), old, "", true},
		"the Secret is put back beside it":               {now(pinnedTo(was), of("theirs")), now(of("theirs")), "", true},
		"the Secret is put back beside the chart it had": {now(pinnedTo(was), of("ours")), now(of("ours")), "", false},
		"other steps of the chart it has":                {now(pinnedTo(was), of("ours"), otherSteps), old, "", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			read := 0
			w := reading(t, ask.Grant(tc.rights), &read, []client.Object{hides("a: 1")}, known)
			w.Charts = &catalog{found: repository.Resolution{Version: "0.0.1", Digest: "theirs"}}
			req, a := ask.Update(ask.Developer, tc.now, tc.old), &response.Response{}
			if err := w.Default(t.Context(), req, a); err != nil {
				t.Fatal(err) // without blocks all is left to who validates
			}
			req.Object.Raw = marshalled(t, ask.Patched[shipper.Application](t, req, a))
			err := w.Validate(t.Context(), req, &response.Response{})
			if refused := err != nil && strings.Contains(err.Error(), "may not get Secret default/hidden"); refused != tc.refused {
				t.Errorf("refused: %v, want %v: %v", refused, tc.refused, err)
			}
		})
	}
}

func TestSourcesThatCannotBeRead(t *testing.T) {
	const canary = "k33p-this"
	app := func(source shipper.ValuesSource) *shipper.Application {
		return ask.Application(func(app *shipper.Application) { app.Spec.Template.ValuesFrom = []shipper.ValuesSource{source} })
	}
	secret := func(name, key string) *shipper.Application {
		return app(shipper.ValuesSource{SecretKeyRef: &shipper.ValuesKeyRef{Name: name, Key: key}})
	}
	there := hides(canary)
	there.Data = map[string][]byte{
		"list": []byte("- " + canary), "broken": []byte("a: 1\nb: [" + canary), "text": []byte(canary),
		"large": []byte("a: " + strings.Repeat("x", values.MaxHeldBytes)),
	}
	rights := ask.Grant(mayHidden, ask.Developer+" get secrets default/gone", ask.Developer+" get configmaps default/gone")
	const begins = `Application.shipper.booking.com "super-server" is invalid: spec.template.valuesFrom[0]`
	const key = `.secretKeyRef.key: Invalid value: `
	for sentence, tc := range map[string]struct {
		app  *shipper.Application
		want string
	}{
		"the Secret is not there": {secret("gone", ""), `.secretKeyRef.name: Invalid value: "gone": there is no Secret default/gone`},
		"the ConfigMap is not there": {
			app(shipper.ValuesSource{ConfigMapKeyRef: &shipper.ValuesKeyRef{Name: "gone"}}),
			`.configMapKeyRef.name: Invalid value: "gone": there is no ConfigMap default/gone`,
		},
		"the key is not there": {secret("hidden", "none"), `.secretKeyRef.key: Invalid value: "none": Secret default/hidden has no key none`},
		"it is a list":         {secret("hidden", "list"), key + `"list": list of Secret default/hidden is YAML, but no map of values`},
		"it is a word":         {secret("hidden", "text"), key + `"text": text of Secret default/hidden is YAML, but no map of values`},
		"it is not YAML":       {secret("hidden", "broken"), key + `"broken": broken of Secret default/hidden is not YAML, in line 2`},
		"it is too large": {
			secret("hidden", "large"), key + `"large": all of valuesFrom hold more than 1 MiB together; put large files into the chart`,
		},
		"nothing is named": {
			app(shipper.ValuesSource{}), `: Required value: name either a ConfigMap, by configMapKeyRef, or a Secret, by secretKeyRef`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			read := 0
			w := reading(t, rights, &read, []client.Object{there})
			err := w.Default(t.Context(), ask.Create(ask.Developer, tc.app), &response.Response{})
			ask.CheckRefusal(t, err, response.Invalid, begins+tc.want)
			if strings.Contains(err.Error(), canary) {
				t.Errorf("it says what is secret: %v", err)
			}
		})
	}
}
