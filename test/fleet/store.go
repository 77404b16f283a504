// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"shipper.dev/shipper/test/program"
)

// store is an etcd: the one that the clusters share, each under a prefix of its own, or that of a single cluster.
type store struct {
	fleet *Fleet
	name  string
	port  *program.Port
	data  string // folder
	etcd  *program.Process
}

// startStore starts an etcd without data. API servers wait for it.
func (f *Fleet) startStore(name string) (*store, error) {
	s := &store{fleet: f, name: name, data: filepath.Join(f.Dir, name)}
	if err := os.RemoveAll(s.data); err != nil {
		return nil, fmt.Errorf("removing what an earlier fleet left: %w", err)
	}
	var err error
	if s.port, err = program.ReservePort(); err != nil {
		return nil, err
	}
	f.stores = append(f.stores, s)
	return s, s.start()
}

func (s *store) start() error {
	var err error
	s.etcd, err = s.fleet.run(s.name, filepath.Join(s.fleet.programs, "etcd"), etcdArgs(s.port, s.data))
	return err
}

// url returns the URL of a path of etcd.
func (s *store) url(path string) string { return "http://" + s.port.Address() + path }

// Snapshot is a copy of the data of a cluster's etcd.
type Snapshot struct {
	cluster *Cluster
	data    string // folder
}

// errShared is the error of restoring a cluster that shares its etcd.
var errShared = errors.New("the cluster shares its etcd with others; name it in Options.OwnEtcd")

// Snapshot copies the data of the cluster, which must be one of Options.OwnEtcd. Its programs are paused for a moment.
func (c *Cluster) Snapshot() (*Snapshot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.store == nil {
		return nil, fmt.Errorf("%s: %w", c.Name, errNotOurs)
	}
	if c.store == c.fleet.stores[0] {
		return nil, fmt.Errorf("%s: %w", c.Name, errShared)
	}
	data, err := os.MkdirTemp(c.fleet.Dir, c.Name+"-snapshot-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for a snapshot of %s: %w", c.Name, err)
	}
	if err := c.store.etcd.Signal(syscall.SIGSTOP); err != nil {
		return nil, err
	}
	err = errors.Join(awaitSilence(http.DefaultClient, c.store.url("/health")), os.CopyFS(data, os.DirFS(c.store.data)),
		c.store.etcd.Signal(syscall.SIGCONT))
	if err != nil {
		return nil, fmt.Errorf("taking a snapshot of %s: %w", c.Name, err)
	}
	return &Snapshot{cluster: c, data: data}, nil
}

// Restore restores the cluster from a snapshot, as an administrator would from a backup of etcd: it stops all programs and
// starts them with the old data. Resource versions decrease. It returns when the cluster is usable.
func (c *Cluster) Restore(ctx context.Context, s *Snapshot) error {
	if s.cluster != c {
		return fmt.Errorf("%s: the snapshot is of %s", c.Name, s.cluster.Name)
	}
	if err := c.putBack(s); err != nil {
		return fmt.Errorf("restoring %s: %w", c.Name, err)
	}
	if err := c.StartAPIServer(ctx); err != nil {
		return err
	}
	if err := c.startControllers(); err != nil {
		return err
	}
	return c.awaitUse(ctx)
}

// putBack stops all programs of the cluster and starts etcd with the snapshot.
func (c *Cluster) putBack(s *Snapshot) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range append(c.running(), c.store.etcd) {
		if err := p.Kill(); err != nil {
			return err
		}
	}
	c.others, c.manager, c.apiServer = nil, nil, nil
	if err := errors.Join(os.RemoveAll(c.store.data), os.CopyFS(c.store.data, os.DirFS(s.data))); err != nil {
		return err
	}
	return c.store.start()
}

// validateStores refuses an etcd for a cluster that does not exist.
func (o Options) validateStores() error {
	for _, name := range o.OwnEtcd {
		if name != ManagementName && !slices.Contains(o.Applications, name) {
			return fmt.Errorf("an etcd of its own for %q: there is no such cluster", name)
		}
	}
	return nil
}
