// SPDX-License-Identifier: Apache-2.0

// Package fleet starts real Kubernetes clusters on this machine: a management cluster and any number of application clusters,
// with API servers, controllers and schedulers, and with simulated nodes.
//
// The tag of an image decides what its container does: `broken` cannot be pulled, `slow` is ready after four seconds, `crash`
// exits again and again; any other is ready at once.
package fleet

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"shipper.dev/shipper/test/program"
)

// ManagementName is the name of the management cluster.
const ManagementName = "mgmt"

// startTimeout bounds a start, also on a busy machine. A program that exits is not waited for.
const startTimeout = 10 * time.Minute

//go:embed stages/*.yaml
var stages embed.FS

// Options describe a fleet. The zero value is a management cluster alone, in a temporary folder.
type Options struct {
	// Applications are the names of the application clusters. Each is a DNS label other than ManagementName.
	Applications []string
	// OwnEtcd lists clusters that have an etcd of their own, so that Cluster.Restore can restore them. The others
	// share one.
	OwnEtcd []string
	// Podless lists application clusters that have no nodes and no scheduler: Pods are created there and never run. Such a
	// cluster takes half of the memory.
	Podless []string
	// CRDs are files and folders with CustomResourceDefinitions for the management cluster. Kinds that are installed
	// later are not garbage-collected in their first 30 seconds, unless Cluster.RestartControllers is called.
	CRDs []string
	// Dir is where the fleet keeps its files; it should not exist yet or be empty, and it stays after Stop. By default the
	// fleet creates a temporary folder and removes it.
	Dir string
	// Progress gets a line for each step of the start. By default there is no output, unless the control plane has to be
	// built first, which is reported to standard error.
	Progress io.Writer
}

// Fleet is a management cluster and its application clusters, up and ready.
type Fleet struct {
	// Management has Shipper's own objects. Pods run there, too.
	Management *Cluster
	// Applications are in the order of Options.Applications.
	Applications []*Cluster
	// Dir has the kubeconfigs of the fleet, and its programs' output in logs.
	Dir string
	// Kubeconfig is a file with one context for each cluster, named like the cluster. Management is the current one.
	Kubeconfig string

	programs  string // folder, of the management cluster's; etcd is there as well
	stages    string // folder
	temporary bool
	lock      *os.File
	stores    []*store // the first is shared

	mu       sync.Mutex // guards progress
	progress io.Writer

	stop func() error
}

// Start starts a fleet and returns when it is ready. ctx bounds the start alone: the fleet runs until Stop, or until this
// process exits in any way.
func Start(ctx context.Context, o Options) (*Fleet, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	f := &Fleet{progress: o.Progress}
	f.stop = sync.OnceValue(f.end)
	if err := f.start(ctx, o); err != nil {
		return nil, errors.Join(err, f.Stop())
	}
	return f, nil
}

// validate refuses names that cannot be part of paths and prefixes.
func (o Options) validate() error {
	label := regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?$`)
	seen := map[string]bool{ManagementName: true}
	for _, name := range o.Applications {
		if !label.MatchString(name) {
			return fmt.Errorf("application cluster %q: not a DNS label of at most 52 characters", name)
		}
		if seen[name] {
			return fmt.Errorf("application cluster %q: the name is taken", name)
		}
		seen[name] = true
	}
	if len(seen) > 100 {
		return fmt.Errorf("%d clusters: at most 100 are possible", len(seen))
	}
	for _, name := range o.Podless {
		if !slices.Contains(o.Applications, name) {
			return fmt.Errorf("podless cluster %q: not among the application clusters", name)
		}
	}
	return o.validateStores()
}

// start implements Start; on failure the caller calls Stop for the parts that were started.
func (f *Fleet) start(ctx context.Context, o Options) error {
	began := time.Now()
	progress := o.Progress
	if progress == nil {
		progress = os.Stderr
	}
	management, applications := versions()
	var err error
	if f.programs, err = binaries(ctx, progress, management); err != nil {
		return err
	}
	theirs := f.programs
	if applications != management && len(o.Applications) > 0 {
		if theirs, err = binaries(ctx, progress, applications); err != nil {
			return err
		}
	}
	if err := f.prepare(o.Dir); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	shared, err := f.startStore("etcd")
	if err != nil {
		return err
	}
	in := func(name string) (*store, error) {
		if slices.Contains(o.OwnEtcd, name) {
			return f.startStore(name + "-etcd")
		}
		return shared, nil
	}
	store, err := in(ManagementName)
	if err != nil {
		return err
	}
	if f.Management, err = newCluster(f, 0, ManagementName, f.programs, store); err != nil {
		return err
	}
	for i, name := range o.Applications {
		if store, err = in(name); err != nil {
			return err
		}
		c, err := newCluster(f, i+1, name, theirs, store)
		if err != nil {
			return err
		}
		c.podless = slices.Contains(o.Podless, name)
		f.Applications = append(f.Applications, c)
	}
	if err := f.writeKubeconfig(); err != nil {
		return err
	}
	if err := f.startClusters(ctx, o.CRDs); err != nil {
		return err
	}
	f.say("fleet ready after %s", since(began))
	if f.progress == nil && testing.Testing() { // hack/runtests sums these lines
		fmt.Fprintf(os.Stderr, "fleet ready after %s\n", since(began))
	}
	return nil
}

// prepare creates the fleet's folders.
func (f *Fleet) prepare(dir string) error {
	var err error
	if f.Dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("finding the fleet's folder: %w", err)
	}
	if dir == "" {
		sweep()
		if f.Dir, f.lock, err = temporary(); err != nil {
			return err
		}
		f.temporary = true
	}
	if _, err = f.folder("logs"); err != nil {
		return err
	}
	if f.stages, err = f.folder("stages"); err != nil {
		return err
	}
	files, err := stages.ReadDir("stages")
	if err != nil {
		return fmt.Errorf("reading the stages: %w", err)
	}
	for _, file := range files {
		text, err := stages.ReadFile("stages/" + file.Name())
		if err != nil {
			return fmt.Errorf("reading the stages: %w", err)
		}
		if err := os.WriteFile(filepath.Join(f.stages, file.Name()), text, 0o644); err != nil {
			return fmt.Errorf("writing the stages: %w", err)
		}
	}
	return nil
}

// folder creates a folder in the fleet's own.
func (f *Fleet) folder(path ...string) (string, error) {
	folder := filepath.Join(append([]string{f.Dir}, path...)...)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("making a folder of the fleet: %w", err)
	}
	return folder, nil
}

// run starts a program under a name that also names its log.
func (f *Fleet) run(name, path string, args []string) (*program.Process, error) {
	log := filepath.Join(f.Dir, "logs", name+".log")
	return program.Start(name, log, environment(f.Dir), path, args...)
}

// startClusters starts all clusters in parallel. When one fails it gives up the others.
func (f *Fleet) startClusters(ctx context.Context, crds []string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var first error
	var once sync.Once
	for _, c := range f.Clusters() {
		wanted := crds
		if c != f.Management {
			wanted = nil
		}
		wg.Go(func() {
			if err := c.start(ctx, wanted); err != nil {
				once.Do(func() {
					first = err
					cancel(errors.New("another cluster failed"))
				})
			}
		})
	}
	wg.Wait()
	return first
}

// Clusters returns all clusters of the fleet, the management cluster first.
func (f *Fleet) Clusters() []*Cluster {
	return append([]*Cluster{f.Management}, f.Applications...)
}

// writeKubeconfig writes the file with contexts for all clusters.
func (f *Fleet) writeKubeconfig() error {
	config := clientcmdapi.NewConfig()
	for _, c := range f.Clusters() {
		addContext(config, c.Name, c.Name+"-admin", c.Config)
	}
	config.CurrentContext = ManagementName
	f.Kubeconfig = filepath.Join(f.Dir, "kubeconfig")
	return writeKubeconfig(config, f.Kubeconfig)
}

// Stop kills the programs of the fleet, as nothing of their data is kept, and removes the data. Further calls do nothing. Its error names
// programs that had exited before on their own.
func (f *Fleet) Stop() error { return f.stop() }

func (f *Fleet) end() error {
	var all []*program.Process
	for _, c := range f.Clusters() {
		if c == nil {
			continue
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		all = append(all, c.running()...)
		if c.port != nil {
			defer c.port.Release()
		}
	}
	for _, s := range f.stores {
		if s.etcd != nil {
			all = append(all, s.etcd)
		}
	}
	errs := []error{program.Stop(0, all...)}
	for _, s := range f.stores {
		s.port.Release()
		errs = append(errs, os.RemoveAll(s.data))
	}
	if f.temporary {
		errs = append(errs, os.RemoveAll(f.Dir), f.lock.Close())
	}
	return errors.Join(errs...)
}

// say prints a line of progress.
func (f *Fleet) say(format string, args ...any) {
	if f.progress == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	fmt.Fprintf(f.progress, format+"\n", args...)
}

// since returns how long something took, rounded for output.
func since(began time.Time) time.Duration { return time.Since(began).Round(100 * time.Millisecond) }
