// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/pod"
)

// setUp sets the management cluster up and starts the two programs.
func (s *fixture) setUp(ctx context.Context) error {
	port, err := pod.FreePort()
	if err != nil {
		return err
	}
	if _, err := s.show(ctx, s.shipperctl, "clusters", "setup", "management", "--webhook-url", pod.WebhookURL(port)); err != nil {
		return err
	}
	// The garbage collector learns of new kinds every 30 s; the story does not wait for it.
	if err := s.fleet.Management.RestartControllers(); err != nil {
		return err
	}
	return s.startShipper(ctx, port)
}

// joinClusters joins clusters and waits until they are in service.
func (s *fixture) joinClusters(ctx context.Context, which []region) error {
	file := filepath.Join(s.dir, "clusters.yaml")
	if err := os.WriteFile(file, []byte(clustersYAML(s.fleet.Management.Name, which)), 0o600); err != nil {
		return fmt.Errorf("writing clusters.yaml: %w", err)
	}
	if _, err := s.show(ctx, s.shipperctl, "clusters", "join", "-f", file); err != nil {
		return err
	}
	want := strings.TrimSpace(strings.Repeat("True ", len(which)))
	if err := s.await(ctx, patience, "clusters are in service", want, func(ctx context.Context) (string, error) {
		var ready []string
		for _, r := range which {
			cluster := &shipper.Cluster{}
			if err := s.management.Get(ctx, client.ObjectKey{Name: r.cluster}, cluster); err != nil {
				return "", err
			}
			if condition := shipper.FindCondition(cluster.Status.Conditions, shipper.ClusterReady); condition != nil {
				ready = append(ready, strings.TrimSpace(string(condition.Status)+" "+condition.Message))
			}
		}
		return strings.Join(ready, " "), nil
	}); err != nil {
		return err
	}
	s.fact("%d application clusters are in service", len(which))
	return nil
}
