// SPDX-License-Identifier: Apache-2.0

// Package pod runs Shipper's two binaries as their Pod would: side by side, with the credentials of their service account,
// each with its own probes. It is for tests and the demo, where no kubelet runs them.
package pod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/test/await"
	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/fleet"
)

// Options say what to run.
type Options struct {
	// Management is the cluster that shipperctl has set up.
	Management *fleet.Cluster
	// Bin is the folder of the binaries.
	Bin string
	// Dir is where logs and caches go.
	Dir string
	// WebhookPort is the port of 127.0.0.1 that the webhook configurations point at.
	WebhookPort int
	// WebhookFlags are flags of the webhook beside those that a Pod always has; they win.
	WebhookFlags []string
	// Profiled has both serve profiles, where Process.Profiles says.
	Profiled bool
	// Progress gets a line for each binary that is slow to be ready, or is started again. Default: standard error.
	Progress io.Writer
}

// startTimeout bounds the start of a binary, also on a busy machine. One that exits is not waited for.
const startTimeout = 10 * time.Minute

// Pod is the two running binaries. One that loses its lease is started again.
type Pod struct {
	Webhook, Reconciler *Process

	options    Options
	name       string // as it would have one in a cluster: of its own
	kubeconfig string
}

// WebhookURL is what `shipperctl clusters setup management --webhook-url` is given for a webhook that listens on port.
func WebhookURL(port int) string {
	return fmt.Sprintf("https://localhost:%d", port)
}

// New is a Pod in which nothing runs yet.
func New(ctx context.Context, o Options) (*Pod, error) {
	p := &Pod{options: o, name: "shipper-" + rand.String(10)}
	var err error
	p.kubeconfig, err = o.Management.ServiceAccountKubeconfig(ctx, shipper.SystemNamespace, shipper.ManagementServiceAccount)
	return p, err
}

// Start starts both binaries and waits until both are ready. Started processes are returned also with an error.
func Start(ctx context.Context, o Options) (*Pod, error) {
	p, err := New(ctx, o)
	if err != nil {
		return p, err
	}
	if err := p.StartWebhook(ctx); err != nil {
		return p, err
	}
	return p, p.StartReconciler(ctx)
}

// StartWebhook starts the webhook and waits until it is ready.
func (p *Pod) StartWebhook(ctx context.Context) error {
	var err error
	p.Webhook, err = p.startContainer(ctx, "shipper-webhook", append([]string{
		"--addr", fmt.Sprintf("127.0.0.1:%d", p.options.WebhookPort), "--extra-dns-names", "localhost",
		"--shutdown-delay", "100ms", // no other replica takes over
		"--outgoing-urls", "http://127.0.0.1:*",
	}, p.options.WebhookFlags...)...)
	return err
}

// StartReconciler starts the reconciler, with more flags, and waits until it is ready.
func (p *Pod) StartReconciler(ctx context.Context, flags ...string) error {
	var err error
	p.Reconciler, err = p.startContainer(ctx, "shipper-reconciler", append([]string{
		"--identity", p.name, "--outgoing-urls", "http://127.0.0.1:*",
	}, flags...)...)
	return err
}

// Stop ends what runs.
func (p *Pod) Stop() error {
	var errs []error
	for _, process := range []*Process{p.Reconciler, p.Webhook} {
		if process != nil {
			errs = append(errs, process.Stop())
		}
	}
	return errors.Join(errs...)
}

// startContainer starts one binary and waits for its readiness probe.
func (p *Pod) startContainer(ctx context.Context, name string, args ...string) (*Process, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	metricsPort, err := FreePort()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(p.options.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making a folder for %s: %w", name, err)
	}
	health, metrics := fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("127.0.0.1:%d", metricsPort)
	profiles := ""
	if p.options.Profiled {
		profiling, err := FreePort()
		if err != nil {
			return nil, err
		}
		args = append(args, "--pprof-port", strconv.Itoa(profiling))
		profiles = fmt.Sprintf("http://127.0.0.1:%d/debug/pprof/", profiling)
	}
	process, err := start(name, filepath.Join(p.options.Bin, name), filepath.Join(p.options.Dir, name+".log"), append(args,
		"--kubeconfig", p.kubeconfig,
		"--metrics-addr", metrics,
		"--health-addr", health,
		charts.Flag,
		"--chart-cache-dir", filepath.Join(p.options.Dir, name+"-charts"))...)
	if err != nil {
		return nil, err
	}
	process.Metrics, process.Profiles = "http://"+metrics+"/metrics", profiles
	process.keep(p.progressf)
	return process, process.ready(ctx, p.progressf, "http://"+health+"/readyz")
}

// progressf writes a line of progress.
func (p *Pod) progressf(format string, args ...any) {
	to := p.options.Progress
	if to == nil {
		to = os.Stderr
	}
	fmt.Fprintf(to, format+"\n", args...)
}

// ready waits until url answers 200, and says so while that takes long.
func (p *Process) ready(ctx context.Context, progressf func(string, ...any), url string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	report := await.Progress(progressf, p.Name+" to be ready")
	var ended error
	err := await.Until(ctx, p.Name+" to be ready", func(ctx context.Context) error {
		if ended = p.Ended(); ended != nil {
			cancel()
			return ended
		}
		err := answers(ctx, url)
		report(err)
		return err
	})
	if ended != nil {
		return ended
	}
	if err != nil {
		return fmt.Errorf("%w:\n%s", err, p.Tail())
	}
	return nil
}

func answers(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}
