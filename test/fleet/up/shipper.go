// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/fleet"
	"shipper.dev/shipper/test/pod"
)

// shipper is the folder of Shipper on the fleet.
func (s state) shipper() state { return state(s.file("shipper")) }

// startShipper runs Shipper's binaries in the background, where a kubelet would run the Pods of the Deployment.
func (s state) startShipper(ctx context.Context, bin, folder string) error {
	if _, err := os.Stat(s.file(ready)); err != nil {
		return errors.New("no fleet is up: run `make fleet-up` first")
	}
	if err := s.verify(ctx); err != nil {
		return err
	}
	if err := s.shipper().up(ctx, "-shipper", "-dir", string(s), "-bin", bin, "-charts", folder); err != nil {
		return err
	}
	if err := s.verifyWebhook(ctx); err != nil {
		return err
	}
	fmt.Printf("Shipper is up: webhook and reconciler. Their logs are in %s.\n", s.shipper())
	return nil
}

// serveShipper runs Shipper's binaries until ctx ends, and serves the charts of a folder, if one is named.
func serveShipper(ctx context.Context, s state, bin, chartFolder string) (err error) {
	folder := s.shipper()
	lock, err := folder.claim()
	if err != nil {
		return err
	}
	defer lock.Close()
	f, err := fleet.Open(s.file("kubeconfig"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Stop()) }()
	mirror, err := mirrored(folder)
	if err != nil {
		return err
	}
	defer mirror.Close()
	if chartFolder != "" {
		if err := serveCharts(ctx, folder, chartFolder); err != nil {
			return err
		}
	}
	port, err := s.webhookPort()
	if err != nil {
		return err
	}
	running, err := pod.Start(ctx, pod.Options{Management: f.Management, Bin: bin, Dir: string(folder), WebhookPort: port})
	if err != nil {
		return errors.Join(fmt.Errorf("starting Shipper; was `shipperctl clusters setup management` run? %w", err), running.Stop())
	}
	if err := os.WriteFile(folder.file(ready), nil, 0o644); err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", ready, err), running.Stop())
	}
	run := func() error { return lasting(ctx, running.Webhook.Ended, running.Reconciler.Ended) }
	if chartFolder != "" {
		run = func() error { return supervised(ctx, running) }
	}
	if err := run(); err != nil {
		return errors.Join(err, running.Stop(), os.RemoveAll(folder.file(ready)))
	}
	return errors.Join(running.Stop(), folder.clear())
}

// mirrored serves the chart repositories of the examples to programs that this process starts from now on, so that they need no
// network.
func mirrored(folder state) (*charts.Mirror, error) {
	mirror, err := charts.StartMirror(charts.Public, charts.Examples)
	if err != nil {
		return nil, err
	}
	trusted := folder.file("charts.crt")
	err = errors.Join(os.WriteFile(trusted, mirror.Authority, 0o644), os.WriteFile(folder.file("proxy"), []byte(mirror.Proxy), 0o644))
	if err != nil {
		mirror.Close()
		return nil, fmt.Errorf("writing where charts are: %w", err)
	}
	// Go reads the system's folders of certificates beside the file that is named.
	return mirror, errors.Join(os.Setenv("HTTPS_PROXY", mirror.Proxy), os.Setenv("SSL_CERT_FILE", trusted))
}

// webhookPort returns the port for the webhook.
func (s state) webhookPort() (int, error) {
	text, err := os.ReadFile(s.file(webhookPort))
	if err != nil {
		return 0, fmt.Errorf("reading the port of the webhook: %w", err)
	}
	port, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("reading the port of the webhook: %w", err)
	}
	return port, nil
}

// directions describe how to use the fleet.
func (s state) directions() string {
	return fmt.Sprintf(`The fleet is up: contexts mgmt, eu-west-1 and us-east-1.

  export KUBECONFIG=%s

or, for KUBECONFIG, FLEET and WEBHOOK_URL, and for shipperctl and kubectl in PATH:

  eval "$(make -s fleet-env)"
  shipperctl clusters setup management --webhook-url "$WEBHOOK_URL"
  make shipper-up
  shipperctl clusters join -f "$FLEET/%s"
`, s.file("kubeconfig"), clustersFile)
}

// printEnvironment prints commands for a shell to evaluate.
func (s state) printEnvironment(bin string) error {
	port, err := s.webhookPort()
	if err != nil {
		return fmt.Errorf("no fleet is up: %w", err)
	}
	kubectl, err := fleet.Kubectl()
	if err != nil {
		return err
	}
	for _, v := range [][2]string{
		{"FLEET", string(s)}, {"KUBECONFIG", s.file("kubeconfig")}, {"WEBHOOK_URL", pod.WebhookURL(port)},
	} {
		fmt.Printf("export %s=%s\n", v[0], quoted(v[1]))
	}
	fmt.Printf("export PATH=%s:\"$PATH\"\n", quoted(bin+":"+filepath.Dir(kubectl)))
	return nil
}

// quoted quotes a word for a shell.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
