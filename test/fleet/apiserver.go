// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"shipper.dev/shipper/test/program"
)

// auditPolicy logs every request of Shipper's accounts and about Shipper's own kinds, and the writes of the administrator and
// of impersonated users to the kinds that are rolled out, with the audit annotations of admission.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users:
  - system:serviceaccount:shipper-system:shipper-mgmt-cluster
  - system:serviceaccount:shipper-system:shipper-app-cluster
- level: Metadata
  resources:
  - group: shipper.booking.com
- level: Metadata
  users: [admin]
  verbs: [create, update, patch]
  resources:
  - {group: "", resources: [pods, services]}
  - {group: apps, resources: [deployments, deployments/scale]}
- level: None
`

// auditPolicyFile is the path of the audit policy.
func (c *Cluster) auditPolicyFile() string {
	return filepath.Join(filepath.Dir(c.credentials.ca), "audit-policy.yaml")
}

// StartAPIServer starts the API server at the same address, with the same data, and returns when it is ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	if err := c.runAPIServer(); err != nil {
		return err
	}
	transport, err := rest.HTTPClientFor(c.Config)
	if err != nil {
		return fmt.Errorf("making a client for %s: %w", c.Name, err)
	}
	return c.wait(ctx, "its API server", func(ctx context.Context) (bool, error) {
		return healthy(ctx, transport, c.Config.Host+"/readyz")
	})
}

func (c *Cluster) runAPIServer() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.port == nil {
		return fmt.Errorf("%s: %w", c.Name, errNotOurs)
	}
	if c.apiServer != nil {
		return fmt.Errorf("%s: the API server is running already", c.Name)
	}
	if err := os.WriteFile(c.auditPolicyFile(), []byte(auditPolicy), 0o644); err != nil {
		return fmt.Errorf("writing the audit policy of %s: %w", c.Name, err)
	}
	var err error
	c.apiServer, err = c.run("kube-apiserver", c.apiServerArgs(c.store.port))
	return err
}

// Recertify restarts the API server with a certificate of another authority, as after a rotation that was not announced to
// clients outside the cluster, and returns the new authority in PEM. Clients of the fleet trust both authorities; service
// accounts do so from now on.
func (c *Cluster) Recertify(ctx context.Context) ([]byte, error) {
	if err := c.StopAPIServer(); err != nil {
		return nil, err
	}
	if err := c.credentials.serve(c.credentials.next); err != nil {
		return nil, err
	}
	if err := c.credentials.write(map[string][]byte{c.credentials.ca: c.credentials.trusted()}); err != nil {
		return nil, err
	}
	if err := c.StartAPIServer(ctx); err != nil {
		return nil, err
	}
	return c.credentials.next.bundle(), c.RestartControllers()
}

// StopAPIServer kills the API server: connections to the cluster are refused until StartAPIServer.
func (c *Cluster) StopAPIServer() error {
	return c.withAPIServer(func(p *program.Process) error {
		c.apiServer = nil
		return p.Kill()
	})
}

// Pause freezes the API server: it accepts connections and does not respond until Resume.
func (c *Cluster) Pause() error {
	return c.withAPIServer(func(p *program.Process) error {
		if err := p.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		transport, err := rest.HTTPClientFor(c.Config)
		if err != nil {
			return fmt.Errorf("making a client for %s: %w", c.Name, err)
		}
		return awaitSilence(transport, c.Config.Host+"/livez")
	})
}

// awaitSilence returns once a URL does not respond: a signal takes time to reach all threads of a program.
func awaitSilence(transport *http.Client, url string) error {
	for began := time.Now(); time.Since(began) < startTimeout; {
		ctx, cancel := context.WithTimeout(context.Background(), 250*time.Millisecond)
		_, err := healthy(ctx, transport, url)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			return nil
		}
	}
	return fmt.Errorf("%s still responds after its server was stopped", url)
}

// Resume ends a Pause.
func (c *Cluster) Resume() error {
	return c.withAPIServer(func(p *program.Process) error { return p.Signal(syscall.SIGCONT) })
}

// withAPIServer calls do, provided that the API server runs and this process started it.
func (c *Cluster) withAPIServer(do func(*program.Process) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.port == nil {
		return fmt.Errorf("%s: %w", c.Name, errNotOurs)
	}
	if c.apiServer == nil {
		return fmt.Errorf("%s: the API server is not running", c.Name)
	}
	return do(c.apiServer)
}

// healthy reports whether a URL responds with 200.
func healthy(ctx context.Context, transport *http.Client, url string) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false, err
	}
	answer, err := transport.Do(request)
	if err != nil {
		return false, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return false, err
	}
	if answer.StatusCode != http.StatusOK {
		return false, fmt.Errorf("%s: %s", answer.Status, failing(string(body)))
	}
	return true, nil
}

// failing names the checks that fail in the response of an API server; any other response stays as it is.
func failing(response string) string {
	var checks []string
	for line := range strings.Lines(response) {
		if check, fails := strings.CutPrefix(line, "[-]"); fails {
			checks = append(checks, strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(check), " failed: reason withheld")))
		}
	}
	if len(checks) == 0 {
		return response
	}
	return "not ready yet: " + strings.Join(checks, ", ")
}
