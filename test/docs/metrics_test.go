// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// metric finds the names of metrics in a text. Parts of a histogram stand for the whole.
var metric = regexp.MustCompile(`\b((?:shipper_webhook|controller_runtime|workqueue|leader_election|rest_client)_[a-z_]+?)` +
	`(?:_bucket|_count|_sum)?\b`)

// unseen are metrics that are there only after something bad has happened.
var unseen = map[string]bool{"shipper_webhook_panics_total": true}

// TestMetricsOfTheOperationsGuideAreServed looks in what both binaries serve for each metric that the guide names.
func TestMetricsOfTheOperationsGuideAreServed(t *testing.T) {
	u := begin(t)
	text, err := os.ReadFile(filepath.Join(root, "docs/operations.md"))
	u.Must("reading the guide", err)
	named := metric.FindAllStringSubmatch(string(text), -1)
	if len(named) < 15 {
		t.Fatalf("the guide names %d metrics", len(named))
	}

	u.Eventually("a rehearsed change", "admitted", u.probe)
	u.Eventually("metrics that the guide names and no process serves", "none", func() (string, error) {
		served := map[string]bool{}
		for _, url := range metricsURLs(t) {
			page, err := fetch(u.Ctx, url)
			if err != nil {
				return "", err
			}
			for _, m := range metric.FindAllStringSubmatch(page, -1) {
				served[m[1]] = true
			}
		}
		for _, m := range named {
			if !served[m[1]] && !unseen[m[1]] {
				return m[1], nil
			}
		}
		return "none", nil
	})
}

// fetch returns a page.
func fetch(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	return string(page), err
}
