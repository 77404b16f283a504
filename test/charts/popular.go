// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// PopularFolder names the environment variable with the folder of the popular charts: widely used charts as their projects publish them,
// and a list of them, charts.json. Absent: shared/charts beside the checkout.
const PopularFolder = "SHIPPER_CHARTS"

// ErrNoPopular means that there is no folder of popular charts.
var ErrNoPopular = errors.New("no popular charts: set " + PopularFolder + " to a folder with their archives and charts.json")

// PopularArchive is a chart of others, with the values without which it does not render.
type PopularArchive struct {
	Archive
	Values map[string]any
}

// demanded are the values that charts ask for by themselves, by the chart's name.
var demanded = map[string]map[string]any{
	"opentelemetry-collector": {"mode": "deployment", "image": map[string]any{"repository": "otel/opentelemetry-collector-k8s"}},
	"sonarqube":               {"community": map[string]any{"enabled": true}, "monitoringPasscode": "test"},
}

// EachPopular runs a test in parallel for each popular chart, in a package whose path from the checkout's root is up, as in "../..".
// Without the charts it skips and says so.
func EachPopular(t *testing.T, up string, test func(*testing.T, PopularArchive)) {
	t.Helper()
	all, err := Popular(up)
	if errors.Is(err, ErrNoPopular) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range all {
		t.Run(of.Name, func(t *testing.T) {
			t.Parallel()
			test(t, of)
		})
	}
}

// Popular reads the popular charts in the order of their list, for a folder whose path from the checkout's root is up. It fails when an
// archive is not the one of the list.
func Popular(up string) ([]PopularArchive, error) {
	folder := cmp.Or(os.Getenv(PopularFolder), filepath.Join(up, "..", "shared", "charts"))
	list, err := os.ReadFile(filepath.Join(folder, "charts.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoPopular
	}
	if err != nil {
		return nil, fmt.Errorf("reading the list of popular charts: %w", err)
	}
	var entries []struct{ Name, Version, File, SHA256 string }
	if err := json.Unmarshal(list, &entries); err != nil {
		return nil, fmt.Errorf("reading the list of popular charts: %w", err)
	}
	out := make([]PopularArchive, 0, len(entries))
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(folder, filepath.Base(e.File)))
		if err != nil {
			return nil, fmt.Errorf("reading a popular chart: %w", err)
		}
		archive := NewArchive(e.Name, e.Version, content)
		if archive.Digest != e.SHA256 {
			return nil, fmt.Errorf("popular chart %s: its digest is %s, in the list %s", e.File, archive.Digest, e.SHA256)
		}
		out = append(out, PopularArchive{Archive: archive, Values: demanded[e.Name]})
	}
	return out, nil
}
