// SPDX-License-Identifier: Apache-2.0

// Package promserver starts a real Prometheus, which hack/prometheus downloads or builds once, and an application with metrics for
// it to scrape.
package promserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"sigs.k8s.io/yaml"

	"shipper.dev/shipper/test/program"
)

const (
	// ScrapeInterval is how often Prometheus reads each target.
	ScrapeInterval = time.Second
	// buildScript finds, downloads or builds Prometheus, and prints its folder.
	buildScript = "hack/prometheus/build.sh"
	// startTimeout bounds a start without the build, also on a busy machine.
	startTimeout = time.Minute
	// stopTimeout is how long Prometheus may take to stop before it is killed. It takes less than a second on an idle
	// machine.
	stopTimeout = 20 * time.Second
)

// Target is what Prometheus scrapes: the path /metrics of a host and port.
type Target struct {
	// Address is host:port.
	Address string
	// Labels are added to all series of the target. Where a metric has a label of the same name, that becomes
	// exported_<name>.
	Labels map[string]string
}

// Server is a Prometheus on 127.0.0.1. It can be stopped and started at the same address. Its methods are not safe
// for concurrent use, except URL and Query.
type Server struct {
	path   string // of the executable
	folder string
	port   *program.Port

	process *program.Process // nil while stopped
}

// Start starts a Prometheus that scrapes some targets, and returns when it is ready. The folder gets its
// configuration, its data and its log, prometheus.log. ctx bounds the start alone: Prometheus runs until Stop or
// Close, or until this process exits in any way.
func Start(ctx context.Context, folder string, targets ...Target) (*Server, error) {
	programs, err := program.Build(ctx, os.Stderr, buildScript)
	if err != nil {
		return nil, fmt.Errorf("prometheus: %w", err)
	}
	s := &Server{path: filepath.Join(programs, "prometheus"), folder: folder}
	if err := os.WriteFile(s.configFile(), configuration(targets), 0o644); err != nil {
		return nil, fmt.Errorf("configuring Prometheus: %w", err)
	}
	if s.port, err = program.ReservePort(); err != nil {
		return nil, err
	}
	if err := s.Start(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// URL is the address of Prometheus' API, without a slash at the end. It stays the same when Prometheus is stopped and
// started.
func (s *Server) URL() string { return "http://" + s.port.Address() }

// Start starts a stopped Prometheus at the same address, with the data it had, and returns when it is ready. ctx
// bounds the start alone.
func (s *Server) Start(ctx context.Context) error {
	if s.process != nil {
		return errors.New("prometheus runs already")
	}
	// None of the caller's variables: a proxy must not be used between Prometheus and a target on this machine.
	environment := []string{"HOME=" + s.folder, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}
	var err error
	s.process, err = program.Start("prometheus", filepath.Join(s.folder, "prometheus.log"), environment, s.path,
		"--config.file="+s.configFile(),
		"--storage.tsdb.path="+filepath.Join(s.folder, "data"),
		"--web.listen-address="+s.port.Address(),
		"--log.level=warn",
	)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := s.awaitReady(ctx); err != nil {
		return errors.Join(err, s.Stop())
	}
	return nil
}

// awaitReady polls until Prometheus is ready, exits, or ctx ends.
func (s *Server) awaitReady(ctx context.Context) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		_, err := s.get(ctx, "/-/ready")
		if err == nil {
			return nil
		}
		select {
		case <-s.process.Done():
			return errors.New("prometheus is not ready") // Stop says why
		case <-ctx.Done():
			return s.process.Explain(fmt.Errorf("waiting for Prometheus to be ready: %w", errors.Join(context.Cause(ctx), err)))
		case <-ticker.C:
		}
	}
}

// Stop stops Prometheus: connections are refused until Start. It returns an error if Prometheus had exited before on
// its own. A stopped Prometheus stays stopped.
func (s *Server) Stop() error {
	if s.process == nil {
		return nil
	}
	err := program.Stop(stopTimeout, s.process)
	s.process = nil
	return err
}

// Close stops Prometheus for good and releases its port. The files in its folder stay.
func (s *Server) Close() error {
	defer s.port.Release()
	return s.Stop()
}

// Query evaluates a PromQL expression now. It returns an error unless the result is a scalar or a vector of one
// sample.
func (s *Server) Query(ctx context.Context, expression string) (float64, error) {
	body, err := s.get(ctx, "/api/v1/query?"+url.Values{"query": {expression}}.Encode())
	if err != nil {
		return 0, err
	}
	var response struct {
		Data struct {
			Type   string          `json:"resultType"`
			Result json.RawMessage `json:"result"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &response); err != nil {
		return 0, fmt.Errorf("reading the response to %s: %w", expression, err)
	}
	var value [2]any // seconds and the value as a string
	if response.Data.Type == "scalar" {
		err = json.Unmarshal(response.Data.Result, &value)
	} else {
		var vector []struct {
			Value [2]any `json:"value"`
		}
		err = json.Unmarshal(response.Data.Result, &vector)
		if len(vector) == 1 {
			value = vector[0].Value
		}
	}
	text, ok := value[1].(string)
	if err != nil || !ok {
		return 0, errors.Join(fmt.Errorf("%s is not one number: %s", expression, body), err)
	}
	return strconv.ParseFloat(text, 64)
}

// get returns the body of a path of Prometheus, or an error unless the status is 200.
func (s *Server) get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("prometheus responds %s to %s: %s", response.Status, path, body)
	}
	return body, err
}

func (s *Server) configFile() string { return filepath.Join(s.folder, "prometheus.yaml") }

// configuration is Prometheus' configuration file for some targets.
func configuration(targets []Target) []byte {
	groups := []map[string]any{}
	for _, target := range targets {
		groups = append(groups, map[string]any{"targets": []string{target.Address}, "labels": target.Labels})
	}
	text, err := yaml.Marshal(map[string]any{
		"global": map[string]any{
			"scrape_interval": ScrapeInterval.String(), "scrape_timeout": ScrapeInterval.String(),
		},
		"scrape_configs": []map[string]any{{"job_name": "applications", "static_configs": groups}},
	})
	if err != nil {
		panic(err) // strings, maps and lists can be written as YAML
	}
	return text
}
