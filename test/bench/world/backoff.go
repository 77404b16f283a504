// SPDX-License-Identifier: Apache-2.0

package world

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// behindItself is what Kubernetes' controller of EndpointSlices logs when it is asked to write slices of a Service before it has
// seen its own last write of them. It tries again a second later, and the slices lag until then.
const behindItself = "EndpointSlice informer cache is out of date"

// SlicesLate is how often the slices of a Service in an application cluster came a second late for that.
func (w *World) SlicesLate() (int, error) {
	n := 0
	for _, c := range w.Fleet.Applications {
		log, err := os.ReadFile(filepath.Join(w.dir, "fleet", "logs", c.Name+"-kube-controller-manager.log"))
		if err != nil {
			return 0, fmt.Errorf("reading what the controllers of %s say: %w", c.Name, err)
		}
		n += bytes.Count(log, []byte(behindItself))
	}
	return n, nil
}
