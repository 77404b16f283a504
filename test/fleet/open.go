// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"k8s.io/client-go/tools/clientcmd"
)

// errNotOurs is the error of starting or stopping parts of clusters that Open has found.
var errNotOurs = errors.New("this process did not start the cluster")

// Open finds the clusters of a kubeconfig: its current context is the management cluster, the others are application
// clusters, sorted by name. They can be used, but neither started nor stopped; Stop removes only the files that the fleet has
// written.
func Open(kubeconfig string) (*Fleet, error) {
	path, err := filepath.Abs(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("finding %s: %w", kubeconfig, err)
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return nil, fmt.Errorf("finding the files that %s names: %w", path, err)
	}
	f := &Fleet{}
	f.stop = sync.OnceValue(f.end)
	if f.Dir, f.lock, err = temporary(); err != nil {
		return nil, err
	}
	f.temporary = true
	var names []string
	for name := range config.Contexts {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		one := *config
		one.CurrentContext = name
		c := &Cluster{Name: name, fleet: f, Kubeconfig: filepath.Join(f.Dir, name+".kubeconfig")}
		c.Config, err = clientcmd.NewDefaultClientConfig(one, nil).ClientConfig()
		if err == nil {
			c.Config.QPS = unlimited
			err = writeKubeconfig(&one, c.Kubeconfig)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("context %s of %s: %w", name, path, err), f.Stop())
		}
		if name == config.CurrentContext {
			f.Management = c
		} else {
			f.Applications = append(f.Applications, c)
		}
	}
	if f.Management == nil {
		return nil, errors.Join(fmt.Errorf("%s has no current context", path), f.Stop())
	}
	f.Kubeconfig = path
	return f, nil
}
