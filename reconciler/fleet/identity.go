// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
)

// identity is what is known of who this management cluster is.
type identity struct {
	id  string
	err error // why there is none; nil while it is only not known yet
}

// Identify says who this management cluster is, or by err why that is not known. Until it is, nobody works in any
// cluster. Whoever registered with WatchMembers is woken when it changes.
func (f *Fleet) Identify(id string, err error) {
	f.mu.Lock()
	was := f.identity
	f.identity = identity{id: id, err: err}
	var names []string
	for name := range f.connections {
		names = append(names, name)
	}
	f.mu.Unlock()
	if was.id == id && fmt.Sprint(was.err) == fmt.Sprint(err) {
		return
	}
	for _, name := range names {
		f.notify(name)
	}
}

// missing is why nobody works in a cluster that could be worked with.
func (i identity) missing(cluster string) *Error {
	out := &Error{Cluster: cluster, Reason: shipper.TargetClusterClientError, Err: i.err}
	if i.err == nil {
		out.Message, out.Pending = "it is not known yet which management cluster this is", true
		return out
	}
	out.Message = i.err.Error()
	return out
}
