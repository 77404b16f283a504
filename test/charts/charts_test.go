// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chartutil"

	"shipper.dev/shipper/test/charts"
)

// TestDigestsAreStable fails when a chart changes: a version once published must not, so give it a new one, or bring
// the digest here up to date when nothing was released with it.
func TestDigestsAreStable(t *testing.T) {
	first, err := charts.All()
	if err != nil {
		t.Fatal(err)
	}
	again, err := charts.All()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Error(diff)
	}
	nginx, err := charts.Get("nginx", "0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	const want = "225748da0956f9e20fb601f1d54282496920fa7c207ccc4b0df426f4be65011a"
	if nginx.Digest != want {
		t.Errorf("nginx 0.0.1 has the digest %s, want %s", nginx.Digest, want)
	}
}

// TestHelloWorldIsAsHelmCreatesIt fails when Helm creates charts of another kind: bring the folder up to date.
func TestHelloWorldIsAsHelmCreatesIt(t *testing.T) {
	folder := t.TempDir()
	if _, err := chartutil.Create("hello-world", folder); err != nil {
		t.Fatal(err)
	}
	created, err := charts.Pack(os.DirFS(folder), "hello-world")
	if err != nil {
		t.Fatal(err)
	}
	got, err := charts.Get("hello-world", "0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	if got.Digest != created.Digest {
		t.Error("the chart hello-world is not what `helm create hello-world` makes: copy its files into the folder")
	}
}

func TestGetRefusesWhatIsNotThere(t *testing.T) {
	if _, err := charts.Get("nginx", "9.9.9"); err == nil {
		t.Error("no error")
	}
}

func TestRepositoryBreaksAndHeals(t *testing.T) {
	r := charts.Serve(t)
	status := func(file string) int {
		t.Helper()
		response, err := http.Get(r.URL + "/" + file)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		_, _ = io.Copy(io.Discard, response.Body)
		return response.StatusCode
	}
	got := map[charts.Fault]int{}
	for _, fault := range []charts.Fault{
		charts.Missing, charts.Gone, charts.Unavailable, charts.EmptyIndex, charts.EmptyFile, charts.NotYAML, charts.HTML, charts.Healthy,
	} {
		r.Break(fault)
		got[fault] = status("index.yaml")
	}
	want := map[charts.Fault]int{
		charts.Missing: 404, charts.Gone: 410, charts.Unavailable: 503, charts.EmptyIndex: 200, charts.EmptyFile: 200,
		charts.NotYAML: 200, charts.HTML: 200, charts.Healthy: 200,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := status("nginx-0.0.1.tgz"); got != 200 {
		t.Errorf("an archive answers %d", got)
	}
	r.Withdraw("nginx", "")
	if got := status("nginx-0.0.1.tgz"); got != 404 {
		t.Errorf("a withdrawn archive answers %d", got)
	}
	if got, want := []int{r.Requests(".tgz"), r.Requests("index.yaml"), r.Answers(410)}, []int{2, 8, 1}; !cmp.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}
