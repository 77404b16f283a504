// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/chart/objects"
	"shipper.dev/shipper/chart/repository"
	"shipper.dev/shipper/chart/values"
	"shipper.dev/shipper/test/charts"
)

// storedRelease is the Release that the objects of testdata belong to.
func storedRelease() *shipper.Release {
	out := release("web-0123456789-0", "")
	out.UID, out.Labels = "release", map[string]string{shipper.AppLabel: "web"}
	out.Spec.Environment = shipper.ReleaseEnvironment{
		Chart: shipper.Chart{Name: "web", Version: "1.0.0", RepoURL: "https://charts.example.com"},
		ValuesFrom: []shipper.ValuesSource{
			{ConfigMapKeyRef: &shipper.ValuesKeyRef{Name: "web", Key: "values.yaml"}},
			{SecretKeyRef: &shipper.ValuesKeyRef{Name: "web", Key: "values.yaml"}},
		},
	}
	return out
}

// storedParts are the content in testdata.
func storedParts(t *testing.T) []objects.Part {
	t.Helper()
	var list []unstructured.Unstructured
	for _, kind := range []string{"ConfigMap", "Secret"} {
		list = append(list, unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "web", "namespace": "work"},
			"data": map[string]any{"x": "eA=="},
		}})
	}
	parts, err := objects.Split(list)
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

// readStored are the objects that the versions before package artifact wrote.
func readStored(t *testing.T, name string) []client.Object {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var out []client.Object
	for _, document := range strings.Split(string(text), "---\n")[1:] {
		var kind metav1.TypeMeta
		var o client.Object
		_ = yaml.Unmarshal([]byte(document), &kind)
		switch kind.Kind {
		case "ChartSnapshot":
			o = &shipper.ChartSnapshot{}
		case "ResourceSnapshot":
			o = &shipper.ResourceSnapshot{}
		default:
			o = &corev1.Secret{}
		}
		if err := yaml.UnmarshalStrict([]byte(document), o); err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
	return out
}

// storage is a management cluster that gives objects their names as UIDs.
func storage(t *testing.T, there ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(shipper.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	for _, o := range there {
		o.SetResourceVersion("")
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(there...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, to client.WithWatch, o client.Object, options ...client.CreateOption) error {
			o.SetUID(types.UID(o.GetName()))
			return to.Create(ctx, o, options...)
		},
	}).Build()
}

// digestOfStored is that of the set in a file of testdata.
func digestOfStored(t *testing.T, file string) string {
	t.Helper()
	switch o := readStored(t, file)[0].(type) {
	case *shipper.ChartSnapshot:
		return o.Spec.Digest
	case *shipper.ResourceSnapshot:
		return o.Spec.Digest
	default:
		t.Fatalf("%s has a %T first", file, o)
		return ""
	}
}

// TestWhatEarlierVersionsStoredIsRead is about an upgrade.
func TestWhatEarlierVersionsStoredIsRead(t *testing.T) {
	catalog := repository.NewCatalog(t.Context(), repository.Options{Repositories: charts.Policy(t)}) // the repository does not exist
	digest := digestOfStored(t, "chart.yaml")
	loaded, err := NewCharts(catalog, storage(t, readStored(t, "chart.yaml")...)).
		Load(t.Context(), "work", storedRelease().Spec.Environment.Chart, digest)
	if err != nil || loaded.Digest() != digest {
		t.Errorf("a chart: %v", err)
	}

	c := storage(t, readStored(t, "resources.yaml")...)
	content, err := NewResources(c, c).Content(t.Context(), "work", digestOfStored(t, "resources.yaml"))
	if err != nil || len(content) != 2 {
		t.Errorf("content of resources: %d objects, %v", len(content), err)
	}

	pinned := values.PinnedOf(storedRelease())
	pinned.Digests, err = pinned.DigestsOf(values.Held{
		pinned.From[0].String(): []byte("replicas: 2\n"), pinned.From[1].String(): []byte("token: t\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	c = storage(t, readStored(t, "values.yaml")...)
	got, err := NewValues(c, c, "shipper-system").Of(t.Context(), pinned)
	if diff := gocmp.Diff(map[string]any{"replicas": int64(2), "token": "t"}, got); diff != "" || err != nil {
		t.Errorf("values: %v (-want +got)\n%s", err, diff)
	}
}

// TestWhatIsStoredIsWhatEarlierVersionsStored is about the way back from an upgrade: an earlier version reads it as its own.
func TestWhatIsStoredIsWhatEarlierVersionsStored(t *testing.T) {
	for file, store := range map[string]func(client.Client) error{
		"chart.yaml": func(c client.Client) error {
			catalog := repository.NewCatalog(t.Context(), repository.Options{Repositories: charts.Policy(t)})
			earlier := NewCharts(catalog, storage(t, readStored(t, "chart.yaml")...)) // the bytes come from there
			rel := storedRelease()
			rel.Annotations = map[string]string{shipper.ReleaseChartDigestAnnotation: digestOfStored(t, "chart.yaml")}
			return (&chartKeeper{set: set{chartSnapshot, c}, charts: earlier}).store(t.Context(), rel)
		},
		"resources.yaml": func(c client.Client) error {
			return NewResources(c, c).Keep(t.Context(), app(), nil, storedParts(t))
		},
		"values.yaml": func(c client.Client) error {
			pinned := values.PinnedOf(storedRelease())
			held := values.Held{pinned.From[0].String(): []byte("replicas: 2\n"), pinned.From[1].String(): []byte("token: t\n")}
			return NewValues(c, c, "shipper-system").keep(t.Context(), pinned, held)
		},
	} {
		c := storage(t, storedRelease())
		for range 2 { // the second time it is there
			if err := store(c); err != nil && (file != "values.yaml" || !strings.Contains(err.Error(), "holds something else")) {
				t.Fatalf("%s: %v", file, err)
			}
		}
		if diff := gocmp.Diff(describe(readStored(t, file)), describe(stored(t, c))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", file, diff)
		}
	}
}

// stored are the objects of all kinds of artifacts in a cluster.
func stored(t *testing.T, c client.Client) []client.Object {
	t.Helper()
	var charts shipper.ChartSnapshotList
	var resources shipper.ResourceSnapshotList
	var secrets corev1.SecretList
	if err := errors.Join(c.List(t.Context(), &charts), c.List(t.Context(), &resources), c.List(t.Context(), &secrets)); err != nil {
		t.Fatal(err)
	}
	var out []client.Object
	for i := range charts.Items {
		out = append(out, &charts.Items[i])
	}
	for i := range resources.Items {
		out = append(out, &resources.Items[i])
	}
	for i := range secrets.Items {
		out = append(out, &secrets.Items[i])
	}
	return out
}

// describe is the YAML of objects, without what the API server sets.
func describe(list []client.Object) string {
	slices.SortStableFunc(list, func(a, b client.Object) int { return cmp.Compare(a.GetName(), b.GetName()) })
	var out bytes.Buffer
	for _, o := range list {
		o.SetResourceVersion("")
		o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // lists have none
		text, _ := yaml.Marshal(o)
		out.WriteString("---\n" + string(text))
	}
	return out.String()
}

// TestNamesOfTheSecondPart has the names that all versions use.
func TestNamesOfTheSecondPart(t *testing.T) {
	head := &shipper.ChartSnapshot{Spec: shipper.ChartSnapshotSpec{Digest: "cafe", Parts: 2}}
	got := partsOf(head, make([]byte, shipper.MaxChartPartBytes+1))
	if len(got) != 2 || got[1].Name != "sha256-cafe-2" || got[1].Spec.Part != 2 || len(got[1].Spec.Data) != 1 {
		t.Errorf("%d parts, of which the last is %s", len(got), got[len(got)-1].Name)
	}
	var kinds []string
	for _, snapshot := range snapshotsOf("work", many(t)) {
		kinds = append(kinds, snapshot.Name[len(snapshot.Name)-2:])
	}
	if diff := gocmp.Diff([]string{"-1", "-2", "-3"}, kinds); diff != "" {
		t.Errorf("content of resources (-want +got)\n%s", diff)
	}
}
