// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/client-go/discovery"
)

// discoveries list what the API server serves, once for all requests that look for kinds that are not known: one at a time, so that
// a tenant that names a hundred kinds which are not served delays no other for longer than one takes.
type discoveries struct {
	api discovery.DiscoveryInterface

	mu      sync.Mutex
	running bool
	next    *inventory // the one that has not begun; nil if no request waits for it
}

// inventory is what the API server serves.
type inventory struct {
	done chan struct{} // closed when the rest is set
	has  map[look]bool
	// partial means that some groups did not respond: a kind that is not there may be served.
	partial bool
	err     error
}

// await returns an inventory that begins after the call.
func (d *discoveries) await(ctx context.Context) (*inventory, error) {
	d.mu.Lock()
	if d.next == nil {
		d.next = &inventory{done: make(chan struct{})}
	}
	mine := d.next
	if !d.running {
		d.running = true
		go d.run()
	}
	d.mu.Unlock()
	select {
	case <-mine.done:
		return mine, mine.err
	case <-ctx.Done():
		return nil, fmt.Errorf("the API server takes long to list its kinds: %w", ctx.Err())
	}
}

// run makes inventories as long as requests wait for one.
func (d *discoveries) run() {
	for {
		d.mu.Lock()
		this := d.next
		d.next = nil
		if d.running = this != nil; !d.running {
			d.mu.Unlock()
			return
		}
		d.mu.Unlock()
		this.read(d.api)
		close(this.done)
	}
}

func (i *inventory) read(api discovery.DiscoveryInterface) {
	_, lists, err := api.ServerGroupsAndResources()
	if i.partial = err != nil; i.partial && len(lists) == 0 {
		i.err = fmt.Errorf("listing kinds: %w", err)
		return
	}
	i.has = map[look]bool{}
	for _, list := range lists {
		for _, r := range list.APIResources {
			gvk := groupVersionKind(list.GroupVersion, &r)
			i.has[look{gvk.GroupKind(), ""}], i.has[look{gvk.GroupKind(), gvk.Version}] = true, true
		}
	}
}
