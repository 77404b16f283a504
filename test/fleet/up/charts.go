// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/pod"
)

// repositoryFile has the URL of the repository with the user's charts, once it is served.
const repositoryFile = "charts-url"

// changeInterval is how often the user's charts are read again.
const changeInterval = 2 * time.Second

// userCharts packs the charts of a folder: the folder itself if it is a chart, or else each folder in it that is one.
func userCharts(folder string) ([]charts.Archive, error) {
	found, err := filepath.Glob(filepath.Join(folder, "*", "Chart.yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", folder, err)
	}
	if _, err := os.Stat(filepath.Join(folder, "Chart.yaml")); err == nil {
		found = []string{filepath.Join(folder, "Chart.yaml")}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("neither %s nor a folder in it has a Chart.yaml: set CHARTS to a chart, or to a folder of charts", folder)
	}
	var all []charts.Archive
	for _, file := range found {
		chart := filepath.Dir(file)
		archive, err := charts.Pack(os.DirFS(filepath.Dir(chart)), filepath.Base(chart))
		if err != nil {
			return nil, err
		}
		all = append(all, archive)
	}
	return all, nil
}

// serveCharts serves the charts of a folder until ctx ends, as they are on disk. It writes the URL, and an Application for each chart,
// into the folder of Shipper.
func serveCharts(ctx context.Context, s state, folder string) error {
	all, err := userCharts(folder)
	if err != nil {
		return err
	}
	repository, err := charts.Start()
	if err != nil {
		return err
	}
	errs := []error{os.WriteFile(s.file(repositoryFile), []byte(repository.URL), 0o644)}
	for _, archive := range all {
		repository.Publish(archive)
		manifest, err := application(archive, repository.URL)
		errs = append(errs, err, os.WriteFile(s.file(archive.Name+".yaml"), manifest, 0o644))
	}
	if err := errors.Join(errs...); err != nil {
		repository.Close()
		return fmt.Errorf("writing Applications for the charts of %s: %w", folder, err)
	}
	go func() {
		defer repository.Close()
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(changeInterval):
			}
			all, err := userCharts(folder)
			if err != nil {
				fmt.Fprintln(os.Stderr, "charts:", err)
			}
			for _, archive := range all {
				repository.Publish(archive)
			}
		}
	}()
	return nil
}

// application is an Application of a chart, in both clusters, with a canary. Its field order is that of the docs.
func application(chart charts.Archive, repoURL string) ([]byte, error) {
	step := func(name string, contender, incumbent int) map[string]any {
		percent := map[string]any{"contender": contender, "incumbent": incumbent}
		return map[string]any{"name": name, "capacity": percent, "traffic": percent}
	}
	return yaml.Marshal(map[string]any{
		"apiVersion": shipper.GroupVersion.String(), "kind": "Application",
		"metadata": map[string]any{"name": chart.Name},
		"spec": map[string]any{"template": map[string]any{
			"chart":               map[string]any{"name": chart.Name, "version": chart.Version, "repoUrl": repoURL},
			"clusterRequirements": map[string]any{"regions": []any{map[string]any{"name": "eu-west"}, map[string]any{"name": "us-east"}}},
			"strategy":            map[string]any{"steps": []any{step("canary", 50, 50), step("full on", 100, 0)}},
			"values":              map[string]any{},
		}},
	})
}

// supervised runs Shipper's two processes until ctx ends, and starts one again that has ended.
func supervised(ctx context.Context, running *pod.Pod) error {
	for {
		err := lasting(ctx, running.Webhook.Ended, running.Reconciler.Ended)
		if err == nil {
			return nil
		}
		fmt.Fprintln(os.Stderr, "shipper: started again after", err)
		if running.Webhook.Ended() != nil {
			err = running.StartWebhook(ctx)
		} else {
			err = running.StartReconciler(ctx)
		}
		if err != nil {
			return err
		}
	}
}
