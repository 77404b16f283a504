// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
)

// object is one of a kind of the core group, with data.
func object(kind, namespace, name, value string) unstructured.Unstructured {
	metadata := map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	o := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": metadata}
	if value != "" {
		o["data"] = map[string]any{"value": value}
	}
	return unstructured.Unstructured{Object: o}
}

// envelope is an Envelope of manifests.
func envelope(name string, manifests ...unstructured.Unstructured) unstructured.Unstructured {
	var list []any
	for _, m := range manifests {
		list = append(list, m.Object)
	}
	return unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "shipper.booking.com/v1alpha1", "kind": "Envelope", "metadata": map[string]any{"name": name, "namespace": "work"},
		"spec": map[string]any{"manifests": list},
	}}
}

func coreScope(gk schema.GroupKind) (namespaced, known bool) {
	return gk.Kind != "Namespace", gk.Group == ""
}

// planned is all that a plan comes to.
type planned struct {
	Objects       []string
	Notes, Reason string
}

func TestContentIsMadeOfWhatWasRead(t *testing.T) {
	a, b := object("ConfigMap", "work", "a", "1"), object("ConfigMap", "work", "b", "1")
	read := func(list ...unstructured.Unstructured) []found { return []found{{objects: list}} }
	for sentence, tc := range map[string]struct {
		read []found
		want planned
	}{
		"two queries that find one object take it once": {
			append(read(a, b), found{objects: []unstructured.Unstructured{a}}), planned{Objects: []string{"ConfigMap work/a", "ConfigMap work/b"}},
		},
		"an Envelope is replaced by its manifests, which get its namespace": {
			read(envelope("e", object("ConfigMap", "", "c", "1")), a), planned{Objects: []string{"ConfigMap work/a", "ConfigMap work/c"}},
		},
		"an Envelope that two queries find is unpacked once": {
			append(read(envelope("e", b)), read(envelope("e", b))...), planned{Objects: []string{"ConfigMap work/b"}},
		},
		"equal objects of two sources are one": {
			read(envelope("e", a), a), planned{Objects: []string{"ConfigMap work/a"}},
		},
		"two sources with different content are refused": {
			read(envelope("e", object("ConfigMap", "", "a", "2")), a), planned{Reason: "SelectionInvalid"},
		},
		"an Envelope with a Pod is refused": {
			read(envelope("e", object("Pod", "", "a", ""))), planned{Reason: "SelectionInvalid"},
		},
		"an Envelope with what each cluster has of its own is refused": {
			read(envelope("e", object("ConfigMap", "", "kube-root-ca.crt", "1"))), planned{Reason: "SelectionInvalid"},
		},
		"an object that does not exist is noted": {
			[]found{{objects: []unstructured.Unstructured{a}}, {note: "ConfigMap work/x does not exist"}},
			planned{Objects: []string{"ConfigMap work/a"}, Notes: "ConfigMap work/x does not exist"},
		},
		"nothing is never content": {[]found{{note: "ConfigMap work/x does not exist"}}, planned{Reason: "SelectionEmpty"}},
		"2,001 objects are too many": {
			read(many(2001)...), planned{Reason: "SelectionTooLarge"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			content, err := planContent(tc.read, objects.Policy{}, coreScope)
			var got planned
			if p, ok := errors.AsType[*Problem](err); ok {
				got.Reason = p.Reason
			} else if err != nil {
				t.Fatal(err)
			} else {
				list, err := objects.Join(content.parts)
				if err != nil {
					t.Fatal(err)
				}
				for i := range list {
					got.Objects = append(got.Objects, objects.KeyOf(&list[i]).String())
				}
				_, notes, _ := strings.Cut(content.Message, "; ")
				got.Notes = notes
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func many(n int) []unstructured.Unstructured {
	out := make([]unstructured.Unstructured, n)
	for i := range out {
		out[i] = object("ConfigMap", "work", fmt.Sprintf("c%04d", i), "1")
	}
	return out
}

func TestContentThatIsTooLargeNamesTheLargestObjects(t *testing.T) {
	var list []unstructured.Unstructured
	for i := range 9 {
		list = append(list, object("ConfigMap", "work", fmt.Sprintf("c%d", i), strings.Repeat("x", 1<<20)))
	}
	_, err := planContent([]found{{objects: list}}, objects.Policy{}, coreScope)
	p, ok := errors.AsType[*Problem](err)
	if !ok || p.Reason != shipper.SelectionTooLarge || strings.Count(p.Message, "ConfigMap work/c") != 5 {
		t.Errorf("9 MiB end with %v", err)
	}
}

func TestInterestsMatchObjectsAsTheyWereAndAsTheyAre(t *testing.T) {
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	at := collection{configMaps, "work"}
	labelled, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}})
	if err != nil {
		t.Fatal(err)
	}
	var all interests
	all.set(key("named"), []interest{{collection: at, name: "x"}})
	all.set(key("labelled"), []interest{{collection: at, labels: labelled}})
	all.set(key("all"), []interest{{collection: at}})
	all.set(key("elsewhere"), []interest{{collection: collection{configMaps, "other"}}})
	all.set(key("ended"), []interest{{collection: at}})
	all.set(key("ended"), nil)
	of := func(versions ...*metav1.PartialObjectMetadata) []string {
		names := map[string]bool{}
		for _, app := range all.of(configMaps, versions...) {
			names[app.Name] = true
		}
		return slices.Sorted(maps.Keys(names))
	}
	meta := func(name string, labels map[string]string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "work", Name: name, Labels: labels}}
	}
	got := [][]string{
		of(nil, meta("x", nil)), of(nil, meta("y", map[string]string{"a": "b"})), of(meta("y", map[string]string{"a": "b"}), meta("y", nil)),
		of(meta("y", nil), nil),
	}
	want := [][]string{{"all", "named"}, {"all", "labelled"}, {"all", "labelled"}, {"all"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if all.collections[configMaps] != 2 {
		t.Errorf("%d collections are counted", all.collections[configMaps])
	}
}

func TestOnlyChangesThatMayChangeContentConcern(t *testing.T) {
	stripped := func(change func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: "work", Name: "x", UID: "1", ResourceVersion: "1", Generation: 1, Annotations: map[string]string{"a": "b"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}},
		}}
		change(o)
		out, err := strip(o)
		if err != nil {
			t.Fatal(err)
		}
		small, ok := out.(*metav1.PartialObjectMetadata)
		if !ok || small.ManagedFields != nil {
			t.Fatalf("it is stripped to %v", out)
		}
		return small
	}
	before := stripped(func(*metav1.PartialObjectMetadata) {})
	// autoscaler is without a generation. Its spec and its status were written at a second.
	autoscaler := func(version string, spec, status int64) *metav1.PartialObjectMetadata {
		return stripped(func(o *metav1.PartialObjectMetadata) {
			at := func(second int64) *metav1.Time { return new(metav1.Unix(second, 0)) }
			o.ResourceVersion, o.Generation = version, 0
			o.ManagedFields = []metav1.ManagedFieldsEntry{
				{Manager: "kubectl", Time: at(spec)}, {Manager: "kube-controller-manager", Subresource: "status", Time: at(status)},
			}
		})
	}
	always := true
	for sentence, tc := range map[string]struct {
		before, after *metav1.PartialObjectMetadata
		want          bool
	}{
		"it appears":          {nil, before, true},
		"it is gone":          {before, nil, true},
		"a watch begins":      {before, before, false},
		"a status is written": {before, stripped(func(o *metav1.PartialObjectMetadata) { o.ResourceVersion = "2" }), false},
		"a spec is written": {
			before, stripped(func(o *metav1.PartialObjectMetadata) { o.ResourceVersion, o.Generation = "2", 2 }), true,
		},
		"an annotation is written": {
			before, stripped(func(o *metav1.PartialObjectMetadata) { o.ResourceVersion, o.Annotations["a"] = "2", "c" }), true,
		},
		"an object without a generation is written": {
			stripped(func(o *metav1.PartialObjectMetadata) { o.Generation = 0 }),
			stripped(func(o *metav1.PartialObjectMetadata) { o.ResourceVersion, o.Generation = "2", 0 }), true,
		},
		"a status without a generation is written":               {autoscaler("1", 1, 1), autoscaler("2", 1, 2), false},
		"a spec without a generation is written":                 {autoscaler("1", 1, 1), autoscaler("2", 2, 1), true},
		"a spec and a status without a generation are":           {autoscaler("1", 1, 1), autoscaler("2", 2, 2), true},
		"a spec without a generation is written within a second": {autoscaler("1", 1, 1), autoscaler("2", 1, 1), true},
		"a controller makes it": {
			nil, stripped(func(o *metav1.PartialObjectMetadata) {
				o.OwnerReferences = []metav1.OwnerReference{{Kind: "Deployment", Name: "x", Controller: &always}}
			}), false,
		},
	} {
		if got := concerns(tc.before, tc.after); got != tc.want {
			t.Errorf("%s: concerns is %t", sentence, got)
		}
	}
}
