// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"

	shipper "shipper.dev/shipper/apis/shipper/v1alpha1"
	"shipper.dev/shipper/reconciler/retry"
)

// identity is what is known of who this management cluster is.
type identity struct {
	id  string
	err error // why there is none; nil while it is only not known yet
}

// Identify sets the identity of this management cluster, or by err why it is not known. Until it is, Get returns an error for every
// cluster. The handlers of WatchMembers are called when it changes.
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

// missing is the error of Get while the identity is not known.
func (i identity) missing(cluster string) *Error {
	out := &Error{Cluster: cluster, Reason: shipper.TargetClusterClientError, Err: i.err}
	if i.err == nil {
		out.Message, out.Pending = "it is not known yet which management cluster this is", true
		return out
	}
	out.Message = retry.Brief(i.err)
	return out
}
