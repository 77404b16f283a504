// SPDX-License-Identifier: Apache-2.0

package shipyard

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// free is a JSON object.
func free(t *testing.T, text string) shipper.FreeForm {
	t.Helper()
	var out shipper.FreeForm
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// golden compares data with an example of the specification.
func golden(t *testing.T, name string, data shipper.FreeForm) {
	t.Helper()
	want, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(data, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimSpace(string(want)), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// The two JSON examples of the specification: K11, K13, K14, K15 and, unlike Keptn, KS7.
func TestTheSpecificationsExamplesOfData(t *testing.T) {
	deployment := &shipper.Task{Name: "deployment", Properties: free(t, `{"deploymentstrategy": "blue_green"}`)}
	data := Begin(nil, deployment)
	golden(t, "deployment.triggered", data)
	data, err := Report(data, "deployment", []string{"deployment", "test"}, free(t, `{"deployment": {"deploymentURI": `+
		`"https://my-service.domain.com/"}}`))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "test.triggered", Begin(data, &shipper.Task{Name: "test"}))
}

func TestReportsAreMerged(t *testing.T) {
	spaces := []string{"deployment", "test"}
	for sentence, tc := range map[string]struct{ data, reported, want, err string }{
		"maps merge": {
			data: `{"test": {"a": {"x": 1}}}`, reported: `{"test": {"a": {"y": 2}}}`, want: `{"test": {"a": {"x": 1, "y": 2}}}`,
		},
		"lists are replaced (KS8)": {
			data: `{"test": {"a": [1, 2]}}`, reported: `{"test": {"a": [3]}}`, want: `{"test": {"a": [3]}}`,
		},
		"a value takes the place of a map": {
			data: `{"test": {"a": {}}}`, reported: `{"test": {"a": 1}}`, want: `{"test": {"a": 1}}`,
		},
		"a key without a task is merged, too": {
			data: `{"image": {"tag": "a"}}`, reported: `{"image": {"name": "web"}}`, want: `{"image": {"name": "web", "tag": "a"}}`,
		},
		"the space of another task is refused": {
			reported: `{"deployment": {}}`, err: "data.deployment is the space of another task: write into data.test",
		},
		"the result is not written as data": {
			reported: `{"result": "pass"}`, err: "data.result is written by Shipper: leave it out",
		},
		"what earlier tasks of the name wrote stays as is": {
			reported: `{"earlier": {}}`, err: "data.earlier is written by Shipper: leave it out",
		},
		"too much": {
			reported: `{"test": {"a": "` + strings.Repeat("x", MaxData) + `"}}`,
			err:      "256 KiB of data, of 256: put it into a store and pass its URL; task test wrote last",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			var data shipper.FreeForm
			if tc.data != "" {
				data = free(t, tc.data)
			}
			before := data.DeepCopy()
			got, err := Report(data, "test", spaces, free(t, tc.reported))
			text := ""
			if err != nil {
				text = err.Error()
			}
			if diff := cmp.Diff(tc.err, text); diff != "" {
				t.Fatalf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, data); diff != "" {
				t.Errorf("the data before changed:\n%s", diff)
			}
			if tc.err == "" {
				if diff := cmp.Diff(free(t, tc.want), got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			}
		})
	}
}

// KS9, scenario 34: the second test of a sequence begins with its properties only.
func TestARepeatedTaskStartsAfresh(t *testing.T) {
	task := &shipper.Task{Name: "test", Properties: free(t, `{"teststrategy": "performance"}`)}
	data := free(t, `{"test": {"start": "9:00"}, "earlier": {"test": [{"start": "8:00"}]}}`)
	want := free(t, `{"test": {"teststrategy": "performance"}, "earlier": {"test": [{"start": "8:00"}, {"start": "9:00"}]}}`)
	if diff := cmp.Diff(want, Begin(data, task)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// FuzzReport checks that merging keeps what it does not replace, and what is merged twice is as merged once.
func FuzzReport(f *testing.F) {
	f.Add(`{"test": {"a": {"x": 1}}}`, `{"test": {"a": {"y": [2]}}}`)
	f.Add(`{}`, `{"b": null}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		var data, reported shipper.FreeForm
		if json.Unmarshal([]byte(a), &data) != nil || json.Unmarshal([]byte(b), &reported) != nil {
			t.Skip()
		}
		once, err := Report(data, "test", nil, reported)
		if err != nil {
			t.Skip()
		}
		twice, err := Report(once, "test", nil, reported)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(once, twice); diff != "" {
			t.Errorf("the second time changes it:\n%s", diff)
		}
		for key, value := range data {
			if _, also := reported[key]; !also && !cmp.Equal(value, once[key]) {
				t.Errorf("%s was changed to %v", key, once[key])
			}
		}
	})
}
