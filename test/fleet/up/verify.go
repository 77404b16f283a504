// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"

	"shipper.dev/shipper/cmd/shipperctl/health"
	"shipper.dev/shipper/cmd/shipperctl/install"
	"shipper.dev/shipper/test/await"
)

// Bounds of the checks before a fleet or Shipper is reported as up.
const (
	answerTimeout = 30 * time.Second       // of one API server
	probeTimeout  = 2 * time.Minute        // until the API server calls the webhook that has just started
	probeInterval = 250 * time.Millisecond // between two calls
	watchInterval = time.Second            // between two checks of Shipper's processes
)

// verify sends a request to every API server of the fleet.
func (s state) verify(ctx context.Context) error {
	config, err := clientcmd.LoadFromFile(s.file("kubeconfig"))
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the fleet: %w", err)
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(config.Contexts)) {
		rest, err := clientcmd.NewNonInteractiveClientConfig(*config, name, nil, nil).ClientConfig()
		if err != nil {
			return fmt.Errorf("context %s: %w", name, err)
		}
		rest.Timeout = answerTimeout
		client, err := discovery.NewDiscoveryClientForConfig(rest)
		if err != nil {
			return fmt.Errorf("context %s: %w", name, err)
		}
		if _, err := client.ServerVersionWithContext(ctx); err != nil {
			errs = append(errs, fmt.Errorf("the API server of %s at %s does not answer: %w", name, rest.Host, err))
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("the fleet in %s was started, but is not up: %w\nIts logs are in %s. Run `make fleet-down`, then `make fleet-up`",
			s, errors.Join(errs...), s.file("logs"))
	}
	return nil
}

// verifyWebhook calls the webhook of Shipper through the API server.
func (s state) verifyWebhook(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", s.file("kubeconfig"))
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the fleet: %w", err)
	}
	client, err := install.NewClient(config)
	if err != nil {
		return err
	}
	last := time.After(probeTimeout)
	report := await.Progress(func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }, "the webhook")
	for {
		err := health.ProbeError(health.ProbeWebhooks(ctx, client))
		if err == nil {
			return nil
		}
		report(err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-last:
			return fmt.Errorf("webhook and reconciler were started, but are not up: %w\nTheir logs are in %s. "+
				"Has the management cluster the URL of this webhook? Run `shipperctl clusters setup management "+
				"--webhook-url \"$WEBHOOK_URL\"` and `make shipper-up` again", err, s.shipper())
		case <-time.After(probeInterval):
		}
	}
}

// lasting returns when ctx ends, or with an error when any of the processes has ended.
func lasting(ctx context.Context, ended ...func() error) error {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			for _, err := range ended {
				if err := err(); err != nil {
					return err
				}
			}
		}
	}
}
