// SPDX-License-Identifier: Apache-2.0

package troubleshooting

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/pod"
)

// metric finds the names of metrics in a text. Parts of a histogram stand for the whole.
var metric = regexp.MustCompile(`\b((?:shipper_webhook|controller_runtime|workqueue|leader_election|rest_client)_[a-z_]+?)` +
	`(?:_bucket|_count|_sum)?\b`)

// unseen are metrics that are there only after something bad has happened.
var unseen = map[string]bool{"shipper_webhook_panics_total": true}

// TestMetricsOfTheOperationsGuideAreServed runs both binaries with their metrics and looks for each that the guide names.
func TestMetricsOfTheOperationsGuideAreServed(t *testing.T) {
	u := begin(t)
	text, err := os.ReadFile("../../docs/operations.md")
	u.must("reading the guide", err)
	named := metric.FindAllStringSubmatch(string(text), -1)
	if len(named) < 15 {
		t.Fatalf("the guide names %d metrics", len(named))
	}

	u.must("stopping the pod", world.pod.Stop())
	webhook := u.serves("shipper-webhook", "--addr", fmt.Sprintf("127.0.0.1:%d", world.port), "--extra-dns-names", "localhost")
	reconciler := u.serves("shipper-reconciler")
	u.eventually("a rehearsed change", "admitted", u.probe)
	u.eventually("metrics that the guide names and nobody serves", "none", func() (string, error) {
		served := map[string]bool{}
		for _, url := range []string{webhook, reconciler} {
			page, err := read(u.ctx, url)
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

// serves starts a binary that serves metrics, for the time of the test, and puts the pod's back after it.
func (u *user) serves(name string, args ...string) (url string) {
	u.Helper()
	kubeconfig, err := world.fleet.Management.ServiceAccountKubeconfig(u.ctx, shipper.SystemNamespace, shipper.ManagementServiceAccount)
	u.must("making a kubeconfig", err)
	port, err := pod.FreePort()
	u.must("finding a port", err)
	ctx, stop := context.WithCancel(context.Background())
	address := fmt.Sprintf("127.0.0.1:%d", port)
	cmd := exec.CommandContext(ctx, filepath.Join(world.dir, name), append(args, "--kubeconfig", kubeconfig, "--health-addr", "0",
		"--metrics-addr", address, charts.Flag, "--chart-cache-dir", filepath.Join(world.dir, name+"-charts"))...)
	u.must("starting "+name, cmd.Start())
	u.Cleanup(func() {
		stop()
		_ = cmd.Wait()
		again := world.pod.StartWebhook
		if strings.HasSuffix(name, "reconciler") {
			again = func(ctx context.Context) error { return world.pod.StartReconciler(ctx) }
		}
		if err := again(context.Background()); err != nil {
			u.Error(err)
		}
	})
	return "http://" + address + "/metrics"
}

// read reads a page.
func read(ctx context.Context, url string) (string, error) {
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
