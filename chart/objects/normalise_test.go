// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// goldens calls a function with the live and the placed object of each file of testdata/normalise.
func goldens(t *testing.T, f func(t *testing.T, live, placed unstructured.Unstructured)) {
	t.Helper()
	files, err := filepath.Glob("testdata/normalise/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			live, placed, found := strings.Cut(string(content), "\n---\n")
			if !found {
				t.Fatal("the file has one document")
			}
			f(t, object(t, live), object(t, placed))
		})
	}
}

func TestNormaliseGivesWhatIsPlaced(t *testing.T) {
	goldens(t, func(t *testing.T, live, placed unstructured.Unstructured) {
		if diff := cmp.Diff(placed.Object, Normalise(&live).Object); diff != "" {
			t.Error(diff)
		}
	})
}

func TestNormaliseTwiceIsNormaliseOnce(t *testing.T) {
	goldens(t, func(t *testing.T, _, placed unstructured.Unstructured) {
		if diff := cmp.Diff(placed.Object, Normalise(&placed).Object); diff != "" {
			t.Error(diff)
		}
	})
}

func TestNormaliseDoesNotChangeTheObjectOfACache(t *testing.T) {
	goldens(t, func(t *testing.T, live, _ unstructured.Unstructured) {
		before := live.DeepCopy()
		Normalise(&live)
		if diff := cmp.Diff(before.Object, live.Object); diff != "" {
			t.Error(diff)
		}
	})
}

func TestEveryRuleHasAReasonAndAnEffect(t *testing.T) {
	for _, r := range append(serverRules, liveRules...) {
		if r.reason == "" {
			t.Errorf("the rule for %v has no reason", r.kinds)
		}
		changed := false
		goldens(t, func(_ *testing.T, live, _ unstructured.Unstructured) {
			changed = changed || !cmp.Equal(live.Object, apply(&live, []rule{r}).Object)
		})
		if !changed {
			t.Errorf("no file shows the rule %q", r.reason)
		}
	}
}

// TestNormaliseAcceptsFieldsOfOtherTypes has the shapes that a custom resource or a damaged object may have.
func TestNormaliseAcceptsFieldsOfOtherTypes(t *testing.T) {
	for _, text := range []string{
		`{apiVersion: v1, kind: Service, metadata: {name: a, annotations: 3, labels: []}, spec: {ports: {}, clusterIP: 7}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: [1]}`,
		`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: [], manualSelector: "yes", selector: 1}}`,
		`{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, secrets: [1, {name: 2}, null]}`,
		`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, annotations: {pv.kubernetes.io/bound-by-controller: 1}}}`,
		`{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}, spec: {claimRef: null}}`,
	} {
		o := object(t, text)
		if got := Normalise(&o); got.GetName() != "a" {
			t.Errorf("%s becomes %v", text, got.Object)
		}
	}
}
