// SPDX-License-Identifier: Apache-2.0

// Package env is what the tests on real control planes share: a fleet, with Shipper installed where a package asks for it; waits;
// Applications; and one test's namespace, in which an Application is rolled out.
package env

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/cmd/shipperctl/install"
	"shipper.dev/shipper/test/charts"
	"shipper.dev/shipper/test/fleet"
	"shipper.dev/shipper/test/pod"
)

// startTimeout bounds the start of everything, also on a busy machine where the binaries have to be built.
const startTimeout = 15 * time.Minute

// interrupted is the exit code of a program that SIGINT has ended.
const interrupted = 130

// Env is a fleet and what runs beside it.
type Env struct {
	// Dir has the binaries, and is where Shipper's logs and caches go. It is removed at the end.
	Dir string
	// Fleet is a management cluster and its application clusters.
	Fleet *fleet.Fleet
	// Management and Clusters are the administrator's clients; Clusters by the names of the application clusters.
	Management client.WithWatch
	Clusters   map[string]client.WithWatch
	// Charts is the repository of test/charts.
	Charts *charts.Repository
	// Pod is Shipper, nil until StartPod. It ends before all else.
	Pod *pod.Pod
	// PodOptions say how StartPod runs it.
	PodOptions pod.Options

	mu      sync.Mutex
	closers []func() error
}

// Options say what Main starts.
type Options struct {
	// Fleet is the fleet. Its Dir is chosen by Main.
	Fleet fleet.Options
	// Binaries are the names of those to build into Env.Dir; none by default. A package that builds has a test of pod.ReadCode.
	Binaries []string
	// SetUp is called when the fleet is up, if it is not nil. Its context ends with the tests. What it starts it hands to Env.AtEnd.
	SetUp func(context.Context, *Env) error
	// Nightly says, of a package that `make test` leaves to `make nightly`, why. Its tests do not run otherwise.
	Nightly string
	// Check is called after the tests, if it is not nil. Its error makes them fail.
	Check func() error
}

// Shipper is all binaries, for Options.Binaries.
func Shipper() []string { return []string{"shipper-webhook", "shipper-reconciler", "shipperctl"} }

// Main starts what the tests of a package share, runs them, and returns the exit code for os.Exit. All processes end with
// the tests, and when they are interrupted.
func Main(m *testing.M, o Options) (code int) {
	if o.Nightly != "" && !IsNightly() {
		fmt.Println("only in `make nightly`: " + o.Nightly)
		return 0
	}
	ctrl.SetLogger(logr.Discard())
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	dir, err := os.MkdirTemp("", "shipper-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	e := &Env{Dir: dir}
	defer func() {
		if err := e.end(); err != nil {
			fmt.Fprintln(os.Stderr, "at the end of the tests:", err)
			code = max(code, 1)
		}
	}()
	done := make(chan int, 1)
	go func() { done <- e.run(ctx, m, o) }()
	select {
	case code = <-done:
		return code
	case <-ctx.Done():
		return interrupted
	}
}

// run starts everything, and runs the tests.
func (e *Env) run(ctx context.Context, m *testing.M, o Options) int {
	began := time.Now()
	if err := e.begin(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintf(os.Stderr, "set-up ready after %s\n", time.Since(began).Round(100*time.Millisecond)) // hack/runtests sums these lines
	code := m.Run()
	if o.Check == nil {
		return code
	}
	if err := o.Check(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// AtEnd calls end after the tests, the last one first.
func (e *Env) AtEnd(end func() error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closers = append(e.closers, end)
}

func (e *Env) end() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var errs []error
	if e.Pod != nil {
		errs = append(errs, e.Pod.Stop())
	}
	for _, end := range slices.Backward(e.closers) {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

// begin builds while the fleet starts.
func (e *Env) begin(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	e.AtEnd(func() error { cancel(); return nil })
	defer time.AfterFunc(startTimeout, cancel).Stop()
	built := make(chan error, 1)
	go func() {
		if len(o.Binaries) == 0 {
			built <- nil
			return
		}
		built <- pod.Build(ctx, e.Dir, o.Binaries...)
	}()
	if err := errors.Join(e.start(ctx, "", o.Fleet), <-built); err != nil {
		return err
	}
	if o.SetUp == nil {
		return nil
	}
	if err := o.SetUp(ctx, e); err != nil {
		return fmt.Errorf("setting up: %w", err)
	}
	return nil
}

// Another starts another fleet. Its name says where in Dir its files go. It shares the binaries and the charts of e.
func (e *Env) Another(ctx context.Context, name string, o fleet.Options) (*Env, error) {
	other := &Env{Dir: e.Dir, Charts: e.Charts}
	e.AtEnd(other.end)
	return other, other.start(ctx, name, o)
}

// start starts a fleet, and makes clients for it.
func (e *Env) start(ctx context.Context, name string, o fleet.Options) error {
	var err error
	o.Dir = filepath.Join(e.Dir, name+"fleet")
	if e.Fleet, err = fleet.Start(ctx, o); err != nil {
		return fmt.Errorf("starting the fleet: %w", err)
	}
	e.AtEnd(e.Fleet.Stop)
	if e.Charts == nil {
		if e.Charts, err = charts.Start(); err != nil {
			return fmt.Errorf("serving charts: %w", err)
		}
		e.AtEnd(func() error { e.Charts.Close(); return nil })
	}
	if e.Management, err = pod.NewClient(e.Fleet.Management.Config); err != nil {
		return err
	}
	e.Clusters = map[string]client.WithWatch{}
	for _, c := range e.Fleet.Applications {
		if e.Clusters[c.Name], err = pod.NewClient(c.Config); err != nil {
			return err
		}
	}
	e.PodOptions = pod.Options{Management: e.Fleet.Management, Bin: e.Dir, Dir: filepath.Join(e.Dir, name+"shipper")}
	if err := os.MkdirAll(e.PodOptions.Dir, 0o700); err != nil {
		return fmt.Errorf("making a folder for Shipper: %w", err)
	}
	e.PodOptions.WebhookPort, err = pod.FreePort()
	return err
}

// Install sets the fleet up with shipperctl, for what the text of a clusters.yaml says.
func (e *Env) Install(ctx context.Context, clusters string) error {
	return pod.SetUp(ctx, e.Fleet, e.Dir, clusters, e.PodOptions.WebhookPort)
}

// StartPod starts Shipper, and returns when it is ready.
func (e *Env) StartPod(ctx context.Context) error {
	var err error
	e.Pod, err = pod.Start(ctx, e.PodOptions)
	return err
}

// Setup is the set-up of the management cluster, in process, for a webhook that listens on port.
func (e *Env) Setup(port int) (*install.Management, error) {
	c, err := install.NewClient(e.Fleet.Management.Config)
	if err != nil {
		return nil, err
	}
	where, err := url.Parse(pod.WebhookURL(port))
	return &install.Management{
		Client: c, Report: install.NewReport(io.Discard), Namespace: shipper.SystemNamespace,
		GlobalBlocksNamespace: shipper.GlobalBlocksNamespace, ServiceAccount: shipper.ManagementServiceAccount,
		WebhookURL: where, Patience: install.DefaultPatience,
	}, err
}
