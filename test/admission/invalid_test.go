// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"shipper.dev/shipper/test/env"
)

// refusedMark begins the first line of each file; a part of the message follows.
const refusedMark = "# refused: "

// Every file in test/invalid is refused, for the reason on its first line. Of several objects in one file only the last is.
func TestInvalidObjectsAreRefused(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../invalid/*/*.yaml")
	if err != nil || len(files) < 25 {
		t.Fatalf("found %d files in test/invalid: %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "../invalid/"), ".yaml")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(string(text), "\n")
			want, marked := strings.CutPrefix(first, refusedMark)
			if !marked || want == "" {
				t.Fatalf("the first line is %q, not %q and a reason", first, refusedMark)
			}
			objects := objectsOf(t, text)
			last := objects[len(objects)-1]
			if kind := strings.ToLower(last.GetKind()); kind != filepath.Base(filepath.Dir(file)) {
				t.Errorf("a %s does not belong into this folder", kind)
			}
			ns := namespace(t)
			for _, o := range objects {
				if place(t, o, ns); o == last {
					break
				}
				create(t, admin, o)
			}
			refusedFor(t, last, want)
		})
	}
}

// place sets the namespace of the test, if o's kind is namespaced.
func place(t *testing.T, o *unstructured.Unstructured, ns string) {
	t.Helper()
	mapping, err := admin.RESTMapper().RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
	if err != nil {
		t.Fatal(err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		o.SetNamespace(ns)
	}
}

// refusedFor expects o to be refused with want. It retries until the webhook's cache has the objects before o. It writes
// targets as an unprivileged user, since administrators may stamp.
func refusedFor(t *testing.T, o *unstructured.Unstructured, want string) {
	t.Helper()
	var who client.Client = admin
	if strings.HasSuffix(o.GetKind(), "Target") {
		who = as(t, "dev")
	}
	env.Eventually(t, "the refusal", func(ctx context.Context) error {
		tried := o.DeepCopy()
		err := who.Create(ctx, tried, client.DryRunAll, client.FieldValidation("Strict"))
		switch {
		case err == nil:
			return errors.New("it was admitted")
		case !strings.Contains(err.Error(), want):
			t.Fatalf("refused with (%s)\n%s\nwant: %s", apierrors.ReasonForError(err), err, want)
		}
		return nil
	})
}

func objectsOf(t *testing.T, text []byte) []*unstructured.Unstructured {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var out []*unstructured.Unstructured
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(o.Object) > 0 {
			out = append(out, o)
		}
	}
}
