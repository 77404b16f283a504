// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// withValues is an Application shop/web of the chart nginx with values in YAML.
func withValues(t *testing.T, values string) *shipper.Application {
	t.Helper()
	app := &shipper.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 3}}
	app.Spec.Template.Chart.Name = "nginx"
	if err := yaml.Unmarshal([]byte(values), &app.Spec.Template.Values); err != nil {
		t.Fatal(err)
	}
	return app
}

const (
	twoContainers = "{replicaCount: 2, containers: {web: {image: 'nginx:1', env: []}, proxy: {image: proxy}}}"
	helmsImage    = "{image: {repository: nginx, tag: '1.10', pullPolicy: Always}, replicaCount: 2}"
)

func TestImagesAreSetInTheValuesOfTheirContainer(t *testing.T) {
	for sentence, c := range map[string]struct {
		values string
		args   []string
		want   string
		// changes are path, from and to of each.
		changes []replaced
	}{
		"a container of a converted chart": {
			twoContainers, []string{"web=nginx:2"},
			"{replicaCount: 2, containers: {web: {image: 'nginx:2', env: []}, proxy: {image: proxy}}}",
			[]replaced{{"containers.web.image", "nginx:1", "nginx:2"}},
		},
		"two containers": {
			twoContainers, []string{"web=a@sha256:00", "proxy=b"},
			"{replicaCount: 2, containers: {web: {image: 'a@sha256:00', env: []}, proxy: {image: b}}}",
			[]replaced{{"containers.web.image", "nginx:1", "a@sha256:00"}, {"containers.proxy.image", "proxy", "b"}},
		},
		"all containers": {
			twoContainers, []string{"*=proxy"}, "{replicaCount: 2, containers: {web: {image: proxy, env: []}, proxy: {image: proxy}}}",
			[]replaced{{"containers.web.image", "nginx:1", "proxy"}},
		},
		"the image that is there": {twoContainers, []string{"proxy=proxy"}, twoContainers, nil},
		"the container with the name of the chart": {
			helmsImage, []string{"nginx=registry:5000/nginx:1.20"},
			"{image: {repository: 'registry:5000/nginx', tag: '1.20', pullPolicy: Always}, replicaCount: 2}",
			[]replaced{{"image", "nginx:1.10", "registry:5000/nginx:1.20"}},
		},
		"the container with the name of the application": {
			"{image: {repository: nginx}}", []string{"web=nginx:2"}, "{image: {repository: nginx, tag: '2'}}",
			[]replaced{{"image", "nginx", "nginx:2"}},
		},
		"one of several images": {
			"{server: {image: {repository: a, tag: '1'}}, worker: {image: {repository: b, tag: '1'}}}", []string{"worker=c:2"},
			"{server: {image: {repository: a, tag: '1'}}, worker: {image: {repository: c, tag: '2'}}}",
			[]replaced{{"worker.image", "b:1", "c:2"}},
		},
		"a registry and a digest of their own": {
			"{image: {registry: docker.io, repository: a/b, tag: '1', digest: 'sha256:00'}}", []string{"*=ghcr.io/c/d:2"},
			"{image: {registry: ghcr.io, repository: c/d, tag: '2', digest: ''}}",
			[]replaced{{"image", "docker.io/a/b:1@sha256:00", "ghcr.io/c/d:2"}},
		},
		"a digest": {
			"{image: {repository: a, tag: '1', digest: ''}}", []string{"*=a@sha256:11"}, "{image: {repository: a, tag: '', digest: 'sha256:11'}}",
			[]replaced{{"image", "a:1", "a@sha256:11"}},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			app := withValues(t, c.values)
			wanted, err := parseImages(c.args)
			if err != nil {
				t.Fatal(err)
			}
			values, changes, err := setImages(app, wanted)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(*withValues(t, c.want).Spec.Template.Values, values); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.changes, changes, cmp.AllowUnexported(replaced{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(withValues(t, c.values), app); diff != "" {
				t.Errorf("the application that was read is changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestImagesThatCannotBeSetAreRefused(t *testing.T) {
	const of = "application shop/web: "
	none := func(name string) string {
		return of + `its values have no image of a container "` + name + `": neither spec.template.values.containers.` + name + ".image nor " +
			"one map with repository and tag for it; find the value with `shipperctl chart render app web`, and edit the application"
	}
	for sentence, c := range map[string]struct{ values, arg, want string }{
		"a container that is not there": {
			twoContainers, "sidecar=a", of + `there is no container "sidecar" in spec.template.values.containers, only: proxy, web`,
		},
		"values without an image":                {"{replicaCount: 1}", "web=a:1", none("web")},
		"no values":                              {"", "web=a:1", none("web")},
		"an image that may be another container": {helmsImage, "sidecar=a:1", none("sidecar")},
		"several images for all": {
			"{a: {image: {repository: a}}, b: {image: {repository: b}}}", "*=a:1",
			of + `"*" may be one of a.image, b.image in spec.template.values: edit the application`,
		},
		"no tag": {helmsImage, "web=registry:5000/a", of + "registry:5000/a has no tag: write one, such as registry:5000/a:1.2.3"},
		"a digest that the chart does not take": {
			helmsImage, "web=a@sha256:00", of + "spec.template.values.image has no digest: name a by a tag, or edit the application",
		},
		"no registry where the chart has one": {
			"{image: {registry: docker.io, repository: a}}", "web=b/c:1",
			of + "spec.template.values.image has a registry: write that of b/c:1, too, such as docker.io/b/c:1",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			wanted, err := parseImages([]string{c.arg})
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := setImages(withValues(t, c.values), wanted); err == nil || err.Error() != c.want {
				t.Errorf("got\n%v\nwant\n%s", err, c.want)
			}
		})
	}
	app := withValues(t, helmsImage)
	app.Spec.Template.Resources = &shipper.Resources{}
	want := of[:len(of)-2] + " places resources and has no chart: change the image in the objects that spec.template.resources selects"
	if _, _, err := setImages(app, []image{{"web", "a:1"}}); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestArgumentsThatAreNoImagesAreRefused(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"nginx:1"}, `"nginx:1" is not CONTAINER=IMAGE, such as web=nginx:1.29`},
		{[]string{"=nginx"}, `"=nginx" is not CONTAINER=IMAGE, such as web=nginx:1.29`},
		{[]string{"web="}, `"web=" is not CONTAINER=IMAGE, such as web=nginx:1.29`},
		{[]string{"web=a b"}, `"web=a b" is not CONTAINER=IMAGE, such as web=nginx:1.29`},
		{[]string{"web=:1"}, `"web=:1" is not CONTAINER=IMAGE, such as web=nginx:1.29`},
		{[]string{"web=@sha256:1"}, `"web=@sha256:1" is not CONTAINER=IMAGE, such as web=nginx:1.29`},
		{[]string{"web==a"}, `"web==a" is not CONTAINER=IMAGE, such as web=nginx:1.29`},
		{[]string{"web=nginx:"}, `"web=nginx:" is not CONTAINER=IMAGE, such as web=nginx:1.29`},
		{[]string{"web=a\x1b[2J"}, `"web=a\x1b[2J" is not CONTAINER=IMAGE, such as web=nginx:1.29`},
		{[]string{"web=a", "web=b"}, "the container web is given two images"},
	} {
		if _, err := parseImages(c.args); err == nil || err.Error() != c.want {
			t.Errorf("%v: got %v, want %s", c.args, err, c.want)
		}
	}
}

// TestAnImageIsWrittenOnlyToTheApplicationThatWasRead and as an edit that admission judges.
func TestAnImageIsWrittenOnlyToTheApplicationThatWasRead(t *testing.T) {
	const patch = `[{"op":"test","path":"/metadata/generation","value":3},{"op":"add","path":"/spec/template/values","value":` +
		`{"containers":{"proxy":{"image":"proxy"},"web":{"env":[],"image":"nginx:2"}},"replicaCount":2}}]`
	changed := apierrors.NewInvalid(shipper.GroupVersion.WithKind("Application").GroupKind(), "web", nil)
	changed.ErrStatus.Message = patchFailed
	for sentence, c := range map[string]struct {
		image           string
		dryRun          bool
		answer          error
		patched         bool
		out, note, fail string
	}{
		"it is written": {
			image: "nginx:2", patched: true, out: "application shop/web: containers.web.image is nginx:2, was nginx:1\n",
			note: "Note: valuesPerRegion of eu have their own containers.web.image, which is not changed\n",
		},
		"a dry run": {
			image: "nginx:2", dryRun: true, patched: true,
			out:  "application shop/web: containers.web.image is nginx:2, was nginx:1 (dry run: nothing is written)\n",
			note: "Note: valuesPerRegion of eu have their own containers.web.image, which is not changed\n",
		},
		"it has the image": {image: "nginx:1", out: "application shop/web has these images already: nothing is rolled out\n"},
		"another user edits it": {
			image: "nginx:2", answer: changed, patched: true,
			fail: "setting images of application shop/web: another user changed it meanwhile: look at it, and run this again if it is still right",
		},
		"admission refuses": {
			image: "nginx:2", answer: errors.New("rollouts blocked"), patched: true,
			fail: "setting images of application shop/web: rollouts blocked",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := shipper.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			app := withValues(t, twoContainers)
			app.Spec.Template.ValuesPerRegion = []shipper.ValuesFor{
				{Name: "eu", Values: withValues(t, twoContainers).Spec.Template.Values}, {Name: "us", Values: &shipper.ChartValues{"containers": nil}},
			}
			patched := false
			write := func(_ context.Context, _ client.WithWatch, o client.Object, p client.Patch, with ...client.PatchOption) error {
				patched = true
				options := (&client.PatchOptions{}).ApplyOptions(with)
				if data, err := p.Data(o); err != nil || string(data) != patch || len(options.DryRun) > 0 != c.dryRun {
					t.Errorf("the patch, with dryRun %v, is\n%s, %v\nwant\n%s", options.DryRun, data, err, patch)
				}
				return c.answer
			}
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(app).WithInterceptorFuncs(interceptor.Funcs{Patch: write}).Build()
			var out, errs bytes.Buffer
			cmd := &cobra.Command{}
			cmd.SetContext(t.Context())
			cmd.SetOut(&out)
			cmd.SetErr(&errs)
			fail := ""
			if err := setImagesOf(cmd, api, client.ObjectKeyFromObject(app), []image{{"web", c.image}}, c.dryRun); err != nil {
				fail = err.Error()
			}
			if out.String() != c.out || errs.String() != c.note || fail != c.fail || patched != c.patched {
				t.Errorf("patched %t\n%s%s%s\nwant %t\n%s%s%s", patched, out.String(), errs.String(), fail, c.patched, c.out, c.note, c.fail)
			}
		})
	}
}
